"""Error and time against the number of rows on three generated problems, for ours and for boosting.

    python benchmarks/sizes.py --most 20000         # results/sizes.csv; continues where it was interrupted
    python benchmarks/sizes.py --again --methods ocrep "ocrep CV"     # these alone, in place of what is there

Inputs and noise are uniform, inputs on [−1, 1]; 10,000 more rows test. Fewer rows are the first of more.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import fits
import numpy as np
from tabular_data import Split
from tabular_methods import OURS

RESULTS = fits.Results(fits.FOLDER / "sizes.csv", ["problem", "rows"])
METHODS = [*OURS, "HistGradientBoosting", "LightGBM", "CatBoost"]
SIZES = [1_000, 3_000, 8_000, 20_000, 40_000, 100_000]
SEED, N_TEST = 0, 10_000


@dataclass(frozen=True)
class Problem:
    """What is to be learned."""

    formula: str
    n_inputs: int
    target: Callable[[np.ndarray], np.ndarray]
    noise: float


def smooth(X: np.ndarray) -> np.ndarray:
    """A sine, a product and an exponential."""
    return np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2] + np.exp(X[:, 3])


def few(X: np.ndarray) -> np.ndarray:
    """Friedman's first function without its fifth input."""
    return 2.0 * np.sin(np.pi / 4.0 * (1.0 + X[:, 0]) * (1.0 + X[:, 1])) + X[:, 2] ** 2 + X[:, 3]


def jumps(X: np.ndarray) -> np.ndarray:
    """Steps along one input, in a box of two, and across a plane that no input is normal to."""
    box = (X[:, 1] > 0.2) & (X[:, 2] < 0.4)
    return np.floor(3.0 * X[:, 0]) + 2.0 * box + 2.0 * (X[:, 3] + X[:, 4] > 0.3) + X[:, 5]


PROBLEMS = {
    "smooth": Problem("sin 3x₀ + x₁x₂ + exp x₃", 10, smooth, 0.1),
    "4 of 30": Problem("2 sin(π/4 · (1 + x₀)(1 + x₁)) + x₂² + x₃", 30, few, 0.1),
    "jumps": Problem("⌊3x₀⌋ + 2[x₁ > 0.2, x₂ < 0.4] + 2[x₃ + x₄ > 0.3] + x₅", 10, jumps, 0.3),
}


def generate(problem: str, n_rows: int) -> Split:
    """Rows of a problem; fewer rows are the first of more, and the test rows are the same."""
    what = PROBLEMS[problem]
    train, test = (np.random.default_rng([SEED, part]) for part in (0, 1))

    def rows(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        table = rng.uniform(-1.0, 1.0, size=(n, what.n_inputs + 1))
        noise = what.noise * np.sqrt(3.0) * table[:, -1]
        return table[:, :-1], what.target(table) + noise

    return Split(*rows(train, n_rows), *rows(test, N_TEST))


def main() -> None:
    """Read the command."""
    parser = fits.arguments(argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]))
    parser.add_argument("--most", type=int, default=max(SIZES), help="rows; larger sizes are left out")
    args = parser.parse_args()
    jobs = [
        fits.Job({"problem": name, "rows": n}, "regression", SEED, partial(generate, name, n), METHODS)
        for n in SIZES
        for name in PROBLEMS
        if n <= args.most
    ]
    fits.run(jobs, RESULTS, args)


if __name__ == "__main__":
    main()
