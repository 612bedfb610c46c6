"""The one estimate of the noise variance that the rules use."""

from __future__ import annotations

from ocrep._linalg.spectrum import Spectrum
from ocrep.rules.base import NotApplicable


def noise_variance(spectrum: Spectrum, target: int = 0, *, besides: int = 1) -> float:
    """σ̂² = rss/(n − p − `besides`) of the unregularized fit (paper, eq. 6, divides by n − p − 1)."""
    left = spectrum.n - spectrum.rank - besides
    if left <= 0:
        raise NotApplicable(
            f"The noise variance cannot be estimated from {spectrum.n} observations and {spectrum.rank} directions: "
            f"more than {spectrum.rank + besides} observations are needed. Use fewer hidden units, or a rule that "
            "needs no variance, such as 'ocrep', 'gcv' or 'kfold'."
        )
    return float(spectrum.residual[target]) / left
