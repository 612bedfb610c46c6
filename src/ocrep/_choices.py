"""One way to look up a named choice, and one way to refuse an unknown name."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TypeVar

Value = TypeVar("Value")


def pick(kind: str, name: object, table: Mapping[str, Value], also: str = "") -> Value:
    """Return `table[name]`; an unknown name raises an error that lists the known ones and the nearest."""
    if isinstance(name, str) and name in table:
        return table[name]
    near = get_close_matches(str(name).lower(), table, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    known = ", ".join(repr(key) for key in sorted(table))
    raise ValueError(f"Unknown {kind} {name!r}.{hint} Known: {known}{also}.")
