"""Files that are whole or not there: written beside their place, then renamed."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path in the same folder; at the end it takes the place of `path`, on error it is removed.

    A rename within one file system is atomic, so an interrupted write never harms the old file. A link stays one, and
    what it leads to is replaced.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        # Whoever may would rename a file over a device such as /dev/null, and every program would lose it.
        raise OSError(errno.EINVAL, "it is no plain file", os.fspath(path))
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())
        # mkstemp gives 0600: a replaced file keeps its mode, a new one gets what open() would give.
        part.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
