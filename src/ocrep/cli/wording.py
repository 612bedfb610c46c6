"""Sentences about a problem and its scores."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ocrep.tables import Problem


def counted(number: int, thing: str) -> str:
    """Return a number and a noun, in the plural unless the number is 1."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def about_problem(data: Path, problem: Problem) -> list[str]:
    """Return sentences about the rows, the task, and the columns and rows left out."""
    kinds = list(problem.kinds.values())
    parts = [counted(kinds.count(kind), kind) for kind in ("number", "text", "boolean") if kind in kinds]
    lines = [f"{data.name}: {counted(len(problem.y), 'row')}, {counted(len(kinds), 'input')} ({', '.join(parts)})."]
    because = f", because it {problem.task_reason} (--task changes it)" if problem.task_reason else ""
    lines += [f"The target {problem.target!r} makes it a {problem.task}{because}."]
    if problem.left_out:
        lines += [f"Not used as inputs: {', '.join(f'{name} ({why})' for name, why in problem.left_out.items())}."]
    if problem.near_numbers:
        named = ", ".join(f"{name} ({where})" for name, where in problem.near_numbers.items())
        lines += [f"Text that mostly looks like numbers: {named}. Write 1234.5, and leave missing cells empty."]
    if problem.n_dropped:
        lines += [f"Left out: {counted(problem.n_dropped, 'row')} without a target."]
    return lines


def score_pairs(scores: dict[str, float], n_test: int | None) -> list[tuple[str, str]]:
    """Return the held-out error and that of the baseline, which knows only the training targets."""
    where = "error on held-out rows" if n_test is None else f"error on {counted(n_test, 'held-out row')}"
    if not scores:
        return [(where, "not measured")] if n_test is None else []
    if "rmse" in scores:
        r2 = scores["r2"]  # not a number where all held-out targets are equal
        return [
            (where, f"RMSE {scores['rmse']:.4g}" + (f", R² {r2:.3f}" if math.isfinite(r2) else "")),
            ("always the mean", f"RMSE {scores['baseline_rmse']:.4g}"),
        ]
    return [
        (where, f"{100 * scores['error']:.1f} % misclassified"),
        ("always the top class", f"{100 * scores['baseline_error']:.1f} % misclassified"),
    ]
