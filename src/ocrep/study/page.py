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
from ocrep.study.comparison import CellResult, ComparisonResult, Results, Share, Summary
from ocrep.study.protocol import REFERENCE_SPLIT
from ocrep.study.published import EXPERIMENTS, MISPRINTS, MISPRINTS_IN_TEXT, SIZE_CHOSEN, cells, rivalries

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
CONDITION_COLUMNS = (
    *("data", "M", "ratio", "mean of ratios", "range over splits", "ratio of means", "published"),
    *("mean within 2×?", "ratio of means within 2×?", "inside?"),
)
VERDICT_COLUMNS = (
    *("experiment", "data", "M", "rival", "paper", "Welch 99 %", "corrected paired 5 %"),
    *("same winner?", "same over splits?", "Welch as paper?", "paired as paper?", "note"),
)
FACTOR = 2.0
SEGMENT_1500 = (
    "**Segment M=1500 is a ratio of rounding noise.** The data set has 224 duplicated rows, so 1500 units are about as "
    "many as the distinct rows of the training part, and H is numerically singular. Its smallest singular value σ_p is "
    "then rounding noise, on which both μ(H⁺) = σ₁/σ_p and OCReP's γ = σ₁·σ_p depend. The ratio is arbitrary: it "
    "changes with the draw, the split and the linear algebra library, and agreement with the paper is accidental."
)


def report_text(
    records: Iterable[Mapping[str, Any]], protocol_name: str, *, missing: Mapping[str, str], figures: Sequence[str] = ()
) -> str:
    """Return the report on records in any order.

    `missing` says of each missing data set how to get it; `figures` are paths relative to the report.
    """
    results = compare.collect(records)
    found_cells = [compare.compare_cell(cell, results) for cell in cells()]
    pairs = [compare.compare_pair(rivalry, results) for rivalry in rivalries()]
    parts = [
        "# The paper's experiments, run again",
        *_what_was_run(results, protocol_name),
        *_missing(missing),
        *_summary(found_cells, pairs),
    ]
    for experiment, title in EXPERIMENTS.items():
        own = [found for found in found_cells if found.cell.experiment == experiment]
        body = _conditions(own, results) if experiment == "condition_ratio" else [_cells(own)]
        parts += [f"## {title} (`{experiment}`)", *body]
    parts += [*_verdicts(pairs), *_beyond(results), *_misprints(), *_figures(figures)]
    return "\n\n".join(parts) + "\n"


def number(value: float | None, digits: int = 4) -> str:
    """Format a number with fixed significant digits; None and NaN become a dash."""
    return NONE if value is None or math.isnan(value) else f"{value:.{digits}g}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _spread(ours: Summary) -> str:
    return f"{number(ours.mean)} ± {number(ours.std, 3)}"


def _range(ours: Summary) -> str:
    return f"{number(ours.low)} to {number(ours.high)}" if len(ours.by_split) > 1 else NONE


def _yes(answer: bool | None) -> str:
    return NONE if answer is None else "yes" if answer else "no"


def _what_was_run(results: Results, protocol_name: str) -> list[str]:
    rows = []
    for data in sorted({key[1] for key in results.values}):
        places = {p for key, values in results.values.items() if key[1] == data for p in values}
        errors = [
            v for k, v in results.values.items() if k[1] == data and k[0] in ("fixed", "path", "literature", "peak")
        ]
        draws = sum(split == REFERENCE_SPLIT for split, _ in places)
        rows.append([data, str(len({split for split, _ in places})), str(draws), str(sum(map(len, errors)))])
    parts = [
        "## What was run",
        f"Protocol `{protocol_name}`. Errors are RMSE for regression and percent misclassified for classification, on "
        f"the 30 % of the rows held out for testing. Means ± std are over draws of the hidden layer on split "
        f"{REFERENCE_SPLIT}, the reference split; ranges are from the smallest to the largest mean of a split. A "
        "published value is inside if it lies in the range, up to the rounding of the digits that the paper prints.",
        table(["data", "splits", "draws on the reference split", "test errors"], rows),
    ]
    if results.skipped:
        lines = [
            f"- {count} × {NAMES.get(method, method)} on {data}, M={n_hidden}: {reason}"
            for (data, n_hidden, method, reason), count in sorted(results.skipped.items(), key=repr)
        ]
        total = sum(results.skipped.values())
        parts += [f"{total} results have no error and are omitted:", "\n".join(lines)]
    return parts


