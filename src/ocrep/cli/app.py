"""The program's commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from ocrep import __version__
from ocrep.cli import analysis_commands, model_commands
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


app.command("fit")(model_commands.fit)
app.command("predict")(model_commands.predict)
app.command("inspect")(model_commands.inspect)
app.command("export")(model_commands.export)
app.command("diagnose")(analysis_commands.diagnose)
app.command("compare")(analysis_commands.compare)
app.command("datasets")(analysis_commands.datasets)

study = typer.Typer(no_args_is_help=True, help="Recompute the paper: its tables and figures beside the published ones.")
study.command("quick")(analysis_commands.study_quick)
study.command("full")(analysis_commands.study_full)
study.command("report")(analysis_commands.study_report)
app.add_typer(study, name="study")
