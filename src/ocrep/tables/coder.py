"""`TableCoder`: the columns of a table as numbers for a network, or for any estimator of scikit-learn.

What becomes of a column depends on the kind of its values (`frames.py`):

    numbers, booleans, durations   themselves; the median in gaps, and a 0/1 column that tells where the gaps are
    dates                          time in days, year, month, day, weekday and hour, and the last three also on circles
    times of a day                 hours, also on a circle
    ordered categories             their rank
    few texts                      a 0/1 column each but for the most frequent; rare and unknown ones share one
    many texts that repeat         means of the targets (`codes.py`), how frequent, and their letters
    free text                      its letters

The letters of a text are its character n-grams, hashed, weighed by tf-idf, and brought to at most 30 columns by a
singular value decomposition; besides there are its length, its words and the first number in it. A file of the coder
therefore holds no text but the few categories.

Two kinds of columns are left out: constants, and ids, which are different in nearly all rows and have no structure:
numbers and codes, but not codes whose first or last letters mean something.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np
from scipy.special import rel_entr
from sklearn.base import TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ocrep._errors import pick, unchanged_on_error
from ocrep._files.convert import DATE_KINDS
from ocrep._files.formats import DataError, check_columns
from ocrep._layers.random_layer import Estimator, check_size
from ocrep._linalg.folds import mixed
from ocrep.tables.codes import TargetCodes, cross_fitted, hashes, indicators, without_each_fold
from ocrep.tables.frames import (
    Frame,
    Kind,
    Values,
    Words,
    categories_of,
    is_missing,
    kind_of,
    some_rows,
    values_of,
)
from ocrep.tables.targets import guess_task, target_of

FEW_CATEGORIES = 40
FEWER_CATEGORIES = 10  # where most of them are rare
RARE = 5  # a text of fewer rows has no column of its own
MOST_CLASSES = 20  # so many classes have target codes: the most frequent ones
TEXT_COLUMNS = 30  # for the letters of a text
ALL_TEXT_COLUMNS = 600  # and for those of all columns of a table, which bounds time and memory
ROWS_PER_COLUMN = 30  # and as many rows for each of them
_BUCKETS = 2**12  # for n-grams; a column of text takes 30·2¹² float32, half a megabyte, in a file
_LONGEST = 2_000  # characters of a text that are read, which bounds the time
_LEARNED_TEXTS = 20_000
_BLOCK_TEXTS = 5_000
_FOLDS = 5
_DATE_OPTIONS = ("day-first", "month-first", "drop")
_UNREADABLE = {"empty": "is empty", "other": "holds neither numbers nor text"}

Coding: TypeAlias = "Numbers | Dates | OneHot | TargetCodes | Letters"


# ------------------------------------------------------------------------------
# What is computed of a column. Each part gives a few output columns.


def _middle_and_ends(values: np.ndarray, weight: np.ndarray) -> tuple[float, bool, float, float]:
    """The median, whether there are gaps, and the range; 0 for all of them in a column that is empty in the sample."""
    missing = np.isnan(values)
    if missing.all():
        return 0.0, True, 0.0, 0.0
    present, weight = values[~missing], weight[~missing]
    order = np.argsort(present, kind="stable")
    up_to = np.cumsum(weight[order])
    # Half of the weight lies at or below the one, and at or above the other; they differ where it is divided evenly.
    middle = [np.searchsorted(up_to, 0.5 * up_to[-1], side) for side in ("left", "right")]
    median = present[order[np.minimum(middle, len(order) - 1)]].mean()
    return float(median), bool(missing.any()), float(present.min()), float(present.max())


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers with the median in gaps; and where the gaps are, if training has some."""

    median: float
    gaps: bool
    low: float
    high: float
    """The range in training."""
    period: float | None = None
    """If the numbers are those of a circle, its length: sine and cosine are given too."""

    @classmethod
    def of(cls, values: np.ndarray, weight: np.ndarray, period: float | None = None) -> Numbers:
        """Learn the median and the range."""
        return cls(*_middle_and_ends(values, weight), period)

    @property
    def names(self) -> list[str]:
        """What is put after the name of the column to name the outputs."""
        return ["", *(["_sin", "_cos"] if self.period else []), *(["_gap"] if self.gaps else [])]

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """The outputs of some rows."""
        missing = np.isnan(values)
        filled = np.where(missing, self.median, values)
        found = [filled]
        if self.period:
            found += _on_circle(filled, self.period)
        return np.column_stack([*found, missing] if self.gaps else found)


