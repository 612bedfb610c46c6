"""What all estimators share: rows → features → factor → spectrum → rule → weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from ocrep import rules
from ocrep._choices import pick
from ocrep._features.random_layer import Range, check_weights, observed_range
from ocrep._linalg.arrays import array_namespace, device_of
from ocrep._linalg.blocks import block_rows, row_blocks, row_slices
from ocrep._linalg.factor import Factor
from ocrep._linalg.folds import FoldFactors, FoldPlan, plan_of
from ocrep._linalg.leave_one_out import Rows
from ocrep._linalg.parallel import on_chunks
from ocrep._linalg.solve import ROUTES, factor_rows
from ocrep._rows.dask import is_dask
from ocrep._rows.device import check_inputs, check_targets, lies_elsewhere, refuse_elsewhere
from ocrep._training.streaming import fit_scan, predicted_blocks, scan_of
from ocrep._transaction import unchanged_on_error

_INPUTS: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}


class ClosedForm(BaseEstimator, ABC):
    """Training and prediction; subclasses say what the features are and what the targets are."""

    gamma: str | float | rules.Rule
    fit_intercept: bool
    store_folds: bool | int | FoldPlan
    solver: str
    factor_: Factor
    folds_: FoldFactors | None
    _target_options: ClassVar[dict[str, bool]] = {}
    _labels_as_targets: ClassVar[bool] = False

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on all rows; the features are formed block by block and never held whole.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs. Arrays on disk (`numpy.memmap`, HDF5, Zarr) are read slice by slice. Or `ocrep.scan(…)`, which
            names targets and weights itself. Or a Dask array or dataframe, y and weights too.
        y : array-like of shape (n_samples,), or (n_samples, n_targets) for regression
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights ≥ 0; whole weights are the same as repeated rows.

        Returns
        -------
        self
            The fitted estimator. If `fit` fails, it is left as it was.
        """
        with unchanged_on_error(self):
            self._check_parameters()
            for name in ("factor_", "folds_"):
                self.__dict__.pop(name, None)
            if is_dask(X):
                return self._fit_where_rows_lie(X, y, sample_weight)
            scan = scan_of(X, y, sample_weight)
            if scan is not None:
                fit_scan(self, scan)
                return self
            X, y = self._check_rows(X, y, reset=True)
            y = self._learn_targets(y)
            weight = self._row_weights(X, y, sample_weight)
            self._begin_on_rows(X, weight)
            rows = self._rows(X, y, weight)
            self._learn(rows)
            self._decide(rows)
        return self

    def _fit_where_rows_lie(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Train on Dask collections; Dask is imported by now, and only then."""
        from ocrep._rows.dask.training import fit

        fit(self, X, y, sample_weight)
        return self

    def _lazily(self, what: str, X: Any, *, n_columns: int | None = None, dtype: Any = None) -> Any:
        """One of the model's answers on a Dask collection, as a lazy Dask array."""
        from ocrep._rows.dask.prediction import predict

        return predict(self, X, what, n_columns=n_columns, dtype=dtype)

    def _agreement(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """How well predictions on Dask collections agree with y."""
        from ocrep._rows.dask.prediction import score

        return score(self, X, y, sample_weight)

    def predict_blocks(self, source: Any) -> Iterator[np.ndarray]:
        """Predict block by block, so that neither the rows nor the predictions need fit into memory.

        Parameters
        ----------
        source : ocrep.scan(…), array, or iterable of blocks of inputs
            The rows; a scan needs no target, and columns are found by the names of training.

        Yields
        ------
        ndarray
            What `predict` gives, for each block as it comes.
        """
        check_is_fitted(self)
        if not isinstance(self.coef_, np.ndarray):
            raise TypeError(
                "predict_blocks reads rows on the host, and this model was trained elsewhere: "
                "call predict on one array at a time."
            )
        return predicted_blocks(self, source)

    def with_gamma(self, gamma: str | float | rules.Rule) -> Self:
        """Give the same network under another rule, from the stored factor, without the data.

        This model stays as it is; a new one is returned. A rule that reads the rows, or folds that were not kept,
        says so.
        """
        check_is_fitted(self)
        other = copy(self)
        other.gamma = gamma
        other._decide(rows=None)
        return other

    def as_float32(self) -> Self:
        """Give the same network for prediction in single precision: about twice as fast, right to about 10⁻⁶·‖W‖.

        Only the inputs are still centred in double precision. The new model cannot be trained further.
        """
        check_is_fitted(self)
        other = copy(self)
        xp = array_namespace(self.coef_)
        other.coef_ = xp.astype(self.coef_, xp.float32)
        return other

    def _learn(self, rows: Rows) -> None:
        """Factor rows that can be read again, by the fastest route that is right."""
        folds = self._begin_folds()
        if folds is None:
            self.factor_, self.spectrum_ = factor_rows(rows.blocks, intercept=self.fit_intercept, route=self.solver)
            self.folds_ = None
        else:
            self._absorb_into(folds, rows)
            self._settle_size()
            self.spectrum_ = self.factor_.spectrum()

    def _absorb(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> None:
        """Merge checked rows that come once into the factor, or begin one."""
        first = not hasattr(self, "factor_")
        if first:
            self._begin_on_rows(X, weight)
        elif self.coef_.dtype == array_namespace(self.coef_).float32:
            raise ValueError("This is a network in single precision, for prediction only: train the original instead.")
        folds = self._begin_folds() if first else self.folds_
        rows = self._rows(X, y, weight)
        if folds is None:
            start = None if first else self.factor_
            self.factor_ = Factor.fold(rows.blocks(), intercept=self.fit_intercept, start=start)
            self.folds_ = None
        else:
            self._absorb_into(folds, rows)
        self.spectrum_ = self.factor_.spectrum()

    def _absorb_into(self, folds: FoldFactors, rows: Rows) -> None:
        self.folds_ = folds.absorb(rows.blocks(), intercept=self.fit_intercept)
        self.factor_ = self.folds_.merged()

    def _settle_size(self) -> None:
        """A place to cut the factor down before it is decomposed."""

    def _check_streamed(self) -> None:
        """A place to refuse what needs all rows at once."""

    def _check_parameters(self) -> None:
        """Refuse what cannot work before any work is done."""
        rules.resolve(self.gamma)
        pick("solver", self.solver, dict.fromkeys(ROUTES))

    def _begin_folds(self) -> FoldFactors | None:
        """One factor per fold if the rule reads them or the user wants them kept."""
        wanted, kept = rules.resolve(self.gamma).folds, plan_of(self.store_folds)
        explicit = not isinstance(self.store_folds, bool | np.bool_) and kept is not None
        if explicit and wanted is not None and kept != wanted:
            raise ValueError(f"gamma asks for {wanted}, and store_folds for {kept}: make them the same.")
        plan = wanted or kept
        return None if plan is None else FoldFactors.empty(plan)

    def rows(self, X: Any, y: Any, sample_weight: Any = None, *, as_trained: bool = True) -> Rows:
        """Rows as this fitted model sees them, `(H, T, sample_weight)` by blocks, for tools that read them again.

        `as_trained=False` leaves class weights out, for counting errors.
        """
        check_is_fitted(self)
        X, y = self._check_rows(X, y, reset=False)
        y = self._known_targets(y)
        weight = self._row_weights(X, y, sample_weight) if as_trained else check_weights(sample_weight, X)
        return self._rows(X, y, weight)

    def _rows(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Rows:
        """The checked rows as features and coded targets, block by block, as often as asked."""
        rows = block_rows(self._features(X[:1, ...]).shape[1] + self._encode(y[:1, ...]).shape[1], X.shape[1])

        def blocks() -> Iterator[tuple[Any, Any, Any]]:
            for x, t, w in row_blocks(X, y, weight, rows):
                yield self._features(x), self._encode(t), w

        return Rows(blocks, labels=self._labels_as_targets)

    def _decide(self, rows: Rows | None) -> None:
        """Choose γ, and read off the spectrum all that depends on it."""
        spectrum = self.spectrum_
        self.choice_ = rules.resolve(self.gamma).choose(spectrum, folds=self.folds_, rows=rows)
        self.gamma_ = self.choice_.gamma
        self.singular_values_ = spectrum.singular_values
        self.rank_ = spectrum.rank
        self.condition_number_ = float(spectrum.condition())
        self.regularized_condition_number_ = float(spectrum.condition(self.gamma_))
        self._store_weights(spectrum.weights(self.gamma_).T, spectrum.intercept(self.gamma_))

    def _outputs(self, X: Any) -> np.ndarray:
        """HW + b, (n_samples, n_targets), block by block, in the precision of X."""
        xp = array_namespace(self.coef_)
        weights = xp.reshape(self.coef_, (-1, self.coef_.shape[-1])).T
        outputs = xp.empty((X.shape[0], weights.shape[1]), dtype=X.dtype, device=device_of(self.coef_))

        def worker(height: int) -> Callable[[slice], None]:
            on_host = isinstance(self.coef_, np.ndarray)
            workspace = np.empty((height, weights.shape[0]), dtype=self.coef_.dtype) if on_host else None

            def fill(part: slice) -> None:
                H = self._features(X[part, ...], workspace)
                # Features of one's own may come in another precision than the weights have.
                common = xp.result_type(H.dtype, weights.dtype)
                product = xp.astype(H, common, copy=False) @ xp.astype(weights, common, copy=False)
                outputs[part, :] = xp.astype(product + self.intercept_, X.dtype, copy=False)

            return fill

        if isinstance(outputs, np.ndarray):
            on_chunks(worker, X.shape[0], X.shape[1] + weights.shape[0])
        else:
            height = block_rows(weights.shape[0], X.shape[1])
            for part in row_slices(X.shape[0], height):
                worker(height)(part)
        return outputs

    def _check_new_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        if lies_elsewhere(X):
            refuse_elsewhere("the model", self.coef_, X)
            return check_inputs(self, X, reset=False)
        self._refuse_host_rows()
        return validate_data(self, X, reset=False, **_INPUTS)

    def _check_rows(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        if is_dask(X):
            raise TypeError("Dask collections are for fit, predict and score; here rows must be in memory.")
        if lies_elsewhere(X):
            if not reset:
                refuse_elsewhere("the model", self.coef_, X)
            X = check_inputs(self, X, reset=reset)
            return X, check_targets(y, X, labels=self._labels_as_targets)
        if not reset:
            self._refuse_host_rows()
        return validate_data(self, X, y, reset=reset, **_INPUTS, **self._target_options)

    def _refuse_host_rows(self) -> None:
        """Raise if the model was trained on rows of another library, and so predicts on those only."""
        if not isinstance(self.coef_, np.ndarray):
            xp, device = array_namespace(self.coef_), device_of(self.coef_)
            raise ValueError(f"The model was trained on {device} with {xp.__name__}: give X as such an array.")

    def _row_weights(self, X: Any, y: np.ndarray, sample_weight: Any, *, streamed: bool = False) -> np.ndarray | None:
        """Weights of checked rows; `streamed` rows are not all there are."""
        del streamed
        return check_weights(sample_weight, X)

    def _begin_on_rows(self, X: Any, weight: Any) -> None:
        """Fix the map from inputs to features, from checked rows."""
        self._begin_features(X.shape[1], X.dtype, lambda: observed_range(X, weight))

    @abstractmethod
    def _begin_features(self, n_inputs: int, dtype: Any, observe: Callable[[], Range]) -> None:
        """Fix the map from inputs to features; `observe` gives the inputs' range."""

    @abstractmethod
    def _features(self, X: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Map checked rows to features, in `out` if that is given and saves anything."""

    @abstractmethod
    def _learn_targets(self, y: Any) -> np.ndarray:
        """Learn what the targets are, and give y in the form that `_encode` takes."""

    @abstractmethod
    def _known_targets(self, y: Any) -> np.ndarray:
        """Give y in the form that `_encode` takes, as learned before."""

    @abstractmethod
    def _encode(self, y: np.ndarray) -> np.ndarray:
        """Turn checked targets into T, (n_samples, n_targets)."""

    @abstractmethod
    def _store_weights(self, weights: np.ndarray, intercept: np.ndarray) -> None:
        """Store W (n_targets, n_features) and b in scikit-learn's shapes."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def rows_of(model: ClosedForm, X: Any, y: Any, sample_weight: Any = None, *, as_trained: bool = True) -> Rows:
    """Rows as a fitted model sees them, `(H, T, sample_weight)` by blocks, for tools that read them again.

    `as_trained=False` leaves class weights out, for counting errors.
    """
    return model.rows(X, y, sample_weight, as_trained=as_trained)
