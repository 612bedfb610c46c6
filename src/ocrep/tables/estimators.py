"""`TableRegressor` and `TableClassifier`: a network for any data frame, with text, categories, dates and gaps.

A fit is a paragraph: read the columns, check the target, divide the rows into folds, code the rows, train the network.
The folds are made once and serve twice. The coder gives each row the target codes of the other folds, and the network
chooses its layers and γ by its errors on the rows of a fold when it was trained on the others: these errors are honest
because no row is coded by a target of its own fold. Rows of a group are in one fold, and so are equal rows, or a row
would be predicted by its copy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from numbers import Integral
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pandas
from scipy.stats import entropy
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.model_selection import GroupKFold, PredefinedSplit
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ocrep._errors import unchanged_on_error
from ocrep._files.formats import DataError, visible
from ocrep._layers.random_layer import Estimator, check_size, random_numbers
from ocrep._linalg.folds import mixed
from ocrep._rows.block import Block
from ocrep._rows.stream import Scan
from ocrep.analysis.assessment import MAJORITY, MEAN, NETWORK
from ocrep.estimators import PinvClassifierCV, PinvRegressorCV
from ocrep.estimators.base import ClosedForm, available_if
from ocrep.estimators.summary import Summary
from ocrep.rules import resolve
from ocrep.tables.coder import FEW_CATEGORIES, ReadTable, TableCoder, read_table, row_keys, with_names_as_tuples
from ocrep.tables.codes import hashes
from ocrep.tables.frames import Frame, Words
from ocrep.tables.misread import misread
from ocrep.tables.rows import CodedRows, Part, Table, open_table
from ocrep.tables.targets import target_of

_FEW_KEYS = 20


def random_folds(keys: np.ndarray, strata: np.ndarray, n_folds: int, random: np.random.RandomState) -> np.ndarray:
    """A random fold for each row: rows of equal keys are in one fold, and folds have equal shares of each stratum.

    A few keys that all repeat, as those of two categories do, are no copies: there, equal rows need not share a fold,
    for a model that has not seen a category cannot predict it.
    """
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if len(first) < 2:
        raise DataError("All rows of X are equal in the columns that are used: there is nothing to learn.")
    if len(first) < _FEW_KEYS and np.bincount(inverse).min() >= n_folds:
        first = inverse = np.arange(len(keys))
    order = np.lexsort((random.permutation(len(first)), strata[first]))
    fold = np.empty(len(first), dtype=np.intp)
    fold[order] = np.arange(len(first)) % min(n_folds, len(first))
    return fold[inverse]


def numbered_groups(groups: Any) -> np.ndarray:
    """The number of each row's group, from 0; there must be two at least."""
    numbers, known = pandas.factorize(np.asarray(groups))
    if (numbers < 0).any():
        raise DataError(f"groups has a gap in row {np.argmax(numbers < 0) + 1}: give each row a group.")
    if len(known) < 2:
        raise DataError("All rows are of one group, and whole groups are held out: give rows of more groups.")
    return numbers


def folds_of_groups(groups: Any, n_folds: int) -> np.ndarray:
    """A fold for each row: rows of a group are in one fold, and folds have about equal sizes."""
    numbers = numbered_groups(groups)
    fold = np.empty(len(numbers), dtype=np.intp)
    splits = GroupKFold(min(n_folds, numbers.max() + 1)).split(numbers, groups=numbers)
    for number, (_, held_out) in enumerate(splits):
        fold[held_out] = number
    return fold


def folds_by_hash(sampled: Any, n_folds: int, seed: int) -> Callable[[np.ndarray, Any], np.ndarray]:
    """The fold of rows of a table that is not in memory, from their keys and groups: by a hash of the row or its group.

    Groups that were `sampled` take turns, so that each fold has some; a hash decides about others.
    """
    known = np.empty(0, dtype=np.uint64) if sampled is None else np.unique(hashes([str(group) for group in sampled]))
    if sampled is not None and len(known) < 2:
        raise DataError("All rows are of one group, and whole groups are held out: give rows of more groups.")

    def fold_of(keys: np.ndarray, groups: Any) -> np.ndarray:
        if groups is None:
            return (mixed(keys + np.uint64(seed)) % np.uint64(n_folds)).astype(np.intp)
        keys = hashes([str(group) for group in groups])
        places = np.searchsorted(known, keys)
        is_known = known[np.minimum(places, len(known) - 1)] == keys
        return np.where(is_known, places, keys % np.uint64(n_folds)).astype(np.intp) % n_folds

    return fold_of


