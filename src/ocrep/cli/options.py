"""Options that several commands share, and the parsing of their values; numpy is imported only for names of rules."""

from __future__ import annotations

import math
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, BadParameter, Option


def _complete_gamma(incomplete: str) -> list[str]:
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
    if text != "auto" and (not text.isdecimal() or int(text) < 1):
        raise BadParameter(f"{text!r} must be a whole number ≥ 1, or auto.", param_hint="--n-hidden")
    return text if text == "auto" else int(text)


def check_share(test: float, *, zero: bool = False) -> None:
    """Check --test: a share between 0 and 1, or 0 if `zero` allows it."""
    if not (0 < test < 1 or (zero and test == 0)):
        also = ", or 0 for no test" if zero else ""
        raise BadParameter(f"{test:g} must be above 0 and below 1{also}.", param_hint="--test")


Data = Annotated[
    Path, Argument(metavar="DATA", help="CSV, TSV (also .gz), Parquet or Feather/Arrow file, one row per line.")
]
Model = Annotated[Path, Argument(metavar="MODEL", help="A file made by `ocrep fit`.")]
Target = Annotated[str, Option("--target", "-t", metavar="COLUMN", help="The column to learn.")]
NHidden = Annotated[
    str | None, Option("--n-hidden", metavar="NUMBER|auto", help="Hidden units; auto chooses at most 300.")
]
_HOW_GAMMA = "How γ is chosen: ocrep, ocrep_cv, kfold, gcv, none, … or a number ≥ 0."
Gamma = Annotated[str | None, Option("--gamma", metavar="RULE|NUMBER", autocompletion=_complete_gamma, help=_HOW_GAMMA)]
Task = Annotated[
    Literal["auto", "regression", "classification"],
    Option("--task", help="auto guesses from the target, and prints the guess."),
]
Test = Annotated[float, Option("--test", metavar="SHARE", help="Share of the rows held out to measure the error.")]
Seed = Annotated[int, Option("--seed", min=0, max=2**32 - 1, help="Seed of the split and of the hidden layer.")]
DropMissingTarget = Annotated[
    bool, Option("--drop-missing-target", help="Leave out rows without a target; otherwise they are an error.")
]
Ignore = Annotated[
    list[str] | None, Option("--ignore", metavar="COLUMN", help="A column that is not an input; may be repeated.")
]
AsJson = Annotated[bool, Option("--json", help="Print one JSON object instead of text.")]


def network_of(
    candidates: str | None, n_hidden: str | None, gamma: str | None, intercept: bool | None
) -> dict[str, Any]:
    """What `fit` trains: one network as the options say, or one of the candidates; not both."""
    if candidates is not None and (n_hidden, gamma, intercept) != (None, None, None):
        fixed = "it chooses the network, which --n-hidden, --gamma and --intercept fix: leave out one or the other."
        raise BadParameter(fixed, param_hint="--candidates")
    chosen = {"gamma": gamma_of(gamma), "n_hidden": n_hidden_of(n_hidden), "intercept": intercept}
    return chosen if candidates is None else {**chosen, "candidates": candidates}
