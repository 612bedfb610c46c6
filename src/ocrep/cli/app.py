"""The typer application: every command under its name, with two examples at the end of its help."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ocrep import __version__
from ocrep.cli import commands
from ocrep.cli.running import MEANING

# Plain help: that of rich cuts the names of options on a terminal of 80 columns.
_PLAIN: dict[str, Any] = {"no_args_is_help": True, "rich_markup_mode": None, "pretty_exceptions_enable": False}
_EXIT_CODES = "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in MEANING.items()) + "."
app = typer.Typer(epilog=_EXIT_CODES, **_PLAIN)


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
    """Neural networks for tables, trained in closed form, with the regularization chosen by exact cross-validation."""


EXAMPLES = {
    "fit": """\
ocrep fit houses.csv --target price --out price.skops
ocrep fit sales.csv -t paid -o paid.skops --decimal , --class-weight balanced""",
    "predict": """\
ocrep predict price.skops new.csv --out prices.csv
ocrep predict price.skops new.csv --id house --interval 0.9 --digits 4""",
    "inspect": """\
ocrep inspect price.skops
ocrep inspect price.skops --json""",
    "explain": """\
ocrep explain price.skops new.csv
ocrep explain price.skops new.csv --row 17""",
    "export": """\
ocrep export price.skops price.onnx
ocrep export price.skops price.onnx --double""",
    "diagnose": """\
ocrep diagnose houses.csv --target price
ocrep diagnose houses.csv --target price --report page.html""",
    "compare": """\
ocrep compare houses.csv --target price
ocrep compare houses.csv --target price --splits 20 --all""",
    "datasets": """\
ocrep datasets
ocrep datasets iris wine --export data --format parquet""",
}


def _epilog(name: str) -> str:
    """The examples of a command; after \\b the lines of a help text stay as they are."""
    return f"Examples:\n\n\b\n{EXAMPLES[name]}"


# In the order in which `ocrep --help` lists them.
for name in ("fit", "predict", "explain", "inspect", "export", "diagnose", "compare", "datasets"):
    app.command(name, epilog=_epilog(name))(getattr(commands, name))
