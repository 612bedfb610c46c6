"""`grouped`: a command whose options come in groups, each a dataclass, and a help text that shows them so."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from typer.core import TyperCommand
from typer.models import ParameterInfo

_NAMES_WIDTH = 30


def grouped(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command take each field of a parameter that is a dataclass as an option of its own.

    The options stand in the help under the class's `panel`.
    """
    hints = get_type_hints(function, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in groups:
            parameters += _parameters(groups[name])
        else:
            parameters.append(_keyword(name, hints[name], parameter.default))

    @wraps(function)
    def command(**values: Any) -> Any:
        packed = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        return function(**packed, **values)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _parameters(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    found = []
    for field in fields(group):
        hint = hints[field.name]
        assert get_origin(hint) is Annotated
        kind, info = get_args(hint)
        assert isinstance(info, ParameterInfo)
        info = copy(info)
        info.rich_help_panel = group.panel
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        found.append(_keyword(field.name, Annotated[kind, info], default))
    return found


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


class Command(TyperCommand):
    """A command whose help is plain text: no option is cut on a narrow terminal, and examples come last."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options by group."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
                panels.setdefault(getattr(parameter, "rich_help_panel", None) or usual, []).append(record)
        for panel, records in panels.items():
            with formatter.section(panel):
                formatter.write_dl(records, col_max=_NAMES_WIDTH)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples as they are."""
        if self.epilog:
            formatter.write_paragraph()
            formatter.write("Examples:\n")
            formatter.write("".join(f"  {line}\n" for line in self.epilog.splitlines()))
