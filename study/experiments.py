"""The experiments on one split with one hidden layer: the paper's own, and those that it does not have.

The paper's network is H = g(XWᵀ + b) with output weights W̄ = argmin ‖HW − T‖² + γ‖W‖². With the SVD H = USVᵀ these are
V·diag(σ/(σ² + γ))·UᵀT, so one decomposition serves all γ. Three more facts keep the experiments cheap and exact:

- H = QR is enough for the SVD, and the leading m columns of R are the factor of the first m units, so one `Factor` of
  the largest layer serves all smaller ones.
- Both codings of regression targets stand side by side as columns of T and share every decomposition.
- The squared error of weights W on held-out rows is ‖R₁W − r‖² plus a constant, where R is the triangular factor of
  the held-out rows of [H | T]: it has M + Q rows, however many were held out.

A draw at M units costs O(NM²) for the factors and O(M³) for each size; the errors along 51 values of γ are products of
matrices.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from ocrep import Factor, PinvClassifier, PinvRegressor, RandomLayer, Spectrum
from ocrep.literature import ELMClassifier, PrunedELMRegressor, RELMClassifier, TROPELMRegressor
from ocrep.rules import NotApplicable, OCReP, OCRePCV, RidgeFormula, Rule, Unregularized
from study.protocol import (
    BIASES,
    GCV_METHODS,
    N_FOLDS,
    PAPER_GRID,
    PEAK_SHARES,
    REFERENCE_SPLIT,
    SHOWN_RANGE,
    STABILITY_BETAS,
    TARGETS,
    TEST_SHARE,
    Protocol,
)
from study.results import Row

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
PEAK_METHODS = ("ocrep", "ocrep_floor", "unregularized")
LITERATURE: dict[str, dict[str, Any]] = {
    "regression": {"trop_elm": TROPELMRegressor, "pruned_elm": PrunedELMRegressor},
    "classification": {"elm": ELMClassifier, "relm": RELMClassifier},
}
STABILITY_TEST_ROWS = 300


# ------------------------------------------------------------------------------
# One hidden layer on one split.


def split_of(data: Any, split: int) -> tuple[np.ndarray, ...]:
    """Return X, X_test, y, y_test of one split, 70/30; the rows come in random order."""
    return tuple(train_test_split(data.data, data.target, test_size=TEST_SHARE, random_state=split))


def folds_of(n_rows: int) -> list[slice]:
    """Return the folds: thirds of the training rows, which the split has put in random order."""
    ends = [n_rows * v // N_FOLDS for v in range(N_FOLDS + 1)]
    return [slice(*pair) for pair in pairwise(ends)]


@dataclass(frozen=True, slots=True, eq=False)
class Coding:
    """Targets as training sees them: the columns T, which are (y − shift)/unit for regression and ±1 for classes."""

    T: np.ndarray
    shift: float = 0.0
    unit: float = 1.0

    @classmethod
    def of(cls, y: np.ndarray, task: str, scale: str) -> Coding:
        """Code the targets of the training rows y; `scale` is a name in `TARGETS`."""
        if task == "classification":
            return cls(np.where(y[:, None] == np.arange(y.max() + 1), 1.0, -1.0))
        shift, unit = (0.0, 1.0) if scale == "raw" else (y.min(), y.max() - y.min())
        return cls(((y - shift) / unit)[:, None], shift, unit)


@dataclass(frozen=True, eq=False)
class Network:
    """A hidden layer with as many units as `H` has columns, seen through its factors.

    The whole training part and each training part of cross-validation have one factor; its leading blocks are the
    factors of smaller layers. The targets' codings stand side by side as columns of one T.
    """

    H: np.ndarray
    H_test: np.ndarray
    task: str
    codings: Mapping[str, Coding]
    y: np.ndarray
    y_test: np.ndarray

    @classmethod
    def draw(
        cls, data: Any, split: int, seed: int, n_hidden: int, biases: str, scales: Sequence[str] = tuple(TARGETS)
    ) -> Network:
        """Draw the paper's hidden layer and apply it to the rows of a split.

        Classes have one coding, ±1: with 0 and 1 the outputs of all classes change by the same number.
        """
        if data.task == "classification":
            scales = ("raw",)
        X, X_test, y, y_test = split_of(data, split)
        layer = RandomLayer(
            n_hidden,
            activation="sigmoid",
            input_scaling="minmax",
            weight_init="uniform",
            weight_scale=1.0,
            bias_range=BIASES[biases],
            direct_link=False,
            random_state=seed,
        ).fit(X)
        codings = {scale: Coding.of(y, data.task, scale) for scale in scales}
        return cls(layer.transform(X), layer.transform(X_test), data.task, codings, y, y_test)

    @cached_property
    def T(self) -> np.ndarray:  # noqa: N802 - the paper's symbol
        """The codings side by side."""
        return np.hstack([coding.T for coding in self.codings.values()])

    def columns(self, scale: str) -> slice:
        """Return where a coding stands in T."""
        width = self.codings[scale].T.shape[1]
        start = width * list(self.codings).index(scale)
        return slice(start, start + width)

    @cached_property
    def whole(self) -> Factor:
        """The factor of all training rows."""
        return Factor.of(self.H, self.T)

    @cached_property
    def parts(self) -> list[Factor]:
        """For each fold, the factor of the other training rows."""
        kept = [np.delete(np.arange(len(self.H)), fold) for fold in folds_of(len(self.H))]
        return [Factor.of(self.H[rows], self.T[rows]) for rows in kept]

    @cached_property
    def held_out(self) -> list[np.ndarray]:
        """For each fold, the triangular factor of its own rows of [H | T]."""
        HT = np.hstack([self.H, self.T])
        return [np.asarray(np.linalg.qr(HT[fold], mode="r")) for fold in folds_of(len(HT))]

    def sized(self, n_hidden: int) -> Sized:
        """Return the network of the first units."""
        return Sized(self, n_hidden)

    def errors(self, outputs: np.ndarray, y: np.ndarray, scale: str) -> np.ndarray:
        """Return RMSE or percent misclassified for each γ of outputs (γ × rows × targets); y is as it was loaded."""
        if self.task == "classification":
            return 100.0 * np.mean(outputs.argmax(axis=2) != y, axis=1)
        coding = self.codings[scale]
        coded = (y - coding.shift) / coding.unit
        return coding.unit * np.sqrt(np.mean((outputs[..., 0] - coded) ** 2, axis=1))


@dataclass(frozen=True, eq=False)
class Sized:
    """The first units of a network."""

    network: Network
    n_hidden: int

    @cached_property
    def spectrum(self) -> Spectrum:
        """The spectrum of all training rows, with the targets of all codings."""
        return self.network.whole.leading(self.n_hidden).spectrum()

    @cached_property
    def fold_spectra(self) -> list[Spectrum]:
        """For each fold, the spectrum of the other rows."""
        return [part.leading(self.n_hidden).spectrum() for part in self.network.parts]

    def spectrum_of(self, scale: str) -> Spectrum:
        """Return the spectrum of all training rows with the targets of one coding."""
        return _with_targets(self.spectrum, self.network.columns(scale))

    def test_errors(self, gammas: Sequence[float] | np.ndarray, scale: str) -> np.ndarray:
        """Return the error on the test rows for each γ."""
        network = self.network
        outputs = _outputs(network.H_test[:, : self.n_hidden], self.spectrum_of(scale), np.asarray(gammas))
        return network.errors(outputs, network.y_test, scale)

    def cv_errors(self, gammas_by_fold: Sequence[np.ndarray], scale: str) -> np.ndarray:
        """Return the cross-validation error at each place of the folds' own γ: RMSE, or percent misclassified."""
        network = self.network
        columns = network.columns(scale)
        total = np.zeros(len(gammas_by_fold[0]))
        for v, fold in enumerate(folds_of(len(network.H))):
            spectrum = _with_targets(self.fold_spectra[v], columns)
            if network.task == "classification":
                outputs = _outputs(network.H[fold, : self.n_hidden], spectrum, gammas_by_fold[v])
                total += network.errors(outputs, network.y[fold], scale) * (fold.stop - fold.start)
            else:
                # R is triangular: below its first m rows, the first m columns are zero.
                R = network.held_out[v]
                r = R[:, network.H.shape[1] + columns.start]
                outputs = _outputs(R[: self.n_hidden, : self.n_hidden], spectrum, gammas_by_fold[v])[..., 0]
                total += np.sum((outputs - r[: self.n_hidden]) ** 2, axis=1) + np.sum(r[self.n_hidden :] ** 2)
        if network.task == "classification":
            return total / len(network.H)
        return network.codings[scale].unit * np.sqrt(total / len(network.H))


