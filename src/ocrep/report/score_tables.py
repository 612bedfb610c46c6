"""The scores and the confusion of classes as tables of text."""

from __future__ import annotations

from dataclasses import dataclass

from ocrep.analysis.scores import NETWORK
from ocrep.report.goodness import Goodness
from ocrep.report.wording import minus, percent, readable

SCORES = {
    "r2": "R²",
    "rmse": "RMSE",
    "mae": "Mean absolute error",
    "error": "Misclassified",
    "balanced_accuracy": "Balanced accuracy",
    "roc_auc": "ROC AUC",
    "log_loss": "Log-loss",
}
MOST_CLASSES = 12


@dataclass(frozen=True, slots=True)
class Cell:
    """A number as text, and its share of the row, which shades it."""

    text: str
    share: float = 0.0
    right: bool = False


@dataclass(frozen=True, slots=True)
class Counts:
    """A table with headings for columns and rows."""

    caption: str
    heading: str
    columns: list[str]
    rows: list[tuple[str, list[Cell]]]


def score_table(found: Goodness | None) -> Counts | None:
    """All scores of all models, that of the network first."""
    if found is None:
        return None
    names = [name for name in SCORES if name in found.models[NETWORK]]
    rows = [(model, [Cell(_score(name, scores[name])) for name in names]) for model, scores in found.models.items()]
    return Counts(f"Scores on {found.n_test:,} held-out rows", "Model", [SCORES[name] for name in names], rows)


def _score(name: str, value: float) -> str:
    if name == "error":
        return percent(value)
    # A negative R² near zero is zero, and one far below it is of no size that matters.
    return minus(f"{value:.3f}").replace("−0.000", "0.000") if name == "r2" and value == value else readable(value)


def confusion_table(found: Goodness | None) -> Counts | None:
    """Rows by true and predicted class; of many classes only the pairs that are confused most."""
    if found is None or not found.classes:
        return None
    if len(found.classes) <= MOST_CLASSES:
        rows = []
        for k, (label, counts) in enumerate(zip(found.classes, found.confusion, strict=True)):
            n = max(1, sum(counts))
            rows.append((label, [Cell(f"{count:,}", count / n, j == k) for j, count in enumerate(counts)]))
        return Counts(
            "Held-out rows: the true class down, the predicted class across", "True class", found.classes, rows
        )
    pairs = [
        (count, true, told)
        for true, counts in enumerate(found.confusion)
        for told, count in enumerate(counts)
        if told != true and count
    ]
    worst = sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2]))[:MOST_CLASSES]
    lines = [(found.classes[true], [Cell(found.classes[told]), Cell(f"{count:,}")]) for count, true, told in worst]
    return Counts("The classes that are confused most", "True class", ["Predicted as", "Held-out rows"], lines)
