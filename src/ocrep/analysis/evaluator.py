"""One fitted network under many γ: the choice of each rule, and the training, test and cross-validation errors.

Nothing is trained again. With the SVD H = UΣVᵀ, read off the factor that `fit` stored, the output weights for any γ are

    W(γ) = V · diag(σ/(σ² + γ)) · UᵀT,

so the weights of all γ together cost one product of V with a stack of scaled UᵀT, and one pass over the rows gives the
errors for all of them: rows × features × targets multiplications for each γ.

Exact k-fold cross-validation needs no rows for squared errors. Each fold v has a triangular factor R_v of its own
rows [1 | H_v | T_v]. The factor of the other folds is the merge of theirs, which gives an intercept b_v(γ) and
weights W_v(γ) as above, and the held-out squared error is ‖R_v [b_v; W_v; −I]‖². All γ together cost one small SVD
per fold. Misclassified rows can only be counted on the rows.

How much of a difference between two γ is noise? For RMSE, let d_v be the difference of their mean squared errors on
fold v. The folds pair them, so the standard error of the mean of d is sd(d)/√k; and since dRMSE = dMSE/(2·RMSE), that
of the difference of the RMSEs is sd(d)/(2·√k·RMSE). A share p of n misclassified rows has the binomial standard error
√(p(1 − p)/n), with p = (misclassified + 1)/(n + 2), which is above 0 even where no row is misclassified.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ocrep._linalg.factor import Factor
from ocrep._linalg.fold_factors import FoldFactors
from ocrep._linalg.folds import FoldPlan
from ocrep._linalg.parallel import slices_of
from ocrep._linalg.rows import Encoded, EncodedRows
from ocrep._linalg.solve import solve
from ocrep._linalg.spectrum import Spectrum
from ocrep._rows.block import Block
from ocrep.estimators.base import ClosedForm, rows_of
from ocrep.rules import Choice, NotApplicable, names, resolve
from ocrep.rules.base import check_usable, for_stored_folds
from ocrep.rules.cross_validation import fold_errors, misclassified_by_fold, same_class

POINTS_PER_DECADE = 8
# In units of σ₁²: below LOWEST only rounding errors matter, above HIGHEST all weights are almost zero. Even if H is
# well conditioned, the grid starts at a tenth of LATEST_START or below, so that it shows where γ has no effect.
LOWEST = 1e-16
HIGHEST = 1e2
LATEST_START = 1e-8


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """The γ that one rule chose, or the reason why the rule does not apply (then `gamma` is None)."""

    rule: str
    gamma: float | None
    reason: str = ""
    edge: str | None = None
    floored: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Evaluator:
    """A fitted network and its rows. Errors are shares of misclassified rows for a classifier, and RMSE otherwise."""

    factor: Factor
    spectrum: Spectrum
    folds: FoldFactors | None
    trained: EncodedRows | None = None  # the training rows, weighted as in training: rules read these
    plain: EncodedRows | None = None  # the same rows without class weights: errors are counted on these
    test: EncodedRows | None = None
    own_features: bool = False  # whether the features are the user's own

    @classmethod
    def of(cls, model: ClosedForm, training: Any = None, *, test: tuple[Any, Any] | None = None) -> Evaluator:
        """Take a fitted model, its training rows (X, y) or (X, y, sample_weight), and test rows (X, y).

        Without training rows there are no training errors, and rules that read rows do not apply.
        """
        check_is_fitted(model)
        check_one_gamma(model.gamma_)
        trained = None if training is None else rows_of(model, *training, as_trained=True)
        plain = None if training is None else rows_of(model, *training, as_trained=False)
        tested = None if test is None else rows_of(model, *test, as_trained=False)
        own_features = model._learned.layer is None
        return cls(model.factor_, model.spectrum_, model.folds_, trained, plain, tested, own_features)

    def with_folds(self, n_rows: int) -> Evaluator:
        """Compute the folds from the training rows if the model did not keep them.

        Raise if the model was trained on other rows than the `n_rows` given.
        """
        folds = self.folds
        trained = self.spectrum.n_rows
        if folds is None:
            assert self.trained is not None
            intercept = self.factor.counts.intercept
            folds = solve(self.trained.rows, self.trained.encoder, FoldPlan(), intercept=intercept).folds
            assert folds is not None
        # Rows of no weight are read and not counted, so both numbers must agree.
        if folds.n_read != n_rows or sum(f.counts.n_rows for f in folds.factors if f) != trained:
            raise ValueError(
                f"The model was trained on {trained} rows, and {n_rows} are given: give the rows it was trained on."
            )
        return replace(self, folds=folds)

    def leading(self, n_features: int) -> Evaluator:
        """Return the network of the first `n_features` features, read off the leading blocks of the factors."""
        factor = self.factor.leading(n_features)
        trained, plain, test = (_leading_rows(rows, n_features) for rows in (self.trained, self.plain, self.test))
        folds = self.folds and self.folds.leading(n_features)
        return Evaluator(factor, factor.spectrum(), folds, trained, plain, test, self.own_features)

    @property
    def labels(self) -> bool:
        """Whether errors are shares of misclassified rows."""
        return self.plain is not None and self.plain.encoder.labels

    @property
    def error_name(self) -> str:
        """What the errors are, in words."""
        return "share misclassified" if self.labels else "RMSE"

    def choose(self, rule: Any) -> Choice:
        """Return the choice of a rule, given as a name, rule or number; raise `NotApplicable` if it cannot choose."""
        rule = resolve(rule).for_own_features() if self.own_features else resolve(rule)
        rule = for_stored_folds(rule, self.folds)
        if rule.folds is not None and self.folds is not None:
            check_usable(self.folds)  # `fit` falls back to GCV, which is another rule in a comparison
        # The folds of rows that groups or row numbers decide are known only during a fit.
        rows = self.trained if rule.folds is None or self._folds_by_content else None
        choice = rule.choose(self.spectrum, folds=self.folds, rows=rows)
        check_one_gamma(choice.gamma)
        return choice

    @property
    def _folds_by_content(self) -> bool:
        return self.folds is None or self.folds.plan.split == "content"

    def apply(self, rule: Any) -> RuleOutcome:
        """Return the γ of a rule, or the reason why it does not apply."""
        try:
            choice = self.choose(rule)
        except NotApplicable as reason:
            return RuleOutcome(rule_name(rule), None, str(reason))
        return RuleOutcome(rule_name(rule), choice.gamma, edge=choice.edge, floored=choice.floored)

    def training_errors(self, gammas: np.ndarray) -> np.ndarray:
        """Error on the training rows for each γ."""
        return self._errors(self.plain, gammas)

    def test_errors(self, gammas: np.ndarray) -> np.ndarray:
        """Error on the test rows for each γ; NaN without test rows."""
        return self._errors(self.test, gammas)

    def cv_errors(self, gammas: np.ndarray) -> np.ndarray:
        """Exact k-fold error for each γ; NaN if fewer than two folds hold rows.

        NaN too for a share of misclassified rows, if groups or row numbers decide the folds: then the rows given here
        do not say in which fold they are.
        """
        if self.folds is None or len(self.folds.filled) < 2 or (self.labels and not self._folds_by_content):
            return np.full(len(gammas), np.nan)
        if self.plain is not None and self.plain.encoder.labels:
            misclassified, count = misclassified_by_fold(self.folds, self.plain, gammas)
            return misclassified.sum(axis=0) / count
        squares = self.folds.squared_errors(gammas).sum(axis=0)
        return np.sqrt(squares / (sum(self.folds.weight_sums) * self.folds.n_targets))

    def cv_noise(self, gammas: np.ndarray, best: float) -> np.ndarray:
        """One standard error of the difference between the CV error at each γ and at the best one."""
        if self.folds is None or len(self.folds.filled) < 2 or (self.labels and not self._folds_by_content):
            return np.full(len(gammas), np.nan)
        if self.labels:
            n = self.spectrum.n_rows
            share = (float(self.cv_errors(np.array([best]))[0]) * n + 1.0) / (n + 2.0)
            return np.full(len(gammas), math.sqrt(share * (1.0 - share) / n))
        errors = fold_errors(self.folds, np.append(gammas, best)) / self.folds.n_targets
        differences = errors[:, :-1] - errors[:, -1:]
        deviation = np.std(differences, axis=0, ddof=1) / math.sqrt(len(differences))
        rmse = math.sqrt(float(np.mean(errors[:, -1])))
        return deviation / (2.0 * rmse) if rmse > 0.0 else deviation

    def _errors(self, rows: EncodedRows | None, gammas: np.ndarray) -> np.ndarray:
        """RMSE, or share of misclassified rows, for each γ, in one pass over the rows; NaN without rows."""
        if rows is None:
            return np.full(len(gammas), np.nan)
        weights = self.spectrum.weights(gammas)
        intercept = self.spectrum.intercept(gammas)
        total = np.zeros(len(gammas))
        count = 0.0
        for H, T, weight in rows.blocks():
            # There is one output per row, γ and target: a whole block of rows may be too large.
            for part in slices_of(H.shape[0], len(gammas) * T.shape[1]):
                t = T[part]
                w = np.ones(len(t)) if weight is None else weight[part]
                outputs = H[part] @ weights + intercept[:, None, :]
                if rows.encoder.labels:
                    loss = ~same_class(outputs, t, several=rows.encoder.several)
                else:
                    loss = ((outputs - t) ** 2).mean(axis=2)
                total = total + loss @ w
                count = count + w.sum()
        return total / count if rows.encoder.labels else np.sqrt(total / count)


def check_one_gamma(gamma: Any) -> None:
    """Raise if each target has a γ of its own."""
    if isinstance(gamma, np.ndarray):
        raise ValueError(
            f"Tables, curves and reports show one γ for all targets, and here are {len(gamma)}, one for each: use "
            "gamma_per_target=False, and a rule or a single number as gamma."
        )


def gamma_grid(spectrum: Spectrum, chosen: Iterable[float | None] = ()) -> np.ndarray:
    """Return increasing γ > 0, evenly spaced in the logarithm, together with all of the `chosen` that are positive.

    The grid runs from a tenth of σ_p², where γ begins to matter, to 100·σ₁², where all weights are almost zero.
    """
    unit = spectrum.largest**2 or 1.0
    low = max(LOWEST * unit, 0.1 * min(spectrum.smallest**2, LATEST_START * unit))
    high = HIGHEST * unit
    steps = math.ceil(POINTS_PER_DECADE * math.log10(high / low))
    even = low * (high / low) ** (np.arange(steps + 1) / steps)
    return np.unique([*even, *(gamma for gamma in chosen if gamma)])


def rule_name(rule: Any) -> str:
    """Return the name of a rule in tables and figures: as given, or the `repr` of an object or number."""
    return rule if isinstance(rule, str) else repr(rule)


def rules_to_compare(rules: Iterable[Any] | None) -> list[Any]:
    """Return the rules a user asked for: all names if None; one name alone is a list of one."""
    return list(names() if rules is None else [rules] if isinstance(rules, str) else rules)


def both_or_none(X_test: Any, y_test: Any) -> tuple[Any, Any] | None:
    """Return the test rows as a pair, or None if there are none."""
    if (X_test is None) != (y_test is None):
        raise ValueError("Test rows need both X_test and y_test: give both, or neither.")
    return None if X_test is None else (X_test, y_test)


def _leading_rows(rows: EncodedRows | None, n_features: int) -> EncodedRows | None:
    if rows is None:
        return None
    whole = rows.encoder.encode

    def encode(block: Block, out: np.ndarray | None = None) -> Encoded:
        H, T, weight = whole(block)
        return Encoded(H[:, :n_features], T, weight)

    return replace(rows, encoder=replace(rows.encoder, encode=encode, n_features=n_features))
