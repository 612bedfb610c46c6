"""Write the figures of README.md and of the pages of docs/ from benchmarks/results, so that none is typed by hand.

    python tools/figures.py

A figure stands between two comments, and what is between them is written anew:

    a fit takes <!-- figure: price_ocrep_cv -->1.6 to 2.0<!-- /figure --> times as long
"""

import csv
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

import sizes
import tables
import tabular
import tabular_page as benchmark

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "tools" / "rules_page.md",
    *(
        ROOT / "docs" / f"{name}.md"
        for name in ("index", "why", "rules", "choosing", "speed", "cross-validation", "your-table")
    ),
]
_MARKED = re.compile(r"(<!-- figure: (\w+) -->)(\n?).*?\n?(<!-- /figure -->)", flags=re.DOTALL)
_AT_START = re.compile(r"^<!-- figure: \w+ -->.", flags=re.MULTILINE)
OURS = {"Regressor": "regression", "Classifier": "classification"}
LISTED = {
    "ocrep CV": {task: f"`Pinv{kind}CV()`" for kind, task in OURS.items()},
    "ocrep CV quick": {task: f'`Pinv{kind}CV("quick")`' for kind, task in OURS.items()},
    **{
        name: dict.fromkeys(OURS.values(), name)
        for name in ("CatBoost", "RealMLP", "HistGradientBoosting", "LightGBM", "RandomForest", "xRFM", "XGBoost")
    },
}
"""Methods of the first page, and what they are called there in each task."""
BOOSTING = ("LightGBM", "CatBoost")
MANY, MILLION = 20_000, 1_000_000  # rows


def small_tables() -> str:
    """The tables of the first page: error, rank and time on small tables, one for each task."""
    shown = []
    for of_task in benchmark.tasks_of(tabular.RESULTS):
        numbers = of_task.name == "regression"
        rows = []
        for method, name in LISTED.items():
            error = of_task.column(of_task.errors, method).mean()
            loss = of_task.column(of_task.log_losses, method).mean()
            cells = [f"{error:.3f}"] if numbers else [f"{error:.1f}", f"{loss:.3f}"]
            time = benchmark.ratio_text(round(float(np.median(of_task.column(of_task.fit, method))), 2))
            rows.append([name[of_task.name], *cells, f"{rank_beside_peers(of_task, method):.1f}", time])
        rows.sort(key=lambda row: float(row[1]))
        for column in range(1, len(rows[0]) - 1):  # the best is bold; times are not a contest that we would win
            best = min(rows, key=lambda row: float(row[column]))[column]
            for row in rows:
                row[column] = f"**{best}**" if row[column] == best else row[column]
        head = ["RMSE/sd"] if numbers else ["error %", "log-loss"]
        shown.append(benchmark.markdown([[of_task.name, *head, "rank", "fit time"], *rows]))
    return "\n\n".join(shown)


def peers_of(of_task: benchmark.Task) -> list[str]:
    """The ranked methods that are not ours."""
    return [m for m in of_task.methods if m not in benchmark.OURS and not m.endswith(benchmark.UNSCALED)]


def rank_beside_peers(of_task: benchmark.Task, method: str) -> float:
    """The mean rank when one of ours takes part: this one, or the default stack."""
    ours = method if method in benchmark.OURS else "ocrep CV"
    among = [*peers_of(of_task), ours]
    return float(of_task.ranks(among)[among.index(method)])


def n_ranked() -> str:
    """How many methods are ranked."""
    return str(len(peers_of(benchmark.tasks_of(tabular.RESULTS)[0])) + 1)


def n_sets() -> str:
    """How many small tables there are."""
    return str(sum(len(of_task.sets) for of_task in benchmark.tasks_of(tabular.RESULTS)))


def critical_differences() -> str:
    """What ranks must differ by."""
    values = [
        f"{benchmark.critical_difference(int(n_ranked()), len(of_task.sets)):.1f} ({of_task.name})"
        for of_task in benchmark.tasks_of(tabular.RESULTS)
    ]
    return " and ".join(values)


def catboost_better() -> str:
    """The small tables on which CatBoost's error is smaller than ours."""
    shown = []
    for of_task in benchmark.tasks_of(tabular.RESULTS):
        theirs, ours = (of_task.column(of_task.errors, m) for m in ("CatBoost", "ocrep CV"))
        # Equal shares of wrong labels are rounded to six digits before their mean is taken.
        names = [name for name, a, b in zip(of_task.sets, theirs, ours, strict=True) if a < b * (1.0 - 1e-5)]
        shown.append(f"{', '.join(names[:-1])} and {names[-1]} ({of_task.name})")
    return ", and on ".join(shown)


