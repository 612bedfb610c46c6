"""Two things about errors: an unknown name is refused with the nearest known one, and a failed call is undone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, TypeVar

Value = TypeVar("Value")


def pick(kind: str, name: object, table: Mapping[str, Value], also: str = "") -> Value:
    """Return `table[name]`; an unknown name raises an error that lists the known ones and the nearest."""
    if isinstance(name, str) and name in table:
        return table[name]
    near = get_close_matches(str(name).lower(), table, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    known = ", ".join(repr(key) for key in sorted(table))
    raise ValueError(f"Unknown {kind} {name!r}.{hint} Known: {known}{also}.")


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Take back every attribute set inside if it fails; nothing fitted may be changed in place."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise
