"""Output: tables and sentences, or one JSON object, on standard output; progress on standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ocrep.tables.training import StageProgress

PIPED_WIDTH = 120
TWO_COLUMNS = 70


def print_json(result: dict[str, Any]) -> None:
    """Print one object as strict JSON; NaN and infinity become null."""
    print(json.dumps(_finite(result), ensure_ascii=False, allow_nan=False))


def print_lines(*lines: str) -> None:
    """Print sentences, wrapped to the width of the terminal."""
    console = _console()
    for line in lines:
        console.print(line, markup=False, soft_wrap=not sys.stdout.isatty())


def print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Print names and values in two columns, or as lines on a narrow terminal."""
    if _console().width < TWO_COLUMNS:
        print_lines(*(f"{name}: {value}" for name, value in pairs))
        return
    from rich.table import Table

    table = Table(show_header=False, box=None, padding=(0, 3, 0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(_plain(name), _plain(value))
    _print_rows(table)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> None:
    """Print a table with a header; the columns in `left` are aligned left, the others right."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for number, name in enumerate(header):
        table.add_column(name, justify="left" if number in left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(_plain, row))
    _print_rows(table)


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


def _print_rows(table: Any) -> None:
    """Print without the spaces that rich adds at the end of lines."""
    console = _console()
    with console.capture() as text:
        console.print(table)
    print("\n".join(line.rstrip() for line in text.get().splitlines()))


def _console() -> Any:
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)


def _plain(text: str) -> Any:
    from rich.text import Text

    return Text(text)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
