"""`ClosedForm`: what all estimators share; it calls `train` and presents the result as fitted attributes."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from functools import partial, reduce
from types import MethodType
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from ocrep import rules
from ocrep._errors import unchanged_on_error
from ocrep._layers.random_layer import LEARNED, RandomLayer
from ocrep._linalg.arrays import array_namespace, to_device_of, to_host
from ocrep._linalg.factor import Factor
from ocrep._linalg.fold_factors import FoldFactors
from ocrep._linalg.rows import EncodedRows
from ocrep._linalg.solve import Factored, Route
from ocrep._linalg.spectrum import Spectrum
from ocrep._rows import open_rows
from ocrep._rows.block import check_place, is_dask, on_device
from ocrep._rows.checks import check_columns, check_counts, check_inputs, checked_inputs, naming
from ocrep._rows.memory import MemoryRows, Rows, unchanged
from ocrep._rows.stream import inputs_of
from ocrep._rows.survey import Needs
from ocrep._training.calibration import Agreement, network_gradients, network_outputs
from ocrep._training.recipe import Learned, Recipe, rule_of
from ocrep._training.targets import Labels, Numbers
from ocrep._training.train import Training, choose_gamma, extend, train
from ocrep.estimators.summary import Model
from ocrep.exceptions import RuleEdgeWarning
from ocrep.rules.base import for_stored_folds

# ------------------------------------------------------------------------------
# `available_if`: a method that only some objects have; the others say why they do not have it.


def available_if(check: Callable[[Any], None]) -> Callable[[Callable[..., Any]], Any]:
    """As scikit-learn's, but the check raises the AttributeError that users see: it names the argument to change."""
    return partial(_Method, check)


class _Method:
    def __init__(self, check: Callable[[Any], None], method: Callable[..., Any]) -> None:
        self._method, self._check, self.__doc__ = method, check, method.__doc__

    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self._method
        self._check(owner)
        return MethodType(self._method, owner)


def available_block_by_block(method: Callable[..., Any]) -> Any:
    """Let a method exist only where rows are needed once: leaves of trees, for instance, are grown on all at once."""

    def check(estimator: Any) -> None:
        estimator._check_whole("partial_fit")
        if estimator.calibrate is not None:
            raise AttributeError(
                f"calibrate={estimator.calibrate!r} reads the rows once more, but partial_fit sees one block at a "
                "time: use fit, or set calibrate=None."
            )
        if getattr(estimator, "n_hidden", None) == "auto":
            chosen = f"set_params(n_hidden={estimator.n_hidden_})" if estimator._is_trained else "give a number"
            raise AttributeError(
                "n_hidden='auto' needs all rows at once to choose the size, but partial_fit sees one block at a time: "
                f"use fit, or {chosen}."
            )
        learned = {"weight_init": getattr(estimator, "weight_init", None), "metric": getattr(estimator, "metric", None)}
        for name, value in learned.items():
            if value in LEARNED:
                raise AttributeError(f"{name}={value!r} is learned from all rows at once: use fit.")

    return available_if(check)(method)


# ------------------------------------------------------------------------------
# What `calibrate="loo"` adds to an estimator: which methods exist, and the calibration itself.


def available_if_calibrated(what: str) -> Callable[..., Any]:
    """Let a method exist only if the estimator is told to calibrate; `what` is what it gives."""

    def asked(estimator: Any) -> None:
        if not estimator._calibrates:
            raise AttributeError(f"{type(estimator).__name__} gives {what} only if calibrated: set calibrate='loo'.")

    return available_if(asked)


def available_with_probabilities(method: Callable[..., Any]) -> Any:
    """Let a method exist unless the fitted model has nothing that makes probabilities of its outputs."""

    def check(estimator: Any) -> None:
        held = estimator.__dict__
        if not estimator._calibrates and "intercept_" in held and "calibrator_" not in held:
            raise AttributeError(
                "There are no probabilities: the layer has seen the targets of all rows and none were held out, or the "
                "model is of an older version. Call fit, with a gamma such as 'kfold' if the layer learns from targets."
            )

    return available_if(check)(method)