def real_tables() -> str:
    """Errors and fit times on real tables."""
    rows = [["", *tables.METHODS]]
    for one in benchmark.real_tables(tables.RESULTS.read()):
        least = min(mean["error"] for mean in one.means.values())
        cells = []
        for method in tables.METHODS:
            error = one.means[method]["error"]
            shown = f"{error:.3f}" if one.task == "regression" else f"{100 * error:.1f} %"
            shown = f"**{shown}**" if error == least else shown
            cells.append(f"{shown}, {benchmark.ratio_text(one.fit[method])}")
        rows.append([one.name, *cells])
    return benchmark.markdown(rows)


def interval_coverage() -> str:
    """How many targets lie in 90 % intervals on real tables."""
    rows = [["", *tables.METHODS]]
    for one in benchmark.real_tables(tables.RESULTS.read()):
        if one.task == "regression":
            shares = [100 * one.means[method]["coverage"] for method in tables.METHODS]
            rows.append([one.name, *(f"{share:.0f} %" for share in shares)])
    return benchmark.markdown(rows)


def between(values: Iterable[float]) -> str:
    """The least and the largest value, two digits each."""
    values = list(values)
    low, high = benchmark.ratio_text(min(values)), benchmark.ratio_text(max(values))
    return low if low == high else f"{low} to {high}"


def prices() -> dict[tuple[str, str], float]:
    """Plain fits by set and fit, from prices.csv."""
    with (ROOT / "benchmarks" / "results" / "prices.csv").open(encoding="utf-8", newline="") as file:
        return {(row["set"], row["fit"]): float(row["plain_fits"]) for row in csv.DictReader(file)}


def price(fit: str) -> str:
    """The price of a fit on all sets."""
    return between(value for (_, what), value in prices().items() if what == fit)


def prices_table() -> str:
    """Plain fits, by set."""
    found = prices()
    sets = list(dict.fromkeys(name for name, _ in found))
    shown = {
        "`gamma=1.0`, a plain fit": None,
        '`gamma="ocrep"`': "ocrep",
        '`gamma="gcv"`': "gcv",
        '`gamma="loo"`': "loo",
        '`gamma="kfold"`': "kfold",
        '`gamma="ocrep_cv"`, the default': "ocrep_cv",
        '`PinvRegressorCV("quick")`': "stack quick",
        "`PinvRegressorCV()`": "stack default",
    }
    rows = [
        [name, *(benchmark.ratio_text(found[one, what]) if what else "1" for one in sets)]
        for name, what in shown.items()
    ]
    return benchmark.markdown([["", *(f"{name}, 4,177 rows" if name == "abalone" else name for name in sets)], *rows])


def sizes_by_key() -> dict[tuple[str, int, str], dict]:
    """Errors and times on generated problems."""
    return {(r["problem"], int(r["rows"]), r["method"]): r for r in sizes.RESULTS.read() if r["error"] is not None}


def times_slower(peer: str) -> str:
    """Fit time of the default stack over that of a peer, at many rows, on all problems.

    Both were measured in runs of their own, so each is divided by the reference of its process, as on the other pages.
    """
    found = sizes_by_key()

    def relative(name: str, method: str) -> float:
        record = found[name, MANY, method]
        return record["fit_seconds"] / record["reference_fit_seconds"]

    return between(relative(name, "ocrep CV") / relative(name, peer) for name in sizes.PROBLEMS)


def catboost_better_at_jumps() -> str:
    """From how many to how many rows CatBoost's error is smaller than ours where the target jumps."""
    found = sizes_by_key()
    counts = sorted(count for name, count, method in found if (name, method) == ("jumps", "CatBoost"))
    better = [n for n in counts if found["jumps", n, "CatBoost"]["error"] < found["jumps", n, "ocrep CV"]["error"]]
    if better != counts:
        raise ValueError(f"CatBoost is better at jumps for {better} rows only: change what README.md says of it.")
    return f"{counts[0]:,} to {counts[-1]:,}"


