"""Output: tables and sentences, or one JSON object, on standard output; progress on standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ocrep._files.formats import visible

if TYPE_CHECKING:
    from ocrep.analysis.assessment import Advice, Assessment
    from ocrep.tables.problem import Problem, StageProgress

PIPED_WIDTH = 120
TWO_COLUMNS = 70  # on a narrower terminal the second column would be too narrow to read
MOST_CLASSES = 10  # more do not fit a terminal


def json_object(values: dict[str, Any]) -> None:
    """Print one object as strict JSON; NaN and infinity become null, arrays lists, and other objects texts."""
    print(json_text(values))


def json_text(values: dict[str, Any]) -> str:
    """One object as `json_object` prints it."""
    # Python writes NaN and Infinity, which are not JSON: reading its text back is where they can be replaced.
    finite = json.loads(json.dumps(values, default=_plain), parse_constant=lambda name: None)
    return visible(json.dumps(finite, ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    """An array, such as one γ for each target, as lists; any other object as its text."""
    return value.tolist() if hasattr(value, "tolist") and not isinstance(value, type) else str(value)


def lines(*sentences: str) -> None:
    """Print sentences, wrapped to the width of the terminal."""
    console = _console()
    for sentence in sentences:
        console.print(visible(sentence), soft_wrap=not sys.stdout.isatty())


def result(as_json: bool, values: dict[str, Any], *sentences: str) -> None:
    """Print one JSON object, or sentences that say the same."""
    if as_json:
        json_object(values)
    else:
        lines(*sentences)


def pairs(rows: Sequence[tuple[str, str]]) -> None:
    """Print names and values in two columns, or as lines on a narrow terminal."""
    if _console().width < TWO_COLUMNS:
        lines(*(f"{name}: {value}" for name, value in rows))
        return
    from rich.table import Table

    grid = Table(show_header=False, box=None, padding=(0, 3, 0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    _print_rows(grid, rows)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> None:
    """Print a table with a header; the columns in `left` are aligned left, the others right."""
    from rich import box
    from rich.table import Table

    grid = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for number, name in enumerate(header):
        grid.add_column(visible(name), justify="left" if number in left else "right", no_wrap=True)
    _print_rows(grid, rows)


@contextmanager
def progress_bar() -> Iterator[StageProgress]:
    """Yield a function that updates a progress bar on standard error; without a terminal it does nothing."""
    if not sys.stderr.isatty():
        yield lambda stage, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("Reading", total=None)
        yield lambda stage, done, total: bars.update(bar, description=stage, completed=done, total=total)


def _print_rows(grid: Any, rows: Sequence[Sequence[str]]) -> None:
    """Print a table without the spaces that rich adds at the end of lines; columns draw nearer where it is wide."""
    for row in rows:
        grid.add_row(*map(visible, row))
    console = _console()
    unlimited = console.options.update(width=10_000)
    if grid.show_header and console.measure(grid, options=unlimited).maximum > console.width:
        grid.padding = (0, 1, 0, 0)  # as little as possible, before rich cuts words
    # Captured, because rich fills each line with spaces up to the width of the column.
    with console.capture() as text:
        console.print(grid)
    print("\n".join(line.rstrip() for line in text.get().splitlines()))


def _console() -> Any:
    from rich.console import Console

    # In a pipe the width must not depend on the terminal. Names of columns may look like rich's markup and emoji codes.
    width = None if sys.stdout.isatty() else PIPED_WIDTH
    return Console(highlight=False, markup=False, emoji=False, width=width)


def counted(number: int, thing: str) -> str:
    """Return a number and a noun, in the plural unless the number is 1."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def features(n_features: int, n_hidden: int) -> str:
    """Return the number of hidden units, and of the inputs that a direct link adds."""
    units = counted(n_hidden, "hidden unit")
    n_inputs = n_features - n_hidden
    return units if not n_inputs else f"{n_features:,} features: {units} and {counted(n_inputs, 'input')}"