def calibration_of(estimator: Any) -> Any:
    """What was learned from left-out rows; with another γ than that of `fit` it is gone."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "calibrator_"):
        raise NotFittedError(
            "This γ is not calibrated, and calibrating it needs the rows: call fit with this gamma and "
            "calibrate='loo', or set calibrate=None."
        )
    return estimator.calibrator_


# ------------------------------------------------------------------------------

# Attributes that no prediction reads: training goes on from them, or they tell how it went.
_OF_TRAINING = ("_best", "choice_", "cv_results_", "factor_", "folds_", "route_", "singular_values_", "spectrum_")


class ClosedForm(Model):
    """Training and prediction; subclasses say what the features are and what the targets are.

    Parameters
    ----------
    store_folds : bool or int, default=False
        Whether to store one factor per fold (True: three folds), so that `with_gamma("kfold")` and
        `with_gamma("ocrep_cv")` work later.
    solver : {"auto", "gram", "qr"}, default="auto"
        How `fit` computes the triangular factors. "auto": from HᵀH where γ is then proved right to 10⁻⁶, else by one
        more pass over the rows, else by Householder reflections, which are used at once for small data. "gram": from
        HᵀH, or an error. "qr": by reflections, as `partial_fit` always does.

    forgetting : float, default=1.0
        Each call of `partial_fit` first multiplies the weights of all earlier rows by this number in (0, 1]. The result
        is that of `fit` with weights `forgetting**age`, where the age of a row is the number of calls since it
        came. `fit` itself forgets nothing. However small their weight, old rows count as rows, for instance where
        `return_std` estimates the noise.

    Attributes
    ----------
    gamma_ : float or ndarray of shape (n_targets,)
        The chosen γ; an array if each target has its own.
    choice_ : rules.Choice
        The rule, γ, the searched curve if any, and whether the optimum sits at an edge of the search.
    intercept_ : float or ndarray of shape (n_targets,)
        The intercept, 0 without one.
    factor_ : Factor
        The triangular factor of the rows; `partial_fit` goes on from it.
    folds_ : FoldFactors or None
        One factor per fold, if the rule or `n_hidden="auto"` reads them or `store_folds` asks for them.
    route_ : {"gram", "refined", "reflections"}
        How the last call of `fit` or `partial_fit` factored its rows: by HᵀH, which was proved harmless; by HᵀH of
        preconditioned rows, read once or twice; or by Householder reflections.
    spectrum_ : Spectrum
        Singular values, and every quantity that depends on γ.
    singular_values_ : ndarray
        Singular values of H (of the centred H with an intercept).
    rank_ : int
        Numerical rank p of H.
    condition_number_ : float
        μ(H) = σ₁/σ_p.
    regularized_condition_number_ : float or ndarray of shape (n_targets,)
        μ(H^reg) under the chosen γ.
    n_features_in_ : int
        Number of inputs seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the inputs, if X was a data frame with text names.

    References
    ----------
    .. [1] Cancelliere, Gai, Gallinari, Rubini, "OCReP: An Optimally Conditioned Regularization for pseudoinversion
       based neural training", Neural Networks 71 (2015).
    """

    gamma: Any
    gamma_per_target: bool = False
    fit_intercept: bool
    store_folds: bool | int
    solver: str
    calibrate: str | None
    forgetting: float
    factor_: Factor
    folds_: FoldFactors | None
    route_: Route
    spectrum_: Spectrum
    choice_: rules.Choice
    _learned: Learned
    _mean: Any
    _for_prediction: bool = False
    # `coef_` is for weights of the inputs: tools such as SHAP and RFE read it so.
    _weights_name: ClassVar[str] = "coef_"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Train on all rows; the features are formed block by block and never held whole.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs. Arrays on disk (`numpy.memmap`, HDF5, Zarr) are read slice by slice. Or `ocrep.scan(…)`, which
            names all else itself. Or a Dask array or dataframe, with y, weights and groups of the same kind.
        y : array-like of shape (n_samples,), or (n_samples, n_targets) for regression or indicators of several labels
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights ≥ 0; whole weights equal repeated rows, except under the rule "loo", which leaves out rows.
        groups : array-like of shape (n_samples,), default=None
            The group of each row, a number or a text. Rows of a group are then in the same fold wherever folds are
            used: by rules such as "kfold" and "ocrep_cv", by `n_hidden="auto"`, and to compare candidates.

        Returns
        -------
        self
            The fitted estimator. If `fit` fails, it is left as it was.
        """
        with unchanged_on_error(self):
            self._store(self._train(X, y, sample_weight, groups))
            warn_of(getattr(self, "choice_", None))
        return self

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
        if not isinstance(self._output_weights, np.ndarray):
            raise TypeError(
                "predict_blocks reads rows on the host, but this model was trained on a device: "
                "call predict on one array at a time."
            )
        names = getattr(self, "feature_names_in_", None)
        blocks = inputs_of(source).inputs(None if names is None else tuple(names))
        bare = copy(self)  # for arrays whose columns were found by name already
        bare.__dict__.pop("feature_names_in_", None)

        def predictions() -> Iterator[np.ndarray]:
            for block in blocks:
                check_columns(block, self.n_features_in_, block.columns, than="the model")
                check_inputs(block)
                yield bare.predict(block.X)

        return predictions()

    def gradients(self, X: Any) -> Any:
        """Give the exact derivative of the output with respect to each input, in the units of both.

        The output is what `predict` gives for numbers, and `decision_function` for labels. Leaves of trees are constant
        between their thresholds, so for them a difference takes the place of the derivative: the input is moved up and
        down by 1.25 times half its range in training (with squashed inputs, half the distance between its quartiles),
        but not beyond its outermost threshold, and the change is divided by the distance moved. At the kink of a "relu"
        unit the slope on its left is taken, at the tip of a "laplace" unit 0.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_features), or (n_samples, n_features, n_outputs)
            The derivatives; the last axis is there where `predict`, or `decision_function`, gives two axes.

        Examples
        --------
        >>> from ocrep import PinvRegressor
        >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]], [0.0, 2.0, 4.0, 6.0]
        >>> PinvRegressor(5, activation="identity", gamma=1e-9, random_state=0).fit(X, y).gradients(X).round(3)[0]
        array([2., 0.])
        """
        if is_dask(X):
            raise TypeError("Gradients are for rows in memory, and X is a Dask collection: give one block at a time.")
        X = self._check_new_rows(X, "gradients")
        found = network_gradients(self._learned, self._score_weights, X)
        return found[:, :, 0] if self._one_output else found

    def with_gamma(self, gamma: Any) -> Self:
        """Give the same network under another rule, from the stored factor, without the data.

        Parameters
        ----------
        gamma : str, Rule, float or array-like of shape (n_targets,)
            What the constructor takes as `gamma`. A rule that reads the rows, or folds that were not stored, says so.

        Returns
        -------
        estimator
            A new estimator; this one stays as it is.
        """
        check_is_fitted(self)
        self._check_whole("with_gamma")
        other = copy(self)
        other.gamma = gamma
        rule = for_stored_folds(rule_of(gamma, self.gamma_per_target), self.folds_)
        other._store(choose_gamma(self._learned, self._factored(), rule, self.calibrate))
        return other

    def as_float32(self) -> Self:
        """Give the same network for prediction in single precision: about twice as fast, right to about 10⁻⁶·‖W‖.

        Returns
        -------
        estimator
            A new estimator, which cannot be trained further. Inputs are still centred in double precision.
        """
        check_is_fitted(self)
        other = copy(self)
        xp = array_namespace(self._output_weights)
        single = xp.float32
        setattr(other, self._weights_name, xp.astype(self._output_weights, single))
        layer = self._learned.layer
        if layer is not None:
            other.layer_ = layer._with_map(lambda own: own.astype(single))
            other.__dict__["_learned"] = replace(self._learned, layer=other.layer_)
        return other

    def _only_for_prediction(self) -> Self:
        """A copy that predicts the same, without what only training and tools read."""
        small = copy(self)
        for name in _OF_TRAINING:
            small.__dict__.pop(name, None)
        if hasattr(self, "_learned"):
            small._learned = replace(self._learned, division=None)
            small._for_prediction = True
        return small

    def _check_whole(self, what: str) -> None:
        """Raise if the model has only what predictions need."""
        if self._for_prediction:
            raise AttributeError(
                f"This model was saved with for_prediction=True, which keeps nothing that {what} needs: load a file "
                "that was saved without it, or fit the model again."
            )

    def __getattr__(self, name: str) -> Any:
        if name in _OF_TRAINING:
            self._check_whole(name)
        return object.__getattribute__(self, name)  # which says why there is none

    @abstractmethod
    def _targets(self) -> Numbers | Labels:
        """What is learned, before any row is seen."""

    def _layer(self) -> tuple[RandomLayer | None, bool]:
        """The hidden layer, not drawn yet, and whether its size is chosen; None for features of the user's own."""
        return None, False

    def _train(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Any:
        """What `_store` takes: a `Training`, or a stack of them."""
        return train(self._recipe(), open_rows(X, y, sample_weight, groups))

    def _recipe(self, targets: Numbers | Labels | None = None) -> Recipe:
        """What the parameters mean."""
        layer, auto_size = self._layer()
        return Recipe.of(
            type(self).__name__,
            self._targets() if targets is None else targets,
            gamma=self.gamma,
            intercept=self.fit_intercept,
            solver=self.solver,
            store_folds=self.store_folds,
            layer=layer,
            auto_size=auto_size,
            calibrate=self.calibrate,
            forgetting=self.forgetting,
            per_target=self.gamma_per_target,
            metric=getattr(self, "metric", None),
            metric_rounds=getattr(self, "metric_rounds", 0),
        )

    def _extend(self, recipe: Recipe, X: Any, y: Any, sample_weight: Any, groups: Any) -> None:
        """Learn further rows, or the first."""
        if is_dask(X):
            raise TypeError("Dask collections are for fit, predict and score; here rows must be in memory.")
        if self._is_trained:
            if self._output_weights.dtype == array_namespace(self._output_weights).float32:
                raise ValueError(
                    "This network is in single precision, for prediction only: train the original instead."
                )
            self._check_place(X, "partial_fit")
            if not on_device(X):
                validate_data(self, X, reset=False, skip_check_array=True)
        so_far = (self._learned, self._factored()) if self._is_trained else None
        first = 0 if so_far is None or self.folds_ is None else self.folds_.n_read
        self._store(extend(recipe, MemoryRows(X, y, sample_weight, groups, first=first), so_far))

    @property
    def _calibrates(self) -> bool:
        """Whether held-out rows show how large errors are, or how probable classes."""
        return self.calibrate is not None

    @property
    def _output_weights(self) -> Any:
        return getattr(self, self._weights_name)

    @property
    def _score_weights(self) -> Any:
        """Features × outputs: the weights of what `predict` gives for numbers, and `decision_function` for labels."""
        W = self._output_weights
        return array_namespace(W).reshape(W, (-1, W.shape[-1])).T

    @property
    @abstractmethod
    def _one_output(self) -> bool:
        """Whether there is one output for each row, without an axis of its own."""

    @property
    def _mean_row(self) -> np.ndarray:
        """The mean of the training rows; if it was not kept, the middle of the inputs as the layer sees them."""
        if "_mean" in self.__dict__:
            return to_host(self._mean)
        maps = self._learned.maps
        return maps[0][0].middle() if maps else np.zeros(self.n_features_in_)

    @property
    def _is_trained(self) -> bool:
        return hasattr(self, "factor_")

    def _factored(self) -> Factored:
        return Factored(self.factor_, self.folds_, self.spectrum_, self.route_)

    def _store(self, training: Training) -> None:
        """Present a training as scikit-learn's attributes."""
        factored = training.factored
        spectrum = factored.spectrum
        gamma = training.choice.gamma
        self._store_learned(training.learned)
        self._store_mean(factored.factor)
        self.factor_ = factored.factor
        self.folds_ = factored.folds
        self.spectrum_ = spectrum
        self.route_ = factored.route
        self.choice_ = training.choice
        self.gamma_ = gamma
        self.singular_values_ = spectrum.singular_values
        self.rank_ = spectrum.rank
        self.condition_number_ = float(spectrum.condition())
        condition = spectrum.condition(gamma)
        self.regularized_condition_number_: Any = (
            to_host(condition) if isinstance(gamma, np.ndarray) else float(condition)
        )
        W, intercept = spectrum.solution(gamma)
        self._store_weights(training.learned, W.T, intercept)
        self.__dict__.pop("calibrator_", None)
        if training.calibrator is not None:
            self.calibrator_ = training.calibrator

    def _store_mean(self, factor: Factor) -> None:
        """Keep the mean of the inputs, for explanations; a factor knows it if the inputs are among its features."""
        self.__dict__.pop("_mean", None)
        layer = self._learned.one_layer if self._learned.layer is not None else None
        if factor.counts.intercept and (layer is None or layer.direct_link):
            mean = to_host(factor.means())[: self.n_features_in_]
            mean = mean if layer is None else layer.map_.unscaled(mean)
            self._mean = to_device_of(factor.means(), mean)

    def _store_learned(self, learned: Learned) -> None:
        """Store what was learned of the rows first: columns, layer, metric."""
        self._learned = learned
        self.__dict__.pop("_for_prediction", None)
        self.n_features_in_ = learned.n_inputs
        self.__dict__.pop("feature_names_in_", None)
        if learned.columns is not None:
            self.feature_names_in_ = np.asarray(learned.columns, dtype=object)
        if learned.layer is not None:
            self.layer_ = learned.layer
            self.__dict__.pop("metric_", None)
            if learned.metric is not None:
                self.metric_ = learned.metric
            self.n_hidden_ = learned.layer.map_.n_units

    @abstractmethod
    def _store_weights(self, learned: Learned, weights: Any, intercept: Any) -> None:
        """Store the weights, the constant and what belongs to the targets, in scikit-learn's shapes."""

    def _outputs(self, X: Any) -> Any:
        """HW + b of checked rows."""
        return network_outputs(self._learned, self._output_weights, self.intercept_, X)

    def _check_new_rows(self, X: Any, method: str) -> Any:
        check_is_fitted(self)
        self._check_place(X, method)
        return checked_inputs(self, X, reset=False)

    def _check_place(self, X: Any, method: str) -> None:
        """Raise unless rows are where the model was trained."""
        check_place(f"{type(self).__name__}.{method}()", self._output_weights, X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # With one γ per target, γ is an array on the host.
        tags.array_api_support = not getattr(self, "gamma_per_target", False)
        return tags


def warn_of(choice: rules.Choice | None) -> None:
    """Tell the caller of `fit` what there is to know about the γ, if anything."""
    if choice is not None and choice.advice is not None:
        warnings.warn(choice.advice, RuleEdgeWarning, stacklevel=3)


def rows_of(model: ClosedForm, X: Any, y: Any, sample_weight: Any = None, *, as_trained: bool = True) -> EncodedRows:
    """Rows as a fitted model sees them, `(H, T, sample_weight)` by blocks, for tools that read them again.

    `as_trained=False` leaves class weights out, for counting errors.
    """
    check_is_fitted(model)
    if is_dask(X):
        raise TypeError("Dask collections are for fit, predict and score; here rows must be in memory.")
    model._check_place(X, "predict")
    if not on_device(X):
        validate_data(model, X, reset=False, skip_check_array=True)
    learned = model._learned if as_trained else model._learned.unweighted()
    rows = MemoryRows(X, y, sample_weight)
    rows.survey(Needs(labels=learned.targets.labels, range=False, estimator=type(model).__name__))
    return EncodedRows(rows, learned.encoder)


def fit_silently(model: ClosedForm, X: Any, y: Any = None, sample_weight: Any = None) -> None:
    """Fit a new model without a warning, for tools that show what a rule chose themselves."""
    model._store(model._train(X, y, sample_weight, None))


# ------------------------------------------------------------------------------
# Answers on Dask collections: predictions as lazy Dask arrays, and scores of which only sums come here.


DEVIATIONS = "standard deviations"
# Rows that a worker predicts at a time while it scores.
_ROWS = 2**16


def predict_lazily(model: ClosedForm, X: Any, what: str, *, n_columns: int | None = None, dtype: Any = None) -> Any:
    """A lazy array of one of the model's answers on X: one axis or `n_columns`, of X's own type or `dtype`."""
    from ocrep._rows.dask import lazily

    declared = _declared_dtype(model, X)
    like = np.empty((0,) if n_columns is None else (0, n_columns), dtype=declared if dtype is None else dtype)
    light = model._only_for_prediction()
    if what == DEVIATIONS:
        light.spectrum_ = model.spectrum_
    return lazily(partial(_answer, what=what), light, X, like)


def score_lazily(model: ClosedForm, X: Any, y: Any, sample_weight: Any, *, labels: bool) -> Agreement:
    """How well predictions agree with y."""
    _declared_dtype(model, X)
    bare = model._only_for_prediction()
    bare.__dict__.pop("feature_names_in_", None)
    rows = open_rows(X, y, sample_weight)
    rows.check(Needs(labels=labels, range=False))
    agreement = rows.accumulate(partial(_agreement, bare, labels), Agreement.merge)
    check_counts(1, agreement.weight)
    return agreement


def _agreement(model: ClosedForm, labels: bool, part: Rows) -> Agreement:
    """The agreement over the rows of one partition."""
    blocks = part.blocks(unchanged, _ROWS)
    found = (Agreement.of(block.y, model.predict(block.X), block.weight, labels=labels) for block in blocks)
    return reduce(Agreement.merge, found)


def _answer(
    block: Any,
    model: Any,
    like: np.ndarray,
    *,
    what: str,
    block_id: tuple[int, ...] | None = None,
    partition_info: dict[str, Any] | None = None,
) -> np.ndarray:
    """What a fitted model says of one block, in the type of `like`; a block may have no rows.

    Dask itself fills in where the block is: `block_id` for arrays, `partition_info` for dataframes.
    """
    if block.shape[0] == 0:
        return like
    number = block_id[0] if block_id else partition_info["number"] if partition_info else 0
    with naming(f"Partition {number}"):
        values = model.predict(block, return_std=True)[1] if what == DEVIATIONS else getattr(model, what)(block)
        return values.astype(like.dtype, copy=False)


def _declared_dtype(model: ClosedForm, X: Any) -> np.dtype:
    """Check the columns now, before anything is computed, and give the type of X."""
    from ocrep._rows.dask import described

    check_is_fitted(model)
    columns, dtype = described(X)
    validate_data(model, columns, skip_check_array=True, reset=False)
    return dtype
