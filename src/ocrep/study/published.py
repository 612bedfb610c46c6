"""The numbers that the paper published, its conclusions, and the places where it seems to contradict itself.

Source: R. Cancelliere, M. Gai, P. Gallinari, L. Rubini (2015). OCReP: An Optimally Conditioned Regularization for
Pseudoinversion Based Neural Training. Neural Networks. arXiv:1508.06095. `published.csv` holds every number of its
tables; Delta Ailerons is already multiplied by 1e-4.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources

EXPERIMENTS: dict[str, str] = {
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
# In these experiments each method has its own hidden size, chosen by cross-validation.
SIZE_CHOSEN = ("hidden_size", "relm", "trop_elm")
# Their tables list only the rival; OCReP's values are those of `ocrep_vs_cv`.
RIVAL_ALONE = ("gcv", "kibria", "hoerl_kennard")
# Section 6.1 says which unmarked GCV cells are "statistically comparable"; OCReP wins the others.
GCV_TIES = (("abalone", 100), ("housing", 100), ("diabetes", 100))


@dataclass(frozen=True, slots=True)
class Cell:
    """One published value; `n_hidden` is the paper's M̄ in `hidden_size`, `relm` and `trop_elm`."""

    experiment: str
    data: str
    n_hidden: int
    method: str
    error: float
    std: float | None
    marked_best: bool | None
    rounding: float
    """Half a unit of the last digit that the paper prints."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The texts that the patterns of `MISPRINTS` match."""
        return self.experiment, self.data, str(self.n_hidden), self.method


@dataclass(frozen=True, slots=True)
class Rivalry:
    """OCReP and a rival as published, and which of them the paper calls better.

    Attributes
    ----------
    ocrep, rival : Cell
        The two values.
    verdict : {"ocrep", "rival", "tie", "not rival"}
        From the paper's bold marks (a significant difference at 99 %), or from its text if nothing is marked. "not
        rival": the paper marks only rivals that are better than OCReP, and this one is not marked.
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


_SEGMENT = (
    "Segment M=1000 repeats Iris M=100 digit for digit (2.53/0.77 and 2.17/0.31); "
    "the ELM table gives 3.40/0.25 for OCReP in the same case."
)
_SQUARED = "TROP-ELM on Machine Cpu (264.03) and Housing (34.35): looks like MSE, not RMSE."
_DELTA_STD = "Unregularized Delta Ailerons: std 0.57 (times 1e-4) does not fit its neighbours."
_ABALONE_STD = "OCReP on Abalone with optimised hidden size: std 0.32 does not fit its neighbours."
_SAME_SIZE = "Unregularized M̄ equals OCReP's M̄ in all four classification sets."
_KIBRIA_MARK = (
    "Kibria on Machine Cpu: marked as better than OCReP at M=50 (34.28 against 31.21) and not at M=100 "
    "(32.40 against 34.13): mark and numbers contradict each other."
)
# Experiment, data set, hidden size, method; "*" stands for any.
MISPRINTS: dict[tuple[str, str, str, str], str] = {
    ("ocrep_vs_cv", "segment", "1000", "*"): _SEGMENT,
    ("trop_elm", "machine_cpu", "*", "trop_elm"): _SQUARED,
    ("trop_elm", "housing", "*", "trop_elm"): _SQUARED,
    ("hidden_size", "delta_ailerons", "*", "unregularized"): _DELTA_STD,
    ("hidden_size", "abalone", "*", "ocrep"): _ABALONE_STD,
    ("trop_elm", "abalone", "*", "ocrep"): _ABALONE_STD,
    **{("hidden_size", data, "*", "unregularized"): _SAME_SIZE for data in ("iris", "wine", "diabetes", "segment")},
    ("kibria", "machine_cpu", "*", "kibria"): _KIBRIA_MARK,
}
MISPRINTS_IN_TEXT = (
    'The grid of "50 values [1e-25 … 1e25]" has 51.',
    "The GCV formula prints ‖I − A(λ)Y‖; it means ‖(I − A(λ))Y‖.",
    "Kibria and Hoerl-Kennard are counted over sixteen cases; their tables have fourteen.",
)


def misprint(cell: Cell) -> str:
    """Return a note on the suspected misprints in a cell; an empty text for most cells."""
    found = [
        sentence
        for pattern, sentence in MISPRINTS.items()
        if all(wanted in ("*", part) for wanted, part in zip(pattern, cell.key, strict=True))
    ]
    return " ".join(found)


@cache
def cells() -> tuple[Cell, ...]:
    """Return all numbers of the paper's tables, in the order of `EXPERIMENTS`, then by data set, size and method."""
    text = resources.files(__package__).joinpath("published.csv").read_text(encoding="utf-8")
    order = list(EXPERIMENTS)
    found = [
        Cell(
            experiment=row["experiment"],
            data=row["dataset"],
            n_hidden=int(row["n_hidden"]),
            method=row["method"],
            error=float(row["err"]),
            std=float(row["std"]) if row["std"] else None,
            marked_best=row["marked_best"] == "1" if row["marked_best"] else None,
            rounding=_rounding(row["experiment"], row["dataset"], row["err"]),
        )
        for row in csv.DictReader(text.splitlines())
    ]

    def place(cell: Cell) -> tuple[int, str, int, bool, str]:
        # OCReP before its rival. Chosen sizes differ between the methods of one comparison, so they do not sort.
        size = 0 if cell.experiment in SIZE_CHOSEN else cell.n_hidden
        return order.index(cell.experiment), cell.data, size, cell.method != "ocrep", cell.method

    return tuple(sorted(found, key=place))


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
    ocrep = {(c.experiment, c.data): c for c in cells() if c.method == "ocrep"}
    fixed = {(c.data, c.n_hidden): c for c in cells() if c.method == "ocrep" and c.experiment == "ocrep_vs_cv"}
    found = []
    for rival in cells():
        if rival.method == "ocrep" or rival.experiment == "condition_ratio":
            continue
        if rival.experiment in ("ocrep_vs_cv", *RIVAL_ALONE):
            own = fixed[rival.data, rival.n_hidden]
        else:
            own = ocrep[rival.experiment, rival.data]
        found.append(Rivalry(own, rival, _verdict(own, rival)))
    return tuple(found)


def _verdict(ocrep: Cell, rival: Cell) -> str:
    if rival.marked_best:
        return "rival"
    if rival.experiment == "gcv":
        return "tie" if (rival.data, rival.n_hidden) in GCV_TIES else "ocrep"
    if rival.experiment in RIVAL_ALONE:
        return "not rival"
    if rival.method == "unregularized":
        # The marks in these tables compare OCReP with cross-validation; section 5.2 says that OCReP is better than
        # the unregularized network on all eight data sets, at 99 %.
        return "ocrep"
    return "ocrep" if ocrep.marked_best else "tie"
