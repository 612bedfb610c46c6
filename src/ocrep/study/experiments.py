"""The paper's experiments on one split with one hidden layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocrep.rules import GCV, NotApplicable, OCReP, RidgeFormula, Rule, Unregularized
from ocrep.study.extras import beyond, literature, peak, stability
from ocrep.study.networks import Network, Sized
from ocrep.study.protocol import GCV_METHODS, PAPER_GRID, REFERENCE_SPLIT, SHOWN_RANGE, Protocol
from ocrep.study.results import Row

GRID = np.array(PAPER_GRID)
SHOWN = GRID[(SHOWN_RANGE[0] <= GRID) & (SHOWN_RANGE[1] >= GRID)]
# γ from the spectrum alone, none with a precision floor but `ocrep_floor`, which is not in the paper.
SPECTRAL: dict[str, Rule] = {
    "ocrep": OCReP(rank="numerical", floor=0.0),
    "ocrep_full": OCReP(rank="full", floor=0.0),
    "ocrep_floor": OCReP(rank="numerical", floor="precision"),
    "unregularized": Unregularized(),
}
FORMULAS: dict[str, Rule] = {name: RidgeFormula(name, ddof=1, floor=0.0) for name in ("kibria", "hoerl_kennard")}
PATH_METHODS = ("ocrep", "cv", "unregularized")


@dataclass(frozen=True, slots=True, order=True)
class Job:
    """One unit of work. Its result depends only on these values, so jobs can run in any order and any process."""

    kind: str
    data: str
    split: int
    draw: int
    biases: str = "symmetric"
    targets: str = "raw"  # of `path` and `chosen`; `fixed` has both
    part: int = 0  # which of the parts of a path
    sizes: tuple[tuple[str, int], ...] = ()  # the size of each method, for `chosen`

    @property
    def key(self) -> str:
        """Its name in the file of results; the sizes follow from other results."""
        return f"{self.kind}/{self.data}/{self.split}/{self.draw}/{self.biases}/{self.targets}/{self.part}"

    @property
    def seed(self) -> int:
        """The seed of the hidden layer, different for each split and draw."""
        return 1000 * self.split + self.draw


def run_job(job: Job, data: Any, protocol: Protocol) -> list[Row]:
    """Return all rows of a job."""
    return list(EXPERIMENTS[job.kind](job, data, protocol))


def fixed(job: Job, data: Any, protocol: Protocol) -> Iterator[Row]:
    """Yield the error of every rule at the paper's fixed sizes, and along its grid at the largest of them."""
    sizes = protocol.sizes_of(job.data)
    at_elm = {protocol.elm_size} if data.task == "classification" and "elm" in protocol.literature else set()
    network = Network.draw(data, job.split, job.seed, max({*sizes, *at_elm}), job.biases)
    for n_hidden in sorted({*sizes, *at_elm}):
        sized = network.sized(n_hidden)
        for scale in network.codings:
            yield from _rules(sized, scale, whole=n_hidden in sizes)
            if n_hidden == sizes[-1] and job.split == REFERENCE_SPLIT:
                for gamma, error in zip(SHOWN, sized.test_errors(SHOWN, scale), strict=True):
                    yield Row(n_hidden, "grid", scale, error=error, gamma=gamma)


def _rules(sized: Sized, scale: str, *, whole: bool) -> Iterator[Row]:
    """Every rule on one coding of the targets; without `whole`, those that the table of ELM needs."""
    spectrum = sized.spectrum_of(scale)
    gammas: dict[str, float | None] = {method: rule.choose(spectrum).gamma for method, rule in SPECTRAL.items()}
    if gammas["ocrep_full"] == gammas["ocrep"]:
        del gammas["ocrep_full"]
    if whole:
        gammas["cv"] = float(GRID[sized.cv_errors([GRID] * 3, scale).argmin()])
        best = GRID[np.argmin(GCV(floor=0.0).criterion(spectrum, spectrum.n * GRID))]
        gammas |= dict(zip(GCV_METHODS, (spectrum.n * best, best), strict=True))
    if whole and sized.network.task == "regression":  # these formulas are for one target
        gammas |= {method: _gamma_or_none(rule, spectrum) for method, rule in FORMULAS.items()}
    known = {method: gamma for method, gamma in gammas.items() if gamma is not None}
    errors = dict(zip(known, sized.test_errors(list(known.values()), scale), strict=True))
    for method, gamma in gammas.items():
        condition = None if gamma is None else float(spectrum.condition(gamma))
        yield Row(sized.n_hidden, method, scale, error=errors.get(method), gamma=gamma, condition=condition)


def _gamma_or_none(rule: Rule, spectrum: Any) -> float | None:
    try:
        return rule.choose(spectrum).gamma
    except NotApplicable:
        return None


def path(job: Job, data: Any, protocol: Protocol) -> Iterator[Row]:
    """Yield test and cross-validation errors at the hidden sizes of one part of the path.

    Rules that read only a spectrum choose γ anew on each training part; cross-validation has the error of the γ it
    chooses, as in the paper's joint search.
    """
    n_parts = protocol.segment_parts if job.data == "segment" else 1
    sizes = protocol.path_sizes(job.data)[job.part :: n_parts]
    network = Network.draw(data, job.split, job.seed, sizes[-1], job.biases, (job.targets,))
    for n_hidden in sizes:
        sized = network.sized(n_hidden)
        (scale,) = network.codings
        along = sized.cv_errors([GRID] * 3, scale)
        choices = {"cv": (float(GRID[along.argmin()]), float(along.min()))}
        for method in ("ocrep", "unregularized"):
            by_fold = [np.array([SPECTRAL[method].choose(fold).gamma]) for fold in sized.fold_spectra]
            choices[method] = SPECTRAL[method].choose(sized.spectrum).gamma, float(sized.cv_errors(by_fold, scale)[0])
        errors = sized.test_errors([choices[method][0] for method in PATH_METHODS], scale)
        for method, error in zip(PATH_METHODS, errors, strict=True):
            gamma, cv_error = choices[method]
            yield Row(n_hidden, method, scale, error=error, gamma=gamma, cv_error=cv_error)


def chosen(job: Job, data: Any, protocol: Protocol) -> Iterator[Row]:
    """Yield the test error of each method at the size that the paths of this split chose for it."""
    network = Network.draw(data, job.split, job.seed, max(size for _, size in job.sizes), job.biases, (job.targets,))
    (scale,) = network.codings
    for method, n_hidden in job.sizes:
        sized = network.sized(n_hidden)
        if method == "cv":
            gamma = float(GRID[sized.cv_errors([GRID] * 3, scale).argmin()])
        else:
            gamma = SPECTRAL[method].choose(sized.spectrum).gamma
        yield Row(n_hidden, method, scale, error=sized.test_errors([gamma], scale)[0], gamma=gamma)


EXPERIMENTS: dict[str, Callable[[Job, Any, Protocol], Iterator[Row]]] = {
    "fixed": fixed,
    "path": path,
    "chosen": chosen,
    "literature": literature,
    "beyond": beyond,
    "peak": peak,
    "stability": stability,
}
