"""The command line of the study: `python -m study quick --out FOLDER`, from the root of the repository."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from study.page import report
from study.protocol import PROTOCOLS, Protocol
from study.running import load_study, publish, run

RUNS = {
    "quick": "run all experiments at a small size: about a minute",
    "full": "run all experiments as in the paper: about two hours of one core",
}


def main(arguments: Sequence[str] | None = None, protocols: Mapping[str, Protocol] = PROTOCOLS) -> None:
    """Run one command; an expected error ends the program with one sentence and code 1."""
    asked = parser().parse_args(arguments)
    try:
        if asked.command == "publish":
            print(f"{publish(asked.folder, asked.file)} holds the results.")
            return
        if asked.command == "report":
            study = load_study(asked.source)
            default = asked.source if asked.source.is_dir() else asked.source.parent
        else:
            study = run(protocols[asked.command], asked.out, n_jobs=asked.jobs, seconds=asked.seconds)
            default = asked.out
        page = report(study, asked.out or default)
    except (OSError, RuntimeError, ValueError) as error:
        sys.exit(f"study: {error}")
    except KeyboardInterrupt:
        sys.exit("study: interrupted; the same command resumes.")
    figures = page.parent / "figures"
    print(f"{page} holds the report: its first page says what reproduces. The figures are in {figures}.")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    program = argparse.ArgumentParser(prog="python -m study", description="Recompute the paper, and compare with it.")
    commands = program.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in RUNS.items():
        command = commands.add_parser(name, help=text, description=f"{text.capitalize()}, and write the report.")
        where = "folder of results and report; an interrupted study resumes there"
        command.add_argument("--out", type=Path, required=True, metavar="FOLDER", help=where)
        command.add_argument("--jobs", type=_positive, default=2, metavar="N", help="worker processes (default: 2)")
        stop = "begin no job after this many seconds; the same command resumes"
        command.add_argument("--for", type=float, dest="seconds", metavar="SECONDS", help=stop)
    command = commands.add_parser("report", help="write the report of a folder or of a published file again")
    command.add_argument("source", type=Path, metavar="SOURCE", help="a folder of results, or a published Parquet file")
    command.add_argument("--out", type=Path, metavar="FOLDER", help="where to write; next to the results by default")
    command = commands.add_parser("publish", help="write the results of a folder as one Parquet file")
    command.add_argument("folder", type=Path, metavar="FOLDER", help="a folder of results")
    command.add_argument("file", type=Path, metavar="FILE", help="the Parquet file to write")
    return program


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


if __name__ == "__main__":
    main()
