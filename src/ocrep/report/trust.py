"""Can I trust it: leaks, rows unlike those of training, too few rows, values beyond the known, intervals that fail.

Each question is answered by a test on the examined rows, and the answer says how sure it is:

- Columns give the target away together if some model predicts held-out targets almost exactly; a single column may if
  it has nearly all of the importance.
- A column has shifted if its values in training and here differ beyond chance (Kolmogorov and Smirnov's test for
  numbers, χ² for texts and for the share of gaps, at 0.001 divided by the number of columns) and by enough to matter:
  the distribution functions differ by 0.1 somewhere, or a tenth of the rows would have to change their text.
- There are too few rows if the standard error of the mean loss is more than a tenth of it: then the error itself may be
  wrong by that much.
- Intervals hold what they say if the share of rows inside differs from 0.9 by at most two binomial standard errors, or
  two percentage points; probabilities, if the mean one of the predicted labels does so from the share of right labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from ocrep.analysis.assessment import NEARLY_EXACT, NETWORK, Advice
from ocrep.report.verdict import Finding
from ocrep.report.wording import percent, readable

if TYPE_CHECKING:
    from ocrep.report.examination import ReadableRows
    from ocrep.report.goodness import Goodness

COVERAGE = 0.9
SHIFTED = 0.1
"""The least distance of two distributions that counts as a shift."""
_SURE = 1e-3
_MOST_COMPARED = 10_000
_MOST_TEXTS = 20
_MOST_NAMED = 5
_FEW_ROWS = 30
_SLACK = 0.02
_STANDARD_ERRORS = 2.0


def trust(
    model: Any,
    rows: ReadableRows,
    training: ReadableRows | None,
    y: np.ndarray,
    losses: np.ndarray,
    chances: np.ndarray | None,
    advice: Sequence[Advice] | None,
    good: Goodness | None,
    *,
    matter: Sequence[str],
    sole: str | None,
) -> list[Finding]:
    """All answers, in the order of the page; what could not be looked at is left out.

    `matter` names the columns that matter, and `sole` the one that has nearly all of the importance, if one has.
    """
    found = [
        _leaks(advice, good, matter, sole),
        _shifts(rows, training),
        _enough(losses),
        _beyond(model, rows, training),
    ]
    if chances is not None:
        found.append(_probabilities(chances, losses))
    elif not hasattr(model, "classes_") and hasattr(model, "predict_interval"):
        found.append(_intervals(model, rows, y))
    return [one for one in found if one is not None]


def _leaks(
    advice: Sequence[Advice] | None, good: Goodness | None, matter: Sequence[str], sole: str | None
) -> Finding | None:
    question = "Does a column give the target away?"
    leaks = [one for one in advice or () if one.code == "leak"]
    if leaks:
        return Finding("leaks", "leak", "warn", question, "It seems so.", f"{leaks[0].problem}.")
    own = {} if good is None else good.models[NETWORK]
    if sole is not None and max(own.get("r2", 0.0), own.get("roc_auc", 0.0)) > NEARLY_EXACT:
        told = f"R² {own['r2']:.5f}" if "r2" in own else f"ROC AUC {own['roc_auc']:.4f}"
        detail = (
            f"Held-out rows are predicted almost exactly ({told}), and nearly all of this is due to {sole}. Leave it "
            "out if it is known only together with the target."
        )
        return Finding("leaks", "sole", "warn", question, "Perhaps.", detail)
    best = max((scores.get("r2", 0.0) for scores in good.models.values()), default=0.0) if good is not None else 0.0
    if best > NEARLY_EXACT:
        above_all = f", above all from {', '.join(matter[:_MOST_NAMED])}" if matter else ""
        detail = (
            f"The target follows from the columns almost exactly (R² {best:.5f} on held-out rows){above_all}. Leave "
            "out those that are known only together with it."
        )
        return Finding("leaks", "exact", "warn", question, "Several may, together.", detail)
    if advice is None:
        return None
    detail = "No column alone predicts the target, as one would that is known only together with it."
    return Finding("leaks", "none", "good", question, "No.", detail)


# --- Shifts ----------------------------------------------------------------------------------------------------------


def _shifts(rows: ReadableRows, training: ReadableRows | None) -> Finding | None:
    question = "Are these rows like those of training?"
    if training is None or len(rows) < _FEW_ROWS or len(training) < _FEW_ROWS:
        return None
    level = _SURE / len(rows.names)
    sizes = {}
    for place, name in enumerate(rows.names):
        size = shift(rows.kinds[place], _part(training, place), _part(rows, place), level)
        if size is not None:
            sizes[name] = size
    if not sizes:
        detail = (
            f"None of {_columns(len(rows.names))} differs from training by more than chance and by enough to matter."
        )
        return Finding("shift", "none", "good", question, "Yes.", detail)
    names = sorted(sizes, key=lambda name: -sizes[name])
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    told = ", ".join(f"{name} ({percent(sizes[name])})" for name in names[:_MOST_NAMED])
    detail = f"Distance from training, by column: {told}{more}. The errors in training say less about such rows."
    answer = f"No: {_columns(len(names))} of {len(rows.names):,} {'has' if len(names) == 1 else 'have'} shifted."
    return Finding("shift", "shifted", "warn", question, answer, detail)


def _part(rows: ReadableRows, place: int) -> tuple[np.ndarray, np.ndarray]:
    """The values and the gaps of a column, of at most so many rows."""
    step = max(1, math.ceil(len(rows) / _MOST_COMPARED))
    return rows.values[place][::step], rows.gaps[place][::step]


def shift(
    kind: str, before: tuple[np.ndarray, np.ndarray], now: tuple[np.ndarray, np.ndarray], level: float
) -> float | None:
    """How far two samples of a column are apart, from 0 to 1; None if that may be chance or is too little."""
    (old, old_gaps), (new, new_gaps) = before, now
    sizes = []
    counts = np.array([[(~gaps).sum(), gaps.sum()] for gaps in (old_gaps, new_gaps)])
    if counts.sum(axis=0).all() and stats.chi2_contingency(counts).pvalue < level:
        sizes.append(abs(float(old_gaps.mean() - new_gaps.mean())))
    old, new = old[~old_gaps], new[~new_gaps]
    if len(old) and len(new):
        if kind == "category":
            texts, codes = np.unique(np.concatenate([old, new]).astype(str), return_inverse=True)
            frequent = np.argsort(-np.bincount(codes), kind="stable")[:_MOST_TEXTS]
            group = np.full(len(texts), len(frequent))
            group[frequent] = np.arange(len(frequent))
            both = [np.bincount(group[part], minlength=len(frequent) + 1) for part in np.split(codes, [len(old)])]
            table = np.array(both)[:, np.sum(both, axis=0) > 0]
            if table.shape[1] > 1 and stats.chi2_contingency(table).pvalue < level:
                shares = table / table.sum(axis=1, keepdims=True)
                sizes.append(float(np.abs(shares[0] - shares[1]).sum() / 2.0))
        else:
            test = stats.ks_2samp(old, new, method="asymp")
            if test.pvalue < level:
                sizes.append(float(test.statistic))
    return max(sizes) if sizes and max(sizes) >= SHIFTED else None


def _columns(n: int) -> str:
    return f"{n:,} {'column' if n == 1 else 'columns'}"


# --- Rows: how many, and how far out ---------------------------------------------------------------------------------


def _enough(losses: np.ndarray) -> Finding:
    question = "Are there enough rows to tell?"
    n, mean = len(losses), float(losses.mean())
    rows = f"{n:,} {'row' if n == 1 else 'rows'}"
    if n < _FEW_ROWS:
        detail = f"The model was examined on {rows}. Take every number on this page as a first impression."
        return Finding("rows", "few", "warn", question, "No.", detail)
    if mean == 0.0:
        # Of n rows without a mistake, the share of mistakes is below 3/n in 95 of 100 such samples.
        told = f"None of {rows} is wrong; the true share may still be up to {percent(3.0 / n)}."
        return Finding("rows", "no_errors", "note", question, "For a rough answer only.", told)
    noise = float(losses.std()) / math.sqrt(n) / mean
    # The error of labels is the mean loss; that of numbers is its root, whose relative noise is half as large.
    relative = noise if set(np.unique(losses)) <= {0.0, 1.0} else noise / 2.0
    told = f"The error on {rows} is known to ± {percent(relative)} of itself (one standard error)."
    if relative > 0.1:
        return Finding("rows", "uncertain", "note", question, "For a rough answer only.", told)
    return Finding("rows", "enough", "good", question, "Yes.", told)


def _beyond(model: Any, rows: ReadableRows, training: ReadableRows | None) -> Finding | None:
    """Rows with a value beyond those of training by a tenth of their range, or a text that it did not have."""
    question = "Are values beyond those of training?"
    if hasattr(model, "coder_"):
        odd = model.coder_.unlike_training(model.coder_.values(rows.X))
    elif training is not None:
        odd = {}
        for name, old, new in zip(rows.names, training.values, rows.values, strict=True):
            low, high = np.nanmin(old), np.nanmax(old)
            reach = 0.1 * (high - low)
            outside = (new < low - reach) | (new > high + reach)
            if outside.any():
                odd[name] = outside
    else:
        return None
    if not odd:
        detail = "No row has a number or date far outside the range of training, or an unknown category."
        return Finding("beyond", "none", "good", question, "No.", detail)
    n = int(np.logical_or.reduce(list(odd.values())).sum())
    names = sorted(odd, key=lambda name: -int(odd[name].sum()))
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    told = ", ".join(f"{name} ({int(odd[name].sum()):,})" for name in names[:_MOST_NAMED])
    share = n / len(rows)
    answer = f"In {n:,} of {len(rows):,} rows."
    detail = f"They are in {told}{more}. Predictions of such rows are extrapolations: trust them less."
    return Finding("beyond", "some", "warn" if share > 0.05 else "note", question, answer, detail)


# --- Intervals and probabilities -------------------------------------------------------------------------------------


def share_error(share: float, n: int) -> float:
    """The standard error of a share of n rows; none among ten is no proof that there are none."""
    near = (n * share + 0.5) / (n + 1.0)
    return math.sqrt(near * (1.0 - near) / n)


def _intervals(model: Any, rows: ReadableRows, y: np.ndarray) -> Finding | None:
    question = "Do intervals hold what they say?"
    try:
        low, high = np.asarray(model.predict_interval(rows.X, COVERAGE), dtype=float).T
    except (AttributeError, ValueError):  # a network that was not calibrated
        return None
    n = len(y)
    share = float(np.mean((low <= y) & (y <= high)))
    noise = math.sqrt(COVERAGE * (1.0 - COVERAGE) / n)
    width = float(np.median(high - low))
    detail = (
        f"An interval of {percent(COVERAGE)} holds the target of {percent(share)} of {n:,} rows (± {percent(noise)} by "
        f"chance); half of the intervals are narrower than {readable(width)}."
    )
    if abs(share - COVERAGE) <= max(_SLACK, _STANDARD_ERRORS * noise):
        return Finding("intervals", "right", "good", question, "Yes.", detail)
    if share < COVERAGE:
        return Finding("intervals", "narrow", "warn", question, "No, they are too narrow here.", detail)
    return Finding("intervals", "wide", "note", question, "They are wider than needed here.", detail)


def _probabilities(chances: np.ndarray, wrong: np.ndarray) -> Finding:
    question = "Are probabilities right?"
    likely = chances.max(axis=1)
    mean, right = float(likely.mean()), float(1.0 - wrong.mean())
    noise = share_error(right, len(likely))
    detail = (
        f"The model gives its labels a probability of {percent(mean)} on average, and {percent(right)} of them are "
        f"right (± {percent(noise)} by chance)."
    )
    if abs(mean - right) <= max(_SLACK, _STANDARD_ERRORS * noise):
        return Finding("probabilities", "right", "good", question, "Yes, on average.", detail)
    if right < mean:
        return Finding("probabilities", "too_sure", "warn", question, "No, it is too sure of itself.", detail)
    return Finding("probabilities", "too_unsure", "note", question, "It is surer than it says.", detail)
