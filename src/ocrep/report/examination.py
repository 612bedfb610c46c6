"""What a fitted model does on rows that it was not trained on: the numbers of the first five parts of a report.

`examine` asks the questions in the order of the page. How good is it: scores beside simple models (`goodness.py`).
Which columns matter, and what does each do: `ocrep.explain`, on a sample of the rows where they are many. Where is it
wrong: the error among rows that are alike in one column, and the ten rows with the largest errors, each with what its
columns added to its prediction. Can I trust it: `trust.py`.

The error among alike rows is the RMSE, or the share of misclassified rows. Numbers and dates are cut into at most ten
groups of about equally many rows; of texts, the most frequent ones are shown and the others taken together. If the
squared errors e² of n rows have the standard deviation s, the RMSE √(Σe²/n) has the standard error s/(2·√n·RMSE).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline

from ocrep._documentation import shown_in_short
from ocrep.analysis.assessment import Advice
from ocrep.report.goodness import Goodness, goodness
from ocrep.report.trust import share_error, trust
from ocrep.report.verdict import Finding
from ocrep.report.wording import finite, percent, readable, short, values_text

if TYPE_CHECKING:
    from ocrep.tables.prediction import Told

MOST_ROWS = 20_000
"""The most rows that are examined."""
MOST_PERMUTED = 1_000
"""The most rows whose columns are permuted, and on which effects are computed."""
MOST_PREDICTED = 500_000
"""About so many rows are predicted in all to rank the columns."""
N_REPEATS = 5
MOST_RANKED = 30
N_EFFECTS = 6
N_ALONG = 3
N_WORST = 10
N_REASONS = 3
MOST_GROUPS = 10
_FEWEST_ROWS = 100
_FEWEST_PERMUTED = 3
_FEWEST_ALIKE = 5


@dataclass(frozen=True, slots=True, repr=False)
class Ranking:
    """How much the score falls when a column is permuted.

    Parameters
    ----------
    columns : list of str
        The columns by importance; those that say the same are one entry.
    importance, std_error : list of float
        The mean fall of the score, and its standard error.
    score : float
        The score without permutation.
    scoring : str
        The name of the score.
    n_rows, n_repeats, n_columns : int
        How many rows were permuted, how often, and how many entries there are in all.
    """

    columns: list[str]
    importance: list[float]
    std_error: list[float]
    score: float
    scoring: str
    n_rows: int
    n_repeats: int
    n_columns: int

    __repr__ = shown_in_short

    def lines(self) -> list[dict[str, Any]]:
        """Each column with its importance and the standard error, as plain data."""
        each = zip(self.columns, self.importance, self.std_error, strict=True)
        return [{"column": name, "importance": fall, "std_error": error} for name, fall, error in each]

    def clear(self) -> list[str]:
        """The columns that matter beyond chance, and at least a twentieth of what the first one does."""
        lines = zip(self.columns, self.importance, self.std_error, strict=True)
        least = 0.05 * max(self.importance, default=0.0)
        return [name for name, fall, error in lines if fall > max(2.0 * error, least, 0.0)]

    def sole(self) -> str | None:
        """The column that has nearly all of the importance; None if there is no such column."""
        if self.n_columns < 2:
            return None
        whole = sum(max(0.0, fall) for fall in self.importance)
        clear = self.clear()
        found = [name for name, fall in zip(self.columns, self.importance, strict=True) if fall >= NEARLY_ALL * whole]
        return next((name for name in found if name in clear), None)

    def in_words(self) -> str:
        """What falls: the score in words."""
        return SCORING.get(self.scoring, self.scoring)

    def finding(self) -> Finding:
        """The answer in words."""
        clear = self.clear()
        detail = (
            f"A column matters if {self.in_words()} falls when its values are shuffled among the rows. The figure says "
            f"by how much, for {self.n_rows:,} rows that were shuffled {self.n_repeats} times. "
        )
        caution = "Columns that are correlated share their importance, and none of this is about cause and effect."
        if not clear:
            answer = "None stands out from chance."
            return Finding("columns", "none", "warn", "Which columns matter?", answer, detail + caution)
        detail += (
            "Named here are those that stand out from chance, by more than two standard errors, and matter at least a "
            f"twentieth as much as the first. {caution}"
        )
        shown = ", ".join(clear[:_NAMED])
        more = f" and {len(clear) - _NAMED} more" if len(clear) > _NAMED else ""
        return Finding("columns", "some", "good", "Which columns matter?", f"{shown}{more}.", detail)


_NAMED = 5
NEARLY_ALL = 0.9
"""The share of the importance of all columns from which one of them is called the only one that matters."""
SCORING = {"r2": "R²", "neg_log_loss": "the mean log-likelihood", "accuracy": "the share of right labels"}


@dataclass(frozen=True, slots=True, repr=False)
class ColumnEffect:
    """What a column does to the prediction.

    Parameters
    ----------
    column, kind : str
        Its name, and "number", "category" or "date".
    output, scale : str
        What the effect is on, and what it is measured in.
    values : list of float or str
        Numbers, days since 1970, or texts.
    effect, low, high : list of float
        The effect at each value, and its band.
    n_rows : list of int
        Rows about each value.
    """

    column: str
    kind: str
    output: str
    scale: str
    values: list[Any]
    effect: list[float]
    low: list[float]
    high: list[float]
    n_rows: list[int]

    __repr__ = shown_in_short

    def value_text(self, place: int) -> str:
        """A value as text."""
        value = self.values[place]
        if self.kind == "category":
            return str(value)
        return day_text(round(value)) if self.kind == "date" else values_text(self.values)[place]

    def effect_text(self, place: int) -> str:
        """What the value adds, with its sign."""
        value = self.effect[place]
        sign = "+" if value > 0.0 else "−" if value < 0.0 else ""
        return sign + (percent(abs(value)) if self.scale == "probability" else readable(abs(value)))

    def in_short(self) -> str:
        """The values with the largest and the smallest effect, for a line of a table."""
        ends = (int(np.argmax(self.effect)), int(np.argmin(self.effect)))
        return " … ".join(f"{self.effect_text(place)} at {short(self.value_text(place), 20)}" for place in ends)

    def sentence(self) -> str:
        """Where the effect is largest, and where it is smallest."""
        most, least = int(np.argmax(self.effect)), int(np.argmin(self.effect))
        return (
            f"most, {self.effect_text(most)}, at {self.value_text(most)}; least, {self.effect_text(least)}, at "
            f"{self.value_text(least)}"
        )


@dataclass(frozen=True, slots=True, repr=False)
class ErrorsAlong:
    """The error among rows that are alike in one column.

    Parameters
    ----------
    column, kind : str
        Its name, and "number", "category" or "date".
    groups : list
        For each group of rows its two ends, or its text.
    error, std_error : list of float
        RMSE or share of misclassified rows of each group, and its standard error.
    n_rows : list of int
        Rows of each group.
    """

    column: str
    kind: str
    groups: list[Any]
    error: list[float]
    std_error: list[float]
    n_rows: list[int]

    __repr__ = shown_in_short


@dataclass(frozen=True, slots=True, repr=False)
class WorstRow:
    """One of the rows with the largest errors.

    Parameters
    ----------
    row : int
        Its number in the table, from 1.
    true, predicted : float or str
        Its target and the prediction.
    error : float
        The residual, or the probability that the model gave to the true label.
    reasons : list of tuple
        The columns that added most to the prediction: name, value as text, and what it added. None where the model
        is another estimator than a network.
    """

    row: int
    true: Any
    predicted: Any
    error: float
    reasons: list[tuple[str, str, float]]

    __repr__ = shown_in_short


@dataclass(frozen=True, slots=True, repr=False)
class Examination:
    """What a model does on rows that it was not trained on.

    Parameters
    ----------
    title : str
        Heading of the report.
    task : {"regression", "classification"}
        What is predicted.
    error_name : str
        The name of the error.
    n_rows : int
        Rows that were examined.
    n_train : int or None
        Rows that the model was trained on, if it is known.
    inputs : list of str
        Names of the columns.
    left_out : dict
        Columns that are not used, each with the reason.
    goodness : Goodness or None
        The scores beside those of simple models.
    ranking : Ranking or None
        The columns by importance.
    effects : list of ColumnEffect
        What each of the most important columns does.
    error : float
        The error of all rows.
    along : list of ErrorsAlong
        The error along the most important columns.
    worst : list of WorstRow
        The rows with the largest errors.
    reasons_in : str
        What the reasons of these rows are measured in; "" if there are none, as of an estimator that is no network.
    calibration : list of dict
        For labels: groups of rows by the probability of the predicted label, with the share of right ones.
    trust : list of Finding
        What to know before the model is used.
    made : dict
        How the model was made: the sections of its summary.
    command : str
        The command that trains on the table, if a program did.

    See Also
    --------
    examine : Makes it.
    write_report : Makes a page of it.

    Examples
    --------
    >>> from ocrep import PinvRegressor
    >>> from ocrep.datasets import load
    >>> from ocrep.report import examine
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> found = examine(PinvRegressor(20, random_state=0).fit(X[:150], y[:150]), X[150:], y[150:])
    >>> [finding.question for finding in found.findings()][:2]
    ['Is it good?', 'Which columns matter?']
    >>> found.error_text(12.345), found.to_json()[:8]
    ('12.3', '{"title"')
    """

    title: str
    task: Literal["regression", "classification"]
    error_name: str
    n_rows: int
    n_train: int | None
    inputs: list[str] = field(repr=False)
    left_out: dict[str, str] = field(repr=False)
    goodness: Goodness | None = field(repr=False)
    ranking: Ranking | None
    effects: list[ColumnEffect] = field(repr=False)
    error: float
    along: list[ErrorsAlong] = field(repr=False)
    worst: list[WorstRow] = field(repr=False)
    reasons_in: str = field(repr=False)
    calibration: list[dict[str, float]] = field(repr=False)
    trust: list[Finding] = field(repr=False)
    made: dict[str, dict[str, str]] = field(repr=False)
    command: str = field(default="", repr=False)

    __repr__ = shown_in_short

    def findings(self) -> list[Finding]:
        """The questions with their answers, in the order of the page.

        Returns
        -------
        list of Finding
            Each has a `question`, an `answer` and a `detail`.
        """
        good = [] if self.goodness is None else [self.goodness.finding]
        ranked = [] if self.ranking is None else [self.ranking.finding()]
        return [*good, *ranked, *self.trust]

    def error_text(self, error: float) -> str:
        """Format an error for readers: shares of misclassified rows as percentages.

        Parameters
        ----------
        error : float
            An RMSE, or a share of misclassified rows.

        Returns
        -------
        str
            A few digits.
        """
        return percent(error) if self.task == "classification" and error == error else readable(error)

    def _repr_html_(self) -> str:
        """The questions and answers, for notebooks."""
        rows = "".join(
            f"<tr><th style='text-align: left'>{escape(finding.question)}</th><td>{escape(finding.answer)}</td></tr>"
            for finding in self.findings()
        )
        return f"<table><caption><b>{escape(self.title)}</b></caption>{rows}</table>"

    def to_json(self) -> str:
        """Return all numbers as strict JSON; infinity and NaN become null.

        Returns
        -------
        str
            One JSON object.
        """
        return json.dumps(finite(asdict(self)), ensure_ascii=False, allow_nan=False)


def examine(
    model: Any,
    X: Any,
    y: Any,
    X_train: Any = None,
    y_train: Any = None,
    *,
    title: str = "How good is it?",
) -> Examination:
    """Examine a fitted model on rows that it was not trained on.

    Parameters
    ----------
    model : TableRegressor, TableClassifier, or a network of ocrep
        The fitted model.
    X : data frame or array-like
        Rows that the model was not trained on. If there are more than 20,000, a random sample is examined.
    y : array-like of shape (n_samples,)
        Their targets.
    X_train, y_train : data frame or array-like, default=None
        The rows that it was trained on, if they are at hand. Simple models are trained on them for comparison if the
        model is a network, and columns that differ between these rows and X are named.
    title : str
        Heading of the report.

    Returns
    -------
    Examination
        The numbers; `write_report` makes a page of them.

    See Also
    --------
    write_report : Makes a page of the result.
    diagnose : Also looks at one network under many γ.
    ocrep.explain : Importance, effects and contributions alone.

    Examples
    --------
    >>> from ocrep import PinvRegressor
    >>> from ocrep.datasets import load
    >>> from ocrep.report import examine, write_report
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = PinvRegressor(20, random_state=0).fit(X[:150], y[:150])
    >>> found = examine(model, X[150:], y[150:], X[:150], y[:150])
    >>> len(found.ranking.columns), len(found.effects), len(found.worst)
    (6, 6, 10)
    >>> write_report(found, "report.html")
    """
    if isinstance(model, Pipeline):  # its last step is examined, in the columns that it reads
        before, model = model[:-1], model[-1]
        X, X_train = (None if rows is None else _transformed(before, rows) for rows in (X, X_train))
        if not hasattr(model, "coder_"):
            model = reading(model, list(X.columns))
    y = np.asarray(y)
    if y.ndim != 1 or len(y) < 1:
        raise ValueError("y must hold one target for each of at least one row.")
    from ocrep.explain.importance import check_no_gaps

    check_no_gaps(y)
    if hasattr(model, "coder_"):
        from ocrep.explain.models import exponential, learns_logarithm
        from ocrep.tables.frames import Frame

        X = Frame.of(X)
        network = exponential(model.model_) if learns_logarithm(model) else model.model_
        found = goodness(network, None, None, model.coder_.transform(X), y)
    else:
        found = goodness(model, X_train, y_train, X, y)
    training = None if X_train is None else ReadableRows.of(model, X_train)
    return examination(model, X, y, training, title=title, good=found)


def reading(model: Any, names: Sequence[str]) -> Any:
    """A network that takes frames with these names, whatever it was trained on."""
    bare = copy(model)
    bare.feature_names_in_ = np.asarray(names, dtype=object)
    return bare


def _transformed(before: Pipeline, X: Any) -> Any:
    rows = before.transform(X) if len(before.steps) else X
    if hasattr(rows, "columns"):
        return rows
    import pandas

    dense = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
    return pandas.DataFrame(dense, columns=[str(name) for name in before.get_feature_names_out()])


def examination(
    model: Any,
    X: Any,
    y: np.ndarray,
    training: ReadableRows | None = None,
    *,
    title: str,
    good: Goodness | None,
    advice: Sequence[Advice] | None = None,
    numbers: np.ndarray | None = None,
    n_train: int | None = None,
    command: str = "",
) -> Examination:
    """All but the scores, which are given.

    `training` are the rows of training, or some of them, where they are at hand. `advice` is what is known of the
    columns (None: nothing was looked for), and `numbers` are the numbers of the rows in their table, from 0.
    """
    rows = ReadableRows.of(model, X)
    numbers = np.arange(len(y)) if numbers is None else numbers
    if len(y) > MOST_ROWS:
        some = _some(len(y), MOST_ROWS)
        rows, y, numbers = rows.take(some), y[some], numbers[some]
    labels = hasattr(model, "classes_")
    predicted, chances = predictions(model, rows.X)
    losses = (predicted != y).astype(float) if labels else (y - predicted) ** 2
    ranking = ranked(model, rows, y)
    # Of columns that say the same, one is shown before the others.
    groups = [] if ranking is None else [rows.members(entry) for entry in ranking.columns]
    first = [*(group[0] for group in groups if group), *(name for group in groups for name in group[1:])] or rows.names
    told = [errors_along(name, rows, losses, labels) for name in first[:N_EFFECTS]]
    worst, scale = worst_rows(model, rows, y, predicted, chances, numbers)
    return Examination(
        title=title,
        task="classification" if labels else "regression",
        error_name="share of misclassified rows" if labels else "RMSE",
        n_rows=len(y),
        n_train=len(training) if n_train is None and training is not None else n_train,
        inputs=rows.names,
        left_out=dict(getattr(model, "left_out_", {})),
        goodness=good,
        ranking=ranking,
        effects=effects(model, rows, first[:N_EFFECTS]),
        error=_mean_error(losses, labels)[0],
        along=[one for one in told if len(one.groups) > 1][:N_ALONG],
        worst=worst,
        reasons_in=scale,
        calibration=[] if chances is None else calibration(chances, losses),
        trust=trust(
            model,
            rows,
            training,
            y,
            losses,
            chances,
            advice,
            good,
            matter=[] if ranking is None else ranking.clear(),
            sole=None if ranking is None else ranking.sole(),
        ),
        made=_made(model),
        command=command,
    )


# --- Rows of any kind ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ReadableRows:
    """Rows of a model, and its columns as numbers or texts."""

    X: Any
    """As the model takes them."""
    names: list[str]
    kinds: list[str]
    """Each "number", "category" or "date"."""
    values: list[np.ndarray]
    """Numbers, days since 1970, or texts; NaN and "" in gaps."""
    gaps: list[np.ndarray]

    @classmethod
    def of(cls, model: Any, X: Any) -> ReadableRows:
        """The rows of a table, or of an array or frame of numbers."""
        if hasattr(model, "coder_"):
            from ocrep.tables.frames import Frame

            frame = Frame.of(X).renamed(model.coder_._names, type(model).__name__)
            return cls.of_values(frame, model.coder_.columns_, model.coder_.values(frame))
        known = getattr(X, "columns", None)
        names = [f"x{place}" for place in range(X.shape[1])] if known is None else [str(name) for name in known]
        dense = X.toarray() if sparse.issparse(X) else np.asarray(X)
        columns = [np.asarray(dense[:, place], dtype=float) for place in range(dense.shape[1])]
        return cls(X, names, ["number"] * len(names), columns, [np.isnan(column) for column in columns])

    @classmethod
    def of_values(cls, frame: Any, described: Sequence[Any], values: Sequence[Any]) -> ReadableRows:
        """The rows of a table whose columns have been read; `described` has the name and the kind of each."""
        from ocrep.tables.frames import Words, is_missing

        names, kinds, columns, gaps = [], [], [], []
        for column, own in zip(described, values, strict=True):
            names.append(column.name)
            gaps.append(is_missing(own))
            texts = ["False", "True"] if column.kind == "boolean" else column.ranks or []
            if isinstance(own, Words):
                kinds.append("category")
                columns.append(np.array([*own.texts, ""], dtype=object)[own.codes])
            elif texts:
                kinds.append("category")
                places = np.where(gaps[-1], len(texts), np.nan_to_num(own)).astype(int)
                columns.append(np.array([*texts, ""], dtype=object)[places])
            else:
                kinds.append("date" if column.kind.endswith("date") else "number")
                columns.append(own)
        return cls(frame, names, kinds, columns, gaps)

    def __len__(self) -> int:
        return len(self.values[0]) if self.values else 0

    def take(self, some: np.ndarray) -> ReadableRows:
        """Some of the rows."""
        if hasattr(self.X, "iloc"):
            X = self.X.iloc[some]
        else:
            X = self.X.take(some) if hasattr(self.X, "renamed") else self.X[some]
        return ReadableRows(X, self.names, self.kinds, [v[some] for v in self.values], [gap[some] for gap in self.gaps])

    def members(self, entry: str) -> list[str]:
        """The columns of an entry of the ranking, which may be several that say the same."""
        if entry in self.names:
            return [entry]
        return [name for name in self.names if f" + {name} + " in f" + {entry} + "]

    def text(self, name: str, row: int) -> str:
        """The value of one cell."""
        place = self.names.index(name)
        if self.gaps[place][row]:
            return "(gap)"
        value = self.values[place][row]
        if self.kinds[place] == "category":
            return str(value)
        if self.kinds[place] == "date":
            return day_text(float(value))
        return values_text(self.values[place].tolist())[row]


def day_text(days: float) -> str:
    """A date from the days since 1970, with its time if it has one."""
    moment = np.datetime64(round(days * 86_400), "s")
    return str(moment).replace("T", " ").removesuffix(" 00:00:00").removesuffix(":00")


def _some(n: int, size: int) -> np.ndarray:
    return np.sort(np.random.default_rng(0).choice(n, size, replace=False))


def _made(model: Any) -> dict[str, dict[str, str]]:
    """The sections of the network's summary; none for another estimator, or where only what predicts was kept."""
    network = getattr(model, "model_", model)
    if not hasattr(network, "summary") or getattr(network, "_for_prediction", False):
        return {}
    return network.summary().sections


