"""The paper's tables with ours beside them, under the paper's own numbers, and tables of what it does not have."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from study.judgement import Calibration, ConditionRatio, Judged, Pair, Study, calibrate, share
from study.protocol import BIASES, GCV_METHODS, PEAK_SHARES, REFERENCE_SPLIT, REGRESSION, TARGETS, Variant
from study.published import EXPERIMENTS, NAMES, NONE, SIZE_CHOSEN, cells, in_unit, number, title
from study.results import Spread

TITLES = {
    2: "OCReP and cross-validation at fixed sizes, small data sets",
    3: "OCReP and cross-validation at fixed sizes, large data set",
    4: "OCReP and cross-validation at fixed sizes, medium data sets",
    5: "Sizes chosen by cross-validation, regression",
    6: "Sizes chosen by cross-validation, classification",
    7: "Condition numbers, regression",
    8: "Condition numbers, classification",
    9: "GCV at fixed sizes, small data sets",
    10: "GCV at fixed sizes, large data set",
    11: "GCV at fixed sizes, medium data sets",
    12: "Kibria's estimate at fixed sizes, regression",
    13: "Hoerl and Kennard's estimate at fixed sizes, regression",
    14: "OCReP and ELM with 1000 units",
    15: "OCReP and RELM",
    16: "OCReP and TROP-ELM",
}
OURS = {"ocrep": "fixed", "ocrep_full": "fixed", "ocrep_floor": "fixed", "ocrep_cv": "beyond", "cv": "fixed"}


def table(header: str, rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table; `header` has its columns separated by " | "."""
    cells = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    lines = [[header], ["---"] * (header.count(" | ") + 1), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def paper_table(study: Study, table_number: int) -> list[str]:
    """Return the title and the body of one of the paper's tables."""
    heading = f"### Table {table_number}: {TITLES[table_number]}"
    if table_number in (7, 8):
        return [heading, _conditions([one for one in study.conditions if one.cell.table == table_number])]
    own = [one for one in study.judged if one.cell.table == table_number]
    pairs = [pair for pair in study.pairs if pair.rivalry.rival.table == table_number]
    return [heading, _errors(own), _pairs(pairs)]


def _errors(judged: list[Judged]) -> str:
    chosen = judged[0].cell.experiment in SIZE_CHOSEN
    rows = []
    for one in judged:
        cell = one.cell
        name = NAMES[cell.method] + (" (quoted)" if cell.quoted else "")
        sizes = [number(one.sizes.get(REFERENCE_SPLIT)), _range(one.sizes)] if chosen else []
        published = _with_std(cell.data, cell.error, cell.std)
        place = [number(one.percentile, 2), _std(one), _notes(one)]
        ours = _ours(cell.data, one.spread)
        rows.append([title(cell.data), str(cell.n_hidden), *sizes, name, published, *ours, *place])
    our_size = " | our M̄ | over splits" if chosen else ""
    size = "M̄" if chosen else "M"
    columns = "paper | ours, reference split | ours, over splits: median (1st to 99th percentile) | percentile of paper"
    return table(f"data set | {size}{our_size} | method | {columns} | our std | note", rows)


def _ours(data: str, spread: Spread) -> list[str]:
    if not len(spread.numbers):
        return ["not run", NONE]
    values = spread.predicted
    ends = [in_unit(data, float(np.percentile(values, q))) for q in (50, 1, 99)]
    deviation = spread.deviations.get(REFERENCE_SPLIT)
    mean = spread.means.get(REFERENCE_SPLIT)
    return [_with_std(data, mean, deviation), f"{ends[0]} ({ends[1]} to {ends[2]})" if len(values) > 1 else NONE]


def _with_std(data: str, mean: float | None, std: float | None) -> str:
    return in_unit(data, mean) + ("" if std is None else f" ± {in_unit(data, std, 2)}")


def _std(one: Judged) -> str:
    if one.std is None:
        return NONE
    mark = {None: "", True: "", False: " (not within 2×)"}[one.std_agrees]
    return in_unit(one.cell.data, one.std, 2) + mark


def _notes(one: Judged) -> str:
    notes = ["error: suspected misprint"] * one.cell.misprint
    notes += ["std: suspected misprint"] * (one.cell.std_misprint and not one.cell.misprint)
    notes += ["M̄: equals OCReP's"] * ("same_size" in one.cell.notes)
    return ", ".join(notes)


def _range(values: pd.Series) -> str:
    return f"{number(values.min())} to {number(values.max())}" if len(values) > 1 else NONE


def _pairs(pairs: list[Pair]) -> str:
    rows = []
    for pair in pairs:
        cell = pair.rivalry.rival
        rival = NAMES[cell.method]
        names = {None: NONE, "ocrep": "OCReP", "rival": rival, "tie": "neither", "not rival": f"not {rival}"}
        found = pair.paired_test
        size = "chosen" if cell.experiment in SIZE_CHOSEN else str(cell.n_hidden)
        paired = NONE if found is None else f"{names[found[0]]} (p = {number(found[1], 2)})"
        places = [number(pair.percentile, 2), NONE if pair.share is None else f"{100 * pair.share:.0f} %"]
        verdicts = [names[pair.rivalry.verdict], names[pair.welch], paired]
        rows.append([title(cell.data), size, rival, _ratio(pair), *places, *verdicts])
    head = "data set | M | rival | rival : OCReP, paper and ours | percentile of paper | splits with the paper's winner"
    return table(f"{head} | better: paper | our reference split, same test | over splits", rows)


def _ratio(pair: Pair) -> str:
    a, b = pair.rivalry.ocrep.error, pair.rivalry.rival.error
    if not pair.run:
        return NONE
    middle = float(np.median(pair.ratio.predicted))
    if pair.rivalry.rival.data in REGRESSION:
        return f"×{number(b / a, 3)}, ×{number(float(np.exp(middle)), 3)}"
    return f"{b - a:+.2f}, {middle:+.2f} points"


def _conditions(found: list[ConditionRatio]) -> str:
    yes = {None: NONE, True: "yes", False: "no"}
    rows = []
    for one in found:
        mine = [number(one.ours, 2), _range(one.by_split.map(lambda v: float(f"{v:.2g}")))]
        start = [title(one.cell.data), str(one.cell.n_hidden), NAMES[one.cell.method], number(one.cell.error)]
        rows.append([*start, *mine, yes[one.digit], yes[one.within]])
    head = "data set | M | ratio of mean condition numbers | paper | ours, reference split | ours, over splits"
    return table(f"{head} | printed digit? | within 2×?", rows)


def verdict_rows(study: Study) -> list[list[str]]:
    """Return the agreement by experiment: errors, standard deviations, sizes, ratios, winners, verdicts."""
    rows = []
    for experiment in [*EXPERIMENTS, "all"]:
        cells = [one for one in study.judged if experiment in ("all", one.cell.experiment)]
        cells = [one for one in cells if not one.cell.quoted and not one.cell.repeated]
        pairs = [pair for pair in study.pairs if experiment in ("all", pair.rivalry.rival.experiment)]
        pairs = [pair for pair in pairs if not pair.rivalry.rival.quoted]
        if experiment == "condition_ratio" or not cells:
            continue
        rows.append(
            [
                experiment if experiment != "all" else "**all**",
                calibrated(calibrate(cells)),
                _share(one.std_agrees for one in cells),
                _share(one.size_inside for one in cells),
                calibrated(calibrate(pairs)),
                _share(pair.same_winner for pair in pairs),
                _share(pair.as_paper(pair.welch) for pair in pairs),
            ]
        )
    return rows


def _share(answers: Iterable[bool | None]) -> str:
    counted = share(answers)
    return NONE if counted == "0 of 0" else counted


def calibrated(found: Calibration) -> str:
    """Return a count with what a perfect reproduction would score."""
    if not found.total:
        return NONE
    return f"{found.inside} of {found.total} ({found.expected:.0f}; {found.low:.0f} to {found.high:.0f})"


def sensitivity(study: Study) -> str:
    """Return how many published errors at fixed sizes lie inside, for every reading of the paper."""
    fixed = [cell for cell in cells() if cell.experiment in ("ocrep_vs_cv", "gcv", "kibria", "hoerl_kennard")]
    methods = ("ocrep", "cv", "gcv", "kibria", "hoerl_kennard")
    rows = []
    for variant in (Variant(b, t, g) for b in BIASES for t in TARGETS for g in GCV_METHODS):
        judged = [Judged.of(study, cell, variant) for cell in fixed]
        if any(one.inside is not None for one in judged):
            counts = [share(one.inside for one in judged if one.cell.method == method) for method in methods]
            rows.append([("**the reproduction**: " if variant == study.variant else "") + str(variant), *counts])
    return table("reading | OCReP | CV | GCV | Kibria | Hoerl-Kennard", rows)


def beyond(study: Study) -> str:
    """Return the library's own rules in the paper's network at fixed sizes, on the splits and draws that all have."""
    rows = []
    for data in study.data_sets:
        for n_hidden in study.sizes_of(data):
            found = {m: study.results.numbers(kind, data, Variant(), n_hidden, m) for m, kind in OURS.items()}
            # p = min(N, M) was stored only where it differs: where H is numerically singular.
            found["ocrep_full"] = found["ocrep_full"].combine_first(found["ocrep"])
            common = pd.concat(found, axis=1, join="inner")
            if len(common):
                medians = (_median(data, Spread.of(common[method])) for method in OURS)
                rows.append([title(data), str(n_hidden), *medians])
    return table(f"data set | M | {' | '.join(NAMES[method] for method in OURS)}", rows)


def _median(data: str, spread: Spread) -> str:
    means = spread.means
    return f"{in_unit(data, float(means.median()))} ({len(means)})" if len(means) else NONE


def peak(study: Study) -> str:
    """Return errors at hidden sizes around the number of training rows: median over splits and draws."""
    frame = study.results.frame
    frame = frame[frame["kind"] == "peak"]
    medians = frame.groupby(["data", "method", "n_hidden"], observed=True)["error"].median()
    rows = [
        [title(data), NAMES[method], *(number(float(error)) for error in by_size)]
        for (data, method), by_size in medians.groupby(level=["data", "method"], observed=True)
    ]
    return table(" | ".join(["data set", "method", *(f"M/N = {share:g}" for share in PEAK_SHARES)]), rows)


def pruned(study: Study) -> str:
    """Return pruned ELM, which the paper mentions without numbers, beside OCReP at its chosen size."""
    rows = []
    for data in study.data_sets:
        spread = Spread.of(study.results.numbers("literature", data, Variant(), 0, "pruned_elm"))
        if len(spread.numbers):
            own = Spread.of(study.results.numbers("chosen", data, study.variant, 0, "ocrep"))
            rows.append([title(data), _median(data, spread), _median(data, own)])
    return table("data set | pruned ELM | OCReP, size chosen", rows) if rows else ""


def what_was_run(study: Study) -> str:
    """Return how many splits and draws each experiment has."""
    places = study.results.frame[["kind", "data", "biases", "split", "draw"]].drop_duplicates()
    counts = places.groupby(["kind", "data", "biases"], observed=True)["split"].agg(["nunique", "size"])
    rows = [
        [kind, title(data), "U({:g}, {:g})".format(*BIASES[biases]), str(n_splits), str(n_places)]
        for (kind, data, biases), n_splits, n_places in counts.itertuples()
    ]
    return table("experiment | data set | biases | splits | splits × draws", rows)
