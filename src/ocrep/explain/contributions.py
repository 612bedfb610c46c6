"""`contributions`: what each column adds to the prediction of a row, exactly.

A straight path in the scaled inputs leads from a background row to the row itself. Along it, each column gets the
integral of its own derivative times its change (integrated gradients), in closed form for every kind of unit, and the
jumps of the trees at those of its thresholds that the path crosses (`_layers/paths.py`). The contributions of the
inputs that code one column are added. All of them add up to the prediction minus that of the background, so no
remainder has to be spread.

With several background rows, contributions and base are means over all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from ocrep._layers.hidden_map import HiddenMap
from ocrep._layers.paths import path_contributions
from ocrep.displays.base import BLUE, VERMILION, label, load_matplotlib
from ocrep.estimators.base import ClosedForm
from ocrep.explain.models import (
    calibrator_on_host,
    chosen_output,
    gives_probabilities,
    maps_of,
    member_outputs,
    opened,
)

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

_SHOWN = 10


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each column adds to the prediction of each row; `contributions` gives it.

    Parameters
    ----------
    frame : pandas.DataFrame of shape (n_samples, n_columns)
        The contributions, one row for each row of X, and one column for each column that the model uses.
    base : ndarray of shape (n_samples,)
        Where they begin: what is divided, of the background row, or the mean of several.
    predicted : ndarray of shape (n_samples,)
        What is divided, of each row: base plus all contributions of the row.
    output : int or label
        The target, by its number, or the class.
    scale : {"prediction", "logarithm", "log-odds"}
        What is divided: the prediction, its logarithm, or the log-odds of the class.

    Examples
    --------
    >>> from ocrep import PinvRegressor, explain
    >>> from ocrep.datasets import load
    >>> X, y = load("housing", return_X_y=True)
    >>> model = PinvRegressor(50, random_state=0).fit(X, y)
    >>> found = explain.contributions(model, X[:5])
    >>> bool(abs(found.frame.sum(axis=1) + found.base - found.predicted).max() < 1e-9)
    True
    >>> ax = found.plot(row=2)
    """

    frame: pandas.DataFrame
    base: np.ndarray
    predicted: np.ndarray
    output: Any
    scale: str

    def plot(self, row: int = 0, ax: Axes | None = None) -> Axes:
        """Draw the largest contributions of a row as bars.

        Parameters
        ----------
        row : int, default=0
            The place of the row, from 0.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib Axes
            The axes.
        """
        if not -len(self.frame) <= row < len(self.frame):
            raise IndexError(f"row={row} is not there: the contributions are of {len(self.frame)} rows, from 0.")
        if ax is None:
            ax = load_matplotlib("matplotlib.pyplot").subplots(layout="constrained")[1]
        values = self.frame.iloc[row]
        largest = values.abs().sort_values(ascending=False, kind="stable").index[:_SHOWN]
        others = float(values.drop(largest).sum())
        sizes = [*values[largest].tolist(), *([others] if len(values) > _SHOWN else [])][::-1]
        names = [*map(label, largest), *(["all others"] if len(values) > _SHOWN else [])][::-1]
        places = np.arange(len(sizes))
        ax.barh(places, sizes, color=[BLUE if size >= 0 else VERMILION for size in sizes])
        ax.set_yticks(places, names, parse_math=False)
        ax.axvline(0.0, color="black", linewidth=0.8)
        scale = "logarithm of the prediction" if self.scale == "logarithm" else self.scale
        ax.set_xlabel(f"contribution to the {scale}: {self.base[row]:.4g} becomes {self.predicted[row]:.4g}")
        return ax


