"""`importance`: how much the score falls when the values of a column are permuted among the rows.

A column matters to the model if predictions become worse when its values no longer belong to their rows (Breiman,
*Random forests*, 2001; Fisher, Rudin, Dominici, *All models are wrong, but many are useful*, 2019). The permutations
are those of `sklearn.inspection.permutation_importance` with the same `random_state`, and so are the results. All
numbers that a column of a table is coded by are permuted together, which equals permuting the column itself, since rows
are coded one by one.

Columns that say the same hide each other: permuting one of two twins changes little, since the other still tells. So
columns that are related above 0.9 are permuted together: numbers by the rank correlation, texts, and numbers of few
values, by Cramér's V without its bias, and every two columns of a group (complete linkage).

The standard error has two parts. The jackknife over ten groups of rows gives v = 9/10·Σ(θ₋ᵢ − θ̄)², θ₋ᵢ being the fall
of the score without group i in the first repeat: the variance that comes of the rows and of one permutation. That of
one permutation alone is s², the variance between repeats. The mean of r repeats has v − s² + s²/r.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from scipy.stats import rankdata
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring, get_scorer, log_loss, make_scorer
from sklearn.utils import check_random_state

from ocrep._files.formats import DataError
from ocrep._layers.random_layer import check_size
from ocrep._rows.checks import checked_weights
from ocrep.displays.base import BLUE, label, load_matplotlib
from ocrep.estimators.base import ClosedForm
from ocrep.explain.models import Column, Opened, exponential, gives_probabilities, opened
from ocrep.explain.permuted import permuted_outputs
from ocrep.tables.frames import Words

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

_RELATED = 0.9
_COMPARED_ROWS = 5_000
_FEW_VALUES = 40
_MOST_CELLS = 4_000_000
_LEAST_CATEGORIES = 0.5  # where each row has a category of its own, nothing can be told
_JACKKNIFE = 10
_FEWEST_ROWS = 3
_SHOWN = 20


@dataclass(frozen=True, eq=False)
class Importance:
    """How much the score falls without each column; `importance` gives it.

    Parameters
    ----------
    frame : pandas.DataFrame
        `column`, the name, or the names of columns that say the same, joined by " + "; `importance`, the mean fall of
        the score; `std_error` of it. The most important come first.
    score : float
        The score of the rows as they are.
    scoring : str
        The name of the score.
    n_rows : int
        The number of rows.
    n_repeats : int
        How often each column was permuted.

    Examples
    --------
    >>> from ocrep import PinvRegressor, explain
    >>> from ocrep.datasets import load
    >>> X, y = load("housing", return_X_y=True, as_frame=True)
    >>> model = PinvRegressor(50, random_state=0).fit(X[:400], y[:400])
    >>> found = explain.importance(model, X[400:], y[400:])
    >>> found.scoring, len(found.frame)
    ('r2', 12)
    >>> ax = found.plot()
    """

    frame: pandas.DataFrame
    score: float
    scoring: str
    n_rows: int
    n_repeats: int

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the most important columns as bars, with two standard errors.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib Axes
            The axes.
        """
        if ax is None:
            ax = load_matplotlib("matplotlib.pyplot").subplots(layout="constrained")[1]
        found = self.frame.head(_SHOWN)[::-1]
        places = np.arange(len(found))
        ax.barh(places, found["importance"], xerr=2 * found["std_error"], color=BLUE, ecolor="black", capsize=3)
        ax.set_yticks(places, [label(name) for name in found["column"]], parse_math=False)
        ax.axvline(0.0, color="black", linewidth=0.8)
        ax.set_xlabel(f"fall of {self.scoring}, {self.score:.3g}, when the column is permuted")
        return ax


