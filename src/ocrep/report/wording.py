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
        return f"{mantissa}\u00a0×\u00a010{str(int(power)).translate(_SUPERSCRIPTS)}".replace("-", "−")
    return f"{rounded:,.{max(0, digits - 1 - exponent)}f}".replace("-", "−")


def percent(share: float) -> str:
    """Format a share in percent: 12.3 %."""
    return f"{100.0 * share:.1f}\u00a0%"
