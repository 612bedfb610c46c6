"""Which inputs each hidden unit sees."""

from __future__ import annotations

import numpy as np


def seen_inputs(seed: int, n_hidden: int, units_see: int, usable: np.ndarray) -> np.ndarray:
    """Units × inputs: True for `units_see` random inputs of each unit among the usable ones, or for all of these."""
    if units_see >= np.count_nonzero(usable):
        return np.broadcast_to(usable, (n_hidden, len(usable)))
    # One row per unit, so that a unit's inputs do not depend on how many units there are.
    order = np.random.default_rng([seed, 0]).random((n_hidden, len(usable)))
    order[:, ~usable] = np.inf
    seen = np.zeros(order.shape, dtype=bool)
    np.put_along_axis(seen, np.argpartition(order, units_see - 1, axis=1)[:, :units_see], True, axis=1)
    return seen
