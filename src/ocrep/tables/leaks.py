"""Target leakage: columns that alone determine the target, as a copy of it does.

The scores of a model that uses such a column mean nothing if it is not known before the target. The check runs on a
sample of rows, and asks of each column whether

- a straight line through it explains the target, R² > 0.999, also between ranks (`is_copy`);
- it has the order of the target in all rows, as its logarithm or its rank does (`has_order`);
- each class, or each of a few targets, has a number of its own in it (`is_code`);
- each class has numbers between limits of its own (`separates`);
- it is filled in for one class only, or for all classes but one (`gaps_tell`), where for two classes the most frequent
  number or date may stand for gaps (`filler_tells`);
- each of its texts has one and the same target in all of its rows (`tells_target`).

Copies have errors too: a wrong cell, or zeros in a tenth of the rows. A straight line may therefore miss some rows, if
the others lie on it almost exactly; an order and whatever tells classes may have a few wrong rows (`_few_wrong`); and
in a code one and the same number may besides stand in some rows instead of the right one. A column that merely predicts
well, with noise in all rows, or tells one of several classes, leaves something to learn and is not reported.

Limits that have few rows on one side are found by chance. Of n rows there are n!/(n₁!·n₂!·…) orders of their classes,
and in K! of them each class is in one piece: `separates` asks that this is rare, whichever rows were left out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np
from scipy.special import gammaln
from scipy.stats import rankdata

from ocrep._files.convert import DATE_KINDS
from ocrep.analysis.assessment import Advice, sample_size
from ocrep.tables.coder import ReadColumn, ReadTable
from ocrep.tables.frames import Values, Words, is_missing, some_rows

FEWEST_ROWS = 20
# Rows for each text on average, and rows with another target than the most frequent one: fewer may be chance.
ROWS_EACH = 5
# R² of a straight line, and of one between ranks, which a few huge numbers in both columns do not decide.
COPY = 0.999
SAME_ORDER = 0.99
# Different targets, and how many different numbers the column has for each: fewer may be chance, noise, or bins.
FEWEST_LEVELS = 50
# The share of rows that lie on a line, and how near to it in units of the target's deviation; of a class, the rows that
# have its number where others have a number that stands for a gap; and the fewest rows in which a row may be wrong.
ON_LINE = 0.85
NEAR_LINE = 1e-3
OF_CLASS = 0.8
FEWEST_FOR_ERRORS = 100
# The share of rows that may be wrong, besides one, and of those that have another target than the most frequent one.
WRONG = 1 / 400
WRONG_OF_OTHERS = 0.1
NUMBERS_PER_LEVEL = 0.9
# How rarely limits between the classes may be found by chance in one column: columns may be many.
BY_CHANCE = 1e-6
_MOST_NAMED = 3
_MOST_IGNORED = 20
_PAIRS = 999  # of rows, whose median slope is that of the line


def advice_on_leaks(read: ReadTable, y: np.ndarray, *, labels: bool) -> list[Advice]:
    """Advice to leave out the columns that alone determine the target; none if no other input remains.

    A date that merely grows with a target of numbers is not reported.
    """
    size = sample_size(len(read.columns))
    rows = (
        np.arange(len(y)) if len(y) <= size else np.sort(np.random.default_rng(0).choice(len(y), size, replace=False))
    )
    y = np.unique(y[rows], return_inverse=True)[1] if labels else y[rows]
    found = [column.name for column in read.columns if _leaks(column, some_rows(column.values, rows), y, labels)]
    if not 0 < len(found) < len(read.columns):
        return []
    names = ", ".join(map(repr, found[:_MOST_NAMED]))
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    problem = f"{names}{more} alone predicts the target. Unless you have it at prediction time, this is leakage"
    if len(found) > 1:
        problem = (
            f"Each of {names}{more} alone predicts the target. Unless you have them at prediction time, this is leakage"
        )
    return [Advice("leak", problem, {"ignore": tuple(found[:_MOST_IGNORED])})]


def advice_on_ids(read: ReadTable, y: np.ndarray, *, labels: bool) -> list[Advice]:
    """Advice to keep numbers that were left out as ids, where the target changes along them, as with time.

    Rows are divided into parts by the number. By the analysis of variance the parts must differ in their targets, or in
    the shares of the classes, by more than chance, and by enough to matter.
    """
    if not read.numbered:
        return []
    # Sums over rows: of ranks, or for each class of the 0 and 1 that tell it. Their means are taken off.
    code = np.unique(y, return_inverse=True)[1] if labels else np.zeros(len(y), dtype=np.intp)
    value = np.ones(len(y)) if labels else rankdata(y) - (len(y) + 1) / 2.0
    mean = np.bincount(code, value) / len(y)
    whole = float(value @ value - len(y) * mean @ mean)
    found = []
    for name, values in read.numbered.items():
        given = np.flatnonzero(~np.isnan(values))
        parts = np.array_split(given[np.argsort(values[given], kind="stable")], _PARTS)
        sums = [np.bincount(code[part], value[part], len(mean)) - len(part) * mean for part in parts]
        between = sum(float(own @ own) / len(part) for own, part in zip(sums, parts, strict=True) if len(part))
        share = between / whole if whole > 0.0 else 0.0
        by_chance = (_PARTS - 1) / max(1, len(y) - 1)
        if share > _ALONG_ID + 4.0 * by_chance:
            found.append(name)
    return [
        Advice(
            "id",
            f"The target changes along {name!r}, which is not used, since it looks like an id. If new rows have such a "
            "number before their target is known",
            {"keep": (name,)},
        )
        for name in found[:_MOST_NAMED]
    ]


_PARTS = 10  # of the rows, by an id
_ALONG_ID = 0.1  # the share of the target's variance between them that is told


def _leaks(column: ReadColumn, values: Values, y: np.ndarray, labels: bool) -> bool:
    """Whether a column alone determines the target, in rows that have a value of it."""
    given = ~is_missing(values)
    if isinstance(values, Words):
        for some in (np.ones_like(given), given):  # that a text is missing may determine the target, or mean nothing
            enough = 2 * some.sum() >= len(y) and some.sum() >= ROWS_EACH * len(np.unique(values.codes[some]))
            if enough and tells_target(values.codes[some], y[some]) and _enough(y[some]):
                return True
        return False
    if labels and (gaps_tell(~given, y) or filler_tells(values, y)):
        return True
    x, target = values[given], y[given]
    if 2 * len(x) < len(y) or not _enough(target):
        return False
    if labels:
        return is_code(x, target) or separates(x, target)
    coded = _are_few(y) and _are_few(target) and is_code(x, target)
    return is_copy(x, target) or (column.kind not in DATE_KINDS and (coded or has_order(x, target)))


def _enough(y: np.ndarray) -> bool:
    """Whether enough rows have another target than the most frequent one."""
    return len(y) >= FEWEST_ROWS and len(y) - np.unique(y, return_counts=True)[1].max() >= ROWS_EACH


def _are_few(y: np.ndarray) -> bool:
    """Whether there are enough rows for each target on average, not counting the most frequent one."""
    counts = np.unique(y, return_counts=True)[1]
    return len(y) - counts.max(initial=0) >= ROWS_EACH * (len(counts) - 1)


def is_copy(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether numbers are a linear function of the target, except for rounding, or in most rows exactly so."""
    return (_r2(x, y) > COPY and _r2(rankdata(x), rankdata(y)) > SAME_ORDER) or _mostly_on_a_line(x, y)


