"""Test error and fit time of OCReP and of the literature's methods, on the same splits and the same hidden layers.

`python benchmarks/literature.py` makes docs/literature.md. Each result is kept in a file of JSON lines as it comes,
so the run may be interrupted and started again; delete the lines of a method or a data set that has changed.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from joblib import Parallel, delayed
from sklearn.model_selection import train_test_split
from sklearn.utils import Bunch
from threadpoolctl import threadpool_limits

import ocrep
from ocrep import PinvClassifier, PinvRegressor
from ocrep.analysis.significance import corrected_paired_t_test
from ocrep.datasets import info, load

Factory = Callable[[str, int, int], Any]  # (task, n_hidden, seed) -> estimator
Key = tuple[str, int, int, str]  # data set, split, layer, method

ROOT = Path(__file__).resolve().parent.parent
TEST_SHARE = 0.3
TASK = {record.name: record.task for record in info()}
HIDDEN = {"abalone": 300, "machine_cpu": 100, "delta_ailerons": 300, "housing": 300}
HIDDEN |= {"iris": 100, "diabetes": 300, "wine": 100, "segment": 1000}
UNIT = {"delta_ailerons": 1e-4}


def ruled(gamma: str) -> Factory:
    """The network of the paper, of the data set's size, γ by a rule."""
    kinds = {"regression": PinvRegressor, "classification": PinvClassifier}
    paper = {"direct_link": False, "fit_intercept": False}
    return lambda task, n_hidden, seed: kinds[task](n_hidden, gamma=gamma, random_state=seed, **paper)


def published(name: str) -> Factory:
    """A method of the literature with its own defaults, its own number of hidden units among them."""
    kinds = {"regression": f"{name}Regressor", "classification": f"{name}Classifier"}
    return lambda task, n_hidden, seed: getattr(import_module("ocrep.literature"), kinds[task])(random_state=seed)


REFERENCE = "OCReP"
METHODS: dict[str, Factory] = {
    REFERENCE: ruled("ocrep"),
    "ocrep_cv": ruled("ocrep_cv"),
    "CV": ruled("kfold"),
    "GCV": ruled("gcv"),
    "ELM": published("ELM"),
    "RELM": published("RELM"),
    "TROP-ELM": published("TROPELM"),
    "pruned-ELM": published("PrunedELM"),
    "unregularized": ruled("none"),
}
REGRESSION_ONLY = {"TROP-ELM", "pruned-ELM"}


def applicable(methods: Iterable[str], name: str) -> list[str]:
    """Those methods that can do the data set's task."""
    return [m for m in methods if TASK[name] == "regression" or m not in REGRESSION_ONLY]


def measure(data: Bunch, split: int, layer: int, methods: list[str]) -> list[dict[str, Any]]:
    """Fit the methods on one split with one hidden layer; OCReP is always timed with them."""
    X, X_test, y, y_test = train_test_split(data.data, data.target, test_size=TEST_SHARE, random_state=split)
    # New layers for each split: if all splits shared a few layers, the test would count their luck as the method's.
    seed = 1000 * split + layer

    def fit(method: str) -> tuple[Any, float]:
        model = METHODS[method](data.task, HIDDEN[data.name], seed)
        start = time.process_time()  # on one thread; other processes of the machine do not count
        return model.fit(X, y), time.process_time() - start

    records = []
    with threadpool_limits(limits=1):
        fit(REFERENCE)  # a warm-up: the first fit of a process, and of a set, is slower than its repeats
        reference = fit(REFERENCE)
        for method in methods:
            model, seconds = reference if method == REFERENCE else fit(method)
            wrong = model.predict(X_test) - y_test
            error = np.sqrt(np.mean(wrong**2)) if data.task == "regression" else 100 * np.mean(wrong != 0)
            key = {"data": data.name, "split": split, "layer": layer, "method": method}
            records.append({**key, "error": float(error), "seconds": seconds, "reference_seconds": reference[1]})
    return records


