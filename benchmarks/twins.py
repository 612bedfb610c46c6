"""Hidden layers whose condition number is large, as a user can draw them: by random numbers of his own."""

from typing import Any

import numpy as np


class Twins(np.random.RandomState):
    """Random numbers with which every second unit is nearly the one before."""

    def __init__(self, seed: int, distance: float) -> None:
        super().__init__(seed)
        self.distance = distance

    def uniform(self, *args: Any, **options: Any) -> np.ndarray:
        units = super().uniform(*args, **options)
        units[1::2] = units[::2] + self.distance * units[1::2]
        return units
