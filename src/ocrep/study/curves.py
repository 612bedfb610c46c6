"""Errors along γ and along hidden sizes on one split: means and standard deviations over draws."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import geometric_mean

import numpy as np

from ocrep.study.protocol import REFERENCE_SPLIT, Variant
from ocrep.study.results import Results, Row


@dataclass(frozen=True, slots=True, eq=False)
class Along:
    """A number along γ or along hidden sizes: mean and standard deviation over draws at each place."""

    at: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    n_draws: int

    @property
    def best(self) -> int:
        """Index of the least mean."""
        return int(np.argmin(self.mean))


def along(rows: Iterable[tuple[float, float | None]]) -> Along | None:
    """Group (place, number) pairs by place; places where a draw has no finite number are left out."""
    grouped: dict[float, list[float]] = {}
    for place, number in rows:
        grouped.setdefault(place, []).append(np.nan if number is None else number)
    kept = sorted(place for place, numbers in grouped.items() if np.isfinite(numbers).all())
    if not kept:
        return None
    n_draws = max(len(grouped[place]) for place in kept)
    mean = np.array([np.mean(grouped[place]) for place in kept])
    std = np.array([np.std(grouped[place], ddof=1) if len(grouped[place]) > 1 else 0.0 for place in kept])
    return Along(np.array(kept, dtype=float), mean, std, n_draws)


def along_gamma(results: Results, data: str, variant: Variant, n_hidden: int) -> Along | None:
    """Return the test error at each γ of the paper's grid, on the reference split."""
    rows = [row for _, row in results.of("fixed", data, variant, n_hidden, "grid")]
    return along((row.gamma, row.error) for row in rows if row.gamma is not None)


def chosen_gamma(results: Results, data: str, variant: Variant, n_hidden: int, method: str) -> float | None:
    """Return the geometric mean over draws of a rule's γ on the reference split."""
    gammas = results.numbers("fixed", data, variant, n_hidden, method, "gamma")
    reference = [gamma for (split, _), gamma in gammas.items() if split == REFERENCE_SPLIT and gamma > 0.0]
    return geometric_mean(reference) if reference else None


def along_sizes(results: Results, data: str, variant: Variant, method: str, name: str = "error") -> Along | None:
    """Return the test error (or `cv_error`) at each hidden size, on the reference split."""
    rows = [row for (split, _), row in results.of("path", data, variant, 0, method) if split == REFERENCE_SPLIT]
    return along((row.n_hidden, getattr(row, name)) for row in rows)


def stability(results: Results, data: str) -> dict[str, Along] | None:
    """Return the change of predictions without one row, and the leave-one-out error, against γ/(σ₁σ_p)."""
    rows: list[Row] = [
        row for case, found in results.rows.items() if (case.kind, case.data) == ("stability", data) for _, row in found
    ]
    curves = {name: along((row.gamma or 0.0, getattr(row, name)) for row in rows) for name in ("error", "cv_error")}
    return {name: curve for name, curve in curves.items() if curve is not None} or None