def contributions(model: Any, X: Any, *, background: Any = None, output: Any = None) -> Contributions:
    """Divide the prediction of each row among the columns, exactly.

    These are integrated gradients: along the straight path, in scaled inputs, from a background row to the row,
    each column gets the integral of its own derivative, and the jumps of trees at its thresholds. The integrals
    have a closed form, and their sum is the difference of the two predictions to rounding. The contribution of a
    column of a table is the sum over all numbers that code it.

    Where a `TableRegressor` learned the logarithm of the target, the logarithm of the prediction is divided: a
    contribution of 0.1 multiplies the prediction by e^0.1 = 1.105.

    For labels, the log-odds of a class are divided, or the score if the model has no probabilities. With more than two
    classes, the log-odds are the logarithms of the probabilities less their mean over the classes.

    Parameters
    ----------
    model : network, stack, TableRegressor, TableClassifier or Pipeline
        A fitted model. For a Pipeline the last step is explained, in the columns that it reads.
    X : array-like or data frame of shape (n_samples, n_features)
        The rows.
    background : array-like or data frame of shape (n_background, n_features), default=None
        Rows to begin at. With several, the contributions are means over all of them, and the time grows with their
        number. None begins at the mean of the training rows, which the model keeps. (A network that has neither a
        direct link nor an intercept keeps the middle of its scaled inputs.)
    output : int or label, default=None
        The number of a target, or a class. None is the first target, the second of two classes, or of more classes the
        one that is most probable on average.

    Returns
    -------
    Contributions
        `frame` with a column for each column of the model, `base` and `predicted`; `plot(row)` draws one row.

    Examples
    --------
    >>> import pandas as pd
    >>> from ocrep import PinvRegressor, TableRegressor, explain
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0] * 10, "colour": ["red", "blue"] * 20})
    >>> y = 2 * frame["size"] + frame["colour"].eq("red")
    >>> model = TableRegressor(PinvRegressor(20, random_state=0), random_state=0).fit(frame, y)
    >>> explain.contributions(model, frame.head(2)).frame.round(1)
       size  colour
    0  -3.0     0.5
    1  -1.0    -0.5
    """
    import pandas

    rows = opened(model, X)
    network = rows.network
    if not isinstance(network, ClosedForm):
        raise TypeError(
            f"contributions reads the layers of a network, and {type(network).__name__} has none: leave model= of the "
            "table model out, or use a package such as shap."
        )
    starts = network._mean_row[None] if background is None else opened(model, background).inputs
    scores, start_scores = (_scores(network, inputs) for inputs in (rows.inputs, starts))
    number, name = chosen_output(network, output, _averages(network, scores))
    sign = 1.0
    if scores.shape[1] == 1:  # of two classes one score is kept, that of the second
        sign = 1.0 if number == 1 or not is_classifier(network) else -1.0
        number = 0
    parts = [(features, sign * _score_weights(network, own)[:, [number]]) for features, own in maps_of(network)[0]]
    found = np.zeros(rows.inputs.shape)
    for start in starts:
        for features, weights in parts:
            if isinstance(features, HiddenMap):
                found += path_contributions(features, start, rows.inputs, weights)[:, :, 0]
            else:
                found += (rows.inputs - start) * weights[:, 0]
    found /= len(starts)
    by_column = np.column_stack([found[:, column.places].sum(axis=1) for column in rows.columns])
    return Contributions(
        frame=pandas.DataFrame(by_column, columns=[column.name for column in rows.columns], index=rows.index),
        base=np.full(rows.n_rows, sign * start_scores[:, number].mean()),
        predicted=sign * scores[:, number],
        output=name,
        scale="log-odds" if gives_probabilities(network) else "logarithm" if rows.logarithm else "prediction",
    )


def _scores(network: ClosedForm, inputs: np.ndarray) -> np.ndarray:
    """What is divided: predictions, or the scores of labels, rows × outputs."""
    outputs, weights = member_outputs(network, inputs)
    total = np.tensordot(weights, outputs, axes=1)
    if not gives_probabilities(network):
        return total
    return _centered(network, calibrator_on_host(network).scores(total))


def _score_weights(network: ClosedForm, W: np.ndarray) -> np.ndarray:
    """The weights of `_scores`, where W (features × outputs) are those of the outputs."""
    if not gives_probabilities(network):
        return W
    return _centered(network, calibrator_on_host(network).weights_of_scores(W))


def _centered(network: Any, logits: np.ndarray) -> np.ndarray:
    """The logits of several classes less their mean, which changes no probability."""
    if logits.shape[1] == 1 or network.multilabel_:
        return logits
    return logits - logits.mean(axis=1, keepdims=True)


def _averages(network: ClosedForm, scores: np.ndarray) -> np.ndarray:
    """The mean of each output, where two classes have one score."""
    means = scores.mean(axis=0)
    one = is_classifier(network) and len(network.classes_) == 2 and len(means) == 1
    return np.concatenate([-means, means]) if one else means
