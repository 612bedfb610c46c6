"""Files that are complete or absent: written under a temporary name, then renamed."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

# On POSIX a rename is refused only where no waiting helps.
_WAITS = (0.05, 0.2, 0.75) if os.name == "nt" else ()


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
    part = target.with_name(_part_name(target, uuid4().hex[:8]))
    # Until it has the mode of the file it replaces, only its owner may read it.
    part.touch(mode=0o600 if target.exists() else 0o666, exist_ok=False)
    try:
        yield part
        with part.open("r+b") as written:  # Windows flushes only files that are open for writing
            os.fsync(written.fileno())
        if target.exists():
            part.chmod(target.stat().st_mode & 0o777)
        _rename(part, target)
    finally:
        part.unlink(missing_ok=True)


def _rename(part: Path, target: Path) -> None:
    """Rename, and wait for a program that has the target open, such as a virus scanner: Windows refuses until then."""
    for seconds in _WAITS:
        try:
            part.replace(target)
        except PermissionError:
            time.sleep(seconds)
        else:
            return
    part.replace(target)


def unfinished(path: str | os.PathLike[str]) -> list[Path]:
    """Temporary files that writes of `path` left because the process was killed."""
    target = Path(os.path.realpath(path))
    pattern = re.compile(re.escape(_part_name(target, "#")).replace("\\#", "[0-9a-f]{8}"))
    return [other for other in target.parent.glob(".*.part") if pattern.fullmatch(other.name)]


def _part_name(target: Path, unique: str) -> str:
    # Most systems allow 255 bytes for a name.
    return f".{os.fsdecode(os.fsencode(target.name)[:200])}.{unique}.part"
