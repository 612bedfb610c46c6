"""From a table to a trained model: the task, rows held out to say how good the model is, and training on all rows.

The scores belong to a model that was trained without the held-out rows; the model that is kept is trained once more, on
all of them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Literal

import numpy as np
import pyarrow
from pyarrow import types
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import GroupShuffleSplit, train_test_split

from ocrep._files.convert import DATE_KINDS, coded_texts
from ocrep._files.formats import DataError, check_columns
from ocrep._files.readers import PLAIN
from ocrep._files.reading import Reading
from ocrep.analysis.assessment import Advice, Assessment, Assessor
from ocrep.estimators import PinvClassifier, PinvClassifierCV, PinvRegressor, PinvRegressorCV
from ocrep.exceptions import RuleEdgeWarning
from ocrep.rules import Rule
from ocrep.tables.coder import ReadTable, column_names, read_table
from ocrep.tables.estimators import Coded, TableClassifier, TableRegressor, numbered_groups
from ocrep.tables.frames import Frame, kind_of
from ocrep.tables.leaks import advice_on_ids, advice_on_leaks
from ocrep.tables.misread import misread
from ocrep.tables.rows import Part, Progress, Table, open_file, silent, some_rows_of
from ocrep.tables.targets import guess_task, target_of

Task = Literal["regression", "classification"]
TableModel = TableRegressor | TableClassifier


class UsageError(ValueError):
    """A request that the model or the problem cannot fulfil; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The user's choices for the model; None is the library's default."""

    candidates: str = "default"
    """The layers to weigh, unless one network is described."""
    n_hidden: int | str | None = None
    gamma: str | float | Rule | None = None
    intercept: bool | None = None
    layer: Mapping[str, Any] = field(default_factory=dict)
    """Other parameters of one network, such as `activation`."""
    class_weight: Any = None
    ignore: Sequence[str] = ()
    keep: Sequence[str] = ()
    dates: Literal["day-first", "month-first", "drop"] | None = None
    drop_missing_target: bool = False
    seed: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether one network is asked for, and not a stack."""
        return bool(self.layer) or (self.n_hidden, self.gamma, self.intercept) != (None, None, None)

    def network(self, task: Task, *, sampled: bool = False) -> Any:
        """One network, or a stack, untrained; where rows are `sampled`, probabilities come from a sample of them."""
        labels = task == "classification"
        if not self.is_plain:
            if labels:
                return PinvClassifierCV(self.candidates, class_weight=self.class_weight, random_state=self.seed)
            return PinvRegressorCV(self.candidates, calibrate="loo", random_state=self.seed)
        given = {"n_hidden": self.n_hidden, "gamma": self.gamma, "fit_intercept": self.intercept, **self.layer}
        options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        shared: dict[str, Any] = {"random_state": self.seed} | ({"class_weight": self.class_weight} if labels else {})
        if options.get("weight_init") != "trees" and not options.get("metric"):
            shared["calibrate"] = "loo"
        if sampled:
            return (PinvClassifierCV if labels else PinvRegressorCV)([options], ensemble=False, **shared)
        return (PinvClassifier if labels else PinvRegressor)(**options, **shared)

    def model(self, task: Task, *, sampled: bool = False) -> TableModel:
        """The untrained model of a table."""
        kind = TableClassifier if task == "classification" else TableRegressor
        return kind(
            self.network(task, sampled=sampled),
            ignore=self.ignore,
            keep=self.keep,
            dates=self.dates,
            drop_missing_target=self.drop_missing_target,
            random_state=self.seed,
        )


