"""The typer application: all commands under their names."""

from __future__ import annotations

from typing import Annotated

import typer

from ocrep import __version__
from ocrep.cli.commands.analysis import compare, datasets, diagnose, study_full, study_quick, study_report
from ocrep.cli.commands.models import export, fit, inspect, predict
from ocrep.cli.exit_codes import EPILOG

app = typer.Typer(no_args_is_help=True, epilog=EPILOG, pretty_exceptions_enable=False)


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


for command in (fit, predict, inspect, export, diagnose, compare, datasets):
    app.command()(command)
study_help = "Recompute the tables and figures of the paper, and compare them with the published ones."
study = typer.Typer(no_args_is_help=True, help=study_help)
study.command("quick")(study_quick)
study.command("full")(study_full)
study.command("report")(study_report)
app.add_typer(study, name="study")