def many_rows() -> str:
    """Errors and fit times over CatBoost's at many rows."""
    found = sizes_by_key()
    methods = ("ocrep CV", "ocrep CV quick", "HistGradientBoosting", *BOOSTING)
    rows = [["", *sizes.PROBLEMS]]
    for method in methods:
        records = [found[name, MANY, method] for name in sizes.PROBLEMS]
        times = [r["fit_seconds"] / r["reference_fit_seconds"] for r in records]
        rows.append(
            [method, *(f"{r['error']:.3f}, {benchmark.ratio_text(t)}" for r, t in zip(records, times, strict=True))]
        )
    return benchmark.markdown(rows)


def seconds_of_million() -> dict[tuple[str, str], tuple[float, float]]:
    """Error and seconds to fit 1,000,000 rows, by problem and method, from many_rows.csv."""
    with benchmark.many_rows.OUT.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["rows"]) == MILLION]
    return {(row["problem"], row["method"]): (float(row["error"]), float(row["fit_seconds"])) for row in rows}


def million_rows() -> str:
    """Errors and seconds on a million rows."""
    found = seconds_of_million()
    rows = [["", *sizes.PROBLEMS]]
    for method in dict.fromkeys(method for _, method in found):
        cells = [found[name, method] for name in sizes.PROBLEMS]
        rows.append([method, *(f"{error:.3f}, {benchmark.ratio_text(seconds)} s" for error, seconds in cells)])
    return benchmark.markdown(rows)


def recorded(pattern: str) -> str:
    """The number that a pattern finds in benchmarks/RESULTS.md, which keeps what `make bench` printed."""
    found = re.search(pattern, (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(f"benchmarks/RESULTS.md has nothing like {pattern!r}.")
    return found[1]


FIGURES: dict[str, Callable[[], str]] = {
    "small_tables": small_tables,
    "n_ranked": n_ranked,
    "n_sets": n_sets,
    "critical_differences": critical_differences,
    "catboost_better": catboost_better,
    "real_tables": real_tables,
    "interval_coverage": interval_coverage,
    "prices": prices_table,
    "price_ocrep_cv": lambda: price("ocrep_cv"),
    "price_kfold": lambda: price("kfold"),
    "price_loo": lambda: price("loo"),
    "price_quick": lambda: price("stack quick"),
    "price_stack": lambda: price("stack default"),
    "price_stack_abalone": lambda: benchmark.ratio_text(prices()["abalone", "stack default"]),
    "price_stack_many": lambda: benchmark.ratio_text(prices()["20,000 rows", "stack default"]),
    "slower_than_lightgbm": lambda: times_slower("LightGBM"),
    "slower_than_lightgbm_million": lambda: between(
        seconds_of_million()[name, "ocrep CV"][1] / seconds_of_million()[name, "LightGBM"][1] for name in sizes.PROBLEMS
    ),
    "catboost_better_at_jumps": catboost_better_at_jumps,
    "many_rows": many_rows,
    "million_rows": million_rows,
    "over_ridge_cv": lambda: f"{float(recorded(r'RidgeCV.50 alphas. on the same H, over ours . ([0-9.]+)')):.0f}",
    "over_grid_search": lambda: recorded(r"on the same H, over a `kfold` fit . ([0-9.]+)"),
    "memory": lambda: recorded(r"peak memory above the input, MB, N=2,000,000, L=10, M=300 . ([0-9]+)"),
    "over_scikit_elm": lambda: recorded(r"over the fastest peer, scikit-elm, which chooses no γ . ([0-9.]+)"),
    "over_hpelm": lambda: recorded(r"([0-9.]+) \(hpelm\)"),
    "default_over_scikit_elm": lambda: recorded(r"ours over scikit-elm's, which chooses no γ . ([0-9]+\.[0-9])"),
    "default_over_hpelm": lambda: recorded(r"ours over hpelm's, which chooses no γ . ([0-9]+\.[0-9])"),
}


def filled(text: str) -> str:
    """A page with its figures as the results have them."""
    if found := _AT_START.search(text):
        raise ValueError(f"{found[0]!r} begins a line, which Markdown takes for HTML: begin the line with a word.")
    return _MARKED.sub(lambda m: f"{m[1]}{m[3]}{FIGURES[m[2]]()}{m[3]}{m[4]}", text)


def main() -> None:
    """Write the pages that change."""
    for page in PAGES:
        old = page.read_text(encoding="utf-8")
        new = filled(old)
        if new != old:
            page.write_text(new, encoding="utf-8")
            print(f"{page.relative_to(ROOT)} has new figures.")


if __name__ == "__main__":
    main()
