"""Axes of the report's figures: from values to places on an axis, and ticks with their labels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ocrep.report.wording import minus, scientific

MOST_TICKS = 6
SMALL = 1e-300

Kind = Literal["linear", "log"]


@dataclass(frozen=True, slots=True)
class Tick:
    """A label, and its place in percent of the axis."""

    place: float
    label: str


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear or logarithmic axis from `low` to `high`; `percent` labels shares as percentages."""

    kind: Kind
    low: float
    high: float
    percent: bool = False

    @classmethod
    def around(cls, values: Iterable[float], kind: Kind = "linear", *, margin: float = 0.05) -> Scale:
        """The axis that holds all finite values (on a logarithmic axis the positive ones), and a margin."""
        known = [value for value in values if math.isfinite(value) and (kind == "linear" or value > SMALL)]
        low, high = (min(known), max(known)) if known else (1.0, 1.0)
        if kind == "linear":
            reach = margin * ((high - low) or abs(high) or 1.0)
            return cls(kind, low - reach, high + reach)
        factor = 10.0 ** (margin * max(math.log10(high / low), 4.0))
        return cls(kind, low / factor, high * factor)

    def place(self, value: float) -> float:
        """The place of a value in percent of the axis; NaN for what a logarithmic axis cannot show."""
        if self.kind == "linear":
            return 100.0 * (value - self.low) / (self.high - self.low)
        if not value > 0.0:
            return math.nan
        return 100.0 * math.log(value / self.low) / math.log(self.high / self.low)

    def ticks(self) -> list[Tick]:
        """About six ticks at round values."""
        labels = self._even() if self.kind == "linear" or self.high <= 8.0 * self.low else self._powers()
        return [Tick(self.place(value), label) for value, label in labels.items() if self.low <= value <= self.high]

    def _even(self) -> dict[float, str]:
        """Multiples of a round step."""
        step = round_step((self.high - self.low) / MOST_TICKS)
        values = [step * k for k in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]
        unit, sign = (100.0, "\u00a0%") if self.percent else (1.0, "")
        return {value: tick_label(unit * value, unit * step) + sign for value in values}

    def _powers(self) -> dict[float, str]:
        """Powers of ten; within two of them also 2 and 5 times a power."""
        low, high = math.log10(self.low), math.log10(self.high)
        step = max(1, math.ceil((high - low) / MOST_TICKS))
        powers = [10.0**k for k in range(math.floor(low), math.floor(high) + 1) if k % step == 0]
        if high - low > 2.0:
            return {power: scientific(power) for power in powers}
        return {digit * power: tick_label(digit * power, power) for power in powers for digit in (1, 2, 5)}


def round_step(least: float) -> float:
    """The least of 1, 2, 2.5, 5 and 10 times a power of ten that is not below `least`."""
    power = 10.0 ** math.floor(math.log10(max(least, SMALL)))
    return next(m * power for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * power >= least * (1.0 - 1e-9))


def tick_label(value: float, step: float) -> str:
    """A multiple of a round step with as many digits as that needs."""
    exponent = math.floor(math.log10(step) + 1e-9)
    decimals = max(0, -exponent + (0.2 < step / 10.0**exponent - 2.0 < 0.8))
    if decimals > 4 or (value and abs(value) >= 1e6):
        return scientific(value, 3 + max(0, math.ceil(math.log10((abs(value) or step) / step))))
    return minus(f"{value + 0.0:,.{decimals}f}")