def importance(
    model: Any,
    X: Any,
    y: Any,
    *,
    columns: Sequence[Any] | None = None,
    n_repeats: int = 5,
    scoring: Any = None,
    sample_weight: Any = None,
    random_state: Any = 0,
) -> Importance:
    """Find which columns matter: how much the score falls when the values of a column are permuted.

    Give rows that the model was not trained on: on training rows, a column can matter only because its noise was
    learned. The result is that of `sklearn.inspection.permutation_importance` with the same `random_state`, faster, and
    by original column for tables. Columns that say the same (related above 0.9) are permuted together and named
    together, because permuting only one of them shows nothing.

    Parameters
    ----------
    model : network, stack, TableRegressor, TableClassifier or Pipeline
        A fitted model. For a Pipeline the last step is explained, in the columns that it reads.
    X : array-like or data frame of shape (n_samples, n_features)
        Rows, at least three.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Their targets.
    columns : sequence of str or int, default=None
        Columns to permute, by name or place; None is all that the model uses. Those that say the same as one of them
        come with it.
    n_repeats : int, default=5
        How often each column is permuted.
    scoring : str or callable, default=None
        A score of scikit-learn. None is "r2" for numbers, "neg_log_loss" for labels if the model has probabilities, and
        "accuracy" for other labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows in the score, ≥ 0.
    random_state : int, RandomState or None, default=0
        Seed of the permutations.

    Returns
    -------
    Importance
        `frame` with `column`, `importance` and `std_error`, the most important first; `plot()` draws it.

    Examples
    --------
    >>> import numpy as np
    >>> from ocrep import PinvRegressor, explain
    >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 4))
    >>> X[:, 3] = X[:, 0]
    >>> y = X[:, 0] + 0.5 * X[:, 1]
    >>> model = PinvRegressor(50, random_state=0).fit(X[:200], y[:200])
    >>> explain.importance(model, X[200:], y[200:]).frame["column"].tolist()
    ['x0 + x3', 'x1', 'x2']
    """
    import pandas

    n_repeats = check_size("n_repeats", n_repeats)
    rows = opened(model, X)
    y = _targets(rows, y)
    weight = checked_weights(sample_weight, rows.inputs)
    scorer, named = _scorer(rows.network, scoring, y)
    groups = _twins(rows.columns)
    if columns is not None:
        asked = {rows.column(name).name for name in ([columns] if isinstance(columns, str | int) else columns)}
        groups = [group for group in groups if asked & {column.name for column in group}]
    orders = _orders(rows.n_rows, n_repeats, random_state)
    score_of = _scored(scorer, rows, y, weight)
    score = score_of(rows.inputs, None)
    # Groups of rows for the jackknife: each is left out once.
    left_out = np.array_split(np.random.RandomState(0).permutation(rows.n_rows), min(_JACKKNIFE, rows.n_rows))
    kept = [np.setdiff1d(np.arange(rows.n_rows), part) for part in left_out]
    base_outputs = rows.network._outputs(rows.inputs) if isinstance(rows.network, ClosedForm) else None
    without = np.array(
        [score_of(rows.inputs[part], None if base_outputs is None else base_outputs[part], part) for part in kept]
    )
    found = []
    for group, permuted in _permuted(rows, groups, orders):
        scores = np.array([score_of(inputs, outputs) for inputs, outputs in permuted])
        inputs, outputs = permuted[0]
        falls = without - [score_of(inputs[part], None if outputs is None else outputs[part], part) for part in kept]
        variance = (len(kept) - 1) / len(kept) * np.sum((falls - falls.mean()) ** 2)
        if n_repeats > 1:
            of_permutations = scores.var(ddof=1)
            variance = max(variance - of_permutations, 0.0) + of_permutations / n_repeats
        found.append((" + ".join(column.name for column in group), score - scores.mean(), variance**0.5))
    frame = pandas.DataFrame(found, columns=["column", "importance", "std_error"])
    frame = frame.sort_values("importance", ascending=False, kind="stable", ignore_index=True)
    return Importance(frame, float(score), named, rows.n_rows, n_repeats)


def _targets(rows: Opened, y: Any) -> np.ndarray:
    if y is None:
        raise DataError("Importance is a fall of the score, and a score needs the targets of the rows: give y.")
    found = np.asarray(y)
    if len(found) != rows.n_rows:
        raise DataError(f"y has {len(found)} values, but X has {rows.n_rows} rows: give one for each.")
    if rows.n_rows < _FEWEST_ROWS:
        told = f"X has {rows.n_rows} row{'' if rows.n_rows == 1 else 's'}"
        raise DataError(f"{told}, too few to permute: give at least {_FEWEST_ROWS}, better hundreds.")
    check_no_gaps(found)
    return found if is_classifier(rows.network) else found.astype(np.float64)


def check_no_gaps(y: np.ndarray) -> None:
    """Raise if a row has no target."""
    import pandas

    gaps = int(np.count_nonzero(pandas.isna(y)))
    if gaps:
        raise DataError(f"y has {gaps:,} gap{'' if gaps == 1 else 's'}: leave out the rows without a target.")


def _scorer(network: Any, scoring: Any, y: np.ndarray) -> tuple[Any, str]:
    """scikit-learn's scorer, and its name."""
    if scoring is None:
        if not is_classifier(network):
            scoring = "r2"
            if np.ptp(y, axis=0).max() == 0.0:
                raise DataError("All targets in y are equal, so that R² cannot fall: give other rows, or scoring=.")
        else:
            scoring = "neg_log_loss" if y.ndim == 1 and gives_probabilities(network) else "accuracy"
    if scoring == "neg_log_loss" and is_classifier(network):  # rows, or a part of them, may lack rare labels
        unknown = np.setdiff1d(y, network.classes_).tolist()
        if unknown:
            raise DataError(
                f"y has the label {unknown[0]!r}, which the model was not trained on: leave out its rows, or give "
                "scoring='accuracy'."
            )
        options = {"greater_is_better": False, "response_method": "predict_proba", "labels": network.classes_}
        return make_scorer(log_loss, **options), scoring
    if isinstance(scoring, str):
        return get_scorer(scoring), scoring
    return check_scoring(network, scoring=scoring), getattr(scoring, "__name__", "the score")


