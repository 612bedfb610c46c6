"""The figures that show how good a model is: predictions and residuals of a regression, ROC curves of classes."""

from __future__ import annotations

import numpy as np

from ocrep.report.drawing import Curve, Figure, Key, path, points
from ocrep.report.goodness import Goodness
from ocrep.report.scales import Scale
from ocrep.report.wording import readable

LOOKS = ("cv", "test", "choice", "other", "plain", "cv dotted")


def goodness_figures(found: Goodness | None) -> list[Figure]:
    """The figures for the held-out rows; none without such rows."""
    if found is None:
        return []
    return [predictions(found), residuals(found)] if found.true else [roc(found)] if found.roc else []


def predictions(found: Goodness) -> Figure:
    """Predicted against true values."""
    both = Scale.around([*found.true, *found.predicted])
    ends = [both.low, both.high]
    caption = (
        f"Predicted against true values of {len(found.true):,} held-out rows. On the line they are equal; the true "
        f"values run from {readable(min(found.true))} to {readable(max(found.true))}."
    )
    return Figure(
        "predictions",
        "Predicted against true",
        caption,
        "true value",
        both,
        "predicted value",
        both,
        [
            Curve("plain dashed", path(both, both, ends, ends)),
            Curve("cv points faint", points(both, both, found.true, found.predicted)),
        ],
        [Key("a held-out row", "dot", "dot"), Key("predicted = true", "plain dashed")],
    )


def residuals(found: Goodness) -> Figure:
    """True minus predicted values, against the predicted ones."""
    left = np.subtract(found.true, found.predicted)
    x, y = Scale.around(found.predicted), Scale.around([*left, 0.0])
    caption = (
        f"Residuals, true minus predicted, of the same rows. Their mean is {readable(float(left.mean()))}, and half of "
        f"them lie between {readable(float(np.quantile(left, 0.25)))} and {readable(float(np.quantile(left, 0.75)))}. "
        "A bend or a funnel shows what the model misses."
    )
    return Figure(
        "residuals",
        "Residuals",
        caption,
        "predicted value",
        x,
        "true − predicted",
        y,
        [
            Curve("plain dashed", path(x, y, [x.low, x.high], [0.0, 0.0])),
            Curve("cv points faint", points(x, y, found.predicted, left)),
        ],
        [Key("a held-out row", "dot", "dot"), Key("no error", "plain dashed")],
    )


def roc(found: Goodness) -> Figure:
    """True against false positives of each class."""
    both = Scale("linear", -0.01, 1.01, percent=True)
    lines = list(zip(found.roc, LOOKS, strict=False))
    areas = ", ".join(f"{curve.label} {curve.area:.3f}" for curve in found.roc)
    caption = (
        "The ROC curve: how many rows of a class are found, against how many others are taken for it, as the threshold "
        f"moves. The area under it is 1 at best and 0.5 for guesses: {areas}."
    )
    return Figure(
        "roc",
        "ROC curve",
        caption,
        "rows of other classes taken for it",
        both,
        "rows of the class found",
        both,
        [
            Curve("plain dashed", path(both, both, [0.0, 1.0], [0.0, 1.0])),
            *(Curve(look, path(both, both, curve.false_positive, curve.true_positive)) for curve, look in lines),
        ],
        [*(Key(curve.label, look) for curve, look in lines), Key("guesses", "plain dashed")],
    )
