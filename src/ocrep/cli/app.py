"""The typer application: all commands under their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from ocrep import __version__
from ocrep.cli.commands.analysis import compare, datasets, diagnose, study_full, study_quick, study_report
from ocrep.cli.commands.models import export, fit, inspect, predict
from ocrep.cli.examples import EXAMPLES
from ocrep.cli.exit_codes import EPILOG
from ocrep.cli.grouped import Command

# Plain help: that of rich cuts the names of options on a terminal of 80 columns.
_PLAIN: dict[str, Any] = {"no_args_is_help": True, "rich_markup_mode": None, "pretty_exceptions_enable": False}
app = typer.Typer(epilog=EPILOG, **_PLAIN)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"ocrep {__version__}")
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback with an error; with any command.")] = False,
) -> None:
    """Neural networks trained in closed form, with the regularization chosen by mathematics instead of search."""


study_help = "Recompute the paper, and compare with its tables."
study = typer.Typer(help=study_help, **_PLAIN)
_COMMANDS: tuple[Callable[..., None], ...] = (fit, predict, inspect, export, diagnose, compare, datasets)
_OF_STUDY: dict[str, Callable[..., None]] = {"quick": study_quick, "full": study_full, "report": study_report}
for command in _COMMANDS:
    app.command(cls=Command, epilog=EXAMPLES[command.__name__])(command)
for name, command in _OF_STUDY.items():
    study.command(name, cls=Command, epilog=EXAMPLES[f"study {name}"])(command)
app.add_typer(study, name="study")
