"""One fitted network under many γ: its errors along a grid, and where each rule lands."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ocrep._linalg.blocks import slices_of
from ocrep._linalg.folds import FoldFactors, FoldPlan
from ocrep._linalg.leave_one_out import Rows
from ocrep._linalg.spectrum import Spectrum
from ocrep.analysis.compare import row_errors
from ocrep.rules import NotApplicable, resolve
from ocrep.rules.cross_validation import fold_errors, mean_squared_error, misclassified

POINTS_PER_DECADE = 8
# In units of σ₁²: below, only rounding is left to see, and above the weights are nothing.
LOWEST, HIGHEST = 1e-16, 1e2
UPPERMOST_START = 1e-8
"""However well H is conditioned, the grid begins where γ is no regularization."""


@dataclass(frozen=True, slots=True)
class Landing:
    """The γ of one rule, or why it has none."""

    rule: str
    gamma: float | None
    reason: str = ""
    edge: str | None = None
    floored: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class GammaPath:
    """A fitted network and its rows, ready to be judged under any γ."""

    spectrum: Spectrum
    folds: FoldFactors
    trained: Rows
    """The training rows weighted as in training: what rules read."""
    plain: Rows
    """The same without class weights: what errors are counted on."""
    test: Rows | None

    @classmethod
    def of(cls, model: Any, X: Any, y: Any, X_test: Any = None, y_test: Any = None) -> GammaPath:
        """Take a fitted model and the rows it was trained on; folds it did not keep are made from the rows."""
        check_is_fitted(model)
        trained, plain = (model.rows(X, y, as_trained=as_trained) for as_trained in (True, False))
        folds = model.folds_
        if folds is None:
            folds = FoldFactors.empty(FoldPlan()).absorb(trained.blocks(), intercept=model.fit_intercept)
        if folds.n_read != len(y) or sum(f.n_rows for f in folds.factors if f) != model.spectrum_.n_rows:
            raise ValueError(
                f"The model was trained on {model.spectrum_.n_rows} rows, and {len(y)} are given: "
                "give the rows it was trained on."
            )
        if (X_test is None) != (y_test is None):
            raise ValueError("Test rows need both X_test and y_test: give both, or neither.")
        test = None if X_test is None else model.rows(X_test, y_test, as_trained=False)
        return cls(model.spectrum_, folds, trained, plain, test)

    @property
    def labels(self) -> bool:
        """Whether errors are shares of misclassified rows; RMSE otherwise."""
        return self.plain.labels

    def land(self, rule: Any) -> Landing:
        """Ask one rule for its γ."""
        name = rule if isinstance(rule, str) else repr(rule)
        try:
            choice = resolve(rule).choose(self.spectrum, folds=self.folds, rows=self.trained)
        except NotApplicable as reason:
            return Landing(name, None, str(reason))
        return Landing(name, choice.gamma, edge=choice.edge, floored=choice.floored)

    def training_errors(self, gammas: np.ndarray) -> np.ndarray:
        """Error on the training rows for each γ."""
        return self._errors(self.plain, gammas)

    def test_errors(self, gammas: np.ndarray) -> np.ndarray | None:
        """Error on the test rows for each γ, if there are any."""
        return None if self.test is None else self._errors(self.test, gammas)

    def cv_errors(self, gammas: np.ndarray) -> np.ndarray:
        """Exact k-fold error for each γ; NaN where the rows are too few for folds."""
        if not self.folds.usable:
            return np.full(len(gammas), np.nan)
        if self.labels:
            return misclassified(self.folds, self.plain, gammas)
        return np.sqrt(mean_squared_error(self.folds, gammas))

    def cv_noise(self, gammas: np.ndarray, best: float) -> np.ndarray:
        """One standard error of the difference between the CV error at each γ and at the best one.

        RMSE: of the differences over the folds, which are paired. A share of misclassified rows: binomial, with one
        row of either kind added, so that no error at all does not look like certainty.
        """
        if not self.folds.usable:
            return np.full(len(gammas), np.nan)
        if self.labels:
            n = self.spectrum.n_rows
            share = (float(self.cv_errors(np.array([best]))[0]) * n + 1.0) / (n + 2.0)
            return np.full(len(gammas), math.sqrt(share * (1.0 - share) / n))
        errors = fold_errors(self.folds, np.append(gammas, best)) / self.folds.n_targets
        differences = errors[:, :-1] - errors[:, -1:]
        deviation = np.std(differences, axis=0, ddof=1) / math.sqrt(len(differences))
        root = math.sqrt(float(np.mean(errors[:, -1])))
        return deviation / (2.0 * root) if root > 0.0 else deviation

    def _errors(self, rows: Rows, gammas: np.ndarray) -> np.ndarray:
        entries = len(gammas) * self.spectrum.UtT.shape[1]
        small = Rows(lambda: _smaller(rows, entries), labels=rows.labels)
        return row_errors(small, self.spectrum.weights(gammas), self.spectrum.intercept(gammas))


def gamma_grid(spectrum: Spectrum, chosen: Iterable[float | None] = ()) -> np.ndarray:
    """Increasing γ > 0, evenly spaced in the logarithm, with all of the `chosen` that are not 0 added.

    From where γ begins to matter, a tenth of σ_p², to 100·σ₁², where nothing of the weights is left.
    """
    unit = spectrum.largest**2 or 1.0
    low, high = max(LOWEST * unit, 0.1 * min(spectrum.smallest**2, UPPERMOST_START * unit)), HIGHEST * unit
    steps = math.ceil(POINTS_PER_DECADE * math.log10(high / low))
    even = low * (high / low) ** (np.arange(steps + 1) / steps)
    return np.unique([*even, *(gamma for gamma in chosen if gamma)])


def _smaller(rows: Rows, entries_each: int) -> Iterator[tuple[Any, Any, Any]]:
    """The same rows in blocks small enough for one output per row and γ."""
    for H, T, weight in rows.blocks():
        for part in slices_of(H.shape[0], entries_each):
            yield H[part], T[part], None if weight is None else weight[part]
