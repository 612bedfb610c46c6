"""The numbers that the paper published, its conclusions, its names, and the places where it seems to contradict itself.

Source: R. Cancelliere, M. Gai, P. Gallinari, L. Rubini (2015). OCReP: An Optimally Conditioned Regularization for
Pseudoinversion Based Neural Training. Neural Networks. arXiv:1508.06095. `published.csv` holds every number of its
tables, OCReP before its rivals; Delta Ailerons is already multiplied by 1e-4.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from study.protocol import REGRESSION

EXPERIMENTS = {
    "ocrep_vs_cv": "OCReP and cross-validation at fixed sizes",
    "hidden_size": "Sizes chosen by three-fold cross-validation",
    "condition_ratio": "Condition numbers",
    "gcv": "Generalised cross-validation",
    "kibria": "Kibria's ridge estimate",
    "hoerl_kennard": "Hoerl and Kennard's ridge estimate",
    "elm": "ELM with 1000 units",
    "relm": "RELM",
    "trop_elm": "TROP-ELM",
}
SMALL = ("iris", "wine", "machine_cpu")
# The paper's numbers of its tables: for small data sets, Segment, medium ones; or for regression and classification.
BY_SIZE = {"ocrep_vs_cv": (2, 3, 4), "gcv": (9, 10, 11)}
BY_TASK = {"hidden_size": (5, 6), "condition_ratio": (7, 8)}
ALONE = {"kibria": 12, "hoerl_kennard": 13, "elm": 14, "relm": 15, "trop_elm": 16}
SIZE_CHOSEN = ("hidden_size", "relm", "trop_elm")  # each method has its own hidden size, chosen by cross-validation
RIVAL_ALONE = ("gcv", "kibria", "hoerl_kennard")  # without OCReP, whose values are those of `ocrep_vs_cv`
QUOTED = ("elm", "relm", "trop_elm")  # methods whose numbers the paper quotes from other groups, on other splits
# Section 6.1 says which unmarked GCV cells are "statistically comparable"; OCReP wins the others.
GCV_TIES = (("abalone", 100), ("housing", 100), ("diabetes", 100))
# By the names in the last column of `published.csv`; those that begin with "std_" concern the standard deviation alone.
MISPRINTS = {
    "repeated": "Segment M=1000 repeats Iris M=100 digit for digit (2.53/0.77 and 2.17/0.31); "
    "the ELM table gives 3.40/0.25 for OCReP in the same case.",
    "squared": "TROP-ELM on Housing (34.35) and Machine Cpu (264.03): the paper says that it took square roots of "
    "published MSE. √34.35 = 5.86 would be an RMSE like its neighbours; √264.03 = 16.2 would not.",
    "std_delta_ailerons": "Unregularized Delta Ailerons: std 0.57 (times 1e-4) does not fit its neighbours.",
    "std_abalone": "OCReP on Abalone with optimised hidden size: std 0.32 does not fit its neighbours.",
    "std_tenfold": "OCReP on Abalone: std 0.16 at M=50 and 0.03 at M=300 beside 0.007 and 0.003 at M=100 and 200: ten "
    "times too large.",
    "std_repeated": "Hoerl-Kennard on Abalone M=100: std 0.90 beside 0.016, 0.10 and 0.41 is Kibria's in the same "
    "cell.",
    "std_share": "RELM on Segment: std 0.0074 beside percentages; it may be a share of 1.",
    "same_size": "Unregularized M̄ equals OCReP's M̄ in all four classification sets.",
    "mark": "Kibria on Machine Cpu: marked as better than OCReP at M=50 (34.28 against 31.21) and not at M=100 "
    "(32.40 against 34.13): mark and numbers contradict each other.",
    "same_error": "34.28 stands for Machine Cpu M=50 in both Kibria's and Hoerl and Kennard's table.",
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
    notes: tuple[str, ...]  # names in `MISPRINTS`, none for most cells

    @property
    def misprint(self) -> bool:
        """Whether the error itself is suspected."""
        return any(not note.startswith("std_") and note != "same_size" for note in self.notes)

    @property
    def std_misprint(self) -> bool:
        """Whether the standard deviation is suspected, alone or with the error."""
        return any(note.startswith("std_") or note == "repeated" for note in self.notes)

    @property
    def quoted(self) -> bool:
        """Whether the paper quotes the value from another group."""
        return self.method in QUOTED

    @property
    def repeated(self) -> bool:
        """Whether the value repeats that of another table: OCReP's in the comparisons with RELM and TROP-ELM."""
        return self.experiment in ("relm", "trop_elm") and self.method == "ocrep"

    @property
    def table(self) -> int:
        """The number of its table in the paper."""
        if self.experiment in ALONE:
            return ALONE[self.experiment]
        if self.experiment in BY_TASK:
            return BY_TASK[self.experiment][self.data not in REGRESSION]
        kind = 0 if self.data in SMALL else 1 if self.data == "segment" else 2
        return BY_SIZE[self.experiment][kind]


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

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of rival against OCReP that the printed digits allow.

        For regression log(rival/OCReP), for classification the difference in percentage points.
        """
        a, b = self.rival, self.ocrep
        if a.data not in REGRESSION:
            gap = a.error - b.error
            rounding = a.rounding + b.rounding
            return gap - rounding, gap + rounding
        low = math.log((a.error - a.rounding) / (b.error + b.rounding))
        high = math.log((a.error + a.rounding) / (b.error - b.rounding))
        return low, high


def winner(difference: float) -> str:
    """Return the better method by the sign of error(OCReP) − error(rival)."""
    return "tie" if difference == 0 else "ocrep" if difference < 0 else "rival"


@cache
def cells() -> tuple[Cell, ...]:
    """Return all numbers of the paper's tables, in the order of `EXPERIMENTS`, then by data set, size and method."""
    text = Path(__file__).with_name("published.csv").read_text(encoding="utf-8")
    return tuple(_cell(*row) for row in list(csv.reader(text.splitlines()))[1:])


