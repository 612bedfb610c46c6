"""How much memory this process may still take."""

from __future__ import annotations

from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def available_memory() -> int | None:
    """Bytes that are free, or that a container still allows; None where the system does not tell."""
    told = [size for size in (_free(), _allowed()) if size is not None]
    return min(told) if told else None


def _free() -> int | None:
    """Linux says how much could be taken without swapping."""
    for line in _read(_MEMINFO).splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return None


def _allowed() -> int | None:
    limit, used = (_read(_CGROUP / name).strip() for name in ("memory.max", "memory.current"))
    return max(0, int(limit) - int(used)) if limit.isdigit() and used.isdigit() else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""
