"""`available_if`: a method that only some objects have; the others say why they do not have it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any


def available_if(check: Callable[[Any], None]) -> Callable[[Callable[..., Any]], Any]:
    """As scikit-learn's, but the check raises the AttributeError that users see: it names the argument to change."""
    return partial(_Method, check)


class _Method:
    def __init__(self, check: Callable[[Any], None], method: Callable[..., Any]) -> None:
        self._method, self._check, self.__doc__ = method, check, method.__doc__

    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self._method
        self._check(owner)
        return MethodType(self._method, owner)
