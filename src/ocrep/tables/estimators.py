"""`TableRegressor` and `TableClassifier`: a network for any data frame, with text, categories, dates and gaps.

A fit is a paragraph: read the columns, check the target, divide the rows into folds, code the rows, train the network.
The folds are made once and serve twice. The coder gives each row the target codes of the other folds, and the network
chooses its layers and γ by its errors on the rows of a fold when it was trained on the others: these errors are honest
because no row is coded by a target of its own fold. Rows of a group are in one fold, and so are equal rows, or a row
would be predicted by its copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
import pandas
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.model_selection import GroupKFold, PredefinedSplit
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ocrep._documentation import Linked
from ocrep._errors import unchanged_on_error
from ocrep._files.formats import DataError
from ocrep._layers.random_layer import check_size, random_numbers
from ocrep.estimators import PinvClassifierCV, PinvRegressorCV
from ocrep.estimators.base import ClosedForm, available_if
from ocrep.tables.coder import ReadTable, TableCoder, read_table
from ocrep.tables.frames import Frame
from ocrep.tables.targets import target_of


def fold_numbers(keys: np.ndarray, strata: np.ndarray, n_folds: int, random: np.random.RandomState) -> np.ndarray:
    """A random fold for each row: rows of equal keys are in one fold, and folds have equal shares of each stratum."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if len(first) < 2:
        raise DataError("All rows of X are equal in the columns that are used: there is nothing to learn.")
    order = np.lexsort((random.permutation(len(first)), strata[first]))
    fold = np.empty(len(first), dtype=np.intp)
    fold[order] = np.arange(len(first)) % min(n_folds, len(first))
    return fold[inverse]


def folds_of_groups(groups: Any, n_folds: int) -> np.ndarray:
    """A fold for each row: rows of a group are in one fold, and folds have about equal sizes."""
    numbers, known = pandas.factorize(np.asarray(groups))
    if (numbers < 0).any():
        raise DataError(f"groups has a gap in row {np.argmax(numbers < 0) + 1}: give each row a group.")
    if len(known) < 2:
        raise DataError("All rows are of one group, and whole groups are held out: give rows of more groups.")
    fold = np.empty(len(numbers), dtype=np.intp)
    splits = GroupKFold(min(n_folds, len(known))).split(numbers, groups=numbers)
    for number, (_, held_out) in enumerate(splits):
        fold[held_out] = number
    return fold


def _some(values: Any, rows: np.ndarray, n_rows: int, name: str) -> Any:
    """The values of some rows; None if none are given."""
    if values is None:
        return None
    found = np.asarray(values)
    if found.shape != (n_rows,):
        raise DataError(f"{name} has the shape {found.shape}, but X has {n_rows:,} rows: give one value for each.")
    return found[rows]


