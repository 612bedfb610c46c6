"""What the rows of a study are, and the numbers of one case over splits and draws."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ocrep.study.protocol import REGRESSION, Variant

Place = tuple[int, int]  # (split, draw)


class Row(NamedTuple):
    """One result of an experiment; None where a number has no meaning."""

    n_hidden: int
    method: str
    targets: str
    error: float | None = None  # RMSE, or percent misclassified, on the test rows
    gamma: float | None = None
    condition: float | None = None  # μ(H^reg)
    cv_error: float | None = None

    def packed(self) -> list[Any]:
        """Return plain values, numbers with the digits of float32."""
        return [v if v is None or isinstance(v, int | str) else float(f"{v:.7g}") for v in self]

    def in_single_precision(self) -> Row:
        """Return the row with the numbers that a float32 holds, as published files have them."""
        numbers = (None if number is None else float(np.float32(number)) for number in self[3:])
        return Row(self.n_hidden, self.method, self.targets, *numbers)


NUMBERS = ("error", "gamma", "condition", "cv_error")


class Case(NamedTuple):
    """What is the same on all splits and draws; `n_hidden` is 0 where the method or the path chooses it."""

    kind: str
    data: str
    biases: str
    targets: str
    n_hidden: int
    method: str


SIZE_VARIES = ("path", "chosen", "literature")


@dataclass(slots=True)
class Results:
    """All rows of a study by case."""

    rows: dict[Case, list[tuple[Place, Row]]] = field(default_factory=dict)

    def add(self, key: str, rows: Iterable[Row]) -> None:
        """Add the rows of the job with this key."""
        kind, data, split, draw, biases, *_ = key.split("/")
        for row in rows:
            self.put(kind, data, biases, (int(split), int(draw)), row.in_single_precision())

    def put(self, kind: str, data: str, biases: str, place: Place, row: Row) -> None:
        """Add one row."""
        case = Case(kind, data, biases, row.targets, 0 if kind in SIZE_VARIES else row.n_hidden, row.method)
        self.rows.setdefault(case, []).append((place, row))

    def of(self, kind: str, data: str, variant: Variant, n_hidden: int, method: str) -> list[tuple[Place, Row]]:
        """Return the rows of one case; an empty list if it was not run."""
        scaled = kind in ("fixed", "path", "chosen") and data in REGRESSION
        case = Case(kind, data, variant.biases, variant.targets if scaled else "raw", n_hidden, method)
        return self.rows.get(case, [])

    def numbers(
        self, kind: str, data: str, variant: Variant, n_hidden: int, method: str, name: str = "error"
    ) -> dict[Place, float]:
        """Return one number per place; rows without it are left out."""
        rows = self.of(kind, data, variant, n_hidden, method)
        return {place: value for place, row in rows if (value := getattr(row, name)) is not None}
