"""The study's report in Markdown: our results next to the paper's, with the agreement as numbers.

The report contains neither timings nor machine names, so that equal results give equal bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ocrep.study import comparison as compare
from ocrep.study.comparison import CellResult, ComparisonResult, Results, Summary
from ocrep.study.decision import decide
from ocrep.study.figures import draw_figures
from ocrep.study.protocol import REFERENCE_SPLIT, Variant
from ocrep.study.published import EXPERIMENTS, MISPRINTS, MISPRINTS_IN_TEXT, SIZE_CHOSEN, cells, rivalries
from ocrep.study.results import Results as Table
from ocrep.study.store import about, collected, read_lines

NONE = "–"
NAMES = {
    "ocrep": "OCReP",
    "cv": "CV",
    "gcv": "GCV",
    "unregularized": "unregularized",
    "ocrep_floor": "OCReP, default floor",
    "ocrep_cv": "ocrep_cv",
    "kibria": "Kibria",
    "hoerl_kennard": "Hoerl-Kennard",
    "elm": "ELM",
    "relm": "RELM",
    "trop_elm": "TROP-ELM",
    "pruned_elm": "pruned ELM",
    "ocrep/unregularized": "μ(OCReP) / μ(unregularized)",
    "ocrep/cv": "μ(OCReP) / μ(CV)",
}
OUR_METHODS = ("ocrep", "cv", "ocrep_floor", "ocrep_cv", "unregularized")
FACTOR = 2.0


def report(folder: str | Path) -> Path:
    """Write report.md and the figures into a folder with results, and return the path of the report."""
    folder = Path(folder)
    known, records = about(folder), records_of(collected(read_lines(folder)))
    figures = draw_figures([], folder)
    text = report_text(records, known["protocol"]["name"], missing=known["missing"], figures=figures)
    path = folder / "report.md"
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def records_of(table: Table) -> list[dict[str, Any]]:
    """Return the rows of the reproduction as records."""
    variant, found = decide(table).variant, []
    for case, rows in table.rows.items():
        own = variant if case.kind in ("fixed", "path", "chosen") else Variant()
        if not rows or table.of(case.kind, case.data, own, case.n_hidden, case.method) is not rows:
            continue
        if case.method in ("grid", "leave_one_out") or case.kind in ("path", "peak"):
            continue
        kind = {"chosen": "path", "beyond": "fixed"}.get(case.kind, case.kind)
        method = (
            "gcv" if case.method == variant.gcv else f"other {case.method}" if case.method == "gcv" else case.method
        )
        for (split, draw), row in rows:
            where = {"kind": kind, "data": case.data, "split": split, "draw": draw, "method": method}
            found.append({**where, **row._asdict(), "method": method, "n_rows": None})
    return found


def report_text(
    records: Iterable[Mapping[str, Any]], protocol_name: str, *, missing: Mapping[str, str], figures: Sequence[str] = ()
) -> str:
    """Return the report on records in any order.

    `missing` says of each missing data set how to get it; `figures` are paths relative to the report.
    """
    results = compare.collect(records)
    found_cells = [compare.compare_cell(cell, results) for cell in cells()]
    pairs = [compare.compare_pair(rivalry, results) for rivalry in rivalries()]
    parts = ["# The paper's experiments, run again", *_what_was_run(results, protocol_name)]
    if missing:
        parts += ["## Missing data sets", _listed(f"`{name}`: {missing[name]}" for name in sorted(missing))]
    parts += _summary(found_cells, pairs)
    for experiment, title in EXPERIMENTS.items():
        own = [found for found in found_cells if found.cell.experiment == experiment]
        body = _conditions(own, results) if experiment == "condition_ratio" else [_cells(own)]
        parts += [f"## {title} (`{experiment}`)", *body]
    parts += [
        *_verdicts(pairs),
        *_beyond(results),
        *_peak(results),
        "## Suspected misprints in the paper",
        "The paper contradicts itself in these places. No number was changed; the cells concerned carry a note.",
        _listed([*MISPRINTS.values(), *MISPRINTS_IN_TEXT]),
    ]
    if figures:
        parts += ["## Figures", *(f"![{Path(f).stem.replace('_', ' ').capitalize()}]({f})" for f in figures)]
    return "\n\n".join(parts) + "\n"


def number(value: float | None, digits: int = 4) -> str:
    """Format a number with fixed significant digits; None and NaN become a dash."""
    return NONE if value is None or math.isnan(value) else f"{value:.{digits}g}"


def _table(header: str, rows: Iterable[Iterable[str]]) -> str:
    cells = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    lines = [[header], ["---"] * (header.count(" | ") + 1), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _listed(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _spread(ours: Summary) -> str:
    return f"{number(ours.mean)} ± {number(ours.std, 3)}"


def _range(ours: Summary) -> str:
    return f"{number(ours.low)} to {number(ours.high)}" if len(ours.by_split) > 1 else NONE


def _yes(answer: bool | None) -> str:
    return NONE if answer is None else "yes" if answer else "no"


def _what_was_run(results: Results, protocol_name: str) -> list[str]:
    rows = []
    for data in sorted({key[1] for key in results.values}):
        own = {key: values for key, values in results.values.items() if key[1] == data}
        splits = [split for split, _ in {place for values in own.values() for place in values}]
        n_errors = sum(len(values) for (kind, *_), values in own.items() if kind in compare.KINDS)
        rows.append([data, *map(str, (len(set(splits)), splits.count(REFERENCE_SPLIT), n_errors))])
    parts = [
        "## What was run",
        f"Protocol `{protocol_name}`. Errors are RMSE for regression and percent misclassified for classification, on "
        f"the 30 % of the rows held out for testing. Means ± std are over draws of the hidden layer on split "
        f"{REFERENCE_SPLIT}, the reference split; ranges are from the smallest to the largest mean of a split. A "
        "published value is inside if it lies in the range, up to the rounding of the digits that the paper prints.",
        _table("data | splits | draws on the reference split | test errors", rows),
    ]
    skipped = [
        f"{count} × {NAMES.get(method, method)} on {data}, M={n_hidden}: {reason}"
        for (data, n_hidden, method, reason), count in sorted(results.skipped.items(), key=repr)
    ]
    if skipped:
        parts += [f"{sum(results.skipped.values())} results have no error and are omitted:", _listed(skipped)]
    return parts


def _summary(found: list[CellResult], pairs: list[ComparisonResult]) -> list[str]:
    rows = []
    for experiment in [*EXPERIMENTS, None]:
        own = [one for one in found if experiment in (None, one.cell.experiment)]
        rivals = [pair for pair in pairs if experiment in (None, pair.rivalry.rival.experiment)]
        shares = [compare.share(one.ours is not None for one in own), compare.share(one.inside for one in own)]
        shares += [compare.share(pair.agreement[k] for pair in rivals) for k in range(4)]
        rows.append([experiment or "**all**", *shares])
    _, _, inside, winner, winner_splits, welch, paired = rows[-1]
    unflagged = compare.share(one.inside for one in found if not one.cell.misprint)
    return [
        "## Agreement with the paper",
        f"The published value lies in our range over splits in **{inside}** cells (without the cells of suspected "
        f"misprints: {unflagged}). The winner, by the smaller mean error, is the paper's in **{winner}** "
        f"comparisons on the reference split, and in {winner_splits} by the mean over splits; comparisons for "
        f"which the paper prints equal numbers are not counted. The verdict is the paper's in **{welch}** "
        f"comparisons by its own test (Welch, 99 %, over draws on one split) and in {paired} by the corrected "
        "paired test over splits (5 %), which takes into account that draws on one split share their data.",
        _table("experiment | cells run | published inside | same winner | same over splits | Welch | paired", rows),
        "The OCReP cells of `relm` and `trop_elm` repeat those of `hidden_size`; each is counted where it is printed.",
    ]


def _cells(found: list[CellResult]) -> str:
    chosen = found[0].cell.experiment in SIZE_CHOSEN
    rows = []
    for one in found:
        cell, ours = one.cell, one.ours
        published = number(cell.error) + (f" ± {number(cell.std, 3)}" if cell.std is not None else "")
        mine = ["not run", NONE, NONE] if ours is None else [_spread(ours), str(ours.n_draws), _range(ours)]
        size = [number(one.n_hidden)] if chosen else []
        start = [cell.data, str(cell.n_hidden), *size, NAMES[cell.method]]
        rows.append([*start, *mine, published, _yes(one.inside), cell.misprint])
    our_size = " | our M" if chosen else ""
    return _table(f"data | M{our_size} | method | ours | draws | range over splits | published | inside? | note", rows)


def _conditions(found: list[CellResult], results: Results) -> list[str]:
    rows, answers = [], []
    for one in found:
        cell, ours = one.cell, one.ours
        whole = compare.ratio_of_means(results, cell.data, cell.n_hidden, cell.method.removeprefix("ocrep/"))
        close = [
            None if math.isnan(ratio) else cell.error / FACTOR <= ratio <= cell.error * FACTOR
            for ratio in (ours.mean if ours else math.nan, whole)
        ]
        answers.append(close)
        mine = ["not run", NONE] if ours is None else [_spread(ours), _range(ours)]
        start = [cell.data, str(cell.n_hidden), NAMES[cell.method], *mine, number(whole), number(cell.error)]
        rows.append([*start, *map(_yes, (*close, one.inside))])
    mean, whole_share = (compare.share(column) for column in zip(*answers, strict=True))
    header = "data | M | ratio | mean of ratios | range over splits | ratio of means | published"
    return [
        f"Within a factor of {FACTOR:g} of the paper: {mean} ratios by the mean of the draws' ratios, "
        f"{whole_share} by the ratio of the mean condition numbers, which is how the paper describes its table.",
        _table(f"{header} | mean within 2×? | ratio of means within 2×? | inside?", rows),
        "**Segment M=1500 is a ratio of rounding noise.** The data set has 224 duplicated rows, so 1500 units are "
        "about as many as the distinct rows of the training part, and H is numerically singular. Its smallest "
        "singular value σ_p is then rounding noise, on which both μ(H⁺) = σ₁/σ_p and OCReP's γ = σ₁·σ_p depend. The "
        "ratio is arbitrary: it changes with the draw, the split and the linear algebra library, and agreement with "
        "the paper is accidental.",
    ]


def _verdicts(pairs: list[ComparisonResult]) -> list[str]:
    rows = []
    for pair in pairs:
        cell = pair.rivalry.rival
        rival = NAMES[cell.method]
        size = "chosen" if cell.experiment in SIZE_CHOSEN else str(cell.n_hidden)
        names = {None: NONE, "ocrep": "OCReP", "rival": rival, "tie": "tie", "not rival": f"not {rival}"}
        verdicts = [names[verdict] for verdict in (pair.rivalry.verdict, pair.welch, pair.paired)]
        suspected = bool(pair.rivalry.ocrep.misprint or cell.misprint)
        note = ", ".join(["not run"] * (not pair.run) + ["suspected misprint"] * suspected)
        rows.append([cell.experiment, cell.data, size, rival, *verdicts, *map(_yes, pair.agreement), note])
    header = "experiment | data | M | rival | paper | Welch 99 % | corrected paired 5 %"
    return [
        "## OCReP against each rival",
        "The paper's verdict is its bold mark. For GCV and for the unregularized network, the verdict comes from its "
        "text, which says more than its marks. For Kibria and Hoerl-Kennard an unmarked value says only that the rival "
        "is not better; a tie and a win of OCReP both agree with that.",
        _table(f"{header} | same winner? | same over splits? | Welch as paper? | paired as paper? | note", rows),
    ]


def _beyond(results: Results) -> list[str]:
    def brief(kind: str, data: str, size: int | None, method: str) -> str:
        found = compare.summarise(results.of(kind, data, size, method))
        if found is None:
            return NONE
        typical = compare.typical_size(results, kind, data, method)
        return f"{_spread(found)} ({_range(found)})" + ("" if typical is None else f", M={number(typical)}")

    def ours(kind: str, data: str, size: int | None = None) -> list[str]:
        return [brief(kind, data, size, method) for method in OUR_METHODS]

    fixed = sorted({(data, size) for kind, data, size, _ in results.values if kind == "fixed" and size is not None})
    paths = sorted({data for kind, data, *_ in results.values if kind == "path"})
    pruned = sorted({data for _, data, _, method in results.values if method == "pruned_elm"})
    rivals = [[d, brief("literature", d, None, "pruned_elm"), brief("path", d, None, "ocrep")] for d in pruned]
    names = " | ".join(NAMES[method] for method in OUR_METHODS)
    return [
        "## Beyond the paper",
        "Mean ± std over draws on the reference split (range over splits). The default floor chooses γ as if σ_p were "
        "at least √ε·σ₁; `ocrep_cv` takes the best conditioned γ among those whose cross-validation error is within "
        "one standard error of the least.",
        "### Fixed sizes",
        _table(f"data | M | {names}", ([data, str(size), *ours("fixed", data, size)] for data, size in fixed)),
        "### Sizes chosen by cross-validation (M is the median)",
        _table(f"data | {names}", ([data, *ours("path", data)] for data in paths)),
        "### Pruned ELM",
        _table("data | pruned ELM | OCReP, size chosen", rivals),
    ]


def _peak(results: Results) -> list[str]:
    errors: dict[tuple[str, str], dict[float, list[float]]] = {}
    for (kind, data, n_hidden, method), values in results.values.items():
        if kind == "peak" and n_hidden is not None:
            n_rows = results.of("peak n_rows", data, n_hidden, method)
            by_share = errors.setdefault((data, method), {})
            for place, error in values.items():
                by_share.setdefault(round(n_hidden / n_rows[place], 2), []).append(error)
    shares = sorted({share for by_share in errors.values() for share in by_share})

    def middle(errors: list[float]) -> str:
        return f"{number(float(np.median(errors)))} ({number(max(errors), 3)})" if errors else NONE

    rows = [
        [data, NAMES[method], *(middle(errors[data, method].get(share, [])) for share in shares)]
        for data, method in sorted(errors)
    ]
    return [
        "### M around N: the singular peak",
        "Columns: hidden units over training rows (M/N). At M = N, where H turns from tall to wide, σ_p is smallest; "
        "the paper does not cover these sizes. Median over all draws and splits (largest).",
        _table(" | ".join(["data", "method", *(f"M/N = {share:g}" for share in shares)]), rows),
    ]
