"""The options that several commands share, and what their values mean.

Each option is a type: a command that takes it annotates a parameter with it, and gives its default. The functions below
turn values into what the library takes, and refuse in one sentence those that it cannot take. `ocrep --help` must be
fast, so numpy and pyarrow are imported only where a value needs them.
"""

from __future__ import annotations

import math
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, BadParameter, Option

STANDARD_INPUT = "-"

# ------------------------------------------------------------------------------
# Data, models, and how results are measured and printed.

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
Report = Annotated[
    Path | None, Option("--report", "-r", metavar="HTML", help="The page about the model to write (.html).")
]
Quiet = Annotated[bool, Option("--quiet", help="Print no progress and no notes on standard error.")]
AsJson = Annotated[bool, Option("--json", help="Print one JSON object instead of text, also about an error.")]


def check_share(test: float, *, zero: bool = False) -> None:
    """Check --test: a share between 0 and 1, or 0 if `zero` allows it."""
    if not (0 < test < 1 or (zero and test == 0)):
        also = ", or 0 for no test" if zero else ""
        raise BadParameter(f"{test:g} must be above 0 and below 1{also}.", param_hint="--test")


def data_name(data: Path) -> str:
    """The name of a file in a sentence."""
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


# ------------------------------------------------------------------------------
# The table: what is learned from which columns and rows.

Target = Annotated[str, Option("--target", "-t", metavar="COLUMN", help="The column to learn.")]
Task = Annotated[
    Literal["auto", "regression", "classification"],
    Option("--task", help="auto guesses from the target, and prints the guess."),
]
DropMissingTarget = Annotated[
    bool, Option("--drop-missing-target", help="Leave out rows without a target; otherwise they are an error.")
]
Ignore = Annotated[
    list[str] | None, Option("--ignore", metavar="COLUMN", help="A column that is not an input; may be repeated.")
]
Keep = Annotated[
    list[str] | None, Option("--keep", metavar="COLUMN", help="An input even if it looks like an id; may be repeated.")
]
Dates = Annotated[
    Literal["day-first", "month-first", "drop"] | None,
    Option("--dates", help="How dates such as 01/02/2024 are read; drop leaves all dates out."),
]
Candidates = Annotated[
    Literal["quick", "default", "thorough"] | None,
    Option("--candidates", help="How many networks are tried for the stack."),
]
ClassWeight = Annotated[
    Literal["balanced"] | None,
    Option("--class-weight", help="balanced: rare classes count as much as frequent ones."),
]

# ------------------------------------------------------------------------------
# How a text file is written.

Decimal = Annotated[str | None, Option("--decimal", metavar="MARK", help="The decimal mark, such as a comma.")]
Thousands = Annotated[
    str | None, Option("--thousands", metavar="MARK", help="The mark between thousands, as in 26,313.93.")
]
Strip = Annotated[
    str | None, Option("--strip", metavar="SIGNS", help="Signs that are taken off numbers, such as '$%'.")
]
Missing = Annotated[
    list[str] | None,
    Option("--na", metavar="WORD", help="A word that stands for a missing value; may be repeated."),
]
Encoding = Annotated[
    str | None, Option("--encoding", metavar="NAME", help="The encoding, such as latin-1; UTF-8 by default.")
]
Delimiter = Annotated[
    str | None, Option("--delimiter", metavar="MARK", help="What stands between values; a character, or tab.")
]


def reading_options(
    decimal: str | None,
    thousands: str | None,
    strip: str | None,
    na: Sequence[str] | None,
    encoding: str | None,
    delimiter: str | None,
) -> dict[str, Any]:
    """The options that were given, by the names of `Reading`; raises if they do not go together."""
    from ocrep._files.reading import Reading

    values = {
        "decimal": decimal,
        "thousands": thousands,
        "strip": strip,
        "na": None if na is None else tuple(na),
        "encoding": encoding,
        "delimiter": "\t" if delimiter in ("tab", "\\t") else delimiter,
    }
    given: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    try:
        Reading(**given)
    except ValueError as error:
        raise BadParameter(f"--{error}") from None
    return given


# ------------------------------------------------------------------------------
# One network, instead of a stack.