def _with_targets(spectrum: Spectrum, columns: slice) -> Spectrum:
    """The spectrum with some of the targets."""
    some = {name: getattr(spectrum, name)[..., columns] for name in ("UtT", "residual", "mean_T")}
    return replace(spectrum, **some)


def _outputs(H: np.ndarray, spectrum: Spectrum, gammas: np.ndarray) -> np.ndarray:
    """H·W for each γ, γ × rows × targets, as one product."""
    weights = spectrum.weights(gammas)
    flat = np.moveaxis(weights, 0, 1).reshape(H.shape[1], -1)
    return np.moveaxis((H @ flat).reshape(len(H), len(gammas), -1), 1, 0)


# ------------------------------------------------------------------------------
# The paper's experiments.


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
        gammas["cv"] = _by_cross_validation(sized, scale)
        along = spectrum.n * GRID
        best = GRID[np.argmin(spectrum.rss(along) / spectrum.residual_dof(along) ** 2)]  # the paper's GCV, eq. 7
        gammas |= dict(zip(GCV_METHODS, (spectrum.n * best, best), strict=True))
    if whole and sized.network.task == "regression":  # these formulas are for one target
        for method, rule in FORMULAS.items():
            try:
                gammas[method] = rule.choose(spectrum).gamma
            except NotApplicable:
                gammas[method] = None
    known = {method: gamma for method, gamma in gammas.items() if gamma is not None}
    errors = dict(zip(known, sized.test_errors(list(known.values()), scale), strict=True))
    for method, gamma in gammas.items():
        condition = None if gamma is None else float(spectrum.condition(gamma))
        yield Row(sized.n_hidden, method, scale, error=errors.get(method), gamma=gamma, condition=condition)


