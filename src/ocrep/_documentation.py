"""Docstrings inherited by section, and values shown in short."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable
from dataclasses import fields
from inspect import cleandoc, signature
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

_BY_NAME = ("Parameters", "Attributes", "See Also")
_ORDER = ("", *_BY_NAME, "Notes", "References", "Examples")

_SHORT = reprlib.Repr()
_SHORT.maxlist = 4
_SHORT.maxdict = 4
_SHORT.maxstring = 60
_SHORT.maxother = 120


def shown_in_short(value: Any) -> str:
    """The `repr` of a dataclass: fields that differ from their defaults, arrays by their shape, long lists cut."""
    shown = [
        f"{each.name}={_in_short(getattr(value, each.name))}"
        for each in fields(value)
        if each.repr and getattr(value, each.name) is not each.default
    ]
    return f"{type(value).__name__}({', '.join(shown)})"


def _in_short(value: Any) -> str:
    shape = getattr(value, "shape", ())
    return f"<{' × '.join(map(str, shape))}>" if shape else _SHORT.repr(value)


class Documented:
    """A class whose subclasses inherit the sections of its docstring."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        inherit_sections(cls)


def inherit_sections(kind: type) -> None:
    """Add the sections of its bases to the docstring of a public class of this package.

    Entries of parameters, attributes and "See Also" are merged by name, and the nearest class decides. A parameter is
    inherited only if the class takes it. The other sections are inherited as a whole.
    """
    if kind.__name__.startswith("_") or not _is_documented(kind):
        return
    merged: dict[str, dict[str, str]] = {title: {} for title in _ORDER}
    for base in filter(_is_documented, kind.__mro__):
        for title, entries in _sections(base).items():
            merged[title] |= {name: text for name, text in entries.items() if name not in merged[title]}
    # The fields of a dataclass are not in the signature before its decorator has run.
    taken = dict.fromkeys([*signature(kind).parameters, *_sections(kind).get("Parameters", ())])
    merged["Parameters"] = {name: merged["Parameters"][name] for name in taken if name in merged["Parameters"]}
    summary = merged.pop("")[""]
    kind.__doc__ = summary + "".join(
        f"\n\n{title}\n{'-' * len(title)}\n" + "\n".join(entries.values())
        for title, entries in merged.items()
        if entries
    )


def _is_documented(kind: type) -> bool:
    return kind.__module__.startswith("ocrep.") and bool(kind.__doc__)


def _sections(kind: type) -> dict[str, dict[str, str]]:
    """Each section's entries by name; the summary and the sections without entries are one entry."""
    summary, *rest = re.split(r"\n\n([A-Z][A-Za-z ]+)\n-{3,}\n", cleandoc(kind.__doc__ or ""))
    sections = {"": {"": summary}}
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        entries = re.split(r"\n(?=\S)", body) if title in _BY_NAME else [body]
        sections[title] = {entry.partition(" : ")[0] if title in _BY_NAME else "": entry for entry in entries}
    return sections


def function_of_gamma(kind: str, meaning: str) -> Callable[[Method], Method]:
    """Add the parameter γ, and what is returned, to the docstring of a method that takes nothing else."""

    def documented(method: Method) -> Method:
        method.__doc__ = (
            f"{method.__doc__}\n\nParameters\n----------\ngamma : float or array\n    γ ≥ 0.\n\n"
            f"Returns\n-------\n{kind}\n    {meaning}\n"
        )
        return method

    return documented