def _some(values: Any, rows: np.ndarray, n_rows: int, name: str) -> Any:
    """The values of some rows; None if none are given."""
    if values is None:
        return None
    found = np.asarray(values)
    if found.shape != (n_rows,):
        raise DataError(f"{name} has the shape {found.shape}, but X has {n_rows:,} rows: give one value for each.")
    return found[rows]


class Coded(NamedTuple):
    """Rows as the network saw them, or a sample of them."""

    read: ReadTable
    inputs: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    n_rows: int
    """All rows that it learned from."""


def _warn_of_numbers_as_text(read: ReadTable) -> None:
    """Warn of columns of many numbers that a few odd values made text; few of them are categories, if need be."""
    for column in read.columns:
        if isinstance(column.values, Words) and len(column.values.texts) > FEW_CATEGORIES:
            found = misread(column.name, column.values.texts, column.values.codes)
            if found is not None:  # the changes are options of the program
                warnings.warn(replace(found, change={}).sentence(), stacklevel=3)


def _reads_folds(network: Any) -> bool:
    """Whether a network chooses anything by folds."""
    return isinstance(network, PinvRegressorCV | PinvClassifierCV) or resolve(network.gamma).reads == "folds"


def _fills_folds(network: Any) -> bool:
    """Whether a network needs rows in each of its folds: a stack takes fewer folds."""
    is_stack = isinstance(network, PinvRegressorCV | PinvClassifierCV)
    return isinstance(network, ClosedForm) and not is_stack and _reads_folds(network)


def _cross_validated(model: Any, y: np.ndarray, weight: Any) -> dict[str, Any] | None:
    """The scores of a network on the folds that chose it, beside those of a constant; None if they are not known."""
    if not isinstance(model, ClosedForm):
        return None
    labels = hasattr(model, "classes_")
    n_judged = len(y)
    if hasattr(model, "ensemble_score_"):  # a constant is judged on the same rows, which need not be all
        loss, of_constant = -model.ensemble_score_, -model.constant_score_
        n_judged = int(model.cv_results_["n_rows"].max())
    elif hasattr(model, "best_score_"):
        if model.cv_results_["n_rows"].max() < n_judged:  # judged on a sample, whose constant is not known
            return None
        loss, of_constant = -model.best_score_, _loss_of_constant(model, y, weight)
    else:
        choice = getattr(model, "choice_", None)
        if choice is None or choice.held_out_error is None or labels:
            return None
        loss, of_constant = float(np.mean(choice.held_out_error)), _loss_of_constant(model, y, weight)
    if labels:
        models = {NETWORK: {"log_loss": loss}, MAJORITY: {"log_loss": of_constant}}
    else:
        r2 = 1.0 - loss / of_constant if of_constant > 0.0 else 0.0
        models = {NETWORK: {"r2": r2, "rmse": loss**0.5}, MEAN: {"r2": 0.0, "rmse": of_constant**0.5}}
    return {"judged_on": "held-out folds", "n_test": n_judged, "models": models}


def _loss_of_constant(model: ClosedForm, y: np.ndarray, weight: Any) -> float:
    """The variance of the targets; of labels the entropy, weighed as the network was."""
    if not hasattr(model, "classes_"):
        return float(np.average((y - np.average(y, weights=weight)) ** 2, weights=weight))
    labels, inverse = np.unique(y, return_inverse=True)
    shares = np.bincount(inverse, weight).astype(float)
    if model.class_weight == "balanced":
        shares[:] = 1.0
    elif model.class_weight is not None:
        shares *= [model.class_weight.get(label, 1.0) for label in labels.tolist()]
    return float(entropy(shares))