# --- Which columns matter, and what each does ------------------------------------------------------------------------


def ranked(
    model: Any, rows: ReadableRows, y: np.ndarray, *, n_repeats: int = N_REPEATS, most: int = MOST_PREDICTED
) -> Any:
    """The columns by importance; None if the rows are too few or too alike to say."""
    if len(y) < _FEWEST_PERMUTED or len(np.unique(y)) < 2:
        return None
    if hasattr(model, "classes_") and not np.isin(y, model.classes_).all():
        known = np.flatnonzero(np.isin(y, model.classes_))
        return ranked(model, rows.take(known), y[known], n_repeats=n_repeats, most=most)
    size = min(MOST_PERMUTED, max(_FEWEST_ROWS, most // (n_repeats * len(rows.names))))
    if len(y) > size:
        some = _some(len(y), size)
        rows, y = rows.take(some), y[some]
    from ocrep import explain

    scoring = r2 if not hasattr(model, "classes_") else neg_log_loss if hasattr(model, "predict_proba") else accuracy
    found = explain.importance(model, rows.X, y, n_repeats=n_repeats, scoring=scoring)
    frame = found.frame.head(MOST_RANKED)
    return Ranking(
        columns=[str(name) for name in frame["column"]],
        importance=frame["importance"].astype(float).tolist(),
        std_error=frame["std_error"].astype(float).tolist(),
        score=float(found.score),
        scoring=found.scoring,
        n_rows=found.n_rows,
        n_repeats=found.n_repeats,
        n_columns=len(found.frame),
    )


# The scores of scikit-learn of these names, without its checks, which would take most of the time; and the log-loss of
# rows that do not have all labels.


def r2(model: Any, X: Any, y: np.ndarray) -> float:
    """The share of the variance that is explained; NaN where there is none."""
    spread = float(np.sum((y - y.mean()) ** 2))
    return 1.0 - float(np.sum((y - model.predict(X)) ** 2)) / spread if spread > 0.0 else math.nan


def neg_log_loss(model: Any, X: Any, y: np.ndarray) -> float:
    """The mean logarithm of the probability of the true label, which the model must know."""
    chances = np.asarray(model.predict_proba(X))
    likely = chances[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return float(np.mean(np.log(np.maximum(likely, np.finfo(likely.dtype).eps))))


def accuracy(model: Any, X: Any, y: np.ndarray) -> float:
    """The share of right labels."""
    return float(np.mean(model.predict(X) == y))


def effects(model: Any, rows: ReadableRows, names: Sequence[str]) -> list[ColumnEffect]:
    """What each of these columns does; those that are the same in all rows do nothing that could be shown.

    Nothing is shown of a classifier that only names classes.
    """
    from ocrep import explain
    from ocrep.explain.models import answering_method

    if not answering_method(getattr(model, "model_", model)):
        return []
    if len(rows) > MOST_PERMUTED:
        rows = rows.take(_some(len(rows), MOST_PERMUTED))
    X, found = rows.X, []
    for name in names:
        place = rows.names.index(name)
        known = rows.values[place][~rows.gaps[place]]
        if len(np.unique(known.astype(str) if known.dtype == object else known)) < 2:
            continue
        one = explain.effect(model, X, name)
        frame = one.frame
        values = frame["value"].tolist()
        if one.kind == "date":
            values = [_days(value) for value in values]
        numbers = {key: frame[key].astype(float).tolist() for key in ("effect", "low", "high")}
        found.append(
            ColumnEffect(
                column=name,
                kind=one.kind,
                output=str(one.output),
                scale=one.scale,
                values=[str(value) for value in values] if one.kind == "category" else [float(v) for v in values],
                n_rows=[int(n) for n in frame["n_rows"]],
                **numbers,
            )
        )
    return found


def _days(value: Any) -> float:
    """A date in days since 1970, whatever holds it."""
    if isinstance(value, int | float):
        return float(value)
    return float(np.datetime64(value, "s").astype(np.int64)) / 86_400


# --- Where is it wrong -----------------------------------------------------------------------------------------------


def predictions(model: Any, X: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """What the model predicts, and the probabilities of its labels where it has them."""
    if not hasattr(model, "classes_"):
        return np.asarray(model.predict(X), dtype=float), None
    return np.asarray(model.predict(X)), np.asarray(model.predict_proba(X)) if hasattr(model, "predict_proba") else None


def _mean_error(losses: np.ndarray, labels: bool) -> tuple[float, float]:
    """The error of some rows with its standard error, from squared errors or from 1 for each wrong label."""
    n, mean = len(losses), float(losses.mean())
    if labels:
        return mean, share_error(mean, n)
    if n < 2:
        return math.sqrt(mean), math.nan
    noise = float(losses.std(ddof=1)) / math.sqrt(n)
    return math.sqrt(mean), noise / (2.0 * math.sqrt(mean)) if mean > 0.0 else 0.0


def errors_along(name: str, rows: ReadableRows, losses: np.ndarray, labels: bool) -> ErrorsAlong:
    """The error of groups of rows that are alike in a column, gaps in a group of their own."""
    place = rows.names.index(name)
    kind, values, gaps = rows.kinds[place], rows.values[place], rows.gaps[place]
    groups: list[tuple[Any, np.ndarray]] = []
    if kind == "category":
        texts, codes, counts = np.unique(values[~gaps].astype(str), return_inverse=True, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        given = np.flatnonzero(~gaps)
        shown = [k for k in order[:MOST_GROUPS] if counts[k] >= _FEWEST_ALIKE]
        groups = [(str(texts[k]), given[codes == k]) for k in shown]
        others = given[~np.isin(codes, shown)]
        if len(others):
            groups.append((f"{len(texts) - len(shown):,} others", others))
    else:
        given = np.flatnonzero(~gaps)
        known = values[given]
        n_groups = min(MOST_GROUPS, max(1, len(given) // _FEWEST_ALIKE))
        ends = np.unique(np.quantile(known, np.linspace(0.0, 1.0, n_groups + 1))) if len(known) else known
        inside = np.clip(np.searchsorted(ends, known, side="right") - 1, 0, max(0, len(ends) - 2))
        for k in range(max(1, len(ends) - 1) if len(known) else 0):
            own = given[inside == k]
            if len(own):
                groups.append(((float(values[own].min()), float(values[own].max())), own))
    if gaps.any():
        groups.append(("(gap)", np.flatnonzero(gaps)))
    told = [(group, *_mean_error(losses[own], labels), len(own)) for group, own in groups]
    columns = [list(column) for column in zip(*told, strict=True)] or [[], [], [], []]
    return ErrorsAlong(name, kind, *columns)


def worst_rows(
    model: Any,
    rows: ReadableRows,
    y: np.ndarray,
    predicted: np.ndarray,
    chances: np.ndarray | None,
    numbers: np.ndarray,
) -> tuple[list[WorstRow], str]:
    """The rows with the largest errors, and what their reasons are measured in."""
    labels = hasattr(model, "classes_")
    if not labels:
        error = y.astype(float) - predicted
        order = np.argsort(-np.abs(error), kind="stable")
    elif chances is not None:
        places = np.clip(np.searchsorted(model.classes_, y), 0, len(model.classes_) - 1)
        error = np.where(model.classes_[places] == y, chances[np.arange(len(y)), places], 0.0)
        order = np.argsort(error, kind="stable")
        order = order[predicted[order] != y[order]]
    else:
        error = np.full(len(y), np.nan)
        order = np.flatnonzero(predicted != y)
    chosen = order[:N_WORST]
    if not len(chosen):
        return [], ""
    worst = rows.take(chosen)
    added, scale = reasons(model, worst, predicted[chosen] if labels else None)
    found = []
    for at, row in enumerate(chosen):
        first = sorted(added[at].items(), key=lambda pair: -abs(pair[1]))[:N_REASONS]
        own = [(name, worst.text(name, at), value) for name, value in first]
        true, guess = (str(y[row]), str(predicted[row])) if labels else (float(y[row]), float(predicted[row]))
        found.append(WorstRow(int(numbers[row]) + 1, true, guess, float(error[row]), own))
    return found, scale


def reasons(model: Any, rows: ReadableRows, outputs: np.ndarray | None) -> tuple[list[dict[str, float]], str]:
    """What each column adds to the prediction of each row; for labels, to the output of the label in `outputs`.

    Nothing of an estimator that is no network, such as one of scikit-learn behind a coder of tables.
    """
    from ocrep import explain
    from ocrep.estimators.base import ClosedForm

    added: list[dict[str, float]] = [{} for _ in range(len(rows))]
    scale = ""
    if not isinstance(getattr(model, "model_", model), ClosedForm):
        return added, scale
    for output in [None] if outputs is None else list(np.unique(outputs)):
        own = np.arange(len(rows)) if outputs is None else np.flatnonzero(outputs == output)
        found = explain.contributions(model, rows.take(own).X, output=output)
        scale = found.scale
        for row, line in zip(own, found.frame.to_numpy(dtype=float), strict=True):
            added[row] = dict(zip(rows.names, line.tolist(), strict=True))
    return added, scale


def calibration(chances: np.ndarray, wrong: np.ndarray) -> list[dict[str, float]]:
    """Groups of rows by the probability of their predicted label, and the share of right labels in each."""
    likely = chances.max(axis=1)
    order = np.argsort(likely, kind="stable")
    n_groups = min(MOST_GROUPS, max(1, len(order) // 10))
    return [
        {
            "predicted": float(likely[own].mean()),
            "right": float(1.0 - wrong[own].mean()),
            "std_error": share_error(float(1.0 - wrong[own].mean()), len(own)),
            "n_rows": len(own),
        }
        for own in np.array_split(order, n_groups)
        if len(own)
    ]


# --- A model from a file ---------------------------------------------------------------------------------------------


def examine_file(model: Any, told: Told, *, title: str) -> Examination:
    """Examine a model on rows of a file, which needs at least two different targets."""
    from ocrep._files.formats import DataError

    if len(np.unique(told.y)) < 2:
        raise DataError(
            f"Columns are ranked by their part in the score, which needs rows with different targets, and there is "
            f"1 {'row' if len(told.y) == 1 else 'target'}: give more rows, or --row NUMBER to explain one prediction."
        )
    X = told.frame if hasattr(model, "coder_") else _numbers(model, told.frame)
    with _as_usage_error():
        found = examine(model, X, told.y, title=title)
    numbered = [replace(row, row=int(told.numbers[row.row - 1]) + 1) for row in found.worst]
    return replace(found, worst=numbered, command="ocrep fit")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a row is predicted as it is.

    Parameters
    ----------
    prediction : float or str
        The prediction.
    output, scale : str
        What the columns add to: an output, and what it is measured in.
    base, explained : float
        The output of the average row, and that of this row, which is `base` and all contributions.
    contributions : list of dict
        `column`, `value` and `added`, the largest first.
    """

    prediction: Any
    output: str
    scale: str
    base: float
    explained: float
    contributions: list[dict[str, Any]]

    def sentence(self) -> str:
        """What the contributions add up to."""
        of, end = f"the {self.scale} of {self.output}", readable(self.explained, 4)
        if self.scale == "prediction":
            of = "the prediction"
        elif self.scale == "logarithm":
            of, end = "the logarithm of the prediction", f"{end}, that of {readable(float(np.exp(self.explained)), 4)}"
        return f"From {readable(self.base, 4)}, {of} of the average row, they lead to {end}."


def why(model: Any, frame: Any) -> Reason:
    """Explain the prediction of one row."""
    from ocrep import explain

    rows = ReadableRows.of(model, frame if hasattr(model, "coder_") else _numbers(model, frame))
    with _as_usage_error():
        predicted = model.predict(rows.X)[0]
        labels = hasattr(model, "classes_")
        found = explain.contributions(model, rows.X, output=predicted if labels else None)
    values = found.frame.to_numpy(dtype=float)[0].tolist()
    added = sorted(zip(found.frame.columns, values, strict=True), key=lambda one: -abs(one[1]))
    lines = [
        {"column": str(name), "value": rows.text(str(name), 0) if name in rows.names else "", "added": value}
        for name, value in added
    ]
    shown = str(predicted) if labels else float(f"{predicted:.6g}")
    return Reason(shown, str(found.output), found.scale, float(found.base[0]), float(found.predicted[0]), lines)


def _numbers(model: Any, frame: Any) -> Any:
    """The rows of a model that was trained on numbers alone."""
    import pandas

    from ocrep._files.convert import as_kind
    from ocrep.tables.prediction import columns_of

    return pandas.DataFrame({name: as_kind(frame.column(name), "number", name, 0) for name in columns_of(model) or {}})


@contextmanager
def _as_usage_error() -> Iterator[None]:
    """Models that cannot be explained are refused as the program does."""
    from ocrep.tables.training import UsageError

    try:
        yield
    except TypeError as error:
        raise UsageError(str(error)) from error