@dataclass(frozen=True, slots=True)
class Problem:
    """A table with a target and a task."""

    table: Table
    target: str
    task: Task
    reason: str
    """Why the task was guessed; empty if it was given."""
    settings: Settings
    advice: tuple[Advice, ...] = ()
    """What seems wrong with the columns."""
    reading: Reading = PLAIN
    ids: tuple[str, ...] = ()

    @property
    def labels(self) -> bool:
        """Whether targets are labels."""
        return self.task == "classification"

    def model(self) -> TableModel:
        """The untrained model for this table."""
        return self.settings.model(self.task, sampled=not self.table.in_memory)


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained model with its scores on held-out rows."""

    model: TableModel
    read: ReadTable
    assessment: Assessment | None
    """Of a model trained on the other rows; None if no rows were held out."""
    held_out: Part | None
    """Rows that the assessed model was not trained on: all of them, or those of one block."""
    assessed: TableModel | None
    """The model that was trained without them."""
    coded: Coded | None
    """The rows that it was trained on, or `model` where no rows were held out; None if no report is to come."""
    n_rows: int
    """Rows that are learned from or held out."""
    n_dropped: int
    """The other rows of the table, which have no target."""
    n_train: int
    on_all_rows: bool
    """Whether `model` was trained on all rows, and not only on the training part."""
    seconds: float
    """Time of the last training."""


# ------------------------------------------------------------------------------
# Problems


def problem_of_file(
    path: Any,
    target: str,
    settings: Settings,
    *,
    task: Literal["auto", "regression", "classification"] = "auto",
    ids: Sequence[str] = (),
    reading: Reading = PLAIN,
    progress: Progress = silent,
) -> Problem:
    """Read a file, and decide on the task."""
    # Ids are read by nobody, and ignored columns may hold anything.
    unread = (*settings.ignore, *ids)
    table = open_file(path, target, ignore=unread, reading=reading, progress=progress)
    return _problem(table, target, replace(settings, ignore=()), task, reading, tuple(ids))


def _problem(
    table: Table, target: str, settings: Settings, task: str, reading: Reading = PLAIN, ids: tuple[str, ...] = ()
) -> Problem:
    chosen, reason = guess_task(table.sample.y) if task == "auto" else (task, "")
    y = table.sample.y
    if reason == "text" and isinstance(y, pyarrow.Array):
        encoded = y.dictionary_encode() if not types.is_dictionary(y.type) else y
        texts = [str(text) for text in encoded.dictionary.to_pylist()]
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        odd = misread(target, texts, codes, reading) if len(texts) > _FEW_TEXTS else None
        # So many different texts would be refused as classes, in a sentence that says less.
        if odd is not None and (odd.change or 2 * len(texts) > len(y)):
            raise DataError(replace(odd, problem=odd.problem.replace("became text,", "is no number,")).sentence())
    table = _with_whole_labels(table) if chosen == "classification" else table.of_random_rows()
    table, settings, advice = _with_kinds_of_all_rows(table, settings, reading)
    return Problem(table, target, chosen, reason, settings, advice, reading, ids)  # type: ignore[arg-type]


_FEW_TEXTS = 20


def _with_whole_labels(table: Table) -> Table:
    """Labels that are whole numbers, which CSV files hold as floats, as integers."""
    y = table.sample.y
    if not (isinstance(y, pyarrow.Array) and types.is_floating(y.type)):
        return table
    values = y.to_numpy(zero_copy_only=False)
    values = values[~np.isnan(values)]
    if np.any(values != np.floor(values)):
        return table  # which is refused where the target is read
    if np.abs(values).max(initial=0.0) >= 2.0**53:
        raise DataError(
            "The target holds labels of 16 digits and more, which float64 cannot tell apart: write them as text."
        )

    def whole(part: Part) -> Part:
        missing = np.isnan(part.y.to_numpy(zero_copy_only=False))
        numbers = np.where(missing, 0, part.y.to_numpy(zero_copy_only=False)).astype(np.int64)
        return part._replace(y=pyarrow.array(numbers, mask=missing))

    parts = table.parts
    return replace(table, sample=whole(table.sample), parts=None if parts is None else lambda: map(whole, parts()))


def _with_kinds_of_all_rows(
    table: Table, settings: Settings, reading: Reading
) -> tuple[Table, Settings, tuple[Advice, ...]]:
    """What only all rows tell of a column, so that a part of them is not read otherwise; and advice on columns.

    A column that holds one word among numbers is text in every part, and where some rows tell the order of day and
    month, it is that of all.
    """
    columns, orders, advice = {}, set(), []
    for name, column in table.sample.frame.columns.items():
        columns[name] = column
        if name in settings.ignore or (not types.is_large_string(column.type) and not types.is_string(column.type)):
            continue
        kind = kind_of(column, name, settings.dates)
        if kind == "text":
            columns[name] = column.dictionary_encode()
            codes, texts = coded_texts(columns[name])
            advice.append(misread(name, texts, codes, reading))
        elif kind in DATE_KINDS[1:]:
            orders.add(kind.removesuffix(" date"))
    if settings.dates is None and len(orders) == 1:
        settings = replace(settings, dates=orders.pop())  # type: ignore[arg-type]
    frame = Frame(columns, table.sample.frame.n_rows, table.sample.frame.named)
    found = tuple(one for one in advice if one is not None)
    return replace(table, sample=table.sample._replace(frame=frame)), settings, found


def read_of(problem: Problem) -> tuple[ReadTable, np.ndarray]:
    """The columns and targets of a problem's rows, or of the sample of them."""
    settings = problem.settings
    with as_data_errors():
        frame, y, _, _ = problem.model()._rows(problem.table.sample)
        return read_table(frame, ignore=settings.ignore, keep=settings.keep, dates=settings.dates), y