def read(path: Path) -> tuple[dict[Key, dict[str, Any]], list[str]]:
    """Results by their key, and the lines that say when and where they were measured."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    if whole != text:  # the last line was cut off by an interruption
        path.write_text(whole, encoding="utf-8")
    records = [json.loads(line) for line in whole.splitlines()]
    results = {(r["data"], r["split"], r["layer"], r["method"]): r for r in records if "method" in r}
    return results, list(dict.fromkeys(r["measured"] for r in records if "measured" in r))


def run(args: argparse.Namespace) -> None:
    """Measure what is not yet in the file; one split and layer on all sets comes before the next."""
    (results, _), sets = read(args.results), load_all(args.only)
    cells = [
        (data, split, layer, todo)
        for layer, split in np.ndindex(args.layers, args.splits)
        for name, data in sets.items()
        if (todo := [m for m in applicable(args.methods, name) if (name, split, layer, m) not in results])
    ]
    if not cells:
        return
    work = Parallel(args.jobs, batch_size=1, return_as="generator_unordered")(delayed(measure)(*cell) for cell in cells)
    with args.results.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"measured": f"{date.today()}, {machine()}"}) + "\n")
        for done, records in enumerate(work, 1):
            file.write("".join(json.dumps(record) + "\n" for record in records))
            file.flush()
            print(f"{done}/{len(cells)}: {records[0]['data']}, split {records[0]['split']}", flush=True)


def load_all(names: Iterable[str]) -> dict[str, Bunch]:
    """The data sets that can be had."""
    sets = {}
    for name in names:
        try:
            sets[name] = load(name)
        except FileNotFoundError as exc:
            print(f"{name} is left out: {exc}")
    return sets


def machine() -> str:
    """What the times depend on, in one line."""
    libraries = ", ".join(f"{library.__name__} {library.__version__}" for library in (ocrep, np, scipy, sklearn))
    return f"{platform.machine()}, {platform.python_implementation()} {platform.python_version()}, {libraries}"


@dataclass(frozen=True, slots=True)
class Column:
    """One data set in the tables: each method's error per split, layers averaged, and its fit time over OCReP's."""

    name: str
    shape: tuple[int, int]
    errors: dict[str, np.ndarray]
    times: dict[str, float]

    def error(self, method: str) -> str:
        """Mean (standard deviation), bold for the best, marked where really different from OCReP."""
        values, unit, mark = self.errors[method], UNIT.get(self.name, 1), ""
        text = f"{values.mean() / unit:.4g}"
        if len(values) > 1:
            text += f" ({values.std(ddof=1) / unit:.2g})"
            test = corrected_paired_t_test(values, self.errors[REFERENCE], test_share=TEST_SHARE)
            if test.p_value < 0.05:
                mark = " ▲" if test.difference > 0 else " ▼"
        best = min(v.mean() for v in self.errors.values())
        return (f"**{text}**" if values.mean() == best else text) + mark


def column(results: dict[Key, dict[str, Any]], name: str, args: argparse.Namespace) -> Column | None:
    """From the largest block of splits × layers that all methods have completed; None where there is none."""
    methods = applicable(args.methods, name)
    has = [all((name, *cell, m) in results for m in methods) for cell in np.ndindex(args.splits, args.layers)]
    complete = np.logical_and.accumulate(np.reshape(has, (args.splits, args.layers)), axis=1)
    n_layers = int((complete.sum(axis=0) * np.arange(1, args.layers + 1)).argmax()) + 1
    splits = np.flatnonzero(complete[:, n_layers - 1]).tolist()
    if not splits:
        return None

    def block(method: str, value: Callable[[dict[str, Any]], float]) -> np.ndarray:
        return np.array([[value(results[name, s, k, method]) for k in range(n_layers)] for s in splits])

    errors = {m: block(m, lambda r: r["error"]).mean(axis=1) for m in methods}
    times = {m: float(np.median(block(m, lambda r: r["seconds"] / r["reference_seconds"]))) for m in methods}
    return Column(name, (len(splits), n_layers), errors, times)


def table(columns: list[Column], methods: list[str], cell: Callable[[Column, str], str]) -> str:
    """Markdown, methods down and data sets across."""
    rows = [["method", *(c.name for c in columns)], ["---"] * (len(columns) + 1)]
    rows += [[method, *(cell(c, method) if method in c.errors else "–" for c in columns)] for method in methods]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def page(args: argparse.Namespace) -> str:
    """The two tables and what they rest on."""
    results, measured = read(args.results)
    columns = [c for name in args.only if (c := column(results, name, args))]
    names = [c.name for c in columns]
    missing = ", ".join(name for name in args.only if name not in names)
    n_tests = sum(len(c.errors) - 1 for c in columns)
    units = "".join(f" (in {UNIT[name]:g} for {name})" for name in names if name in UNIT)
    basis = ", ".join(f"{c.name} {HIDDEN[c.name]} ({c.shape[0]} × {c.shape[1]})" for c in columns)
    return f"""# OCReP compared with the methods of the literature

Made by `python benchmarks/literature.py`: {args.splits} splits 70/30 of each data set, and {args.layers} new hidden
layers for each split, with the same splits and seeds for all methods. OCReP, ocrep_cv, CV (`kfold`), GCV and
unregularized are the network of the paper, `PinvRegressor(direct_link=False, fit_intercept=False)` or its classifier,
with the units given below. The others run as published, with their own defaults for the number of units and the
searched parameters. TROP-ELM and pruned ELM are for regression only.

Hidden units, and in brackets the splits × layers that all methods completed, which the tables use:
{basis}.
{f"Left out, because data or results are missing: {missing}." if missing else ""}
Measured {"; ".join(measured)}; one BLAS thread.

## Test error

Mean over splits (standard deviation over splits) after averaging over layers: RMSE{units} for regression, percent
misclassified for classification. The best is bold. ▲ is worse and ▼ better than OCReP by the corrected paired t-test
of Nadeau and Bengio (2003) over splits, two-sided, at 5 %: splits share rows, so an ordinary t-test
would report differences that are noise. If no method differed from OCReP, about
{0.05 * n_tests:.2g} of the {n_tests} tests here would be marked all the same.

{table(columns, args.methods, Column.error)}

## Fit time

Median ratio of the fit time to that of OCReP, timed on the same rows in the same run; searches are part of the fit.
What the rules cost with the default of 500 units, and with more rows, is in [speed](speed.md).

{table(columns, args.methods, lambda c, method: f"{c.times[method]:.3g}")}
"""


def main() -> None:
    """Measure what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for option, default in {"--splits": 20, "--layers": 5, "--jobs": 2}.items():
        parser.add_argument(option, type=int, default=default)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "literature.md")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "literature.jsonl")
    parser.add_argument("--only", nargs="+", choices=HIDDEN, default=list(HIDDEN), metavar="SET")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD")
    parser.add_argument("--render-only", action="store_true", help="make the page from the results there are")
    args = parser.parse_args()
    args.methods = [m for m in METHODS if m == REFERENCE or m in args.methods]
    if not args.render_only:
        run(args)
    args.out.write_text(page(args), encoding="utf-8")


if __name__ == "__main__":
    main()
