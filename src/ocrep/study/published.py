"""The numbers that the paper published, its conclusions, and the places where it seems to contradict itself.

Source: R. Cancelliere, M. Gai, P. Gallinari, L. Rubini (2015). OCReP: An Optimally Conditioned Regularization for
Pseudoinversion Based Neural Training. Neural Networks. arXiv:1508.06095. `published.csv` holds every number of its
tables, OCReP before its rivals; Delta Ailerons is already multiplied by 1e-4.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources

EXPERIMENTS = {
    "ocrep_vs_cv": "OCReP and cross-validation at fixed sizes",
    "hidden_size": "Hidden size by three-fold cross-validation",
    "condition_ratio": "Condition ratios",
    "gcv": "Generalised cross-validation",
    "kibria": "Kibria's ridge estimate",
    "hoerl_kennard": "Hoerl and Kennard's ridge estimate",
    "elm": "ELM with 1000 units",
    "relm": "RELM",
    "trop_elm": "TROP-ELM",
}
SIZE_CHOSEN = ("hidden_size", "relm", "trop_elm")  # each method has its own hidden size, chosen by cross-validation
RIVAL_ALONE = ("gcv", "kibria", "hoerl_kennard")  # without OCReP, whose values are those of `ocrep_vs_cv`
# Section 6.1 says which unmarked GCV cells are "statistically comparable"; OCReP wins the others.
GCV_TIES = (("abalone", 100), ("housing", 100), ("diabetes", 100))
# By the names in the last column of `published.csv`.
MISPRINTS = {
    "repeated": "Segment M=1000 repeats Iris M=100 digit for digit (2.53/0.77 and 2.17/0.31); "
    "the ELM table gives 3.40/0.25 for OCReP in the same case.",
    "squared": "TROP-ELM on Machine Cpu (264.03) and Housing (34.35): looks like MSE, not RMSE.",
    "std_delta_ailerons": "Unregularized Delta Ailerons: std 0.57 (times 1e-4) does not fit its neighbours.",
    "std_abalone": "OCReP on Abalone with optimised hidden size: std 0.32 does not fit its neighbours.",
    "same_size": "Unregularized M̄ equals OCReP's M̄ in all four classification sets.",
    "mark": "Kibria on Machine Cpu: marked as better than OCReP at M=50 (34.28 against 31.21) and not at M=100 "
    "(32.40 against 34.13): mark and numbers contradict each other.",
}
MISPRINTS_IN_TEXT = (
    'The grid of "50 values [1e-25 … 1e25]" has 51.',
    "The GCV formula prints ‖I − A(λ)Y‖; it means ‖(I − A(λ))Y‖.",
    "Kibria and Hoerl-Kennard are counted over sixteen cases; their tables have fourteen.",
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One published value; `n_hidden` is the paper's M̄ in `hidden_size`, `relm` and `trop_elm`."""

    experiment: str
    data: str
    n_hidden: int
    method: str
    error: float
    std: float | None
    marked_best: bool
    rounding: float  # half a unit of the last digit that the paper prints
    misprint: str  # a note on a suspected misprint, empty for most cells


@dataclass(frozen=True, slots=True)
class Rivalry:
    """OCReP and a rival as published, and which of them the paper calls better.

    The verdict is "ocrep", "rival", "tie" or "not rival", from the paper's bold marks (a significant difference at
    99 %), or from its text if nothing is marked. "not rival": the paper marks only rivals that are better than OCReP,
    and this one is not marked.
    """

    ocrep: Cell
    rival: Cell
    verdict: str

    @property
    def winner(self) -> str:
        """The method with the smaller published error; "tie" if the printed numbers are equal."""
        return winner(self.ocrep.error - self.rival.error)


def winner(difference: float) -> str:
    """Return the better method by the sign of error(OCReP) − error(rival)."""
    return "tie" if difference == 0 else "ocrep" if difference < 0 else "rival"


@cache
def cells() -> tuple[Cell, ...]:
    """Return all numbers of the paper's tables, in the order of `EXPERIMENTS`, then by data set, size and method."""
    text = resources.files(__package__).joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(_cell(*row) for row in list(csv.reader(text.splitlines()))[1:])


def _cell(experiment: str, data: str, n_hidden: str, method: str, error: str, std: str, mark: str, note: str) -> Cell:
    best, rounding, misprint = mark == "1", _rounding(experiment, data, error), MISPRINTS.get(note, "")
    deviation = float(std) if std else None
    return Cell(experiment, data, int(n_hidden), method, float(error), deviation, best, rounding, misprint)


def _rounding(experiment: str, data: str, text: str) -> float:
    if experiment == "condition_ratio":  # one digit
        return 0.5 * 10.0 ** math.floor(math.log10(float(text)))
    if data == "delta_ailerons":  # two decimals, times 1e-4
        return 0.5e-6
    # Two decimals or more; the file does not keep final zeros.
    return 0.5 * 10.0 ** -max(2, len(text.partition(".")[2]))


@cache
def rivalries() -> tuple[Rivalry, ...]:
    """Return all comparisons of the paper: OCReP and each rival on the same data set (and size, if it is fixed)."""

    def case(cell: Cell) -> tuple[str, str, int | None]:
        table = "ocrep_vs_cv" if cell.experiment in RIVAL_ALONE else cell.experiment
        return table, cell.data, None if table in SIZE_CHOSEN else cell.n_hidden

    ocrep = {case(cell): cell for cell in cells() if cell.method == "ocrep"}
    rivals = [cell for cell in cells() if cell.method != "ocrep" and cell.experiment != "condition_ratio"]
    return tuple(Rivalry(ocrep[case(rival)], rival, _verdict(ocrep[case(rival)], rival)) for rival in rivals)


def _verdict(ocrep: Cell, rival: Cell) -> str:
    if rival.marked_best:
        return "rival"
    if rival.experiment == "gcv":
        return "tie" if (rival.data, rival.n_hidden) in GCV_TIES else "ocrep"
    if rival.experiment in RIVAL_ALONE:
        return "not rival"
    # The marks in the tables of the unregularized network compare OCReP with cross-validation; section 5.2 says that
    # OCReP is better than it on all eight data sets, at 99 %.
    return "ocrep" if ocrep.marked_best or rival.method == "unregularized" else "tie"
