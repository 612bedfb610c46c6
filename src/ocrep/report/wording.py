"""Numbers as text for readers."""

from __future__ import annotations

import math

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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


def minus(text: str) -> str:
    """Write the minus sign of a number as it is printed."""
    return text.replace("-", "−")


def _superscript(power: str) -> str:
    return str(int(power)).translate(_SUPERSCRIPTS)