# ------------------------------------------------------------------------------
# Training


def train_table(
    problem: Problem,
    *,
    test: float = 0.3,
    refit: bool = True,
    boosting: bool = True,
    for_report: bool = True,
    progress: Progress = silent,
) -> Trained:
    """Train and test on a random split; then train on all rows, unless `refit` is False.

    With `test=0` no rows are held out: the model is trained once, and not assessed. What only a report needs is kept
    if it is `for_report`.
    """
    assessed, coded, found, held, left_out, n_test, seconds = None, None, None, None, None, 0, 0.0
    if test > 0:
        left_out, ids = _left_out_of_all_rows(problem)
        assessed, coded, found, held, n_test, seconds = _tested(
            problem, test, left_out, ids, boosting=boosting, progress=progress
        )
    on_all_rows = refit or test <= 0
    model, latest = assessed, coded
    if on_all_rows:
        progress("Training on all rows", 0, None)
        model = problem.model()
        if not for_report:  # not held while the model is trained once more
            coded = latest = None
        latest, seconds = fit_quietly(model, problem.table, left_out)
        coded = latest if assessed is None else coded
    assert model is not None
    assert latest is not None
    model.source_ = {"target": problem.target, "ids": list(problem.ids), "reading": problem.reading.to_json()}
    if found is not None:
        model.assessment_ = found.to_json("python")
    n_rows = latest.n_rows if on_all_rows else latest.n_rows + n_test
    n_dropped, n_train = problem.table.n_rows - n_rows, n_rows - n_test
    return Trained(model, latest.read, found, held, assessed, coded, n_rows, n_dropped, n_train, on_all_rows, seconds)


def _tested(
    problem: Problem,
    test: float,
    left_out: Mapping[str, str],
    ids: Sequence[Advice],
    *,
    boosting: bool,
    progress: Progress,
) -> tuple[TableModel, Coded, Assessment, Part | None, int, float]:
    """A model trained on a part of the rows, those rows, its scores on the others, some of these, and their number.

    Last come the seconds that its training took.
    """
    training, blocks = divided(problem, test)
    progress("Training on the training part", 0, None)
    model = problem.model()
    coded, seconds = fit_quietly(model, training, left_out)
    progress("Testing", 0, None)
    leaks = advice_on_leaks(coded.read, coded.y, labels=problem.labels)
    assessor = assessor_of(problem, model, coded, boosting=boosting)
    n_test, held = 0, None
    for part in blocks:
        frame, y, _, _ = model._rows(part, whole=False)
        if len(y):
            assessor.add(model.coder_.transform(frame), y)
            held = held or part
            n_test += len(y)
    return model, coded, assessor.finish([*problem.advice, *leaks, *ids]), held, n_test, seconds


def _left_out_of_all_rows(problem: Problem) -> tuple[dict[str, str], list[Advice]]:
    """The columns that are not used, with the reasons, and advice on ids.

    Decided once, or the model that is tested could use a column that the one kept does not.
    """
    read, y = read_of(problem)
    return read.left_out, advice_on_ids(read, y, labels=problem.labels)


def fit_quietly(model: TableModel, table: Table, left_out: Mapping[str, str] | None = None) -> tuple[Coded, float]:
    """Fit a model, and give the rows that it learned from and the seconds that it took.

    `left_out` are the columns that are not used, with the reasons, as decided on more rows; None decides on these.
    """
    start = perf_counter()
    with as_data_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuleEdgeWarning)  # the assessment says what is wrong
        coded = model._fit_table(table, left_out)
    return coded, perf_counter() - start


def divided(problem: Problem, test: float) -> tuple[Table, Iterator[Part]]:
    """The rows to train on, and the held-out rows block by block."""
    table, seed = problem.table, problem.settings.seed
    if not table.in_memory:
        rest, held_out = table.divided(test, seed)
        return rest, held_out()
    part = Part(*problem.model()._rows(table.sample), table.sample.target)
    if table.sample.weight is None:
        drop = problem.settings.drop_missing_target
        _, kept = target_of(table.sample.y, table.n_rows, labels=problem.labels, drop_missing=drop, whole=True)
        part = part._replace(numbers=kept)
    mine, others = _split(part.y, part.groups, test, seed, labels=problem.labels)
    return Table(some_rows_of(part, mine), len(mine)), iter([some_rows_of(part, others)])


