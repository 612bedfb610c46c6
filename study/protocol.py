"""The paper's experiments as data: data sets, hidden sizes, variants, numbers of splits and draws (paper, section 5).

The set-up follows the paper: inputs scaled to [−1, 1] by the training rows, sigmoid units, weights U(−1, 1), no output
bias, splits 70/30, three-fold cross-validation on the training part over 51 powers of ten, γ = σ₁σ_p without a
precision floor. Where the paper is silent or can be read in two ways, both are run, as `Variant`s.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

# Results of another revision of the experiments are not mixed with these.
REVISION = 1
TEST_SHARE = 0.3
REFERENCE_SPLIT = 0
N_FOLDS = 3
PAPER_GRID = tuple(10.0**exponent for exponent in range(-25, 26))
SHOWN_RANGE = (1e-10, 1e5)  # the part of the grid that the paper's figures show
PUBLISHED_DRAWS = 50  # the paper's means are over this many draws

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
ELM_SIZE = 1000  # table 14 compares with ELM at its own 1000 units
# Hidden sizes relative to the number of training rows; at 1 H turns from tall to wide. Not in the paper.
PEAK_SHARES = (0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0)
PEAK_SETS = ("machine_cpu", "housing", "iris", "wine")
# γ in units of σ₁σ_p for the experiment on stability.
STABILITY_BETAS = tuple(10.0 ** (k / 2) for k in range(-16, 17))

# What the paper leaves open, and what can be tried.
BIASES = {"symmetric": (-1.0, 1.0), "unit": (0.0, 1.0)}
# Of regression only: classes as 0 and 1 add the same number to the outputs of all classes, and so change nothing.
TARGETS = {"raw": "as they are", "unit": "scaled to [0, 1] by the training rows"}
GCV_METHODS = {"gcv": "γ = nλ, as the paper defines GCV", "gcv_lambda": "γ = λ, without the factor n"}


@dataclass(frozen=True, slots=True)
class Variant:
    """One reading of the paper: the range of the biases, the targets' scale, and how GCV's λ becomes γ."""

    biases: str = "symmetric"
    targets: str = "raw"
    gcv: str = "gcv"

    def __str__(self) -> str:
        low, high = BIASES[self.biases]
        gcv = GCV_METHODS[self.gcv].partition(",")[0]
        return f"biases U({low:g}, {high:g}), regression targets {TARGETS[self.targets]}, GCV with {gcv}"


@dataclass(frozen=True, slots=True)
class Counts:
    """How many splits besides the reference split, and draws of the hidden layer on each of them."""

    splits: int
    draws: int


@dataclass(frozen=True, slots=True)
class Protocol:
    """How much to run: data sets, hidden sizes, and numbers of splits and draws; by default the full study.

    Parameters
    ----------
    name : str
        The name of the protocol.
    data_sets : tuple of str
        The data sets.
    reference_draws : int
        Hidden layers drawn on the reference split, as in the paper.
    further, further_small, further_segment : Counts
        Further splits and draws: of most sets; of Iris, Wine and Machine Cpu, whose splits differ most; of Segment.
    path_draws, path_splits : int
        Draws of the path over hidden sizes on the reference split, and further splits with one draw each.
    path_step, path_largest, segment_step, segment_largest : int
        The sizes along the path, and along that of Segment.
    segment_draws, segment_parts : int
        Draws of the path of Segment, and jobs for each path, so that none takes long.
    chosen_draws : int
        Draws at the size that the paths of a split chose.
    beyond_draws, beyond_splits, stability_draws : int
        Draws and splits of the experiments that are not in the paper.
    fixed_sizes : tuple of (str, tuple of int)
        The fixed sizes of each data set.
    elm_size : int
        The number of units of the comparison with ELM.
    literature : tuple of str
        The methods that are compared with.
    """

    name: str
    data_sets: tuple[str, ...] = (*REGRESSION, *CLASSIFICATION)
    reference_draws: int = PUBLISHED_DRAWS
    further: Counts = Counts(100, 3)
    further_small: Counts = Counts(500, 3)
    further_segment: Counts = Counts(30, 1)
    path_draws: int = 10
    path_splits: int = 10
    path_step: int = 1
    path_largest: int = 300
    segment_step: int = 20
    segment_largest: int = 1500
    segment_draws: int = 3
    segment_parts: int = 15
    chosen_draws: int = PUBLISHED_DRAWS
    beyond_draws: int = 3
    beyond_splits: int = 10
    stability_draws: int = 3
    fixed_sizes: tuple[tuple[str, tuple[int, ...]], ...] = field(default=tuple(FIXED_SIZES.items()), repr=False)
    elm_size: int = ELM_SIZE
    literature: tuple[str, ...] = ("elm", "relm", "trop_elm", "pruned_elm")

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, which is stored with the results and compared before a run continues."""
        return {"revision": REVISION, **asdict(self)}

    def sizes_of(self, data: str) -> tuple[int, ...]:
        """Return the fixed hidden sizes of a data set."""
        return dict(self.fixed_sizes)[data]

    def splits_of(self, data: str) -> Counts:
        """Return how many further splits of a data set are run at fixed sizes."""
        if data == "segment":
            return self.further_segment
        return self.further_small if data in ("iris", "wine", "machine_cpu") else self.further

    def path_sizes(self, data: str) -> list[int]:
        """Return the hidden sizes along the path of a data set."""
        if data == "segment":
            return list(range(self.segment_step, self.segment_largest + 1, self.segment_step))
        return list(range(self.path_step, self.path_largest + 1, self.path_step))


FULL = Protocol("full")
QUICK = Protocol(
    "quick",
    data_sets=tuple(name for name in FULL.data_sets if name != "delta_ailerons"),
    reference_draws=5,
    further=Counts(10, 1),
    further_small=Counts(10, 1),
    further_segment=Counts(1, 1),
    path_draws=1,
    path_splits=0,
    path_step=20,
    segment_step=150,
    segment_largest=600,
    segment_draws=1,
    segment_parts=1,
    chosen_draws=5,
    beyond_draws=1,
    beyond_splits=2,
    stability_draws=1,
    fixed_sizes=tuple((name, (600,) if name == "segment" else sizes) for name, sizes in FIXED_SIZES.items()),
    elm_size=400,
)
PROTOCOLS = {protocol.name: protocol for protocol in (QUICK, FULL)}
