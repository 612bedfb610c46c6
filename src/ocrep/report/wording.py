"""Numbers as text for readers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_MOST_DIGITS = 6


def readable(value: float, digits: int = 3) -> str:
    """Format a number with three digits: 0.0123, 45.6, 1,230, or 1.23 × 10⁻⁵ if it is very small or large.

    Spaces are not breaking, so that a number stays on one line.
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞" if value > 0 else "−∞"
    if value == 0.0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    exponent = math.floor(math.log10(abs(rounded)))
    if not -3 <= exponent < 5:
        mantissa, power = f"{rounded:.{digits - 1}e}".split("e")
        return minus(f"{mantissa}\u00a0×\u00a010{_superscript(power)}")
    return minus(f"{rounded:,.{max(0, digits - 1 - exponent)}f}")


def values_text(numbers: Sequence[float]) -> list[str]:
    """Values of one column: whole numbers as they are, years without a comma, others with three digits.

    Values that differ in a later digit only, as longitudes do, have as many digits as tell them apart.
    """
    if not all(number == int(number) and abs(number) < 1e9 for number in numbers if math.isfinite(number)):
        for digits in range(3, _MOST_DIGITS + 1):
            texts = [readable(number, digits) for number in numbers]
            if len(set(texts)) == len(set(map(str, numbers))):  # as text, NaN equals itself
                break
        return texts
    comma = "" if are_years(numbers) else ","
    # Adding zero leaves no sign to −0.
    return [minus(f"{number + 0.0:{comma}.0f}") if math.isfinite(number) else readable(number) for number in numbers]


def are_years(numbers: Sequence[float]) -> bool:
    """Whether these may be years, which have no comma."""
    return all(1500.0 <= number <= 2200.0 and number == int(number) for number in numbers if math.isfinite(number))


def with_error(value: float, error: float) -> str:
    """A fall of a score with its standard error; what rounds to zero has no sign."""
    return minus(f"{value:.3f} ± {error:.3f}").replace("−0.000", "0.000")


def scientific(value: float, digits: int = 4) -> str:
    """Format a round number of at most `digits` digits in as few characters as it needs: 10⁶, 2.5·10⁻⁵."""
    if value == 0.0:
        return "0"
    mantissa, power = f"{value:.{digits - 1}e}".split("e")
    factor = f"{float(mantissa):.{digits}g}"
    return minus(("" if factor == "1" else f"{factor}·") + f"10{_superscript(power)}")


def percent(share: float) -> str:
    """Format a share in percent, small shares with two or three significant digits: 12.3 %, 1.20 %, 0.042 %."""
    value = 100.0 * share
    decimals = 1 if value >= 9.995 or value == 0.0 else min(6, 1 - math.floor(math.log10(value))) + (value >= 1.0)
    return f"{value:.{decimals}f}\u00a0%"


def short(text: str, length: int = 40) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def minus(text: str) -> str:
    """Write the minus sign of a number as it is printed."""
    return text.replace("-", "−")


def _superscript(power: str) -> str:
    return str(int(power)).translate(_SUPERSCRIPTS)


def finite(value: Any) -> Any:
    """Return the value with None in place of each number that is not finite."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
