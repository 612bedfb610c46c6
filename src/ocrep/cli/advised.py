"""The command that a reader gave, as another one with other options: advice that can be copied."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from typer import Context


def command_of(context: Context, name: str, *, without: Collection[str] = (), more: Sequence[str] = ()) -> str:
    """The command `name` with what was given to this one, less the parameters `without`, and `more` at its end."""
    given = [
        parameter
        for parameter in context.command.params
        if parameter.name not in without and _was_given(context, parameter.name)
    ]
    words = [word for parameter in given for word in _words(parameter, context.params[parameter.name])]
    return shlex.join(["ocrep", name, *words, *more])


def _was_given(context: Context, name: str | None) -> bool:
    source = None if name is None else context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _words(parameter: Any, value: Any) -> Iterator[str]:
    if parameter.param_type_name == "argument":
        yield str(value)
    elif parameter.is_flag:
        yield max(parameter.opts if value else parameter.secondary_opts, key=len)
    else:
        for one in value if parameter.multiple else [value]:
            yield max(parameter.opts, key=len)
            yield str(one)