def _answers(assessment: dict[str, Any] | None) -> dict[str, str]:
    """How good a model is, and which columns matter, as far as its assessment tells."""
    if assessment is None:
        return {}
    (own, constant), judged_on = list(assessment["models"].values())[:2], assessment["judged_on"]
    if "verdict" in assessment:
        good = assessment["verdict"]["answer"]
    elif "r2" in own:
        good = f"R² {own['r2']:.3f} on {judged_on}."
    else:
        good = (
            f"Its log-loss on {judged_on} is {own['log_loss']:.3g}; that of a constant is {constant['log_loss']:.3g}."
        )
    answers = {"Is it good?": good}
    lines = assessment.get("importance", [])[:_MOST_NAMED]
    if lines:
        named = ", ".join(f"{visible(line['column'])} ({line['importance']:.2g})" for line in lines)
        answers["Which columns matter?"] = f"{named}: so much the score falls without each."
    return answers


_MOST_NAMED = 5


def _answers_table(assessment: dict[str, Any] | None) -> str:
    """The answers as a table of HTML."""
    rows = "".join(
        f"<tr style='text-align: left'><th>{escape(question)}</th><td>{escape(answer)}</td></tr>"
        for question, answer in _answers(assessment).items()
    )
    return f"<table>{rows}</table>" if rows else ""