def _missing(missing: Mapping[str, str]) -> list[str]:
    if not missing:
        return []
    return ["## Missing data sets", "\n".join(f"- `{name}`: {missing[name]}" for name in sorted(missing))]


def _summary(found: list[CellResult], pairs: list[ComparisonResult]) -> list[str]:
    inside = compare.share(one.inside for one in found)
    unflagged = compare.share(one.inside for one in found if not one.note)
    winner, winner_splits, welch, paired = _agreement(pairs)
    rows = []
    for experiment in [*EXPERIMENTS, None]:
        own = [one for one in found if experiment in (None, one.cell.experiment)]
        rivals = [pair for pair in pairs if experiment in (None, pair.rivalry.rival.experiment)]
        run = compare.share(one.ours is not None for one in own)
        rows.append([experiment or "**all**", str(run), str(compare.share(one.inside for one in own))])
        rows[-1] += map(str, _agreement(rivals))
    columns = ["experiment", "cells run", "published inside", "same winner", "same over splits", "Welch", "paired"]
    return [
        "## Agreement with the paper",
        f"The published value lies in our range over splits in **{inside}** cells (without the cells of suspected "
        f"misprints: {unflagged}). The winner, by the smaller mean error, is the paper's in **{winner}** "
        f"comparisons on the reference split, and in {winner_splits} by the mean over splits; comparisons for "
        f"which the paper prints equal numbers are not counted. The verdict is the paper's in **{welch}** "
        f"comparisons by its own test (Welch, 99 %, over draws on one split) and in {paired} by the corrected "
        "paired test over splits (5 %), which takes into account that draws on one split share their data.",
        table(columns, rows),
        "The OCReP cells of `relm` and `trop_elm` repeat those of `hidden_size`; each is counted where it is printed.",
    ]


def _agreement(pairs: Sequence[ComparisonResult]) -> list[Share]:
    return [compare.share(pair.agreement[k] for pair in pairs) for k in range(4)]


def _cells(found: list[CellResult]) -> str:
    chosen = found[0].cell.experiment in SIZE_CHOSEN
    header = ["data", "M", *(["our M"] if chosen else []), "method", "ours", "draws", "range over splits"]
    rows = []
    for one in found:
        cell, ours = one.cell, one.ours
        published = number(cell.error) + (f" ± {number(cell.std, 3)}" if cell.std is not None else "")
        mine = ["not run", NONE, NONE] if ours is None else [_spread(ours), str(ours.n_draws), _range(ours)]
        size = [number(one.n_hidden)] if chosen else []
        start = [cell.data, str(cell.n_hidden), *size, NAMES[cell.method]]
        rows.append([*start, *mine, published, _yes(one.inside), one.note])
    return table([*header, "published", "inside?", "note"], rows)


def _conditions(found: list[CellResult], results: Results) -> list[str]:
    def near(ours: float, published: float) -> bool | None:
        return None if math.isnan(ours) else published / FACTOR <= ours <= published * FACTOR

    rows, answers = [], []
    for one in found:
        cell, ours = one.cell, one.ours
        whole = compare.ratio_of_means(results, cell.data, cell.n_hidden, cell.method.removeprefix("ocrep/"))
        close = [near(ours.mean if ours else math.nan, cell.error), near(whole, cell.error)]
        answers.append(close)
        mine = ["not run", NONE] if ours is None else [_spread(ours), _range(ours)]
        start = [cell.data, str(cell.n_hidden), NAMES[cell.method], *mine, number(whole), number(cell.error)]
        rows.append([*start, *map(_yes, (*close, one.inside))])
    mean, whole_share = (compare.share(column) for column in zip(*answers, strict=True))
    return [
        f"Within a factor of {FACTOR:g} of the paper: {mean} ratios by the mean of the draws' ratios, "
        f"{whole_share} by the ratio of the mean condition numbers, which is how the paper describes its table.",
        table(CONDITION_COLUMNS, rows),
        SEGMENT_1500,
    ]