@dataclass(frozen=True, eq=False)
class Dates:
    """The parts of dates that differ in training."""

    median: float
    gaps: bool
    low: float
    high: float
    """The first and the last day in training."""
    parts: list[str]

    @classmethod
    def of(cls, days: np.ndarray, weight: np.ndarray) -> Dates:
        """Learn the median day, and which parts differ."""
        found = _middle_and_ends(days, weight)
        present = np.where(np.isnan(days), found[0], days)
        return cls(*found, [name for name, values in _date_parts(present).items() if np.ptp(values) > 1e-9])

    @property
    def names(self) -> list[str]:
        """What is put after the name of the column to name the outputs."""
        return [*(f"_{part}" for part in self.parts), *(["_gap"] if self.gaps else [])]

    def __call__(self, days: np.ndarray) -> np.ndarray:
        """The outputs of some rows."""
        missing = np.isnan(days)
        parts = _date_parts(np.where(missing, self.median, days))
        found = [parts[name] for name in self.parts]
        return np.column_stack([*found, missing] if self.gaps else found)


_THURSDAY = 3  # the first of January 1970, where Monday is 0


def _date_parts(days: np.ndarray) -> dict[str, np.ndarray]:
    whole = np.floor(days).astype(np.int64)
    months = whole.astype("M8[D]").astype("M8[M]")
    first = months.astype("M8[D]").astype(np.int64)
    year = months.astype(np.int64) // 12 + 1970.0
    month = months.astype(np.int64) % 12 + 1.0
    weekday = (whole + _THURSDAY) % 7.0
    # Moments are whole microseconds, and days are rounded to about as much.
    hour = np.round((days - np.floor(days)) * 24, 6)
    circles = {"month": (month - 1, 12.0), "weekday": (weekday, 7.0), "hour": (hour, 24.0)}
    on_circles = {
        f"{name}_{side}": values
        for name, circle in circles.items()
        for side, values in zip(("sin", "cos"), _on_circle(*circle), strict=True)
    }
    plain = {"days": days, "year": year, "month": month, "day": np.floor(days) - first + 1.0}
    return {**plain, "weekday": weekday, "hour": hour, **on_circles}


def _on_circle(values: np.ndarray, period: float) -> list[np.ndarray]:
    angle = 2 * np.pi / period * values
    return [np.sin(angle), np.cos(angle)]


@dataclass(frozen=True, eq=False)
class OneHot:
    """A 0/1 column for each frequent text but the first; one for rare and unknown ones, and one for gaps.

    A column for the most frequent text would follow from the others, and make a network with a direct link singular.
    """

    texts: list[str]
    """The frequent texts, the most frequent first; that one has no column."""
    others: bool
    """Whether there are rare texts in training; else an unknown one counts as the most frequent one."""
    gaps: bool

    @classmethod
    def of(cls, words: Words, weight: np.ndarray) -> OneHot:
        """Learn which texts are frequent."""
        *counts, missing = words.counts(weight).tolist()
        order = sorted(range(len(counts)), key=lambda number: (-counts[number], words.texts[number]))
        frequent = [words.texts[number] for number in order if counts[number] >= RARE - 1e-9]  # weights are rounded
        n_rare = sum(count for count in counts if 0 < count < RARE - 1e-9)
        if n_rare < RARE or not frequent:  # too few rows to learn a column for
            frequent = [words.texts[number] for number in order if counts[number]]
            n_rare = 0
        return cls(frequent, n_rare > 0, missing > 0)

    @property
    def names(self) -> list[str]:
        """What is put after the name of the column to name the outputs."""
        return [*(f"_{text}" for text in self.texts[1:]), *(["_other"] * self.others), *(["_gap"] * self.gaps)]

    def __call__(self, words: Words) -> np.ndarray:
        """The outputs of some rows."""
        n_columns = len(self.names)
        place_of = {text: number - 1 for number, text in enumerate(self.texts)}
        unknown = len(self.texts) - 1 if self.others else -1
        places = [place_of.get(text, unknown) for text in words.texts]
        places.append(n_columns - 1 if self.gaps else unknown)
        return np.vstack([np.eye(n_columns), np.zeros((1, n_columns))])[np.array(places)[words.codes]]