def _by_cross_validation(sized: Sized, scale: str) -> float:
    return float(GRID[sized.cv_errors([GRID] * N_FOLDS, scale).argmin()])


def path(job: Job, data: Any, protocol: Protocol) -> Iterator[Row]:
    """Yield test and cross-validation errors at the hidden sizes of one part of the path.

    Rules that read only a spectrum choose γ anew on each training part; cross-validation has the error of the γ it
    chooses, as in the paper's joint search.
    """
    n_parts = protocol.segment_parts if job.data == "segment" else 1
    sizes = protocol.path_sizes(job.data)[job.part :: n_parts]
    network = Network.draw(data, job.split, job.seed, sizes[-1], job.biases, (job.targets,))
    (scale,) = network.codings
    for n_hidden in sizes:
        sized = network.sized(n_hidden)
        along = sized.cv_errors([GRID] * N_FOLDS, scale)
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
        gamma = _by_cross_validation(sized, scale) if method == "cv" else SPECTRAL[method].choose(sized.spectrum).gamma
        yield Row(n_hidden, method, scale, error=sized.test_errors([gamma], scale)[0], gamma=gamma)


# ------------------------------------------------------------------------------
# Experiments besides the paper's own: its rivals from the literature, M around N, the default rule, and stability.


def literature(job: Job, data: Any, protocol: Protocol) -> Iterator[Row]:
    """Yield the errors of the literature's methods with their own defaults, where the paper compares with them."""
    X, X_test, y, y_test = split_of(data, job.split)
    for method, estimator in LITERATURE[data.task].items():
        if method in protocol.literature:
            model = estimator(random_state=job.seed).fit(X, y)
            yield Row(int(model.n_hidden_), method, "raw", error=_error(model, X_test, y_test, data.task))


