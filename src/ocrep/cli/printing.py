"""Output: tables and sentences, or one JSON object, on standard output; progress on standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from ocrep._files.formats import visible

if TYPE_CHECKING:
    from ocrep.analysis.assessment import Advice, Assessment
    from ocrep.report.examination import Ranking
    from ocrep.tables.prediction import Predicted
    from ocrep.tables.rows import Progress
    from ocrep.tables.training import Problem, Trained

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
def progress_bar(*, quiet: bool = False) -> Iterator[Progress]:
    """Yield a function that updates a progress bar on standard error; without a terminal, a line every ten seconds."""
    if quiet:
        yield lambda stage, done, total: None
        return
    if not sys.stderr.isatty():
        with _lines_now_and_then() as report:
            yield report
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("Reading", total=None)
        yield lambda stage, done, total: bars.update(bar, description=stage, completed=done, total=total)


SECONDS = 10.0
"""Between two lines of progress where there is no terminal."""


@contextmanager
def _lines_now_and_then() -> Iterator[Progress]:
    start = monotonic()
    now = {"stage": "Starting"}
    done = Event()

    def tell() -> None:
        while not done.wait(SECONDS):
            to_stderr(f"ocrep: {now['stage'].lower()}, {monotonic() - start:.0f} s so far (--quiet omits this)")

    teller = Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield lambda stage, so_far, total: now.update(stage=stage)
    finally:
        done.set()
        teller.join()


def _print_rows(grid: Any, rows: Sequence[Sequence[str]]) -> None:
    """Print a table without the spaces that rich adds at the end of lines; columns draw nearer where it is wide."""
    for row in rows:
        grid.add_row(*(visible(" ".join(cell.splitlines())) for cell in row))  # a name must not begin a line of its own
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


def about_problem(name: str, problem: Problem, trained: Trained) -> list[str]:
    """Return sentences about the rows, the task, and the columns and rows left out."""
    read = trained.read
    sentences = [f"{name}: {counted(trained.n_rows, 'row')}, {counted(len(read.columns), 'column')} used."]
    because = f" (the target holds {problem.reason}; --task changes it)" if problem.reason else ""
    sentences += [f"Task: {problem.task} of {problem.target!r}{because}."]
    left_out = ", ".join(f"{name} ({why})" for name, why in read.left_out.items() if why != "ignored")
    if left_out:
        ids = any("is an id" in why for why in read.left_out.values())
        sentences += [f"Not used: {left_out}{'; --keep COLUMN brings an id back' if ids else ''}."]
    sentences += [one.sentence() for one in problem.advice]
    if trained.n_dropped:
        sentences += [f"Left out: {counted(trained.n_dropped, 'row')} without a target."]
    return sentences


_CODES = {
    "Numbers": "as it is",
    "OneHot": "0/1 columns",
    "TargetCodes": "mean target and frequency",
    "Letters": "letters",
}
MOST_COLUMNS = 20


def columns(model: Any) -> None:
    """Print what was done with each column, unless they are many."""
    coded = model.coder_.columns_
    rows = []
    for column in coded[:MOST_COLUMNS]:
        how = ", ".join(map(_coding, column.parts))
        kind = "category" if how == _CODES["OneHot"] else column.kind
        width = sum(len(part.names) for part in column.parts)
        rows.append([column.name, kind, how, str(width), f"{model.gaps_.get(column.name, 0):,}"])
    if len(coded) > MOST_COLUMNS:
        rows.append([f"and {len(coded) - MOST_COLUMNS} more", "", "", "", ""])
    table(("column", "kind", "coded by", "inputs", "gaps"), rows, left=(0, 1, 2))


def _coding(part: Any) -> str:
    """What a part of the coder computes of a column, in words."""
    if type(part).__name__ == "Dates":
        return ", ".join(name for name in part.parts if not name.endswith(("_sin", "_cos")))
    return _CODES[type(part).__name__]


def about_network(network: Any) -> list[tuple[str, str]]:
    """Return names and values of a fitted network, or of the networks of a stack."""
    if not hasattr(network, "summary"):
        return [("model", str(network))]
    if hasattr(network, "weights_"):
        sections = network.summary().sections
        members = "; ".join(f"{name} ({weight})" for name, weight in sections["members"].items())
        return [("model", f"a stack of {sections['network']['Networks']} networks: {members}")]
    if not network.gamma_:
        gamma = "0 (not regularized)"
    elif isinstance(network.gamma, int | float):
        gamma = f"{network.gamma_:.3g} (given)"
    else:
        rule = network.choice_.rule if isinstance(network.gamma, str) else network.gamma
        gamma = f"{network.gamma_:.3g} ({rule})"
    before, after = network.condition_number_, network.regularized_condition_number_
    n_features = network.output_coef_.shape[-1]
    return [
        ("γ", gamma),
        ("condition number", f"{before:.3g} before, {after:.3g} with γ"),
        ("rank", f"{network.rank_} of {features(n_features, network.n_hidden_)}"),
    ]


def about_unlike(found: Predicted) -> str:
    """Return a sentence on rows that training had no like of; empty if there are none."""
    if not found.n_unlike:
        return ""
    columns = ", ".join(f"{name} ({n:,})" for name, n in sorted(found.unlike.items(), key=lambda pair: -pair[1])[:5])
    return (
        f"Note: {counted(found.n_unlike, 'row')} of {found.n_rows:,} hold texts that training did not have, or numbers "
        f"far outside its range: {columns}. Trust their predictions less."
    )


def to_stderr(sentence: str) -> None:
    """Print a sentence on standard error."""
    print(visible(sentence), file=sys.stderr)


_SCORES = {
    "r2": ("R²", "{:.3f}", 1),
    "rmse": ("RMSE", "", 1),
    "mae": ("MAE", "", 1),
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


def scores(values: dict[str, float]) -> str:
    """Return scores in one line."""
    known = {name: value for name, value in values.items() if name in _SCORES and value is not None}
    return ", ".join(f"{_SCORES[name][0]} {_score(name, value)}" for name, value in known.items())


def _score(name: str, value: float) -> str:
    _, form, factor = _SCORES[name]
    if not math.isfinite(value):
        return "–"
    return number(value) if name in ("rmse", "mae") else form.format(factor * value).replace("-0.000", "0.000")


def number(value: float) -> str:
    """Write an error with four digits, and a large one in full: 0.01234, 28,870."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def first_columns(ranking: Ranking, most: int = 5) -> str:
    """Return the most important columns with how much the score falls when each is shuffled."""
    from ocrep.report.wording import with_error

    lines = ranking.lines()[:most]
    told = ", ".join(f"{one['column']} ({with_error(one['importance'], one['std_error'])})" for one in lines)
    return f"{told}: so much {ranking.in_words()} falls when each is shuffled."


def note_on_folds(assessment: dict[str, Any] | None) -> list[str]:
    """Return a sentence if a model is no better than a constant on the folds that chose it."""
    if assessment is None:
        return []
    own, constant = assessment["models"].values()
    measure = next(iter(own))
    worse = own[measure] <= constant[measure] if measure == "r2" else own[measure] >= constant[measure]
    return ["Note: on held-out folds the model is no better than a constant prediction."] if worse else []


def notes(advice: Iterable[Advice]) -> list[str]:
    """Return what seems wrong with the model, and which options may help; advice on columns is in `about_problem`."""
    return [f"Note: {one.sentence()}" for one in advice if one.code not in ("near_numbers", "near_dates")]