def _orders(n_rows: int, n_repeats: int, random_state: Any) -> list[np.ndarray]:
    """The permutations of scikit-learn, each of which is applied to what the one before left."""
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max + 1)
    random = np.random.RandomState(seed)
    shuffled, order, orders = np.arange(n_rows), np.arange(n_rows), []
    for _ in range(n_repeats):
        random.shuffle(shuffled)
        order = order[shuffled]
        orders.append(order)
    return orders


def _scored(scorer: Any, rows: Opened, y: np.ndarray, weight: np.ndarray | None) -> Callable[..., float]:
    """What scores inputs whose outputs may be known already; `part` says which of the rows they are."""
    bare = copy(rows.network)
    bare.__dict__.pop("feature_names_in_", None)

    def score(inputs: np.ndarray, outputs: np.ndarray | None, part: Any = slice(None)) -> float:
        network: Any = bare
        if outputs is not None:
            network = copy(network)
            network._outputs = lambda X: outputs
            network._check_new_rows = lambda X, method: X  # they have been checked
        if rows.logarithm:
            network = exponential(network)
        weights = {} if weight is None else {"sample_weight": weight[part]}
        return float(scorer(network, inputs, y[part], **weights))

    return score


def _permuted(
    rows: Opened, groups: list[list[Column]], orders: list[np.ndarray]
) -> Iterator[tuple[list[Column], list[tuple[np.ndarray, np.ndarray | None]]]]:
    """Each group of columns with the rows, and the outputs of a network, under each order of its values."""
    places = [np.concatenate([column.places for column in group]) for group in groups]
    if isinstance(rows.network, ClosedForm):
        for number, found in permuted_outputs(rows.network, rows.inputs, places, orders):
            yield groups[number], [(rows.inputs, outputs) for outputs in found]
        return
    for group, own in zip(groups, places, strict=True):
        copies: list[tuple[np.ndarray, np.ndarray | None]] = []
        for order in orders:
            moved = rows.inputs.copy()
            moved[:, own] = rows.inputs[np.ix_(order, own)]
            copies.append((moved, None))
        yield group, copies


# ------------------------------------------------------------------------------
# Columns that say the same


def _twins(columns: list[Column]) -> list[list[Column]]:
    """Groups of columns of which every two are related above 0.9, in the order of the first of each."""
    if len(columns) < 2:
        return [columns]
    related = _relations(columns)
    np.fill_diagonal(related, 1.0)
    tree = linkage(squareform(1.0 - related, checks=False), "complete")
    labels = fcluster(tree, 1.0 - _RELATED, "distance")
    numbers = dict.fromkeys(labels.tolist())
    return [[columns[i] for i in np.flatnonzero(labels == number)] for number in numbers]


def _relations(columns: list[Column]) -> np.ndarray:
    """Rank correlations of numbers, and Cramér's V of texts and numbers of few values, without their signs."""
    n_rows = len(_as_texts(columns[0])[0])
    some = np.random.RandomState(0).permutation(n_rows)[:_COMPARED_ROWS] if n_rows > _COMPARED_ROWS else slice(None)
    ranks = np.zeros((n_rows if isinstance(some, slice) else len(some), len(columns)))
    texts: dict[int, tuple[np.ndarray, int]] = {}
    for i, column in enumerate(columns):
        codes, n_texts = _as_texts(column)
        if isinstance(column.values, Words) or n_texts <= _FEW_VALUES:
            texts[i] = (codes[some], n_texts)
        if not isinstance(column.values, Words):
            ranks[:, i] = rankdata(codes[some])  # codes are in the order of values, and gaps come last
    ranks -= ranks.mean(axis=0)
    size = np.sqrt((ranks**2).sum(axis=0))
    ranks /= np.where(size > 0.0, size, 1.0)
    related = np.abs(ranks.T @ ranks)
    for i, (codes, n) in texts.items():
        for j, (others, m) in texts.items():
            words = isinstance(columns[i].values, Words) or isinstance(columns[j].values, Words)
            if i < j and words:
                related[i, j] = related[j, i] = _cramers_v(codes, others, n, m)
    return np.minimum(related, 1.0)


def _as_texts(column: Column) -> tuple[np.ndarray, int]:
    """A number for each different value, and how many there are."""
    if isinstance(column.values, Words):
        return column.values.codes, len(column.values.texts) + 1
    found, codes = np.unique(column.values, return_inverse=True)
    return codes, len(found)


def _cramers_v(a: np.ndarray, b: np.ndarray, n: int, m: int) -> float:
    """How far two categories tell each other, from 0 to 1: Cramér's V, corrected for what chance would show.

    Many categories of few rows each tell each other by chance (Bergsma, *A bias-correction for Cramér's V*, 2013).
    """
    if n * m > _MOST_CELLS:
        return float(np.array_equal(a, b))
    table = np.bincount(a * m + b, minlength=n * m).reshape(n, m).astype(np.float64)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    total = table.sum()
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    spare = np.array(table.shape) - 1.0
    corrected = np.min(spare - spare**2 / (total - 1.0))
    if corrected < _LEAST_CATEGORIES:
        return 0.0
    excess = ((table - expected) ** 2 / expected).sum() / total - spare.prod() / (total - 1.0)
    return float(np.sqrt(max(excess, 0.0) / corrected))
