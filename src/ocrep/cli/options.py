"""The options that commands share, and the checks of what is typed: nothing here imports numpy."""

from __future__ import annotations

import math
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

# `rules.names()`, repeated so that completion and a misspelt name need no numpy; a test keeps the two equal.
GAMMA_NAMES = (
    "aic",
    "aicc",
    "bic",
    "discrepancy",
    "dorugade",
    "dorugade_kashid",
    "dwivedi_srivastava",
    "evidence",
    "gcv",
    "hoerl_kennard",
    "hoerl_kennard_baldwin",
    "hoerl_kennard_iterative",
    "kfold",
    "khalaf_shukur",
    "kibria",
    "kibria_gm",
    "kibria_median",
    "lawless_wang",
    "lcurve",
    "loo",
    "mallows",
    "mcdonald_galarneau",
    "muniz_kibria_gm",
    "muniz_kibria_gm_inverse",
    "muniz_kibria_max",
    "muniz_kibria_max_inverse",
    "muniz_kibria_median_inverse",
    "muniz_shukur_gm",
    "muniz_shukur_gm_inverse",
    "muniz_shukur_max",
    "muniz_shukur_max_inverse",
    "muniz_shukur_median_inverse",
    "none",
    "ocrep",
    "ocrep_cv",
    "quasi_optimality",
    "thisted",
)


class TaskName(StrEnum):
    """What may follow --task."""

    auto = "auto"
    regression = "regression"
    classification = "classification"


def _complete_gamma(incomplete: str) -> list[str]:
    return [name for name in GAMMA_NAMES if name.startswith(incomplete)]


def gamma_of(text: str) -> str | float:
    """A rule's name, or a number ≥ 0."""
    if text in GAMMA_NAMES:
        return text
    try:
        number = float(text)
    except ValueError:
        near = get_close_matches(text.lower(), GAMMA_NAMES, n=3)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "ocrep, kfold, gcv and none are some."
        raise typer.BadParameter(
            f"{text!r} is neither a number nor the name of a rule: {hint}", param_hint="--gamma"
        ) from None
    if not (math.isfinite(number) and number >= 0):
        raise typer.BadParameter(f"{text} must be a finite number ≥ 0, or the name of a rule.", param_hint="--gamma")
    return number


def n_hidden_of(text: str) -> int | str:
    """A whole number ≥ 1, or "auto"."""
    if text == "auto":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise typer.BadParameter(f"{text!r} must be a whole number ≥ 1, or auto.", param_hint="--n-hidden")
    return int(text)


def share_of(test: float, *, zero: bool = False) -> float:
    """A share of rows to test on."""
    if not (0 < test < 1 or (zero and test == 0)):
        also = ", or 0 to test on none" if zero else ""
        raise typer.BadParameter(f"{test:g} must be above 0 and below 1{also}.", param_hint="--test")
    return test


Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="CSV, TSV (also .gz), Parquet or Feather/Arrow file, one row per line.")
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A file made by `ocrep fit`.")]
Target = Annotated[str, typer.Option("--target", "-t", metavar="COLUMN", help="The column to learn.")]
NHidden = Annotated[str, typer.Option("--n-hidden", metavar="NUMBER|auto", help="Hidden units; auto chooses ≤ 300.")]
Gamma = Annotated[
    str,
    typer.Option(
        "--gamma",
        metavar="RULE|NUMBER",
        autocompletion=_complete_gamma,
        help="How γ is chosen: ocrep, ocrep_cv, kfold, gcv, none, … or a number ≥ 0.",
    ),
]
Task = Annotated[
    TaskName,
    typer.Option("--task", help="Labels or quantities; auto looks at the target and says what it took it for."),
]
Test = Annotated[
    float, typer.Option("--test", metavar="SHARE", help="Share of the rows held out to measure the error.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Of the split and of the hidden layer.")]
DropMissingTarget = Annotated[
    bool, typer.Option("--drop-missing-target", help="Leave out rows without a target instead of refusing them.")
]
Ignore = Annotated[
    list[str] | None, typer.Option("--ignore", metavar="COLUMN", help="A column that is no input; may be repeated.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