class _TableModel(Estimator):
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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn how to code the columns, and train the network on the coded rows.

        Parameters
        ----------
        X : data frame, ocrep.scan, or array of shape (n_samples, n_features)
            The rows: a frame of pandas or polars, an Arrow table, a Dask frame, or `ocrep.scan("a.csv", target="y")`.
            A scan or a Dask frame of more than 200,000 rows is never held in memory: the coder and the layers are
            learned from 100,000 rows of it, and the output weights from all rows. (With more than 200 columns these
            numbers are smaller.)
        y : array-like of shape (n_samples,)
            The target: a list, an array, or a column of a frame. A scan names it itself.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights ≥ 0; a weight of 2 counts as two equal rows.
        groups : array-like of shape (n_samples,), default=None
            The group of each row, such as a customer or a town: rows of a group are held out together.

        Returns
        -------
        self
            The fitted estimator. If `fit` fails, it is left as it was.
        """
        with unchanged_on_error(self):
            coded = self._fit_table(open_table(X, y, sample_weight, groups))
        _warn_of_numbers_as_text(coded.read)
        return self

    def _fit_table(self, table: Table, left_out: Mapping[str, str] | None = None) -> Coded:
        """Fit to a table that has been opened; gives the rows that the model was trained on, or a sample of them.

        `left_out` are the columns that are not used, with the reasons, where that was decided on more rows.
        """
        random = random_numbers(self.random_state)
        seed = int(random.randint(2**31 - 1))
        network = self._network(seed)
        if self._target == "numbers":
            table = table.of_random_rows()
        if not (table.in_memory or isinstance(network, ClosedForm)):
            raise ValueError(f"model={network!r} needs all rows in memory: give a frame, or leave model= out.")
        frame, y, weight, groups = self._rows(table.sample)
        y = self._as_learned(y)
        read = read_table(frame, ignore=self.ignore, keep=self.keep, dates=self.dates, left_out=left_out)
        read.check_not(y)
        n_folds = self._n_folds(network)
        if table.in_memory:
            fold = self._folds(read, y, groups, n_folds, random)
            if groups is None and _fills_folds(network) and fold.max() + 1 < n_folds:
                unlike = "" if len(y) == fold.max() + 1 else "different "
                raise DataError(f"X has {fold.max() + 1} {unlike}rows: give at least {n_folds}, one for each fold.")
        else:
            fold_of = folds_by_hash(groups, n_folds, seed)
            fold = fold_of(read.row_keys(), groups)
        coder = TableCoder(ignore=self.ignore, keep=self.keep, dates=self.dates, target=self._target, random_state=seed)
        inputs = coder.learn(read, y, weight, fold)
        if table.in_memory:
            self.model_ = self._trained(network, inputs, y, weight, fold)
            n_rows = len(y)
        else:
            by_fold = _reads_folds(network)
            typical = Block(inputs, y, weight, groups=fold if by_fold else None)
            rows = CodedRows(typical, lambda: self._coded_blocks(table, coder, fold_of, by_fold))
            self.model_ = self._trained_on_all(network, rows, y)
            n_rows = rows.n_read
        coder.forget_folds()
        self.coder_, self.left_out_, self.gaps_ = coder, coder.left_out_, coder.gaps_
        self.n_features_in_ = coder.n_features_in_
        self.__dict__.pop("feature_names_in_", None)
        if read.named:
            self.feature_names_in_ = coder.feature_names_in_
        self.assessment_ = _cross_validated(self.model_, y, weight)
        return Coded(read, inputs, y, weight, n_rows)

    def _coded_blocks(
        self, table: Table, coder: TableCoder, fold_of: Callable[[np.ndarray, Any], np.ndarray], by_fold: bool
    ) -> Iterator[Block]:
        """All rows of a table that is not in memory, coded as the network reads them."""
        assert table.parts is not None
        start = 0
        for part in table.parts():
            frame, y, weight, groups = self._rows(part, whole=False)
            if len(y):
                y = self._as_learned(y)
                values = coder.values(frame, start)
                fold = fold_of(row_keys(values, len(y)), groups)
                X = coder.coded_without_own_fold(values, fold)
                yield Block(X, y, weight, groups=fold if by_fold else None, start=start)
            start += part.frame.n_rows

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

    def unlike_training(self, X: Any) -> dict[str, np.ndarray]:
        """Find rows unlike those of training, whose predictions deserve less trust.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, pyarrow.Table or array of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        dict
            For each column with a text that training did not have, or with a number or date beyond the range of
            training by more than a tenth of it, the rows where it has such a value, as an array of bool. Empty if there
            are none. Texts are told where those of training repeat, unless it had rare ones among at most 40, which
            share a column with unknown ones. The program counts and names the rows in `ocrep predict`.

        Examples
        --------
        >>> import numpy as np
        >>> from ocrep import PinvRegressor, TableRegressor
        >>> X = np.linspace(0.0, 1.0, 40)[:, None] ** [1, 2]
        >>> model = TableRegressor(PinvRegressor(5, random_state=0), random_state=0).fit(X, X[:, 0])
        >>> {name: rows.tolist() for name, rows in model.unlike_training([[0.5, 0.5], [0.5, 3.0]]).items()}
        {'x1': [False, True]}
        """
        check_is_fitted(self)
        return self.coder_.unlike_training(self.coder_.values(X))

    _target: Literal["numbers", "labels"]

    def _as_learned(self, y: np.ndarray) -> np.ndarray:
        """The targets as the network learns them."""
        return y

    def _rows(self, part: Part, *, whole: bool = True) -> tuple[Frame, np.ndarray, Any, Any]:
        """The rows that are learned: those with a target and a positive weight."""
        frame, n_rows = part.frame, part.frame.n_rows
        if n_rows == 1 and whole:
            raise DataError("X has 1 sample, and nothing can be learned from one: give more rows.")
        labels = self._target == "labels"
        values, rows = target_of(
            part.y, n_rows, labels=labels, drop_missing=self.drop_missing_target, name=part.target, whole=whole
        )
        weight = _some(part.weight, rows, n_rows, "sample_weight")
        groups = _some(part.groups, rows, n_rows, "groups")
        if weight is not None and (weight == 0).any():
            positive = np.flatnonzero(weight != 0)
            if not len(positive) and whole:
                raise DataError("All weights are zero: give some rows a weight above it.")
            values, rows, weight = values[positive], rows[positive], weight[positive]
            groups = None if groups is None else groups[positive]
        return (frame if len(rows) == n_rows else frame.take(rows)), values, weight, groups

    def _n_folds(self, network: Any) -> int:
        """The number of folds, for the coder and for the network."""
        given = getattr(network, "cv", None)
        ours = isinstance(network, PinvRegressorCV | PinvClassifierCV)
        if ours and given is not None and not isinstance(given, Integral):
            raise ValueError(
                f"cv={given!r} of the model would divide rows otherwise than their codes: give a number of folds, and "
                "groups= for folds by groups."
            )
        asked = given if isinstance(given, Integral) else self.cv
        if isinstance(network, ClosedForm) and not ours:
            plan = resolve(network.gamma).folds
            asked = self.cv if plan is None else plan.n_folds
        n_folds = check_size("cv", asked)
        if n_folds < 2:
            raise ValueError(f"cv={asked!r} must be a number of folds ≥ 2.")
        return n_folds

    def _folds(self, read: ReadTable, y: np.ndarray, groups: Any, n_folds: int, random: Any) -> np.ndarray:
        """The fold of each row of a table in memory."""
        if groups is not None:
            return folds_of_groups(groups, n_folds)
        strata = np.unique(y, return_inverse=True)[1] if self._target == "labels" else np.zeros(len(y))
        return random_folds(read.row_keys(), strata, n_folds, random)

    def _trained(self, network: Any, inputs: np.ndarray, y: np.ndarray, weight: Any, fold: np.ndarray) -> Any:
        """The network, or the user's own estimator, trained on coded rows with the folds of their codes."""
        options: dict[str, Any] = {} if weight is None else {"sample_weight": weight}
        if isinstance(network, PinvRegressorCV | PinvClassifierCV):
            given = network.cv
            network.set_params(cv=PredefinedSplit(fold)).fit(inputs, y, **options)
            # The fold of each training row is of no use later, and would be part of the model's file.
            return network.set_params(cv=given)
        if isinstance(network, ClosedForm):
            return network.fit(inputs, y, groups=fold if _reads_folds(network) else None, **options)
        if options and not has_fit_parameter(network, "sample_weight"):
            raise ValueError(f"model={network!r} takes no weights of rows: leave sample_weight and class_weight out.")
        return network.fit(inputs, y, **options)

    def _trained_on_all(self, network: Any, rows: CodedRows, y: np.ndarray) -> Any:
        """The network, trained on the rows of a table that is not in memory."""
        classes = np.unique(y) if self._target == "labels" else None
        return network.fit(Scan(rows, classes))

    def summary(self) -> Summary:
        """Show the fitted model on one screen: how good it is, which columns matter, its columns and its network.

        How good it is, and which columns matter, is known from held-out rows where `ocrep fit` has trained the model,
        and else from the folds that chose the network; `ocrep.explain.importance` ranks the columns on rows of yours.

        Returns
        -------
        Summary
            Printed, a table of text; `sections` and `warnings` hold the same as values.

        Examples
        --------
        >>> from ocrep import PinvRegressorCV, TableRegressor
        >>> from ocrep.datasets import load
        >>> X, y = load("machine_cpu", return_X_y=True, as_frame=True)
        >>> model = TableRegressor(PinvRegressorCV("quick", random_state=0), random_state=0).fit(X, y)
        >>> model.summary().sections["data"]
        {'Columns': '6', 'Coded as': '6 numbers'}
        """
        check_is_fitted(self)
        sections: dict[str, Any] = {"answers": _answers(self.assessment_)}
        sections["data"] = {
            "Columns": f"{len(self.coder_.columns_):,}",
            "Coded as": f"{self.model_.n_features_in_:,} numbers",
        }
        if self.left_out_:
            sections["data"]["Columns left out"] = f"{len(self.left_out_):,}"
        if self.gaps_:
            sections["data"]["Columns with gaps"] = f"{len(self.gaps_):,}"
        if not isinstance(self.model_, ClosedForm) or getattr(self.model_, "_for_prediction", False):
            return Summary(type(self).__name__, sections)
        inner = self.model_.summary()
        rest = {name: value for name, value in inner.sections["data"].items() if name not in ("Inputs", "Targets")}
        sections["data"] |= rest
        in_order = {"answers": sections["answers"], **inner.sections, "data": sections["data"]}
        return Summary(type(self).__name__, in_order, inner.warnings)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """What a notebook shows: the diagram of scikit-learn and, after `fit`, the first answers."""
        shown = super()._repr_mimebundle_(**kwargs)
        if "text/html" in shown and hasattr(self, "coder_"):
            shown["text/html"] += _answers_table(self.assessment_)
        return shown

    def _repr_html_inner(self) -> str:
        shown = super()._repr_html_inner()
        return shown + _answers_table(self.assessment_) if hasattr(self, "coder_") else shown

    def __getstate__(self) -> dict[str, Any]:
        return with_names_as_tuples(super().__getstate__())

    def _network(self, seed: int) -> Any:
        raise NotImplementedError

    def _coded(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        frame = self.coder_._frame_of(X, type(self).__name__)
        if not frame.n_rows:
            raise ValueError("The frame has no rows, so there is nothing to predict: give at least one row.")
        return self.coder_.transform(frame)

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
    parts, gaps by a column that says where they are. A network is then trained on them in closed form. Everything that
    is learned from the targets is judged on held-out rows.

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
    target_transform : "log" or None, default=None
        "log" learns the logarithm of a target that is above 0 in all rows, as prices are. `predict` then gives the
        median of the target, and not its mean, if errors of the logarithm are symmetric; the ends of intervals are
        above 0.
    cv : int, default=3
        The number of folds by which the network is judged and texts are coded. A network given as `model` has its own.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the folds, the coder and the hidden layers.

    Attributes
    ----------
    coder_ : TableCoder
        The fitted coder of the columns.
    model_ : estimator
        The fitted network, or the fitted clone of `model`.
    assessment_ : dict or None
        How good the model is: the scores of the network and of a constant under `models`, on the held-out folds that
        chose the network (`judged_on`); those of the logarithm, if that is learned. `fit_table` puts the scores on rows
        of their own here, with more models and advice. None for other estimators as `model`.
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
    # Model files of the time before it do not have this.
    target_transform: Literal["log"] | None = None

    def __init__(
        self,
        model: Any = None,
        *,
        ignore: Sequence[str] = (),
        keep: Sequence[str] = (),
        dates: Literal["day-first", "month-first", "drop"] | None = None,
        drop_missing_target: bool = False,
        target_transform: Literal["log"] | None = None,
        cv: int = 3,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.ignore = ignore
        self.keep = keep
        self.dates = dates
        self.drop_missing_target = drop_missing_target
        self.target_transform = target_transform
        self.cv = cv
        self.random_state = random_state

    def predict(self, X: Any) -> np.ndarray:
        """Predict the targets of new rows.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, pyarrow.Table or array of shape (n_samples, n_features)
            The rows. Columns may come in any order, and from another library than in training.

        Returns
        -------
        ndarray of shape (n_samples,)
            Their means, or with `target_transform="log"` their medians.
        """
        predicted = super().predict(X)
        return predicted if self.target_transform is None else np.exp(predicted)

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
        ends = self.model_.predict_interval(inputs, coverage)
        return ends if self.target_transform is None else np.exp(ends)

    def _as_learned(self, y: np.ndarray) -> np.ndarray:
        if self.target_transform is None:
            return y
        if self.target_transform != "log":
            raise ValueError(f"target_transform={self.target_transform!r} must be 'log' or None.")
        if (y <= 0.0).any():
            raise DataError(
                f"target_transform='log' needs targets above 0, and {np.count_nonzero(y <= 0.0):,} of {len(y):,} are "
                f"not, such as {y.min():g}: correct them, or leave target_transform out."
            )
        return np.log(y)

    def _network(self, seed: int) -> Any:
        if self.model is None:
            return PinvRegressorCV(cv=self.cv, calibrate="loo", random_state=seed)
        return clone(self.model)


class TableClassifier(ClassifierMixin, _TableModel):
    """Predict a label, with probabilities, from the rows of a data frame: text, categories, dates and gaps included.

    Columns become numbers as `TableCoder` describes: texts by the shares of the classes among their rows, their
    frequency and their letters, dates by their parts, gaps by a column that says where they are. A network is then
    trained on them in closed form. Everything that is learned from the labels is judged on held-out rows.

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
        The number of folds by which the network is judged and texts are coded. A network given as `model` has its own.
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
    assessment_ : dict or None
        How good the model is: the scores of the network and of a constant under `models`, on the held-out folds that
        chose the network (`judged_on`). `fit_table` puts the scores on rows of their own here, with more models
        and advice. None for other estimators as `model`.
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
        network = clone(self.model)
        if isinstance(network, ClosedForm) and self.class_weight is not None:
            network.set_params(class_weight=self.class_weight)
        return network

    def _trained(self, network: Any, inputs: np.ndarray, y: np.ndarray, weight: Any, fold: np.ndarray) -> Any:
        if self.class_weight is not None and not isinstance(network, ClosedForm):
            by_class = compute_sample_weight(self.class_weight, y)
            weight = by_class if weight is None else weight * by_class
        self.classes_ = np.unique(y)
        return super()._trained(network, inputs, y, weight, fold)

    def _trained_on_all(self, network: Any, rows: CodedRows, y: np.ndarray) -> Any:
        self.classes_ = np.unique(y)
        return super()._trained_on_all(network, rows, y)
