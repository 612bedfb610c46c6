"""Target leakage: columns that alone determine the target, as a copy of it does.

The scores of a model that uses such a column mean nothing if it is not known before the target. The check runs on a
sample of rows, and asks of each column whether

- a straight line through it explains the target, R² > 0.999, also between ranks (`is_copy`);
- it has the order of the target in all rows, as its logarithm or its rank does (`has_order`);
- each class, or each of a few targets, has a number of its own in it (`is_code`);
- each of its texts has one and the same target in all of its rows.

A column that merely predicts well, or separates the classes, leaves something to learn and is not reported.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.stats import rankdata

from ocrep.analysis.assessment import Advice, sample_size
from ocrep.tables.coding import MISSING, TablePart
from ocrep.tables.problem import Problem

FEWEST_ROWS = 20
# Rows for each text on average, and rows with another target than the most frequent one: fewer may be chance.
ROWS_EACH = 5
# R² of a straight line, and of one between ranks, which a few huge numbers in both columns do not decide.
COPY = 0.999
SAME_ORDER = 0.99
# Different targets, and how many different numbers the column has for each: fewer may be chance, noise, or bins.
FEWEST_LEVELS = 50
NUMBERS_PER_LEVEL = 0.9
_MOST_NAMED = 3
_MOST_IGNORED = 20
_FEW = 200  # rows that are looked at first, because most columns are ruled out by them


def advice_on_leaks(part: TablePart, X: np.ndarray, y: np.ndarray) -> list[Advice]:
    """Advice to leave out the columns that alone determine the target; none if no other input remains.

    `X` and `y` are sampled rows. A date that merely grows with the target is not reported.
    """
    codes = y if part.classes is None else np.unique(y, return_inverse=True)[1]
    found = list(dict.fromkeys([*_numbers(part, X, codes), *_texts(part, X, codes)]))
    if not 0 < len(found) < len(part.coding.kinds):
        return []
    names = ", ".join(map(repr, found[:_MOST_NAMED]))
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    which = f"Column {names}" if len(found) == 1 else f"Each of the columns {names}{more}"
    problem = f"{which} alone tells the target; if it is not known before the target, these scores mean nothing"
    return [Advice("leak", problem, {"ignore": tuple(found[:_MOST_IGNORED])})]


def leaks_of(problem: Problem) -> list[Advice]:
    """The same for a sample of all rows of a problem."""
    part = TablePart.of(problem.rows, problem.survey)
    return advice_on_leaks(part, *part.sample(sample_size(part.coding.width, len(part.counts))))


def _numbers(part: TablePart, X: np.ndarray, y: np.ndarray) -> Iterator[str]:
    """The columns of numbers, booleans and dates that determine the target."""
    coding = part.coding
    of_dates = [name for name, dates in coding.dates.items() for _ in dates.parts]
    few = _are_few(y)
    for j, name in enumerate([*coding.medians, *of_dates]):
        x, target = X[:, j].astype(np.float64), y
        if name in coding.medians and part.survey.columns[name].n_present < part.survey.n_rows:
            given = x != coding.medians[name]  # the median stands in the gaps
            x, target = x[given], y[given]
        if 2 * len(x) < len(y):
            continue
        if part.classes is not None:
            leaks = is_code(x, target)
        else:
            coded = few and _are_few(target) and is_code(x, target)
            leaks = is_copy(x, target) or (name in coding.medians and (coded or has_order(x, target)))
        if leaks and _enough(target):
            yield name


def _texts(part: TablePart, X: np.ndarray, y: np.ndarray) -> Iterator[str]:
    """The columns of texts that determine the target."""
    first = part.coding.n_numbers
    for name, known in part.coding.texts.items():
        others = X[:, first : first + len(known) - 1]
        first += len(known) - 1
        texts = others @ np.arange(1.0, len(known))  # the number of each row's text
        given = texts != (list(known).index(MISSING) if MISSING in known else -1)
        for some in (np.ones_like(given), given):  # that a text is missing may determine the target, or mean nothing
            values = _value_of_each(texts[some], y[some]) if 2 * some.sum() >= len(y) else None
            if values is not None and some.sum() >= ROWS_EACH * len(values) and _enough(y[some]):
                yield name


def _enough(y: np.ndarray) -> bool:
    """Whether enough rows have another target than the most frequent one."""
    return len(y) >= FEWEST_ROWS and len(y) - np.unique(y, return_counts=True)[1].max() >= ROWS_EACH


def _are_few(y: np.ndarray) -> bool:
    """Whether there are enough rows for each target on average, not counting the most frequent one."""
    counts = np.unique(y, return_counts=True)[1]
    return len(y) - counts.max(initial=0) >= ROWS_EACH * (len(counts) - 1)


def is_copy(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether numbers are a linear function of the target, except for rounding."""
    return _r2(x, y) > COPY and _r2(rankdata(x), rankdata(y)) > SAME_ORDER


def has_order(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether numbers always rise with the target, or always fall, as its logarithm or its rank does.

    That is: no two rows have the one order in one column and the other order in the other column, at least
    `FEWEST_LEVELS` different targets occur, and at least `NUMBERS_PER_LEVEL` times as many different numbers. With
    fewer targets chance or a little noise could keep the order; fewer numbers are bins of the target, which leave
    something to learn. Noise of 0.2 % of the range mostly disturbs the order of 50 numbers; where there are more, less
    is enough.
    """
    if len(y) > _FEW and not _in_order(x[:_FEW], y[:_FEW]):
        return False
    levels = len(np.unique(y))
    return levels >= FEWEST_LEVELS and len(np.unique(x)) >= NUMBERS_PER_LEVEL * levels and _in_order(x, y)


def is_code(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether each class has a number of its own, the same in all of its rows."""
    numbers = _value_of_each(y, x)
    return numbers is not None and len(np.unique(numbers)) == len(numbers)


def _in_order(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether no two rows differ in both columns in opposite directions, or none in the same."""
    return any((np.diff(some[np.lexsort((some, y))]) >= 0.0).all() for some in (x, -x))


def _r2(x: np.ndarray, y: np.ndarray) -> float:
    """R² of a straight line through numbers; 0 if all numbers of a column are equal."""
    x = x / (np.abs(x).max() or 1.0)  # squares of huge numbers would overflow
    y = y / (np.abs(y).max() or 1.0)
    x = x - x.mean()
    y = y - y.mean()
    squares = (x @ x) * (y @ y)
    return float((x @ y) ** 2 / squares) if squares > 0.0 else 0.0


def _value_of_each(groups: np.ndarray, values: np.ndarray) -> np.ndarray | None:
    """The value of each group, if all of its rows have the same; otherwise None."""
    if len(groups) > _FEW and _value_of_each(groups[:_FEW], values[:_FEW]) is None:
        return None
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(groups[order]) != 0))
    low = np.minimum.reduceat(values[order], starts)
    high = np.maximum.reduceat(values[order], starts)
    return low if (low == high).all() else None
