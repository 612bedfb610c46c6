"""Whether an object from a file holds what the annotations of its class say: a file may hold anything anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

# What may stand for a type besides its own objects.
_ALSO: dict[Any, tuple[type, ...]] = {
    bool: (int, np.bool_),
    int: (np.integer,),
    float: (int, np.integer, np.floating),
    Sequence: (np.ndarray,),
}


def check_annotated(part: Any) -> None:
    """Raise a ValueError if a field of a dataclass, or a fitted attribute of an estimator, is of another type."""
    kind: Any = type(part)
    hints = _hints(kind)
    if is_dataclass(part):
        names = [field.name for field in fields(part)]
    else:  # parameters are the user's, and judged when they are used
        own = getattr(part, "__dict__", {})
        names = [name for name in own if name in hints and "_" in (name[0], name[-1])]
    for name in names:
        value = getattr(part, name)
        if not _matches(value, hints[name]):
            raise ValueError(f"{kind.__name__}.{name} holds a {type(value).__name__}, which does not belong there.")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    # An `Array` may be of any library, but those of a file are NumPy's.
    return get_type_hints(kind, localns={"Array": np.ndarray})


def _matches(value: Any, hint: Any) -> bool:
    kind: Any = get_origin(hint) or hint
    inner = get_args(hint)
    if kind in (Union, UnionType):
        return any(_matches(value, one) for one in inner)
    if kind is Literal:
        return isinstance(value, str) and value in inner
    if kind is Any or not isinstance(kind, type):
        return True
    allowed: Any = (kind, *_ALSO.get(kind, ()))
    if not isinstance(value, allowed):
        return False
    if kind is dict:
        return all(_matches(key, inner[0]) and _matches(item, inner[1]) for key, item in value.items())
    return kind not in (list, tuple) or all(_matches(item, inner[0]) for item in value)