def _verdicts(pairs: list[ComparisonResult]) -> list[str]:
    def named(verdict: str | None, rival: str) -> str:
        names = {"ocrep": "OCReP", "rival": rival, "tie": "tie", "not rival": f"not {rival}"}
        return NONE if verdict is None else names[verdict]

    rows = []
    for pair in pairs:
        cell = pair.rivalry.rival
        rival = NAMES[cell.method]
        size = "chosen" if cell.experiment in SIZE_CHOSEN else str(cell.n_hidden)
        paper, ours = named(pair.rivalry.verdict, rival), [named(v, rival) for v in (pair.welch, pair.paired)]
        note = ", ".join(["not run"] * (not pair.run) + ["suspected misprint"] * pair.flagged)
        rows.append([cell.experiment, cell.data, size, rival, paper, *ours, *map(_yes, pair.agreement), note])
    return [
        "## OCReP against each rival",
        "The paper's verdict is its bold mark. For GCV and for the unregularized network, the verdict comes from its "
        "text, which says more than its marks. For Kibria and Hoerl-Kennard an unmarked value says only that the rival "
        "is not better; a tie and a win of OCReP both agree with that.",
        table(VERDICT_COLUMNS, rows),
    ]


def _beyond(results: Results) -> list[str]:
    fixed = sorted({(data, size) for kind, data, size, _ in results.values if kind == "fixed" and size is not None})
    paths = sorted({data for kind, data, *_ in results.values if kind == "path"})
    pruned = sorted({data for _, data, _, method in results.values if method == "pruned_elm"})
    methods = ("ocrep", "cv", "ocrep_floor", "ocrep_cv", "unregularized")
    names = [NAMES[method] for method in methods]

    def line(kind: str, data: str, size: int | None = None, methods: tuple[str, ...] = methods) -> list[str]:
        return [_brief(results, kind, data, size, method) for method in methods]

    rivals = [[d, *line("literature", d, None, ("pruned_elm",)), *line("path", d, None, ("ocrep",))] for d in pruned]
    return [
        "## Beyond the paper",
        "Mean ± std over draws on the reference split (range over splits). The default floor chooses γ as if σ_p were "
        "at least √ε·σ₁; `ocrep_cv` takes the best conditioned γ among those whose cross-validation error is within "
        "one standard error of the least.",
        "### Fixed sizes",
        table(["data", "M", *names], [[data, str(size), *line("fixed", data, size)] for data, size in fixed]),
        "### Sizes chosen by cross-validation (M is the median)",
        table(["data", *names], [[data, *line("path", data)] for data in paths]),
        "### Pruned ELM",
        table(["data", "pruned ELM", "OCReP, size chosen"], rivals),
        *_peak(results),
    ]


def _brief(results: Results, kind: str, data: str, n_hidden: int | None, method: str) -> str:
    found = compare.summarise(results.of(kind, data, n_hidden, method))
    if found is None:
        return NONE
    text = f"{_spread(found)} ({_range(found)})"
    size = compare.typical_size(results, kind, data, method)
    return text if size is None else f"{text}, M={number(size)}"


def _peak(results: Results) -> list[str]:
    errors: dict[tuple[str, str], dict[float, list[float]]] = {}
    for (kind, data, n_hidden, method), values in results.values.items():
        if kind == "peak" and n_hidden is not None:
            rows = results.of("peak rows", data, n_hidden, method)
            for place, error in values.items():
                by_share = errors.setdefault((data, method), {})
                by_share.setdefault(round(n_hidden / rows[place], 2), []).append(error)
    shares = sorted({share for by_share in errors.values() for share in by_share})
    lines = [
        [data, NAMES[method], *(_middle(errors[data, method].get(share, [])) for share in shares)]
        for data, method in sorted(errors)
    ]
    return [
        "### M around N: the singular peak",
        "Columns: hidden units over training rows (M/N). At M = N, where H turns from tall to wide, σ_p is smallest; "
        "the paper does not cover these sizes. Median over all draws and splits (largest).",
        table(["data", "method", *(f"M/N = {share:g}" for share in shares)], lines),
    ]


def _middle(errors: list[float]) -> str:
    return f"{number(float(np.median(errors)))} ({number(max(errors), 3)})" if errors else NONE


def _misprints() -> list[str]:
    sentences = [*dict.fromkeys(MISPRINTS.values()), *MISPRINTS_IN_TEXT]
    return [
        "## Suspected misprints in the paper",
        "The paper contradicts itself in these places. No number was changed; the cells concerned carry a note.",
        "\n".join(f"- {sentence}" for sentence in sentences),
    ]


def _figures(figures: Sequence[str]) -> list[str]:
    if not figures:
        return []
    links = [f"![{Path(figure).stem.replace('_', ' ').capitalize()}]({figure})" for figure in figures]
    return ["## Figures", *links]