def has_order(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether numbers always rise with the target, or always fall, as its logarithm or its rank does.

    That is: no two rows have the one order in one column and the other order in the other column, but for a few wrong
    rows, at least `FEWEST_LEVELS` different targets occur, and at least `NUMBERS_PER_LEVEL` times as many different
    numbers. With fewer targets chance or a little noise could keep the order; fewer numbers are bins of the target,
    which leave something to learn. Noise of 0.2 % of the range mostly disturbs the order of 50 numbers; where there are
    more, less is enough.
    """
    for some in _with_and_without_filler(x):
        levels = len(np.unique(y[some]))
        enough = levels >= FEWEST_LEVELS and len(np.unique(x[some])) >= NUMBERS_PER_LEVEL * levels
        if enough and _in_order(x[some], y[some]):
            return True
    return False


def is_code(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether each class has a number of its own, in all of its rows but a few wrong ones.

    Or all rows that have another number than that of their class have one and the same, as zeros in gaps: then at least
    `OF_CLASS` of each class must have its number; where zero is the number of a class, most zeros are its own.
    """
    if len(y) == 0:
        return False
    numbers = _most_frequent(y, x)
    wrong = x != numbers
    classes = np.unique(y, return_inverse=True)[1]
    first = np.unique(classes, return_index=True)[1]
    if len(np.unique(numbers[first])) < len(first):
        return False
    if wrong.sum() <= _few_wrong(y):
        return True
    sizes = np.bincount(classes)
    shares = 1.0 - np.bincount(classes, wrong) / sizes
    if np.ptp(x[wrong]) > 0.0 or shares.min() < OF_CLASS or len(y) - sizes.max() < FEWEST_FOR_ERRORS // 2:
        return False
    filler = x == x[wrong][0]
    return bool(np.all(wrong[filler]) or wrong[filler].mean() <= 1.0 / 3.0)


def separates(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether limits on numbers divide the classes, all but a few wrong rows, and more surely than by chance.

    Each class must have one interval of its own. The intervals are those of the classes in the order of their medians:
    in the order of the numbers, classes must then never fall. Equal numbers lie in one interval, so rows of one number
    are taken from the last class to the first, of which only one class can stay.
    """
    classes, sizes = np.unique(y, return_inverse=True, return_counts=True)[1:]
    if len(sizes) < 2 or np.ptp(x) == 0.0:
        return False
    by_class = np.lexsort((x, classes))
    medians = x[by_class][np.cumsum(sizes) - (sizes + 1) // 2]
    place = np.argsort(np.argsort(medians, kind="stable"))[classes]
    wrong = _out_of_order(place[np.lexsort((-place, x))], _few_wrong(y))
    if wrong is None:
        return False
    n = len(y)
    orders = gammaln(n + 1) - gammaln(sizes + 1).sum() - gammaln(len(sizes) + 1)
    left_out = 2 * wrong * np.log(n) - gammaln(wrong + 1)  # which rows, and where each would have to be
    return bool(left_out - orders < np.log(BY_CHANCE))


def gaps_tell(missing: np.ndarray, y: np.ndarray) -> bool:
    """Whether a column is filled in for one class only, or for all but one, as the date of a death is.

    Most of the gaps, or most of the rows that are filled in, are then of that class.
    """
    if missing.all() or not missing.any():
        return False
    levels, classes = np.unique(y, return_inverse=True)
    for some in (missing, ~missing):
        label = np.bincount(classes[some], minlength=len(levels)).argmax()
        if _enough(classes == label) and is_code(missing.astype(np.float64), classes == label):
            return True
    return False


def filler_tells(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether the most frequent number, as zero or a date of 1900, stands for the gaps of one of two classes.

    Of several classes such a number tells only one, as the number of children tells who has none.
    """
    given = ~np.isnan(x)
    numbers, counts = np.unique(x[given], return_counts=True)
    if counts.max(initial=0) < FEWEST_ROWS or len(np.unique(y)) != 2:
        return False
    return gaps_tell(~given | (x == numbers[counts.argmax()]), y)


def tells_target(texts: np.ndarray, y: np.ndarray) -> bool:
    """Whether all rows of a text have the same target, but for a few wrong ones; texts are given by their numbers."""
    return bool(np.sum(y != _most_frequent(texts, y)) <= _few_wrong(y))


def _few_wrong(y: np.ndarray) -> int:
    """How many rows may be wrong: none of few rows, and of a rare class not so many that it could be ignored."""
    if len(y) < FEWEST_FOR_ERRORS:
        return 0
    others = len(y) - np.unique(y, return_counts=True)[1].max()
    return min(1 + int(WRONG * len(y)), int(WRONG_OF_OTHERS * others))


def _with_and_without_filler(x: np.ndarray) -> Iterator[np.ndarray]:
    """Which rows are looked at: all, and all but those of the most frequent number if it may stand for gaps."""
    yield np.ones(len(x), dtype=bool)
    numbers, counts = np.unique(x, return_counts=True)
    if 1 < counts.max(initial=0) <= (1.0 - ON_LINE) * len(x):
        yield x != numbers[counts.argmax()]


def _mostly_on_a_line(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether most rows lie on a straight line almost exactly, those of the most frequent target not counted.

    Of two random rows of a copy with a tenth of errors, both are right four times out of five: so the median slope of
    such pairs is that of the line, and the median of what is left its height.
    """
    levels, inverse, counts = np.unique(y, return_inverse=True, return_counts=True)
    some = inverse != counts.argmax() if counts.max(initial=0) > 1 else np.ones(len(y), dtype=bool)
    x, y = x[some], y[some]
    if len(y) < FEWEST_FOR_ERRORS // 2 or len(levels) < FEWEST_ROWS:
        return False
    x, y = x / (np.abs(x).max() or 1.0), y / np.abs(y).max()
    one, other = np.random.RandomState(0).randint(len(y), size=(2, _PAIRS))
    differ = y[one] != y[other]
    if not differ.any():
        return False
    slope = np.median((x[one] - x[other])[differ] / (y[one] - y[other])[differ])
    left = x - slope * y
    near = np.abs(left - np.median(left)) <= NEAR_LINE * np.abs(slope) * np.std(y)
    return bool(slope != 0.0 and near.mean() >= ON_LINE and len(np.unique(y[near])) >= FEWEST_ROWS)


def _in_order(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether no two rows differ in both columns in opposite directions, or none in the same, but for a few rows."""
    most = _few_wrong(y)
    return any(_out_of_order(some[np.lexsort((some, y))], most) is not None for some in (x, -x))


def _out_of_order(numbers: np.ndarray, most: int) -> int | None:
    """How many numbers must be taken out for the others never to fall; None if more than `most`.

    That is all but those of the longest sequence that never falls, which grows number by number as cards are laid in
    the game of patience.
    """
    ends: list[float] = []
    for place, number in enumerate(numbers.tolist()):
        where = bisect_right(ends, number)
        ends[where : where + 1] = [number]
        if place + 1 - len(ends) > most:
            return None
    return len(numbers) - len(ends)


def _r2(x: np.ndarray, y: np.ndarray) -> float:
    """R² of a straight line through numbers; 0 if all numbers of a column are equal."""
    x = x / (np.abs(x).max() or 1.0)  # squares of huge numbers would overflow
    y = y / (np.abs(y).max() or 1.0)
    x = x - x.mean()
    y = y - y.mean()
    squares = (x @ x) * (y @ y)
    return float((x @ y) ** 2 / squares) if squares > 0.0 else 0.0


def _most_frequent(groups: np.ndarray, values: np.ndarray) -> np.ndarray:
    """For each row, the most frequent value of its group."""
    group = np.unique(groups, return_inverse=True)[1]
    levels, value = np.unique(values, return_inverse=True)
    pairs, counts = np.unique(group * len(levels) + value, return_counts=True)
    order = np.argsort(counts, kind="stable")  # the last entry of a group wins
    found = np.empty(group.max() + 1, dtype=np.intp)
    found[pairs[order] // len(levels)] = pairs[order] % len(levels)
    return levels[found][group]
