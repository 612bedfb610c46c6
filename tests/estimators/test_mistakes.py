"""Mistakes × kinds of rows: one sentence and one warning for a mistake, wherever the rows are.

Only the place may differ: `<row>` stands for "Row 3: ", "part0.parquet, row 3: ", "block 0, row 3: " or
"Partition 0, row 3: ", `<part>` for the same without a row, `<column>` for a name or a number.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from support.advice import some_advice
from support.device import on_device

from ocrep import PinvClassifier, PinvRegressor, TikhonovClassifier, TikhonovRegressor, scan

N, HALF, ROW, COLUMN = 40, 20, 3, 1
NAMES = list("abc")
REGRESSORS = [PinvRegressor(5, random_state=0), TikhonovRegressor()]
CLASSIFIERS = [PinvClassifier(5, random_state=0), TikhonovClassifier()]
NETWORKS = [PinvRegressor(5, random_state=0), PinvClassifier(5, random_state=0)]


@dataclass(frozen=True)
class Rows:
    """What a user has: inputs, targets, weights."""

    X: Any
    y: Any
    weight: Any = None

    @classmethod
    def good(cls, *, labels):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (N, len(NAMES)))
        return cls(X, np.arange(N) % 2 if labels else X[:, 0] + 0.1 * rng.standard_normal(N))


# --- kinds of rows -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """How rows are given to `fit`, and how a sentence names a place in them."""

    give: Callable[..., tuple]
    part: str = ""
    named: bool = False

    def place(self, folder, row):
        part = self.part.format(folder=folder)
        return f"{part}, row {row}: " if part else f"Row {row}: "

    def sentence(self, template, folder):
        """The pattern of a sentence about rows of this kind."""
        part = self.part.format(folder=folder)
        pattern = re.escape(template)
        pattern = pattern.replace("<row>", re.escape(self.place(folder, ROW + 1)))
        # Parts are read in any order, and some mistakes show in the whole.
        pattern = pattern.replace("<part>", f"(?:{re.escape(part).replace('0', '[01]')}: )?" if part else "")
        pattern = pattern.replace("<column>", repr(NAMES[COLUMN]) if self.named else str(COLUMN))
        return pattern.replace("<n>", r"\d+").replace("<more>", ".+")


def as_array(rows, folder):
    return rows.X, rows.y, rows.weight


def as_frame(rows, folder):
    X = pd.DataFrame(rows.X, columns=NAMES[: rows.X.shape[1]])
    # What is text shall be text, and the other columns numbers.
    return X.infer_objects(), rows.y, rows.weight


def as_sparse(rows, folder):
    return sparse.csr_array(rows.X), rows.y, rows.weight


def as_memory_map(rows, folder):
    values = rows.X if rows.X.dtype != object else rows.X.astype(str)
    X = np.memmap(folder / "X.dat", dtype=values.dtype, mode="w+", shape=values.shape)
    X[...] = values
    return X, rows.y, rows.weight


def as_parquet(rows, folder):
    frame = as_frame(rows, folder)[0]
    options = {}
    if rows.y is not None:
        column = rows.y.ndim > 1
        for j, values in enumerate(np.atleast_2d(rows.y.T)):
            frame[f"y{j}"] = values
        options["target"] = [f"y{j}" for j in range(rows.y.shape[1])] if column else "y0"
    if rows.weight is not None:
        frame["w"] = rows.weight
        options["sample_weight"] = "w"
    for i, part in enumerate((frame[:HALF], frame[HALF:])):
        part.to_parquet(folder / f"part{i}.parquet")
    return (scan(str(folder / "*.parquet"), **options),)


def as_blocks(rows, folder):
    parts = [(rows.X[s], rows.y if rows.y is None else rows.y[s]) for s in (slice(HALF), slice(HALF, None))]
    if rows.weight is not None:
        parts = [(*part, w) for part, w in zip(parts, (rows.weight[:HALF], rows.weight[HALF:]), strict=True)]
    return (scan(parts),)


def as_dask(rows, folder):
    def lazy(values):
        if values is None:
            return None
        return da.from_array(values, chunks=((HALF, len(values) - HALF), *((n,) for n in values.shape[1:])))

    return lazy(rows.X), lazy(rows.y), lazy(rows.weight)


def as_device(rows, folder):
    return tuple(None if values is None else on_device(values) for values in (rows.X, rows.y, rows.weight))


KINDS = {
    "array": Kind(as_array),
    "frame": Kind(as_frame, named=True),
    "sparse": Kind(as_sparse),
    "memory map": Kind(as_memory_map),
    "Parquet": Kind(as_parquet, "{folder}/part0.parquet", named=True),
    "blocks": Kind(as_blocks, "block 0"),
    "Dask": Kind(as_dask, "Partition 0"),
    "device": Kind(as_device),
}

# --- mistakes ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mistake:
    """A change of good rows or parameters, and the sentence that must follow."""

    sentence: str
    spoil: Callable[[Rows], Rows] = lambda rows: rows
    models: list = field(default_factory=lambda: REGRESSORS + CLASSIFIERS)
    options: dict = field(default_factory=dict)
    impossible: dict = field(default_factory=dict)
    """The kinds in which it cannot occur, and why."""


def with_value(name, value):
    """Rows of which one number is replaced."""

    def spoil(rows):
        given = getattr(rows, name)
        values = np.ones(N) if given is None else np.array(given, dtype=float)
        values[(ROW, COLUMN) if values.ndim == 2 else ROW] = value
        return replace(rows, **{name: values})

    return spoil


def with_text_column(rows):
    X = rows.X.astype(object)
    X[:, COLUMN] = "red"
    return replace(rows, X=X)


def with_labels(*labels):
    """Rows with these labels in turn, the last of them only in one row."""

    def spoil(rows):
        y = np.array([labels[i % (len(labels) - 1)] for i in range(N)], dtype=object)
        y[ROW] = labels[-1]
        return replace(rows, y=y)

    return spoil


def shorter(name):
    """One entry less among the first half of the rows."""

    def spoil(rows):
        values = getattr(rows, name)
        return replace(rows, **{name: np.delete(np.ones(N) if values is None else values, ROW)})

    return spoil


ONE_TABLE = "the columns of a file have one length"
NO_TEXTS = "arrays on a device hold numbers only"
MISTAKES = {
    "NaN in X": Mistake(
        "<row>column <column> holds NaN (a missing value): remove or impute such rows. "
        "Input X contains NaN or infinity.",
        with_value("X", np.nan),
    ),
    "infinity in X": Mistake(
        "<row>column <column> holds infinity: remove or impute such rows. Input X contains NaN or infinity.",
        with_value("X", -np.inf),
    ),
    "NaN among the targets": Mistake(
        "<row>the target is NaN or infinity: remove such rows. Input y contains NaN.",
        with_value("y", np.nan),
        REGRESSORS,
    ),
    "infinity among the targets": Mistake(
        "<row>the target is NaN or infinity: remove such rows. Input y contains NaN.",
        with_value("y", np.inf),
        REGRESSORS,
    ),
    "targets of three axes": Mistake(
        "<part>y has the shape (<n>, 1, 1), but regression needs one number per row, or one column per target.",
        lambda rows: replace(rows, y=rows.y[:, None, None]),
        REGRESSORS,
        impossible={"Parquet": "a column of a file has one axis"},
    ),
    "texts as targets of a regression": Mistake(
        "<part>the targets must be numbers: regression cannot learn texts or categories.",
        with_labels("u", "v", "u"),
        REGRESSORS,
        impossible={"device": NO_TEXTS},
    ),
    "a missing text among the labels": Mistake(
        "<row>the label is missing: remove such rows. Input y contains NaN.",
        with_labels("u", "v", None),
        CLASSIFIERS,
        impossible={"device": NO_TEXTS},
    ),
    "NaN among the labels": Mistake(
        "<row>the label is missing: remove such rows. Input y contains NaN.", with_value("y", np.nan), CLASSIFIERS
    ),
    "a label that is not whole": Mistake(
        "<row>the label 0.5 is not a whole number: a classifier needs discrete labels, and a regressor learns "
        "continuous targets. Unknown label type: continuous.",
        with_value("y", 0.5),
        CLASSIFIERS,
    ),
    "infinity among the labels": Mistake(
        "<row>the label inf is not a whole number: a classifier needs discrete labels, and a regressor learns "
        "continuous targets. Unknown label type: continuous.",
        with_value("y", np.inf),
        CLASSIFIERS,
    ),
    "labels of several kinds": Mistake(
        "<part>The labels are of several kinds and cannot be sorted ('<' not supported between instances of 'str' and "
        "'int'): make them the same.",
        with_labels(1, 2, "u"),
        CLASSIFIERS,
        impossible={"device": NO_TEXTS, "Parquet": "a column of a file has one type"},
    ),
    "two columns of labels": Mistake(
        "<row>y has 2 columns, each of which says whether a row has a label, but column 1 holds 2.0 and not 0 or 1: "
        "give one label per row, or indicators. Unknown label type: multiclass-multioutput.",
        lambda rows: replace(rows, y=np.column_stack([rows.y, with_value("y", 2)(rows).y])),
        CLASSIFIERS,
    ),
    "one class": Mistake(
        "y holds only one class, [1]: a classifier needs rows of at least two classes.",
        lambda rows: replace(rows, y=np.ones(N, dtype=int)),
        CLASSIFIERS,
    ),
    "one class among rows of positive weight": Mistake(
        "The rows of positive weight hold only one class, [1]: a classifier needs rows of at least two classes.",
        lambda rows: replace(rows, weight=rows.y.astype(float)),
        CLASSIFIERS,
    ),
    "one class of positive weight": Mistake(
        "The rows of positive weight hold only one class, [1]: a classifier needs rows of at least two classes.",
        models=CLASSIFIERS,
        options={"class_weight": {0: 0.0}},
    ),
    "a negative weight": Mistake(
        "<row>the weight is -1.0, but weights must be finite and ≥ 0.", with_value("weight", -1.0)
    ),
    "NaN among the weights": Mistake(
        "<row>the weight is nan, but weights must be finite and ≥ 0.", with_value("weight", np.nan)
    ),
    "an infinite weight": Mistake(
        "<row>the weight is inf, but weights must be finite and ≥ 0.", with_value("weight", np.inf)
    ),
    "all weights zero": Mistake(
        "All sample weights are zero: at least one row must have a positive weight (class_weight included).",
        lambda rows: replace(rows, weight=np.zeros(N)),
    ),
    "all classes of weight zero": Mistake(
        "All sample weights are zero: at least one row must have a positive weight (class_weight included).",
        models=CLASSIFIERS,
        options={"class_weight": {0: 0.0, 1: 0.0}},
    ),
    "weights of another length": Mistake(
        "<part>X has <n> rows, but sample_weight has the shape (<n>,): each row needs both.",
        shorter("weight"),
        impossible={"Parquet": ONE_TABLE},
    ),
    "targets of another length": Mistake(
        "<part>X has <n> rows, but y has the shape (<n>,): each row needs both.",
        shorter("y"),
        impossible={"Parquet": ONE_TABLE},
    ),
    "weights in a column": Mistake(
        "<part>sample_weight has the shape (<n>, 1), but X has <n> rows: give one weight per row.",
        lambda rows: replace(rows, weight=np.ones((N, 1))),
        impossible={"Parquet": "a column of a file has one axis"},
    ),
    "no targets": Mistake(
        "A model requires y to be passed, but the target y is None: give y, name its column as target=, or give "
        "blocks (X, y).",
        lambda rows: replace(rows, y=None),
    ),
    "no columns": Mistake(
        "<part>Found array with 0 feature(s) (shape=(<n>, 0)) while a minimum of 1 is required: give X at least one "
        "column besides targets and weights.",
        lambda rows: replace(rows, X=rows.X[:, :0]),
        impossible={"memory map": "a file without bytes cannot be mapped"},
    ),
    "no rows": Mistake(
        "Found array with 0 sample(s): there are no rows to learn from, and at least 1 is required.",
        lambda rows: Rows(rows.X[:0], rows.y[:0]),
        impossible={"memory map": "a file without bytes cannot be mapped"},
    ),
    "inputs in one axis": Mistake(
        "<part>Expected 2D array, got 1D array instead: X must be rows × columns. Reshape your data: one column is "
        "X.reshape(-1, 1), one row X.reshape(1, -1).",
        lambda rows: replace(rows, X=rows.X[:, 0]),
        impossible=dict.fromkeys(["frame", "sparse", "Parquet"], "it has two axes by itself"),
    ),
    "a column of texts": Mistake(
        "<part>column <column> holds texts, but inputs must be numbers: encode it as numbers, or leave it out "
        "(in ocrep.scan by columns=[…]).",
        with_text_column,
        impossible={"device": NO_TEXTS, "sparse": "a sparse matrix holds numbers only"},
    ),
    "a weight for an unknown class": Mistake(
        "class_weight names classes that are not in y: ['z'].", models=CLASSIFIERS, options={"class_weight": {"z": 1.0}}
    ),
    "a negative weight of a class": Mistake(
        "class_weight={0: -1.0} must hold finite numbers ≥ 0.", models=CLASSIFIERS, options={"class_weight": {0: -1.0}}
    ),
    "a misspelled class_weight": Mistake(
        "class_weight='balancd' must be 'balanced', a dict, or None.",
        models=CLASSIFIERS,
        options={"class_weight": "balancd"},
    ),
    "an unknown rule": Mistake(
        "Unknown gamma rule 'ocrp'. Did you mean 'ocrep'? Known: <more>", options={"gamma": "ocrp"}
    ),
    "a negative gamma": Mistake(
        "gamma=-1.0 cannot regularize: give a finite number ≥ 0, <more>", options={"gamma": -1.0}
    ),
    "an unknown solver": Mistake("Unknown solver 'svd'. Known: 'auto', 'gram', 'qr'.", options={"solver": "svd"}),
    "an unknown activation": Mistake(
        "Unknown activation 'sigmoyd'. Did you mean 'sigmoid'? Known: <more>",
        models=NETWORKS,
        options={"activation": "sigmoyd"},
    ),
    "no hidden units": Mistake("n_hidden=0 must be a whole number ≥ 1.", models=NETWORKS, options={"n_hidden": 0}),
}


@pytest.fixture(autouse=True)
def _one_after_the_other():
    with dask.config.set(scheduler="synchronous"):
        yield


def cases():
    """Every mistake on arrays and on two other kinds in turn, with the estimators in turn; the other kinds are slow."""
    for number, (name, mistake) in enumerate(MISTAKES.items()):
        model = mistake.models[number % len(mistake.models)]
        possible = [kind for kind in KINDS if kind not in mistake.impossible]
        others = len(possible) - 1
        quick = {0, 1 + number % others, 1 + (number + others // 2) % others}
        for place, kind in enumerate(possible):
            # A parameter is looked at before any row.
            if place == 0 or not mistake.options:
                marks = () if place in quick else pytest.mark.slow
                yield pytest.param(mistake, kind, model, id=f"{name}-{kind}-{type(model).__name__}", marks=marks)


@pytest.mark.parametrize(("mistake", "kind", "model"), list(cases()))
def test_the_same_sentence_for_the_same_mistake(mistake, kind, model, tmp_path):
    model = clone(model).set_params(**mistake.options)
    rows = mistake.spoil(Rows.good(labels=isinstance(model, PinvClassifier | TikhonovClassifier)))
    given = KINDS[kind].give(rows, tmp_path)
    before = dict(vars(model))
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole sentence is compared below
        model.fit(*given)
    told = str(raised.value)
    assert re.fullmatch(KINDS[kind].sentence(mistake.sentence, tmp_path), told), told
    assert vars(model) == before


@some_advice
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_warning_for_labels_in_a_column(kind, tmp_path):
    model, rows = TikhonovClassifier(), Rows.good(labels=True)
    plain = clone(model).fit(rows.X, rows.y)
    given = KINDS[kind].give(replace(rows, y=rows.y[:, None]), tmp_path)
    sentence = (
        r"^A column-vector y was passed when a 1d array was expected: use y.ravel\(\) to get one label per row\.$"
    )
    with pytest.warns(DataConversionWarning, match=sentence):
        fitted = clone(model).fit(*given)
    assert fitted.classes_.tolist() == plain.classes_.tolist()
    assert fitted.gamma_ == pytest.approx(plain.gamma_, rel=1e-9)


@some_advice
@pytest.mark.parametrize("kind", KINDS)
def test_good_rows_of_every_kind_are_learned(kind, tmp_path):
    """So that no sentence above comes from the way the rows are given."""
    for i, model in enumerate(REGRESSORS + CLASSIFIERS):
        folder = tmp_path / str(i)
        folder.mkdir()
        rows = replace(Rows.good(labels=model in CLASSIFIERS), weight=np.arange(N) % 3 + 1.0)
        expected = clone(model).fit(rows.X, rows.y, rows.weight)
        fitted = clone(model).fit(*KINDS[kind].give(rows, folder))
        assert fitted.gamma_ == pytest.approx(expected.gamma_, rel=1e-5)  # a search finds γ to √ε only
