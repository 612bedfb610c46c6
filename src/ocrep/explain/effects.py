"""`effect`: how the prediction changes along one column, for rows as they are.

Accumulated local effects (Apley, Zhu, *Visualizing the effects of predictor variables in black box supervised learning
models*, JRSSB 2020). The values of the column are cut into intervals of about equally many rows. In each, the mean over
its rows of

    f(upper end, other columns of the row) − f(lower end, other columns of the row)

is how much the prediction rises across the interval; their running sum is the effect, less its mean over all rows. f is
what the model predicts: numbers as they are, also where their logarithm was learned, and for labels probabilities. The
difference is the integral of the exact derivative across the interval, so nothing is approximated, and it is right also
where there is no derivative: for trees, and for the parts of dates. A row is moved only within its own interval: no
combination of columns is judged that the rows do not have, as it is in partial dependence.

Texts have no order. The effect of a text is the mean, over rows that have it, of the prediction less that of the same
row under the texts of the column, weighed by how frequent they are.

The band is two standard errors wide on each side: of the means over rows, and of the networks of a stack. Each of them
has an effect e_m of its own, and the variance is Σ w_m(e_m − e)², with the weights w_m and the effect e of the stack.
Where f is not linear in the outputs, e is not the mean of the e_m, and `Answers` says which constants they have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ocrep._files.convert import DATE_KINDS
from ocrep._files.formats import DataError
from ocrep._layers.random_layer import check_size
from ocrep.displays.base import BLUE, label, load_matplotlib
from ocrep.explain.models import Answers, Column, Opened, chosen_output, gives_probabilities, opened
from ocrep.tables.frames import Words, is_missing

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

# Of a column of texts, the most frequent ones are shown, each by some of its rows.
_TEXTS = 30
_ROWS_OF_TEXT = 100
_GAP = "(gap)"


@dataclass(frozen=True, eq=False)
class Effect:
    """How the prediction changes along one column; `effect` gives it.

    Parameters
    ----------
    frame : pandas.DataFrame
        `value` of the column, its `effect`, the band from `low` to `high`, and `n_rows`: the rows in the interval that
        ends at the value, or the rows that have it.
    column : str
        The name of the column.
    kind : {"number", "category", "date"}
        What the column holds.
    output : int or label
        The target, by its number, or the class.
    scale : {"prediction", "probability"}
        What the effect is measured in: the prediction, or the probability of the class.

    Examples
    --------
    >>> from ocrep import PinvRegressor, explain
    >>> from ocrep.datasets import load
    >>> X, y = load("housing", return_X_y=True)
    >>> model = PinvRegressor(50, random_state=0).fit(X, y)
    >>> found = explain.effect(model, X, 5)
    >>> found.kind, bool(found.frame["effect"].iloc[-1] > found.frame["effect"].iloc[0])
    ('number', True)
    >>> ax = found.plot()
    """

    frame: pandas.DataFrame
    column: str
    kind: str
    output: Any
    scale: str

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the effect with its band: a line for numbers and dates, bars for categories.

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
        found = self.frame
        if self.kind == "category":
            places = np.arange(len(found))
            reach = np.stack([found["effect"] - found["low"], found["high"] - found["effect"]])
            ax.bar(places, found["effect"], yerr=reach, color=BLUE, ecolor="black", capsize=3)
            ax.set_xticks(places, [label(value) for value in found["value"]], rotation=45, ha="right", parse_math=False)
        else:
            ax.plot(found["value"], found["effect"], color=BLUE)
            ax.fill_between(found["value"], found["low"], found["high"], color=BLUE, alpha=0.2)
        ax.axhline(0.0, color="black", linewidth=0.8)
        of = f" of {label(self.output)}" if self.scale == "probability" else ""
        ax.set_xlabel(label(self.column), parse_math=False)
        ax.set_ylabel(f"effect on the {self.scale}{of}", parse_math=False)
        return ax


def effect(model: Any, X: Any, column: Any, *, n_intervals: int = 32, output: Any = None) -> Effect:
    """Show how the prediction changes along one column, averaged over rows as they are.

    Accumulated local effects: rows are moved only within short intervals of the column, so the model is not asked about
    combinations of columns that do not occur, as it is in partial dependence. For each text of a column, the prediction
    of the rows that have it is compared with that of the same rows with the other texts. Rows with a gap in the column
    are left out; for a column of texts, gaps are shown as one more text. For labels, the effect is on the probability
    of a class that the model gives, or on its score if it has no probabilities. Where the logarithm of the target was
    learned, the effect is still on the prediction itself.

    Parameters
    ----------
    model : network, stack, TableRegressor, TableClassifier or Pipeline
        A fitted model. For a Pipeline the last step is explained, in the columns that it reads.
    X : array-like or data frame of shape (n_samples, n_features)
        Rows, at least two.
    column : str or int
        The name of the column, or its place, from 0, if no column has such a name.
    n_intervals : int, default=32
        The largest number of intervals that the values of the column are cut into.
    output : int or label, default=None
        The number of a target, or a class. None is the first target, the second of two classes, or of more classes the
        one that is most probable on average.

    Returns
    -------
    Effect
        `frame` with `value`, `effect`, `low`, `high` and `n_rows`; `plot()` draws it.

    Examples
    --------
    >>> import numpy as np
    >>> from ocrep import PinvRegressor, explain
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> model = PinvRegressor(100, random_state=0).fit(X, X[:, 0] ** 2 + X[:, 1])
    >>> found = explain.effect(model, X, 0, n_intervals=4).frame
    >>> found["effect"].round(1).tolist()
    [0.6, -0.2, -0.4, -0.0, 0.6]
    """
    n_intervals = check_size("n_intervals", n_intervals)
    rows = opened(model, X)
    own = rows.column(column)
    if rows.n_rows < 2:
        raise DataError("X has 1 row, and an effect is the mean over many: give more rows.")
    answers = Answers(rows)
    number, name = chosen_output(rows.network, output, answers.average)
    is_text = isinstance(own.values, Words)
    found = _of_texts(rows, answers, own, number) if is_text else _of_numbers(rows, answers, own, number, n_intervals)
    kind = "category" if own.kind in ("text", "rank", "boolean") else "date" if own.kind in DATE_KINDS else "number"
    scale = "probability" if gives_probabilities(rows.network) else "prediction"
    return Effect(found, own.name, kind, name, scale)


def _of_numbers(rows: Opened, answers: Answers, own: Column, output: int, n_intervals: int) -> pandas.DataFrame:
    assert not isinstance(own.values, Words)
    present = np.flatnonzero(~is_missing(own.values))
    values, inputs = own.values[present], rows.inputs[present]
    ends = np.unique(values)
    if len(ends) < 2:
        raise _no_effect(own, len(ends))
    if len(ends) > n_intervals + 1:
        # Values of rows, so that no interval is empty.
        ends = np.unique(np.quantile(values, np.linspace(0.0, 1.0, n_intervals + 1), method="inverted_cdf"))
    interval = np.maximum(np.searchsorted(ends, values) - 1, 0)
    counts = np.bincount(interval, minlength=len(ends) - 1)
    rise, rises = _differences(answers, own, inputs, ends[interval + 1], ends[interval], output)
    mean, *means = (np.bincount(interval, each, len(counts)) / counts for each in (rise, *rises))
    spread = np.bincount(interval, (rise - mean[interval]) ** 2, len(counts))
    variance = np.where(counts > 1, spread / (np.maximum(counts - 1, 1) * counts), spread.sum() / max(1, len(rise) - 1))
    # The running sum, less its mean over rows: numbers lie about the middle of their intervals.
    sums = np.tri(len(ends), len(counts), -1)
    share = counts / counts.sum()
    n_first = np.count_nonzero(values == ends[0])
    n_rows = np.array([n_first, counts[0] - n_first, *counts[1:]])
    # Of booleans and ranks, which nothing lies between, rows are at their own values.
    middle = n_rows / n_rows.sum() @ sums if own.kind in ("rank", "boolean") else share @ (sums[:-1] + sums[1:]) / 2.0
    to_effect = sums - middle
    frame = _with_band(to_effect @ mean, np.array(means) @ to_effect.T, answers.weights, to_effect**2 @ variance)
    frame.insert(0, "value", _shown(own, ends))
    frame["n_rows"] = n_rows
    return frame


def _differences(
    answers: Answers, own: Column, inputs: np.ndarray, upper: Any, lower: Any, output: int
) -> tuple[np.ndarray, np.ndarray]:
    """f with other values of the column minus f with yet others, for each row; and the same of each member."""
    whole, members = [], []
    for values in (upper, lower):
        moved = inputs.copy()
        moved[:, own.places] = own.inputs(values)
        said, each = answers(moved)
        whole.append(said[:, output])
        members.append(each[:, :, output])
    return whole[0] - whole[1], members[0] - members[1]


def _of_texts(rows: Opened, answers: Answers, own: Column, output: int) -> pandas.DataFrame:
    words = own.values
    assert isinstance(words, Words)
    counts = words.counts(np.ones(len(words.codes)))
    shown = [number for number in np.argsort(-counts, kind="stable")[:_TEXTS].tolist() if counts[number]]
    if len(shown) < 2:
        raise _no_effect(own, len(shown))
    share = counts[shown] / counts[shown].sum()
    coded = own.inputs(Words(np.array(shown), words.texts))
    random = np.random.default_rng(0)
    effects, curves, variances = [], [], []
    for place, number in enumerate(shown):
        mine = np.flatnonzero(words.codes == number)
        if len(mine) > _ROWS_OF_TEXT:
            mine = np.sort(random.choice(mine, _ROWS_OF_TEXT, replace=False))
        moved = np.repeat(rows.inputs[mine], len(shown), axis=0)
        moved[:, own.places] = np.tile(coded, (len(mine), 1))
        said, each = answers(moved)
        by_text = np.concatenate([said[None], each])[:, :, output].reshape(-1, len(mine), len(shown))
        excess = by_text[:, :, place] - by_text @ share
        effects.append(excess[0].mean())
        curves.append(excess[1:].mean(axis=1))
        variances.append(excess[0].var(ddof=1) / len(mine) if len(mine) > 1 else np.nan)
    # A text of one row has no spread of its own: it is given the largest.
    known = np.array(variances)
    largest = np.nanmax(known * counts[shown]) if not np.isnan(known).all() else 0.0
    variance = np.where(np.isnan(known), largest, known)
    frame = _with_band(np.array(effects), np.array(curves).T, answers.weights, variance)
    texts = [*words.texts, _GAP]
    frame.insert(0, "value", [texts[number] for number in shown])
    frame["n_rows"] = counts[shown].astype(int)
    return frame.sort_values("effect", ascending=False, kind="stable", ignore_index=True)


def _no_effect(own: Column, n_values: int) -> DataError:
    held = "one value" if n_values else "only gaps"
    return DataError(f"Column {own.name!r} has {held} in X, so that no effect can be seen: give other rows.")


def _with_band(effect: np.ndarray, curves: np.ndarray, weights: np.ndarray, variance: np.ndarray) -> pandas.DataFrame:
    """The effect, with a band of its variance over rows and of the spread of the members' effects, `curves`."""
    import pandas

    reach = 2.0 * np.sqrt(variance + weights @ (curves - effect) ** 2)
    return pandas.DataFrame({"effect": effect, "low": effect - reach, "high": effect + reach})


def _shown(own: Column, values: np.ndarray) -> Any:
    """Values as a user writes them: dates, ordered categories and booleans instead of their numbers."""
    if own.kind in DATE_KINDS:
        return (np.round(values * 86_400e6)).astype(np.int64).astype("M8[us]")
    if own.kind == "boolean":
        return [bool(value) for value in values]
    if own.kind == "rank":
        assert own.coded is not None
        assert own.coded.ranks is not None
        return [own.coded.ranks[int(rank)] for rank in values]
    return values
