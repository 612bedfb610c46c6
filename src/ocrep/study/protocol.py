"""The paper's experiments as data: data sets, hidden sizes, rules, and numbers of splits and draws (paper, section 5).

The set-up follows the paper; where the paper is silent, it was found by matching the published condition numbers:
inputs scaled to [−1, 1] by the training rows, sigmoid units, weights and biases U(−1, 1), no output bias, targets ±1
one-hot, splits 70/30, three-fold cross-validation on the training part, γ = σ₁σ_p without a precision floor.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ocrep.rules import GCV, KFold, OCReP, OCRePCV, RidgeFormula, Rule, Unregularized

TEST_SHARE = 0.3
REFERENCE_SPLIT = 0
PAPER_GRID = "ocrep_paper"

REGRESSION = ("abalone", "machine_cpu", "delta_ailerons", "housing")
CLASSIFICATION = ("iris", "diabetes", "wine", "segment")
# Section 5.1: fixed numbers of hidden units, larger for larger data sets.
FIXED_SIZES: dict[str, tuple[int, ...]] = {
    "abalone": (50, 100, 200, 300),
    "machine_cpu": (50, 100),
    "delta_ailerons": (50, 100, 200, 300),
    "housing": (50, 100, 200, 300),
    "iris": (50, 100),
    "diabetes": (50, 100, 200, 300),
    "wine": (50, 100),
    "segment": (1000, 1500),
}
ELM_SIZE = 1000  # table 9 compares with ELM at its own 1000 units
# Hidden sizes relative to the number of training rows; at 1 H turns from tall to wide. Not in the paper.
PEAK_SHARES = (0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0)
PEAK_SETS = ("machine_cpu", "housing", "iris", "wine")


def rules_for(task: str) -> dict[str, Rule]:
    """Return the paper's rules for γ, without a precision floor, and our additions `ocrep_floor` and `ocrep_cv`."""
    scoring: Any = "squared" if task == "regression" else "error"
    chosen: dict[str, Rule] = {
        "ocrep": OCReP(floor=0.0),
        "cv": KFold(grid=PAPER_GRID, scoring=scoring, floor=0.0),
        "gcv": GCV(floor=0.0),
        "unregularized": Unregularized(),
        "ocrep_floor": OCReP(),
        "ocrep_cv": OCRePCV(),
    }
    if task == "regression":  # these formulas are for one target
        chosen |= {name: RidgeFormula(name, floor=0.0) for name in ("kibria", "hoerl_kennard")}
    return chosen


@dataclass(frozen=True, slots=True)
class Protocol:
    """How much to run: data sets, hidden sizes, and numbers of splits and draws; by default the full study."""

    name: str
    data_sets: tuple[str, ...] = (*REGRESSION, *CLASSIFICATION)
    reference_draws: int = 50  # hidden layers drawn on the reference split, as in the paper
    further_splits: int = 10
    further_draws: int = 3
    path_draws: int = 10  # draws of the path over hidden sizes on the reference split; one more on each further split
    path_step: int = 1
    path_largest: int = 300
    segment_step: int = 20
    segment_largest: int = 1500
    segment_draws: int = 3
    fixed_sizes: tuple[tuple[str, tuple[int, ...]], ...] = field(default=tuple(FIXED_SIZES.items()), repr=False)
    literature: tuple[str, ...] = ("elm", "relm", "trop_elm", "pruned_elm")

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, which is stored with the results and compared before a run continues."""
        return asdict(self)

    def sizes_of(self, data: str) -> tuple[int, ...]:
        """Return the fixed hidden sizes of a data set."""
        return dict(self.fixed_sizes)[data]

    def path_sizes(self, data: str) -> list[int]:
        """Return the hidden sizes along the path of a data set."""
        segment = self.segment_step, self.segment_largest
        step, largest = segment if data == "segment" else (self.path_step, self.path_largest)
        return list(range(step, largest + 1, step))


FULL = Protocol("full")
QUICK = Protocol(
    "quick",
    data_sets=tuple(name for name in FULL.data_sets if name != "delta_ailerons"),
    reference_draws=5,
    further_splits=2,
    further_draws=5,
    path_draws=1,
    path_step=30,
    segment_step=150,
    segment_largest=600,
    segment_draws=1,
    fixed_sizes=tuple((name, (600,) if name == "segment" else sizes[-1:]) for name, sizes in FIXED_SIZES.items()),
)
PROTOCOLS = {protocol.name: protocol for protocol in (QUICK, FULL)}
