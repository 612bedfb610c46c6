"""Files that are complete or absent: written under a temporary name, then renamed."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path in the same folder that replaces `path` at the end; on error it is removed.

    A rename within one file system is atomic, so an interrupted write leaves the old file as it was. If `path` is a
    symbolic link, the link stays and the file it points to is replaced.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        # A rename over a device such as /dev/null, by a user who may, would take it from every program.
        raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())
        # mkstemp gives 0600: a replaced file keeps its mode, a new one gets the mode that open() would give.
        part.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
