"""Our networks beside other models on tables: test error, and fit and predict time over those of CatBoost.

    python benchmarks/tabular_data.py               # once: collect the data sets in benchmarks/tabular.npz
    python benchmarks/tabular.py run --jobs 8       # one core per job; continues where it was interrupted
    python benchmarks/tabular.py render             # docs/benchmark.md and its picture

    python benchmarks/tabular.py run --again --methods ocrep "ocrep CV"     # these alone, in place of what is there

A run needs NumPy, SciPy and scikit-learn; models of other libraries take part where these are installed
(`pip install lightgbm xgboost catboost xrfm pytabkit`). Results go to results/tabular.csv.
"""

import argparse
from functools import partial
from pathlib import Path

import fits
from tabular_data import NAMES, SPLITS, load
from tabular_methods import METHODS

RESULTS = fits.Results(fits.FOLDER / "tabular.csv", ["task", "set", "split"])


def jobs(only: list[str], splits: list[int]) -> list[fits.Job]:
    """One for each split of each set, the longest first, so that the last jobs are short."""
    return [
        fits.Job({"task": task, "set": name, "split": seed}, task, seed, partial(load, name, seed), list(METHODS[task]))
        for task in ("classification", "regression")
        for name in NAMES[task]
        for seed in splits
        if not only or name in only
    ]


def main() -> None:
    """Read the command."""
    parser = fits.arguments(argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]))
    parser.add_argument("command", choices=["run", "render"])
    parser.add_argument("--only", nargs="+", default=[], metavar="SET")
    parser.add_argument("--splits", nargs="+", type=int, default=list(SPLITS), choices=SPLITS)
    parser.add_argument("--results", type=Path, default=RESULTS.path)
    args = parser.parse_args()
    results = fits.Results(args.results, RESULTS.key)
    if args.command == "run":
        fits.run(jobs(args.only, args.splits), results, args)
    else:
        import tabular_page

        tabular_page.write(results)


if __name__ == "__main__":
    main()
