"""Options that several commands share, and the parsing of their values; numpy is imported only for names of rules."""

from __future__ import annotations

import math
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

from typer import Argument, BadParameter, Option

STANDARD_INPUT = "-"


def complete_gamma(incomplete: str) -> list[str]:
    """The names of rules that begin so, for the shell."""
    from ocrep import rules

    return [name for name in rules.names() if name.startswith(incomplete)]


def gamma_of(text: str | None) -> str | float | None:
    """Parse --gamma: a rule's name, or a number ≥ 0; None if it was not given."""
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        from ocrep import rules

        if text in rules.names():
            return text
        near = get_close_matches(text.lower(), rules.names(), n=3)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "examples are ocrep, kfold, gcv and none."
        problem = f"{text!r} is neither a number nor the name of a rule: {hint}"
    else:
        if math.isfinite(number) and number >= 0:
            return number
        problem = f"{text} must be a finite number ≥ 0, or the name of a rule."
    raise BadParameter(problem, param_hint="--gamma")


def n_hidden_of(text: str | None) -> int | str | None:
    """Parse --n-hidden: a whole number ≥ 1, or "auto"; None if it was not given."""
    if text is None:
        return None
    if text != "auto" and not (text.isdecimal() and len(text) <= 9 and int(text) >= 1):
        problem = f"{text!r} must be a whole number ≥ 1 of at most 9 digits, or auto."
        raise BadParameter(problem, param_hint="--n-hidden")
    return text if text == "auto" else int(text)


def check_share(test: float, *, zero: bool = False) -> None:
    """Check --test: a share between 0 and 1, or 0 if `zero` allows it."""
    if not (0 < test < 1 or (zero and test == 0)):
        also = ", or 0 for no test" if zero else ""
        raise BadParameter(f"{test:g} must be above 0 and below 1{also}.", param_hint="--test")


Data = Annotated[
    Path,
    Argument(
        metavar="DATA",
        help="A CSV, TSV or TXT (also .gz), Parquet or Feather/Arrow file with one row per line; a folder of such "
        "files, a quoted pattern such as 'part*.csv', or - for CSV from standard input.",
        show_default=False,
    ),
]
Model = Annotated[Path, Argument(metavar="MODEL", help="A file made by `ocrep fit`.", show_default=False)]
Test = Annotated[float, Option("--test", metavar="SHARE", help="Share of the rows held out to measure the error.")]
Seed = Annotated[int, Option("--seed", min=0, max=2**32 - 1, help="Seed of the split and of the hidden layer.")]
AsJson = Annotated[bool, Option("--json", help="Print one JSON object instead of text, also about an error.")]


def data_name(data: Path) -> str:
    """What a file is called in a sentence."""
    return "Standard input" if str(data) == STANDARD_INPUT else data.name


@contextmanager
def local_data(data: Path) -> Iterator[Path]:
    """The file to read; standard input is copied to a file, since it is read more than once."""
    if str(data) != STANDARD_INPUT:
        yield data
        return
    from ocrep._files.formats import DataError

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "input.csv"
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield copy
        except DataError as error:
            raise DataError(str(error).replace(str(copy), "standard input")) from error