def about_problem(name: str, problem: Problem) -> list[str]:
    """Return sentences about the rows, the task, and the columns and rows left out."""
    kinds = ["date" if kind.endswith("date") else kind for kind in problem.kinds.values()]
    parts = [counted(kinds.count(kind), kind) for kind in ("number", "text", "boolean", "date") if kind in kinds]
    sentences = [f"{name}: {counted(problem.n_rows, 'row')}, {counted(len(kinds), 'input')} ({', '.join(parts)})."]
    because = f", because it {problem.task_reason} (--task changes it)" if problem.task_reason else ""
    sentences += [f"The target {problem.target!r} makes it a {problem.task}{because}."]
    left_out = ", ".join(f"{name} ({why})" for name, why in problem.left_out.items())
    if left_out:
        sentences += [f"Not used: {left_out}."]
    sentences += _dates(problem) + _filled(problem)
    sentences += [advice.sentence() for advice in problem.advice()]
    if problem.n_dropped:
        sentences += [f"Left out: {counted(problem.n_dropped, 'row')} without a target."]
    return sentences


def _dates(problem: Problem) -> list[str]:
    """Return a sentence about dates in which the day, or the month, comes first."""
    kinds = {name: kind for name, kind in problem.kinds.items() if kind.endswith(" date")}
    columns = [f"{name} ({kind.removesuffix(' date').replace('-', ' ')})" for name, kind in kinds.items()]
    return [f"Read as dates: {', '.join(columns)}."] if columns else []


def _filled(problem: Problem) -> list[str]:
    """Return a sentence about missing values and what stands for them, if there are any."""
    texts = [n for name, n in problem.gaps.items() if problem.kinds[name] == "text"]
    others = [n for name, n in problem.gaps.items() if problem.kinds[name] != "text"]
    parts = []
    if others:
        parts += [f"{counted(sum(others), 'gap')} in {counted(len(others), 'column')} with the median"]
    if texts:
        parts += [f"{counted(sum(texts), 'gap')} in {counted(len(texts), 'text column')} with a category for them"]
    return [f"Filled: {', '.join(parts)}."] if parts else []


_SCORES = {
    "r2": ("R²", "{:.3f}", 1),
    "rmse": ("RMSE", "{:.4g}", 1),
    "mae": ("MAE", "{:.4g}", 1),
    "error": ("misclassified", "{:.1f} %", 100),
    "balanced_accuracy": ("balanced accuracy", "{:.1f} %", 100),
    "roc_auc": ("ROC AUC", "{:.3f}", 1),
    "log_loss": ("log-loss", "{:.3f}", 1),
}
"""The scores by name: how they are called, how they are written, and what they are multiplied by."""


def score_table(assessment: Assessment) -> None:
    """Print the scores of the network, the baseline and simple models on held-out rows."""
    printed = list(assessment.models["network"])
    rows = [[model, *(_score(name, scores[name]) for name in printed)] for model, scores in assessment.models.items()]
    header = f"on {counted(assessment.n_test, 'held-out row')}"
    table((header, *(_SCORES[name][0] for name in printed)), rows)


def confusion_table(assessment: Assessment) -> None:
    """Print how many held-out rows of each class are predicted as which, unless classes are many."""
    labels = assessment.classes
    counts = assessment.confusion
    if labels is None or counts is None or len(labels) > MOST_CLASSES:
        return
    rows = [[str(label), *(f"{n:,}" for n in line)] for label, line in zip(labels, counts, strict=True)]
    table(("true \\ predicted", *map(str, labels)), rows)


def score_pairs(scores: dict[str, float], n_test: int | None) -> list[tuple[str, str]]:
    """Return the scores on held-out rows, and the error of the baseline, which knows only the training targets."""
    where = "held-out rows" if n_test is None else counted(n_test, "held-out row")
    if not scores:
        return [(f"error on {where}", "not measured")]
    measured = [
        f"{_SCORES[name][0]} {_score(name, value)}"
        for name, value in scores.items()
        if name in _SCORES and math.isfinite(value)
    ]
    name, baseline = ("rmse", "mean") if "rmse" in scores else ("error", "majority class")
    of_baseline = f"{_SCORES[name][0]} {_score(name, scores[f'baseline_{name}'])}"
    return [(f"on {where}", ", ".join(measured)), (f"baseline ({baseline})", of_baseline)]


def _score(name: str, value: float) -> str:
    _, form, factor = _SCORES[name]
    return form.format(factor * value).replace("-0.000", "0.000") if math.isfinite(value) else "–"


def notes(advice: Iterable[Advice]) -> list[str]:
    """Return what seems wrong with the model, and which options may help; advice on columns is in `about_problem`."""
    return [f"Note: {one.sentence()}" for one in advice if one.code not in ("near_numbers", "near_dates")]