_NUMBER_IN_TEXT = re.compile(r"\d[\d,]{0,15}(?:\.\d{1,9})?")


@dataclass(frozen=True, eq=False)
class Letters:
    """What the letters of texts tell: their n-grams in a few columns, their length, their words, their first number."""

    grams: Pipeline
    """From texts to columns."""
    number: float | None
    """What stands for the first number where there is none; None if few texts have one."""

    @classmethod
    def of(cls, words: Words, n_rows: float, most: int, seed: int) -> Letters:
        """Learn at most so many columns from the different texts, or from a sample of them; of few rows, fewer."""
        texts = words.texts
        if len(texts) > _LEARNED_TEXTS:
            chosen = np.random.RandomState(seed).choice(len(texts), _LEARNED_TEXTS, replace=False)
            texts = [texts[number] for number in np.sort(chosen).tolist()]
        found = np.array([_first_number(text) for text in texts])
        has = ~np.isnan(found)
        number = float(np.median(found[has])) if has.mean() > 0.5 and len(np.unique(found[has])) > 2 else None
        n_columns = max(1, min(most, int(n_rows) // ROWS_PER_COLUMN, len(texts) - 1))
        grams = make_pipeline(
            HashingVectorizer(
                analyzer="char_wb", ngram_range=(3, 4), n_features=_BUCKETS, alternate_sign=False, dtype=np.float32
            ),
            TfidfTransformer(sublinear_tf=True),
            TruncatedSVD(n_columns, random_state=seed),
        )
        grams.fit([text[:_LONGEST] for text in texts])
        return cls(grams, number)

    @property
    def names(self) -> list[str]:
        """What is put after the name of the column to name the outputs."""
        own = ["_length", "_words", *(["_number"] if self.number is not None else [])]
        return [*(f"_letters{i}" for i in range(self.grams[-1].n_components)), *own]

    def __call__(self, words: Words) -> np.ndarray:
        """The outputs of some rows."""
        found = np.zeros((len(words.texts) + 1, len(self.names)))
        if self.number is not None:
            found[-1, -1] = self.number
        for start in range(0, len(words.texts), _BLOCK_TEXTS):
            texts = [text[:_LONGEST] for text in words.texts[start : start + _BLOCK_TEXTS]]
            own = [np.log1p([len(text) for text in texts]), np.log1p([len(text.split()) for text in texts])]
            if self.number is not None:
                numbers = np.array([_first_number(text) for text in texts])
                own.append(np.where(np.isnan(numbers), self.number, numbers))
            found[start : start + len(texts)] = np.column_stack([self.grams.transform(texts), *own])
        return found[words.codes]


def _first_number(text: str) -> float:
    found = _NUMBER_IN_TEXT.search(text[:_LONGEST])
    return float(found[0].replace(",", "")) if found else np.nan


# ------------------------------------------------------------------------------
# Which columns are not used


_ID_WORDS = {"id", "ids", "uuid", "guid", "pk", "rownames"}
# A running number of this name is no id, for it may tell a trend.
_ORDER_WORDS = {
    "year",
    "yr",
    "quarter",
    "month",
    "week",
    "day",
    "date",
    "hour",
    "minute",
    "time",
    "period",
    "rank",
    "age",
}
_WORDS_OF_NAME = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_TOKEN = re.compile(r"[\w.:{}#-]*\d[\w.:{}#-]*")
_NUMBER = re.compile(r"[+-]?(?!0\d)(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_FEWEST_ROWS = 50  # of fewer rows it is not certain that a column is an id, or the target again
_COINCIDENCES = 5.0


def _is_constant(values: Values) -> bool:
    if is_missing(values).any():
        return False
    return bool(np.ptp(values.codes if isinstance(values, Words) else values) == 0)


def _why_id(kind: Kind, values: Values, name: str) -> str:
    """Why a column is an id, which tells nothing; an empty text if it is none."""
    missing = is_missing(values)
    n_present = int((~missing).sum())
    if n_present < _FEWEST_ROWS:
        return ""
    if isinstance(values, Words):
        texts = values.some(np.flatnonzero(~missing)).texts
        if len(texts) < 0.95 * n_present:
            return ""
        if 2 * len(_numbers_among(texts[:1000])) > len(texts[:1000]):  # numbers, but for a word such as "?"
            is_id = _are_given_out(_numbers_among(texts), name)
        else:
            tokens = [_TOKEN.fullmatch(text.strip()[:100]) is not None for text in texts[:1000]]
            is_id = bool(np.mean(tokens) > 0.9) and not _have_marks(texts)
        return f"is an id: {len(texts):,} different codes in {n_present:,} rows" if is_id else ""
    if kind != "number" or not _are_given_out(values[~missing], name):
        return ""
    return f"is an id: a different whole number in each of {n_present:,} rows"


def _numbers_among(texts: Sequence[str]) -> np.ndarray:
    """Those of some texts that are numbers, and not codes such as 007."""
    return np.array([float(text) for text in texts if _NUMBER.fullmatch(text.strip())])


def _are_given_out(numbers: np.ndarray, name: str) -> bool:
    """Whether numbers are ids: whole, all different, and called so or too dense to be so by chance."""
    if np.any(numbers != np.floor(numbers)) or len(np.unique(numbers)) < len(numbers):
        return False
    called = {word.lower() for word in _WORDS_OF_NAME.findall(name)}
    # Numbers that are drawn from so narrow a range would coincide now and then: these were given out.
    dense = len(numbers) ** 2 / (2 * (np.ptp(numbers) + 1)) > _COINCIDENCES
    return bool(_ID_WORDS & called) or (bool(dense) and not _ORDER_WORDS & called)


def _have_marks(codes: list[str]) -> bool:
    """Whether codes begin or end with letters that mean something, as airlines and countries do: N102UW, GB-1234.

    Two letters that were drawn at random are independent of each other; those of marks are not. The likelihood ratio of
    independence is about as large as its degrees of freedom if they are. Letters that were given out in order, from AA
    to CF, leave out none between the first and the last.
    """
    stripped = [code.strip() for code in codes]
    for pairs in ([code[:2] for code in stripped], [code[-2:] for code in stripped]):
        both = [pair for pair in pairs if len(pair) == 2 and pair.isalpha()]
        if len(both) < _SHARE_OF_MARKS * len(codes):
            continue
        in_order = np.unique([26 * ord(pair[0].upper()) + ord(pair[1].upper()) for pair in both])
        if np.ptp(in_order) + 1 == len(in_order):
            continue
        letters = [np.unique([pair[place] for pair in both], return_inverse=True)[1] for place in (0, 1)]
        shape = (letters[0].max() + 1, letters[1].max() + 1)
        counts = np.bincount(np.ravel_multi_index(letters, shape), minlength=shape[0] * shape[1]).reshape(shape)
        expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / len(both)
        ratio = 2.0 * np.sum(rel_entr(counts, expected))
        if ratio > 2.0 * (shape[0] - 1) * (shape[1] - 1) + _BEYOND_CHANCE:
            return True
    return False


_SHARE_OF_MARKS = 0.1
_BEYOND_CHANCE = 50.0


# ------------------------------------------------------------------------------
# A table before anything is learned of it


@dataclass(frozen=True, slots=True, eq=False)
class ReadColumn:
    """A column that is used, with its values."""

    place: int
    """Its number among all columns."""
    name: str
    kind: Kind
    ranks: list[str] | None
    """The ordered categories, if it holds such."""
    values: Values


@dataclass(frozen=True, slots=True, eq=False)
class ReadTable:
    """The columns of a table that are used, and why the others are not."""

    names: list[str]
    """Of all columns."""
    named: bool
    n_rows: int
    columns: list[ReadColumn]
    left_out: dict[str, str]
    gaps: dict[str, int]
    numbered: dict[str, np.ndarray]
    """The values of the columns that are left out as ids and hold numbers."""

    def row_keys(self) -> np.ndarray:
        """A hash of each row: equal rows have equal ones."""
        return row_keys([column.values for column in self.columns], self.n_rows)

    def check_not(self, y: np.ndarray) -> None:
        """Raise if a column is the target again; of few rows it may be so by chance."""
        if self.n_rows < _FEWEST_ROWS:
            return
        labels, codes = np.unique(y, return_inverse=True)
        number_of = {label: number for number, label in enumerate(labels.tolist())}
        for column in self.columns:
            values = column.values
            if isinstance(values, Words):
                numbers = np.array([*(number_of.get(text, -1) for text in values.texts), -1])
                same = np.array_equal(numbers[values.codes], codes)
            else:
                same = y.dtype.kind in "biuf" and np.array_equal(values, y)
            if same:
                raise DataError(
                    f"Column {column.name!r} is the target again, which will not be known of new rows: leave it out "
                    f"with ignore=[{column.name!r}]."
                )


def row_keys(columns: Sequence[Values], n_rows: int) -> np.ndarray:
    """A hash of each row: equal rows have equal ones, also in other parts of a table."""
    keys = np.zeros(n_rows, dtype=np.uint64)
    for values in columns:
        if isinstance(values, Words):
            numbers = np.append(hashes(values.texts), np.uint64(0))[values.codes]
        else:
            # Adding 0.0 makes one number of 0.0 and −0.0, and all gaps are the same NaN.
            numbers = np.where(np.isnan(values), np.nan, values + 0.0).view(np.uint64)
        keys = mixed(keys ^ mixed(numbers))
    return keys


def column_names(names: Any) -> tuple[str, ...]:
    """The names that a user gives as `ignore` or `keep`, as text: a list, an index, or None for none."""
    if isinstance(names, str):
        raise DataError("ignore and keep take lists of column names: put the name in a list.")
    return () if names is None else tuple(map(str, names))


def with_names_as_tuples(state: dict[str, Any]) -> dict[str, Any]:
    """What is saved of an estimator of tables: an index of pandas has no place in a model file."""
    return state | {role: column_names(state[role]) for role in ("ignore", "keep")}


def read_table(
    X: Any,
    *,
    ignore: Any = (),
    keep: Any = (),
    dates: str | None = None,
    left_out: Mapping[str, str] | None = None,
) -> ReadTable:
    """Read all columns of a frame, and find those that cannot tell anything.

    Of rows that are a part of a table, `left_out` are the columns that are left out of the whole of it, with the
    reasons: a part may be too small to show that a column is an id.
    """
    frame = Frame.of(X)
    if not frame.n_rows:
        raise DataError("X has no rows.")
    ignore, keep = column_names(ignore), column_names(keep)
    check_columns("X", (*ignore, *keep), list(frame.columns))
    if dates is not None:
        pick("dates", dates, dict.fromkeys(_DATE_OPTIONS))
    whole, left_out = left_out, dict.fromkeys(ignore, "ignored")
    columns, gaps, numbered = [], {}, {}
    for place, (name, column) in enumerate(frame.columns.items()):
        if name in left_out:
            continue
        kind = kind_of(column, name, dates)
        if kind in _UNREADABLE:
            left_out[name] = _UNREADABLE[kind]
            continue
        if kind in DATE_KINDS and dates == "drop":
            left_out[name] = "holds dates"
            continue
        ranks = categories_of(column) if kind == "rank" else None
        values = values_of(column, kind, name, ranks)
        reason = ""
        if name not in keep and _is_constant(values):
            reason = "is constant"
        elif name not in keep:
            reason = _why_id(kind, values, name) if whole is None else whole.get(name, "")
        if reason:
            left_out[name] = reason
            if isinstance(values, np.ndarray) and np.nanmin(values) < np.nanmax(values):
                numbered[name] = values
            continue
        columns.append(ReadColumn(place, name, kind, ranks, values))
        n_gaps = int(is_missing(values).sum())
        if n_gaps:
            gaps[name] = n_gaps
    if not columns and frame.n_rows == 1:
        raise DataError("X has 1 sample, in which every column is constant: give more rows.")
    if not columns:
        told = "; ".join(f"{name!r} {reason}" for name, reason in left_out.items())
        ids = any(reason.startswith("is an id") for reason in left_out.values())
        help_with_ids = " Use keep=[…] for columns that are no ids after all." if ids else ""
        raise DataError(f"X has no column to learn from: {told}.{help_with_ids}")
    return ReadTable(list(frame.columns), frame.named, frame.n_rows, columns, left_out, gaps, numbered)


# ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """What is computed of one column."""

    place: int
    name: str
    kind: Kind
    ranks: list[str] | None
    parts: list[Coding]


class TableCoder(TransformerMixin, Estimator):
    """Turn the columns of a data frame into numbers: text, categories, dates, durations and gaps included.

    Numbers stay as they are, with the median in gaps and a 0/1 column that tells where gaps were. Texts of at most 40
    different values become 0/1 columns; more of them become the mean target of each text, its frequency and its
    letters. Dates become the time in days, year, month, day, weekday and hour. Columns are found by their names when
    new rows come, in any order and from any library; texts that were not seen in training are no error.

    Parameters
    ----------
    ignore : sequence of str, default=()
        Columns that are not used.
    keep : sequence of str, default=()
        Columns that are used even if they look like ids.
    dates : {"day-first", "month-first", "drop"} or None, default=None
        How texts such as 01/02/2024 are read where no day of the column is above 12; None raises an error that names
        the column. "drop" leaves all columns of dates out.
    target : {"auto", "numbers", "labels"}, default="auto"
        What y holds. "auto": texts and booleans are labels, and so are at most 20 different whole numbers with five
        rows for each on average; other numbers, also if they are written as text or as `Decimal`, are quantities.
    sample_rows : int, default=100_000
        If there are more rows, the coder learns from a random sample of this size.
    random_state : int, RandomState or None, default=None
        Seed of the sample, of the folds where none are given, and of the decomposition of texts.

    Attributes
    ----------
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of all columns seen in `fit`; only if X had names.
    n_features_in_ : int
        Their number.
    origin_ : ndarray of shape (n_outputs,)
        For each output the number of the column that it was made of.
    left_out_ : dict
        The columns that are not used, each with the reason.
    gaps_ : dict
        The number of gaps of each column that has some.

    See Also
    --------
    TableRegressor : A network behind this coder.
    TableClassifier : The same for labels.

    Examples
    --------
    >>> import pandas as pd
    >>> from ocrep.tables import TableCoder
    >>> frame = pd.DataFrame({"size": [1.5, None, 3.5], "colour": ["red", "blue", "red"]})
    >>> coder = TableCoder().fit(frame)
    >>> coder.get_feature_names_out().tolist()
    ['size', 'size_gap', 'colour_blue']
    >>> coder.transform(frame)
    array([[1.5, 0. , 0. ],
           [2.5, 1. , 1. ],
           [3.5, 0. , 0. ]])
    """

    feature_names_in_: np.ndarray
    n_features_in_: int
    origin_: np.ndarray
    left_out_: dict[str, str]
    gaps_: dict[str, int]
    _doc_link_module = ""  # it has no page

    def __init__(
        self,
        *,
        ignore: Sequence[str] = (),
        keep: Sequence[str] = (),
        dates: Literal["day-first", "month-first", "drop"] | None = None,
        target: Literal["auto", "numbers", "labels"] = "auto",
        sample_rows: int = 100_000,
        random_state: Any = None,
    ) -> None:
        self.ignore = ignore
        self.keep = keep
        self.dates = dates
        self.target = target
        self.sample_rows = sample_rows
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn what becomes of each column.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, pyarrow.Table or array of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Targets, which texts of many values are coded by; without them only their frequency and letters are.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights ≥ 0, as numbers of equal rows.

        Returns
        -------
        self
            The fitted coder.
        """
        self.fit_transform(X, y, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, fold: Any = None) -> np.ndarray:
        """Learn what becomes of each column, and code the rows, each by the targets of the other folds.

        This is not `fit(X, y).transform(X)`, as with scikit-learn's `TargetEncoder`: a model that is trained on rows
        coded by their own targets trusts these codes far too much.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, pyarrow.Table or array of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Targets, which texts of many values are coded by; without them only their frequency and letters are.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights ≥ 0, as numbers of equal rows.
        fold : array-like of int of shape (n_samples,), default=None
            The fold of each row; None makes five random ones.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            The rows as numbers.
        """
        read = read_table(X, ignore=self.ignore, keep=self.keep, dates=self.dates)
        coded = self.learn(read, y, sample_weight, fold)
        self.forget_folds()
        return coded

    def learn(self, read: ReadTable, y: Any, sample_weight: Any, fold: Any) -> np.ndarray:
        """As `fit_transform`, for a table whose columns have been read; until `forget_folds`, more rows can be coded.

        Parameters
        ----------
        read : ReadTable
            The columns.
        y, sample_weight, fold : array-like of shape (n_samples,), or None
            As in `fit_transform`.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            The rows as numbers.
        """
        n_rows = read.n_rows
        random = check_random_state(self.random_state)
        seed = int(random.randint(2**31 - 1))
        targets, names = self._targets(y, n_rows)
        weight = _as_counts(sample_weight, n_rows)
        fold = random.permutation(n_rows) % _FOLDS if fold is None else np.asarray(fold)
        if fold.shape != (n_rows,):
            raise ValueError(f"fold has the shape {fold.shape}, but X has {n_rows} rows: give one number per row.")
        size = check_size("sample_rows", self.sample_rows)
        teaches = np.zeros(n_rows, dtype=bool)
        teaches[random.choice(n_rows, size, replace=False) if n_rows > size else slice(None)] = True
        rows = np.flatnonzero(teaches)
        with unchanged_on_error(self):
            self.columns_ = []
            self._by_fold: dict[str, dict[int, TargetCodes]] = {}
            n_texts = sum(isinstance(column.values, Words) for column in read.columns)
            most = min(TEXT_COLUMNS, ALL_TEXT_COLUMNS // max(1, n_texts))
            for column in read.columns:
                parts = _coding_of(column, rows, targets, names, weight, most, seed)
                self.columns_.append(CodedColumn(column.place, column.name, column.kind, column.ranks, parts))
                if isinstance(parts[0], TargetCodes):
                    words = cast(Words, column.values)
                    self._by_fold[column.name] = without_each_fold(words, targets, weight, fold, teaches, names)
            self.origin_ = np.array(
                [coded.place for coded in self.columns_ for part in coded.parts for _ in part.names]
            )
            self.left_out_, self.gaps_ = dict(read.left_out), dict(read.gaps)
            self.n_features_in_ = len(read.names)
            self._names = list(read.names)
            self.__dict__.pop("feature_names_in_", None)
            if read.named:
                self.feature_names_in_ = np.array(read.names, dtype=object)
        return self.coded_without_own_fold([column.values for column in read.columns], fold)

    def transform(self, X: Any) -> np.ndarray:
        """Code new rows; columns may come in any order, and those that are not used may be absent.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, pyarrow.Table or array of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            The rows as numbers.
        """
        check_is_fitted(self)
        values = self.values(X)
        coded = zip(self.columns_, values, strict=True)
        return np.column_stack([part(cast(Any, own)) for column, own in coded for part in column.parts])

    def values(self, X: Any, start: int = 0) -> list[Values]:
        """Read the columns that are used, each as the kind that it had in training.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, pyarrow.Table or array of shape (n_samples, n_features)
            The rows.
        start : int, default=0
            The number of rows before these, for errors.

        Returns
        -------
        list
            For each column an array of numbers, or the texts of its rows.
        """
        frame = self._frame_of(X, type(self).__name__)
        return [
            values_of(frame.column(coded.name), coded.kind, coded.name, coded.ranks, start) for coded in self.columns_
        ]

    def coded_without_own_fold(self, values: Sequence[Values], fold: np.ndarray) -> np.ndarray:
        """Code more rows of the table that the coder was fitted to, each by the targets of the other folds.

        Parameters
        ----------
        values : list
            What `values` gives.
        fold : ndarray of int of shape (n_samples,)
            The fold of each row, as in `learn`.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            The rows as numbers.
        """
        outputs = []
        for column, own in zip(self.columns_, values, strict=True):
            for part in column.parts:
                if isinstance(part, TargetCodes):
                    by_fold = self._by_fold[column.name]
                    outputs.append(cross_fitted(cast(Words, own), fold, by_fold, len(part.names)))
                else:
                    outputs.append(part(cast(Any, own)))
        return np.column_stack(outputs)

    def forget_folds(self) -> None:
        """Drop the codes without each fold, which only rows of training need: they would be part of a model's file."""
        self._by_fold = {}

    def unlike_training(self, values: Sequence[Values]) -> dict[str, np.ndarray]:
        """Find values that training had no like of: unknown texts, and numbers and dates far outside their range.

        Parameters
        ----------
        values : list
            What `values` gives.

        Returns
        -------
        dict
            For each column that has such values, which rows have them. A number is far outside if it lies beyond the
            range of training by more than a tenth of it. Texts are told where those of training repeat, and where rare
            ones do not share a column.
        """
        found = {}
        for column, own in zip(self.columns_, values, strict=True):
            part = column.parts[0]
            if isinstance(part, OneHot) and isinstance(own, Words):
                known = set(part.texts)
                unknown = np.array([*(text not in known for text in own.texts), False])[own.codes]
                # Rare texts share a column, so an unknown one is like those.
                odd = unknown if not part.others else np.zeros(len(own.codes), dtype=bool)
            elif isinstance(part, TargetCodes) and isinstance(own, Words):
                odd = part.unknown(own)
            elif isinstance(part, Numbers | Dates) and not isinstance(own, Words):
                beyond = 0.1 * (part.high - part.low)
                odd = (own < part.low - beyond) | (own > part.high + beyond)
            else:
                continue
            if odd.any():
                found[column.name] = odd
        return found

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name each output after its column.

        Parameters
        ----------
        input_features : None
            Not used.

        Returns
        -------
        ndarray of str
            Names such as "size" and "size_gap", all different.
        """
        check_is_fitted(self)
        names: dict[str, None] = {}
        for coded in self.columns_:
            for ending in (ending for part in coded.parts for ending in part.names):
                name = coded.name + ending
                while name in names:  # a column may be named as an output of another one is
                    name += "_"
                names[name] = None
        return np.array(list(names), dtype=object)

    def _frame_of(self, X: Any, estimator: str) -> Frame:
        """New rows, with the names of training."""
        return Frame.of(X).renamed(self._names, estimator, of_array=not hasattr(self, "feature_names_in_"))

    def _targets(self, y: Any, n_rows: int) -> tuple[np.ndarray, list[str]]:
        """The numbers that texts are coded by, one row for each row of the table, and what they are called."""
        pick("target", self.target, dict.fromkeys(("auto", "numbers", "labels")))
        if y is None:
            return np.zeros((n_rows, 0)), []
        y = np.asarray(y)
        if y.ndim == 2 and y.shape[1] > 1:
            several = [self._targets(column, n_rows) for column in y.T]
            names = [f"{name}_{i}" for i, (_, own) in enumerate(several) for name in own]
            return np.hstack([codes for codes, _ in several]), names
        labels = self.target == "labels" or (self.target == "auto" and guess_task(y)[0] == "classification")
        values, rows = target_of(y, n_rows, labels=labels, drop_missing=True, whole=False)
        if len(rows) < n_rows:
            raise DataError(f"y has no value in {n_rows - len(rows):,} of {n_rows:,} rows: leave these rows out.")
        return indicators(values, MOST_CLASSES) if labels else (values.reshape(-1, 1), ["_mean"])

    def __getstate__(self) -> dict[str, Any]:
        return with_names_as_tuples(super().__getstate__())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def _as_counts(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Weights as numbers of rows: their mean is at least 1, or codes would be shrunk for their scale alone."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,) or not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
        raise ValueError(f"sample_weight must hold a number ≥ 0 for each of {n_rows} rows, and not only zeros.")
    return weight / min(1.0, weight[weight > 0].mean())


def _coding_of(
    column: ReadColumn,
    rows: np.ndarray,
    targets: np.ndarray,
    names: list[str],
    weight: np.ndarray,
    most: int,
    seed: int,
) -> list[Coding]:
    """What is computed of a column, learned from some of the rows; `most` columns are for the letters of its texts."""
    values, own = some_rows(column.values, rows), weight[rows]
    if not isinstance(values, Words):
        if column.kind in DATE_KINDS:
            return [Dates.of(values, own)]
        return [Numbers.of(values, own, period=24.0 if column.kind == "time" else None)]
    n_texts, n_present = len(values.texts), own @ ~is_missing(values)
    if n_texts <= (FEW_CATEGORIES if n_present >= RARE * n_texts else FEWER_CATEGORIES):
        return [OneHot.of(values, own)]
    parts: list[Coding] = [Letters.of(values, own.sum(), most, seed)]
    if n_texts <= 0.5 * n_present:  # texts that hardly repeat have no mean
        parts.insert(0, TargetCodes.of(values, targets[rows], own, names))
    return parts
