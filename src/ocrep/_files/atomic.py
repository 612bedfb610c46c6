"""Files that are complete or absent: written under a temporary name, then renamed."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


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
    part = target.with_name(f".{target.name}.{uuid4().hex[:8]}.part")
    # Until it has the mode of the file it replaces, only its owner may read it.
    part.touch(mode=0o600 if target.exists() else 0o666, exist_ok=False)
    try:
        yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())
        if target.exists():
            part.chmod(target.stat().st_mode & 0o777)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