class _TableModel(Linked, BaseEstimator):
    """What both estimators share."""

    model: Any
    ignore: Sequence[str]
    keep: Sequence[str]
    dates: Any
    drop_missing_target: bool
    cv: int
    random_state: Any
    coder_: TableCoder
    model_: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn how to code the columns, and train the network on the coded rows.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, pyarrow.Table or array of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            The target: a list, an array, or a column of a frame.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights ≥ 0, as numbers of equal rows.
        groups : array-like of shape (n_samples,), default=None
            The group of each row, such as a customer or a town: rows of a group are held out together.

        Returns
        -------
        self
            The fitted estimator. If `fit` fails, it is left as it was.
        """
        with unchanged_on_error(self):
            random = random_numbers(self.random_state)
            seed = int(random.randint(2**31 - 1))
            frame, y, weight, groups = self._rows(Frame.of(X), y, sample_weight, groups)
            read = read_table(frame, ignore=self.ignore, keep=self.keep, dates=self.dates)
            read.check_not(y)
            network = self._network(seed)
            fold = self._folds(read, y, groups, network, random)
            self.coder_ = TableCoder(
                ignore=self.ignore, keep=self.keep, dates=self.dates, target=self._target, random_state=seed
            )
            inputs = self.coder_.learn(read, y, weight, fold)
            self.model_ = self._trained(network, inputs, y, weight, fold)
            self.left_out_, self.gaps_ = self.coder_.left_out_, self.coder_.gaps_
            self.n_features_in_ = self.coder_.n_features_in_
            self.__dict__.pop("feature_names_in_", None)
            if read.named:
                self.feature_names_in_ = self.coder_.feature_names_in_
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict the targets of new rows.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, pyarrow.Table or array of shape (n_samples, n_features)
            The rows. Columns may come in any order, and from another library than in training.

        Returns
        -------
        ndarray of shape (n_samples,)
            Numbers or labels.
        """
        inputs = self._coded(X)
        return self.model_.predict(inputs)

    _target: Literal["numbers", "labels"]

    def _rows(self, frame: Frame, y: Any, sample_weight: Any, groups: Any) -> tuple[Frame, np.ndarray, Any, Any]:
        """The rows that are learned: those with a target and a positive weight."""
        n_rows = frame.n_rows
        if n_rows == 1:
            raise DataError("X has 1 sample, and nothing can be learned from one: give more rows.")
        labels = self._target == "labels"
        values, rows = target_of(y, n_rows, labels=labels, drop_missing=self.drop_missing_target)
        weight = _some(sample_weight, rows, n_rows, "sample_weight")
        groups = _some(groups, rows, n_rows, "groups")
        if weight is not None and (weight == 0).any():
            positive = np.flatnonzero(weight != 0)
            if not len(positive):
                raise DataError("All weights are zero: give some rows a weight above it.")
            values, rows, weight = values[positive], rows[positive], weight[positive]
            groups = None if groups is None else groups[positive]
        return (frame if len(rows) == n_rows else frame.take(rows)), values, weight, groups

    def _folds(self, read: ReadTable, y: np.ndarray, groups: Any, network: Any, random: Any) -> np.ndarray:
        """The fold of each row, for the coder and for the network."""
        given = getattr(network, "cv", None)
        ours = isinstance(network, PinvRegressorCV | PinvClassifierCV)
        if ours and given is not None and not isinstance(given, Integral):
            raise ValueError(
                f"cv={given!r} of the model would divide rows otherwise than their codes: give a number of folds, and "
                "groups= for folds by groups."
            )
        asked = given if isinstance(given, Integral) else self.cv
        n_folds = check_size("cv", asked)
        if n_folds < 2:
            raise ValueError(f"cv={asked!r} must be a number of folds ≥ 2.")
        if groups is not None:
            return folds_of_groups(groups, n_folds)
        strata = np.unique(y, return_inverse=True)[1] if self._target == "labels" else np.zeros(len(y))
        return fold_numbers(read.row_keys(), strata, n_folds, random)

    def _trained(self, network: Any, inputs: np.ndarray, y: np.ndarray, weight: Any, fold: np.ndarray) -> Any:
        """The network, or the user's own estimator, trained on coded rows with the folds of their codes."""
        options: dict[str, Any] = {} if weight is None else {"sample_weight": weight}
        if isinstance(network, PinvRegressorCV | PinvClassifierCV):
            given = network.cv
            network.set_params(cv=PredefinedSplit(fold)).fit(inputs, y, **options)
            # The fold of each training row is of no use later, and would be part of the model's file.
            return network.set_params(cv=given)
        if isinstance(network, ClosedForm):
            return network.fit(inputs, y, groups=fold, **options)
        if options and not has_fit_parameter(network, "sample_weight"):
            raise ValueError(f"model={network!r} takes no weights of rows: leave sample_weight and class_weight out.")
        return network.fit(inputs, y, **options)

    def _network(self, seed: int) -> Any:
        raise NotImplementedError

    def _coded(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self.coder_.transform(Frame.of(X).renamed(self.coder_._names, type(self).__name__))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def _check_method(name: str, what: str) -> Any:
    """Let a method exist only if the network, or the user's own estimator, has it."""

    def check(estimator: Any) -> None:
        if isinstance(estimator.model, ClosedForm):
            getattr(estimator.model, name)  # which says itself what is lacking
        elif estimator.model is not None and not hasattr(estimator.model, name):
            raise AttributeError(
                f"{type(estimator.model).__name__} gives no {what}: leave model= out, and the network gives them."
            )

    return available_if(check)


class TableRegressor(RegressorMixin, _TableModel):
    """Predict a number from the rows of a data frame, whatever its columns hold: text, categories, dates, gaps.

    Columns become numbers as `TableCoder` describes: texts by their mean target, frequency and letters, dates by their
    parts, gaps by a column that tells where they are. A network is then trained on them in closed form. All that is
    learned of the targets is judged on rows that were held out.

    Parameters
    ----------
    model : estimator or None, default=None
        What learns from the coded rows. None is `PinvRegressorCV`, with intervals; any estimator of scikit-learn can
        take its place.
    ignore : sequence of str, default=()
        Columns that are not used.
    keep : sequence of str, default=()
        Columns that are used even if they look like ids.
    dates : {"day-first", "month-first", "drop"} or None, default=None
        How texts such as 01/02/2024 are read where no day of the column is above 12; None raises an error that names
        the column. "drop" leaves all columns of dates out.
    drop_missing_target : bool, default=False
        Whether rows without a target are left out; otherwise they are an error.
    cv : int, default=3
        The number of folds by which the network is judged and texts are coded. A `PinvRegressorCV` given as `model`
        has its own.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the folds, the coder and the hidden layers.

    Attributes
    ----------
    coder_ : TableCoder
        The fitted coder of the columns.
    model_ : estimator
        The fitted network, or the fitted clone of `model`.
    left_out_ : dict
        The columns that are not used, each with the reason.
    gaps_ : dict
        The number of gaps of each column that has some.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of all columns seen in `fit`; only if X had names.
    n_features_in_ : int
        Their number.

    See Also
    --------
    TableClassifier : The same for labels.
    PinvRegressorCV : The network alone, on arrays of numbers.
    fit_table : Guesses the task, and assesses the model on held-out rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from ocrep import PinvRegressorCV, TableRegressor
    >>> frame = pd.DataFrame({"town": ["Oslo", "Bergen", None] * 20, "day": pd.date_range("2024-01-01", periods=60)})
    >>> rain = frame["town"].eq("Bergen") + frame["day"].dt.month / 10
    >>> network = PinvRegressorCV("quick", calibrate="loo", random_state=0)  # fewer candidates, for the example
    >>> model = TableRegressor(network, random_state=0).fit(frame, rain)
    >>> model.score(frame, rain) > 0.9
    True
    >>> model.gaps_
    {'town': 20}
    >>> model.predict(frame.head(3)).shape, model.predict_interval(frame.head(3)).shape
    ((3,), (3, 2))
    """

    _target = "numbers"

    def __init__(
        self,
        model: Any = None,
        *,
        ignore: Sequence[str] = (),
        keep: Sequence[str] = (),
        dates: Literal["day-first", "month-first", "drop"] | None = None,
        drop_missing_target: bool = False,
        cv: int = 3,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.ignore = ignore
        self.keep = keep
        self.dates = dates
        self.drop_missing_target = drop_missing_target
        self.cv = cv
        self.random_state = random_state

    @_check_method("predict_interval", "intervals")
    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Give an interval for each target that should hold it with the given probability.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, pyarrow.Table or array of shape (n_samples, n_features)
            The rows.
        coverage : float, default=0.9
            The probability, between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            The lower and the upper ends.
        """
        inputs = self._coded(X)
        return self.model_.predict_interval(inputs, coverage)

    def _network(self, seed: int) -> Any:
        if self.model is None:
            return PinvRegressorCV(cv=self.cv, calibrate="loo", random_state=seed)
        return clone(self.model)


class TableClassifier(ClassifierMixin, _TableModel):
    """Predict a label, with probabilities, from the rows of a data frame: text, categories, dates and gaps included.

    Columns become numbers as `TableCoder` describes: texts by the shares of the classes among their rows, their
    frequency and their letters, dates by their parts, gaps by a column that tells where they are. A network is then
    trained on them in closed form. All that is learned of the labels is judged on rows that were held out.

    Parameters
    ----------
    model : estimator or None, default=None
        What learns from the coded rows. None is `PinvClassifierCV`, with calibrated probabilities; any classifier of
        scikit-learn can take its place.
    ignore : sequence of str, default=()
        Columns that are not used.
    keep : sequence of str, default=()
        Columns that are used even if they look like ids.
    dates : {"day-first", "month-first", "drop"} or None, default=None
        How texts such as 01/02/2024 are read where no day of the column is above 12; None raises an error that names
        the column. "drop" leaves all columns of dates out.
    drop_missing_target : bool, default=False
        Whether rows without a label are left out; otherwise they are an error.
    class_weight : dict, "balanced" or None, default=None
        Factor on the weight of each class's rows; "balanced" makes all classes weigh the same.
    cv : int, default=3
        The number of folds by which the network is judged and texts are coded. A `PinvClassifierCV` given as `model`
        has its own.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the folds, the coder and the hidden layers.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coder_ : TableCoder
        The fitted coder of the columns.
    model_ : estimator
        The fitted network, or the fitted clone of `model`.
    left_out_ : dict
        The columns that are not used, each with the reason.
    gaps_ : dict
        The number of gaps of each column that has some.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of all columns seen in `fit`; only if X had names.
    n_features_in_ : int
        Their number.

    See Also
    --------
    TableRegressor : The same for numbers.
    PinvClassifierCV : The network alone, on arrays of numbers.
    fit_table : Guesses the task, and assesses the model on held-out rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from ocrep import PinvClassifierCV, TableClassifier
    >>> frame = pd.DataFrame({"size": [1.0, None, 3.0] * 20, "colour": ["red", "blue"] * 30})
    >>> ripe = frame["colour"].map({"red": "yes", "blue": "no"})
    >>> network = PinvClassifierCV("quick", random_state=0)  # fewer candidates, for the example
    >>> model = TableClassifier(network, random_state=0).fit(frame, ripe)
    >>> model.predict(frame.head(2))
    array(['yes', 'no'], dtype='<U3')
    >>> model.predict_proba(frame).shape
    (60, 2)
    """

    _target = "labels"
    classes_: np.ndarray

    def __init__(
        self,
        model: Any = None,
        *,
        ignore: Sequence[str] = (),
        keep: Sequence[str] = (),
        dates: Literal["day-first", "month-first", "drop"] | None = None,
        drop_missing_target: bool = False,
        class_weight: dict[Any, float] | str | None = None,
        cv: int = 3,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.ignore = ignore
        self.keep = keep
        self.dates = dates
        self.drop_missing_target = drop_missing_target
        self.class_weight = class_weight
        self.cv = cv
        self.random_state = random_state

    @_check_method("predict_proba", "probabilities")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Give the probability of each class.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, pyarrow.Table or array of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        inputs = self._coded(X)
        return self.model_.predict_proba(inputs)

    def _network(self, seed: int) -> Any:
        if self.model is None:
            return PinvClassifierCV(cv=self.cv, class_weight=self.class_weight, random_state=seed)
        return clone(self.model)

    def _trained(self, network: Any, inputs: np.ndarray, y: np.ndarray, weight: Any, fold: np.ndarray) -> Any:
        if self.model is not None and self.class_weight is not None:
            by_class = compute_sample_weight(self.class_weight, y)
            weight = by_class if weight is None else weight * by_class
        self.classes_ = np.unique(y)
        return super()._trained(network, inputs, y, weight, fold)