def _split(y: np.ndarray, groups: Any, test: float, seed: int, *, labels: bool) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the rows to train on, and of those to test on: whole groups, and classes in equal shares."""
    n_rows = len(y)
    n_test = int(np.ceil(test * n_rows))
    if n_test < 1 or n_rows - n_test < 2:
        raise DataError(f"A test part of {test:g} leaves too few of {n_rows} rows: use another share, or more rows.")
    rows = np.arange(n_rows)
    if groups is not None:
        numbers = numbered_groups(groups)
        n_groups = int(numbers.max()) + 1
        if n_groups - np.ceil(test * n_groups) < 2:
            raise DataError(
                f"There are {n_groups} groups, and with test={test:g} fewer than two of them are left to train on: "
                "give rows of more groups, or test=0."
            )
        return next(GroupShuffleSplit(1, test_size=test, random_state=seed).split(rows, groups=numbers))
    if not labels:
        mine, others = train_test_split(rows, test_size=n_test, random_state=seed)
        return np.sort(mine), np.sort(others)
    codes, counts = np.unique(y, return_inverse=True, return_counts=True)[1:]
    single = counts[codes] == 1  # the only row of a class is trained on
    free = rows[~single]
    classes = np.sum(counts > 1)
    n_test = min(n_test, len(free) - 1)
    if n_test < 1:
        raise DataError(f"A test part of {test:g} leaves too few of {n_rows} rows: use another share, or more rows.")
    enough = min(n_test, len(free) - n_test) >= classes
    mine, others = train_test_split(free, test_size=n_test, random_state=seed, stratify=codes[free] if enough else None)
    if len(np.unique(codes[mine])) + np.sum(counts == 1) < 2:
        raise DataError("The training part holds only one class: use a smaller test part, or more rows.")
    return np.sort(np.concatenate([mine, rows[single]])), np.sort(others)


def assessor_of(problem: Problem, model: TableModel, coded: Coded, *, boosting: bool) -> Assessor:
    """The trained network and simple models, trained on the same coded rows, ready to be scored."""
    baseline = (DummyClassifier() if problem.labels else DummyRegressor()).fit(coded.inputs, coded.y)
    all_labels = model._rows(problem.table.sample)[1] if problem.labels else None
    return Assessor.of(
        model.model_,
        baseline,
        coded.inputs,
        coded.y,
        boosting=boosting,
        seed=problem.settings.seed,
        all_labels=all_labels,
        n_rows=coded.n_rows,
    )


@contextmanager
def as_data_errors() -> Iterator[None]:
    """Turn an estimator's `ValueError` about data or parameters into a `DataError` with the same message."""
    try:
        yield
    except ValueError as error:
        raise DataError(str(error)) from error


# ------------------------------------------------------------------------------


def fit_table(
    data: Any,
    target: Any,
    *,
    task: Literal["auto", "regression", "classification"],
    sample_weight: Any,
    groups: Any,
    test: float,
    boosting: bool,
    settings: Settings,
) -> TableModel:
    """What `ocrep.fit_table` does, with all libraries at hand."""
    settings = replace(settings, ignore=column_names(settings.ignore), keep=column_names(settings.keep))
    if isinstance(data, str | os.PathLike):
        if sample_weight is not None or groups is not None or not isinstance(target, str):
            raise ValueError("Of a file the target is the name of a column, without weights and groups: read it first.")
        return _trained(problem_of_file(data, target, settings, task=task), test, boosting)
    frame = Frame.of(data)
    roles = {"target": target, "sample_weight": sample_weight, "groups": groups}
    named = {role: str(name) for role, name in roles.items() if isinstance(name, str | int | np.integer)}
    check_columns("The frame", tuple(named.values()), list(frame.columns))
    if named.get("target") in settings.ignore:
        raise DataError(f"Column {target!r} is the target: it cannot be ignored.")
    values = {role: frame.column(named[role]) if role in named else given for role, given in roles.items()}
    for role in ("sample_weight", "groups"):
        if role in named:
            values[role] = values[role].to_numpy(zero_copy_only=False)
    inputs = {name: column for name, column in frame.columns.items() if name not in named.values()}
    if not inputs:
        raise DataError(f"The frame has no column to learn from other than the target {target!r}.")
    rest = Frame(inputs, frame.n_rows, frame.named)
    part = Part(rest, values["target"], values["sample_weight"], values["groups"], named.get("target", ""))
    table = Table(part, frame.n_rows)
    return _trained(_problem(table, part.target or "target", settings, task), test, boosting)


def _trained(problem: Problem, test: float, boosting: bool) -> TableModel:
    # What would read odd numbers are options of the program: here, the advice is to write them otherwise.
    advice = tuple(replace(one, change={}) for one in problem.advice)
    return train_table(replace(problem, advice=advice), test=test, boosting=boosting).model