def _complete_gamma(incomplete: str) -> list[str]:
    """The names of rules that begin so, for the shell."""
    from ocrep import rules

    return [name for name in rules.names() if name.startswith(incomplete)]


NHidden = Annotated[
    str | None, Option("--n-hidden", metavar="NUMBER|auto", help="Hidden units; auto chooses their number.")
]
MaxHidden = Annotated[
    int | None, Option("--max-hidden", min=1, help="The most units that auto considers; 300 by default.")
]
Gamma = Annotated[
    str | None,
    Option(
        "--gamma",
        metavar="RULE|NUMBER",
        autocompletion=_complete_gamma,
        help="How γ is chosen: ocrep, ocrep_cv, kfold, gcv, none, … or a number ≥ 0.",
    ),
]
Floor = Annotated[
    str | None,
    Option("--floor", metavar="NUMBER|precision|rounding", help="The least γ that a rule may choose, in units of σ₁²."),
]
# The names are written out, because the library's own tables would cost the import of numpy; a test compares them.
Activation = Annotated[
    Literal["sigmoid", "tanh", "relu", "sin", "gaussian", "laplace", "hardlimit", "identity"] | None,
    Option("--activation", help="The activation function of the hidden units."),
]
WeightInit = Annotated[
    Literal["uniform", "normal", "orthogonal", "pairs", "rows", "trees"] | None,
    Option("--weight-init", help="Where the weights of the hidden units come from."),
]
WeightScale = Annotated[
    str | None, Option("--weight-scale", metavar="NUMBER|inverse_sqrt", help="Factor on these weights.")
]
DirectLink = Annotated[
    bool | None, Option("--direct-link/--no-direct-link", help="Whether the output also sees the inputs.")
]
Intercept = Annotated[bool | None, Option("--intercept/--no-intercept", help="Whether the output has an intercept.")]


def network_options(
    n_hidden: str | None,
    gamma: str | None,
    floor: str | None,
    intercept: bool | None,
    weight_scale: str | None,
    *,
    candidates: str | None,
    **layer: Any,
) -> dict[str, Any]:
    """The options that were given, by the names of `Settings`."""
    layer["weight_scale"] = _scale_of(weight_scale)
    values = {
        "n_hidden": _n_hidden_of(n_hidden),
        "gamma": _with_floor(_gamma_of(gamma), floor),
        "intercept": intercept,
        "layer": {name: value for name, value in layer.items() if value is not None} or None,
    }
    chosen = {name: value for name, value in values.items() if value is not None}
    if candidates is None:
        return chosen
    if chosen:
        fixed = "it chooses the networks, which --n-hidden, --gamma and others fix: leave out one or the other."
        raise BadParameter(fixed, param_hint="--candidates")
    return {"candidates": candidates}


def _n_hidden_of(text: str | None) -> int | str | None:
    """A whole number ≥ 1, or "auto"; None if it was not given."""
    if text is None or text == "auto":
        return text
    # At most nine digits: Python refuses to parse thousands of them.
    if not (text.isdecimal() and len(text) <= 9 and int(text) >= 1):
        problem = f"{text!r} must be a whole number ≥ 1 of at most 9 digits, or auto."
        raise BadParameter(problem, param_hint="--n-hidden")
    return int(text)


def _gamma_of(text: str | None) -> str | float | None:
    """A rule's name, or a number ≥ 0; None if it was not given."""
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


def _with_floor(gamma: Any, floor: str | None) -> Any:
    """A rule with another floor; without a rule, the default one."""
    if floor is None:
        return gamma
    from ocrep import PinvRegressor, rules

    rule = rules.resolve(PinvRegressor().gamma if gamma is None else gamma)
    if not hasattr(rule, "floor"):
        raise BadParameter(f"--gamma {gamma} has no floor: leave --floor out.", param_hint="--floor")
    try:
        value: float | str = float(floor)
    except ValueError:
        value = floor
    try:
        return replace(rule, floor=value)  # type: ignore[type-var]
    except ValueError as error:
        raise BadParameter(str(error), param_hint="--floor") from None


def _scale_of(text: str | None) -> float | str | None:
    if text is None or text == "inverse_sqrt":
        return text
    try:
        return float(text)
    except ValueError:
        raise BadParameter(f"{text!r} must be a number, or inverse_sqrt.", param_hint="--weight-scale") from None
