"""The public objects of ocrep: what the reference shows, and what tests/docs/test_docstrings.py checks."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import ocrep

BETWEEN_ROOMS = {
    "Factor": (
        "centred",
        "from_arrays",
        "held_out",
        "means",
        "problem",
        "squared_error_by_target",
        "to_arrays",
        "triangle",
    ),
    "Spectrum": ("right", "solution"),
    "RandomLayer": ("draw", "take"),
    "Rule": ("check_per_target", "for_own_features", "named"),
    "Fixed": ("for_own_features", "named"),
    "RidgeFormula": ("named",),
    "FlooredRule": ("at_least_floor", "for_own_features", "least_gamma"),
    "Numbered": ("check_plan",),
    "_Search": ("partial_fit",),
} | dict.fromkeys(
    ("CriterionRule", "GCV", "Mallows", "AIC", "AICc", "BIC", "MarginalLikelihood", "LCurve", "QuasiOptimality"),
    ("by_target", "criterion", "searched"),
)
"""Methods without an underscore by class that users do not need: other rooms call them, or they only raise."""


def is_shown(function: Any) -> bool:
    """Whether a method or property is for users."""
    function = inspect.unwrap(getattr(function, "fget", None) or getattr(function, "__func__", function))
    kind, _, name = getattr(function, "__qualname__", "").rpartition(".")
    return name not in BETWEEN_ROOMS.get(kind, ())


def names() -> Iterator[tuple[str, Any]]:
    """Every public class and function with its public name: those of `ocrep`, and those of its public modules."""
    for name in ocrep.__all__:
        found = getattr(ocrep, name)
        if inspect.ismodule(found):
            members = getattr(found, "__all__", [member for member in vars(found) if not member.startswith("_")])
            for member in members:
                if inspect.isclass(kind := getattr(found, member)) or inspect.isfunction(kind):
                    yield f"ocrep.{name}.{member}", kind
        elif callable(found):
            yield f"ocrep.{name}", found


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """The methods and properties of a public class that this library defines for users."""
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        if not isinstance(member, property | classmethod | staticmethod):
            member = getattr(kind, name)  # also a method that only some objects have
        function = inspect.unwrap(getattr(member, "fget", None) or getattr(member, "__func__", member))
        own = inspect.isfunction(function) and function.__module__.startswith("ocrep.")
        if own and not name.startswith("_") and is_shown(member):
            yield name, member