def beyond(job: Job, data: Any, protocol: Protocol) -> Iterator[Row]:
    """Yield the errors of `ocrep_cv` in the paper's network at its fixed sizes."""
    for n_hidden in protocol.sizes_of(job.data):
        yield _ocrep_cv(job, data, n_hidden)


def peak(job: Job, data: Any, protocol: Protocol) -> Iterator[Row]:
    """Yield errors at hidden sizes around the number of training rows, which the paper does not cover."""
    n_rows = len(split_of(data, job.split)[0])
    sizes = [round(share * n_rows) for share in PEAK_SHARES]
    network = Network.draw(data, job.split, job.seed, sizes[-1], job.biases, ("raw",))
    for n_hidden in sizes:
        sized = network.sized(n_hidden)
        gammas = [SPECTRAL[method].choose(sized.spectrum).gamma for method in PEAK_METHODS]
        for method, error in zip(PEAK_METHODS, sized.test_errors(gammas, "raw"), strict=True):
            yield Row(n_hidden, method, "raw", error=error)
        yield _ocrep_cv(job, data, n_hidden)


def _ocrep_cv(job: Job, data: Any, n_hidden: int) -> Row:
    X, X_test, y, y_test = split_of(data, job.split)
    model = (PinvRegressor if data.task == "regression" else PinvClassifier)(
        n_hidden,
        gamma=OCRePCV(n_folds=3, seed=0, floor="rounding"),
        activation="sigmoid",
        weight_init="uniform",
        weight_scale=1.0,
        input_scaling="minmax",
        direct_link=False,
        fit_intercept=False,
        random_state=job.seed,
    )
    with warnings.catch_warnings():  # a γ at the end of its range is a result here
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return Row(n_hidden, "ocrep_cv", "raw", error=_error(model, X_test, y_test, data.task), gamma=model.gamma_)


def _error(model: Any, X: np.ndarray, y: np.ndarray, task: str) -> float:
    wrong = model.predict(X) - y
    return float(np.sqrt(np.mean(wrong**2)) if task == "regression" else 100.0 * np.mean(wrong != 0))


def stability(job: Job, data: Any, protocol: Protocol) -> Iterator[Row]:
    """Yield how much predictions change when one training row is left out, against γ in units of σ₁σ_p.

    Without row i the weights are W − G⁻¹h_i·e_i/(1 − l_i), with G = HᵀH + γI, e_i the row's residual and l_i its
    leverage, so the change at a test row h is exactly hᵀG⁻¹h_i·e_i/(1 − l_i). `error` is the root mean square of that
    over all left-out rows and up to 300 test rows, `cv_error` the leave-one-out error, both relative to the standard
    deviation of the coded targets.
    """
    n_hidden = protocol.sizes_of(job.data)[-1]
    network = Network.draw(data, job.split, job.seed, n_hidden, job.biases, ("raw",))
    spectrum = network.sized(n_hidden).spectrum
    T = network.T
    balanced = spectrum.largest * spectrum.smallest
    U = network.H @ spectrum.Vt.T / spectrum.sigma
    Z = network.H_test[:STABILITY_TEST_ROWS] @ spectrum.Vt.T
    unit = float(np.std(T))
    for beta in STABILITY_BETAS:
        gamma = beta * balanced
        one_minus_leverage = 1.0 - U**2 @ spectrum.filter(gamma)
        residual = T - U @ (spectrum.filter(gamma)[:, None] * spectrum.UtT)
        left_out = np.sqrt(np.mean(residual**2, axis=1)) / one_minus_leverage
        change = (Z * spectrum.gain(gamma)) @ (U * left_out[:, None]).T
        error, cv_error = (float(np.sqrt(np.mean(values**2)) / unit) for values in (change, left_out))
        condition = float(spectrum.condition(gamma))
        yield Row(n_hidden, "leave_one_out", "raw", error=error, gamma=beta, condition=condition, cv_error=cv_error)


EXPERIMENTS: dict[str, Callable[[Job, Any, Protocol], Iterator[Row]]] = {
    "fixed": fixed,
    "path": path,
    "chosen": chosen,
    "literature": literature,
    "beyond": beyond,
    "peak": peak,
    "stability": stability,
}