def _cell(experiment: str, data: str, n_hidden: str, method: str, error: str, std: str, mark: str, note: str) -> Cell:
    deviation = float(std) if std else None
    rounding = _rounding(experiment, data, error)
    notes = tuple(note.split())
    return Cell(experiment, data, int(n_hidden), method, float(error), deviation, mark == "1", rounding, notes)


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


# ------------------------------------------------------------------------------
# How the paper, and the report after it, write names and numbers.

NONE = "–"
NAMES = {
    "ocrep": "OCReP",
    "cv": "CV",
    "gcv": "GCV",
    "gcv_lambda": "GCV, γ = λ",
    "unregularized": "unregularized",
    "ocrep_floor": "OCReP, default floor",
    "ocrep_full": "OCReP, p = min(N, M)",
    "ocrep_cv": "ocrep_cv",
    "kibria": "Kibria",
    "hoerl_kennard": "Hoerl-Kennard",
    "elm": "ELM",
    "relm": "RELM",
    "trop_elm": "TROP-ELM",
    "pruned_elm": "pruned ELM",
    "ocrep/unregularized": "μ(H^reg)/μ(H⁺)",
    "ocrep/cv": "μ(H^reg)/μ(H^CV)",
}
UNITS = {"delta_ailerons": 1e-4}


def number(value: float | None, digits: int = 4) -> str:
    """Format a number with fixed significant digits; None and NaN become a dash."""
    return NONE if value is None or math.isnan(value) else f"{value:.{digits}g}"


def in_unit(data: str, value: float | None, digits: int = 4) -> str:
    """Format an error; those of Delta Ailerons are in 10⁻⁴."""
    return number(None if value is None else value / UNITS.get(data, 1.0), digits)


def title(data: str) -> str:
    """Return the name of a data set as the paper writes it."""
    return data.replace("_", " ").title()


def listed(names: Iterable[str]) -> str:
    """Return names as "a, b and c"."""
    *first, last = [*names] or [""]
    return f"{', '.join(first)} and {last}" if first else last
