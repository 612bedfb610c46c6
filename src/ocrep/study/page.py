"""The study's report in Markdown: a first page, the claims, every table and figure of the paper, and what lies beyond.

The report contains neither timings nor machine names, so that equal results give equal bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ocrep.study import tables
from ocrep.study.claims import claims
from ocrep.study.figures import draw_figures
from ocrep.study.front import front_page
from ocrep.study.protocol import BIASES, GCV_METHODS, TARGETS, Variant
from ocrep.study.published import MISPRINTS, MISPRINTS_IN_TEXT, cells
from ocrep.study.segment import segment_told
from ocrep.study.store import load_study
from ocrep.study.wording import NAMES, bullets, in_unit, number, table, title
from ocrep.study.yardsticks import Judged, Study, of_methods, share

FIGURES = {
    "gain": "Figure 1. Singular values of H^reg against those of H, for three γ.",
    "condition": "Figure 2. The condition number of H^reg against β; it is least at β = 1.",
    "error_against_gamma": "Figures 3 and 4. Test error against γ on the reference split, at the largest size: mean ± "
    "standard deviation over draws of the hidden layer, and the γ that OCReP and cross-validation choose (geometric "
    "mean over draws). Errors beyond the upper edge are cut off.",
    "error_against_size": "Figures 5 and 6. Test error against the number of hidden units on the reference split: mean "
    "over draws of the hidden layer, bands of ± one standard deviation, and the size M̄ of the table.",
    "stability": "Stability (section 3.2): how much predictions on test rows change when one training row is left "
    "out, and the leave-one-out error, against γ in units of OCReP's; both exact, on the reference split at the "
    "largest size, mean over draws.",
}


def report(source: str | Path | Study, folder: str | Path | None = None) -> Path:
    """Write report.md and the figures, and return the path of the report.

    Parameters
    ----------
    source : path or Study
        A folder with results, a Parquet file that `ocrep.study.publish` wrote, or what `load_study` made of either.
    folder : path or None, default=None
        Where to write; None writes next to the results.

    Returns
    -------
    Path
        The report.

    See Also
    --------
    run : Makes the results.

    Examples
    --------
    >>> from ocrep import study
    >>> study.report("docs/study/results.parquet", "folder").name  # doctest: +SKIP
    'report.md'
    """
    if not isinstance(source, Study):
        place = Path(source)
        source, folder = load_study(place), folder or (place if place.is_dir() else place.parent)
    folder = Path(folder or ".")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "report.md"
    path.write_text(report_text(source, draw_figures(source, folder)), encoding="utf-8", newline="\n")
    return path


def report_text(study: Study, figures: Mapping[str, str]) -> str:
    """Return the report; `figures` are paths by name, relative to the report."""
    found = claims(study)
    parts = ["# The paper's experiments, run again", _lead(study), *front_page(study, found, figures.get("overview"))]
    rows = [[claim.section, claim.text, f"**{claim.told}**", claim.evidence] for claim in found]
    parts += [
        "## The paper's claims",
        "Claims are in our words. In brackets: how many of the cases that a claim covers agree with it.",
        table("section | claim | verdict | evidence", rows),
    ]
    parts += ["## How to read the tables", _how_to_read()]
    header = "experiment | errors inside | std within 2× | M̄ in our range | ratios inside | same winner | same verdict"
    parts += [table(header, tables.verdict_rows(study)), _counting()]
    for name in ("gain", "condition"):
        parts += _figure(figures, name)
    parts += ["## At fixed sizes (section 5.1)", *_tables(study, 2, 3, 4), *_figure(figures, "error_against_gamma")]
    parts += ["## At chosen sizes (section 5.2)", *_tables(study, 5, 6), *_figure(figures, "error_against_size")]
    parts += ["## Condition numbers (section 5.3)", *_tables(study, 7, 8), *segment_told(study)]
    parts += ["## Other rules for γ (section 6.1)", *_tables(study, 9, 10, 11, 12, 13)]
    parts += ["## Other methods (section 6.2)", _quoted(), *_tables(study, 14, 15, 16)]
    parts += ["## Other readings of the paper", *_sensitivity(study), "## Beyond the paper", *_beyond(study, figures)]
    return "\n\n".join([*parts, *_misprints(study), *_what_was_run(study)]) + "\n"


def _lead(study: Study) -> str:
    return (
        "R. Cancelliere, M. Gai, P. Gallinari, L. Rubini, *OCReP: An Optimally Conditioned Regularization for "
        "Pseudoinversion Based Neural Training*, Neural Networks 2015 (arXiv:1508.06095), recomputed with random "
        f"splits in place of its one unknown split. Protocol `{study.about['protocol']['name']}`."
    )


def _figure(figures: Mapping[str, str], name: str) -> list[str]:
    return [f"![{FIGURES[name].partition('.')[0]}]({figures[name]})", f"*{FIGURES[name]}*"] if name in figures else []


def _tables(study: Study, *numbers: int) -> list[str]:
    return [part for table_number in numbers for part in tables.paper_table(study, table_number)]


def _how_to_read() -> str:
    return (
        "Errors are RMSE for regression (Delta Ailerons in 10⁻⁴) and percent misclassified for classification, on the "
        "30 % of the rows held out for testing. The reference split is our first one, with as many draws of the hidden "
        "layer as the paper has. Over splits, means over few draws are drawn together until they vary as means over "
        "fifty draws would; the percentile says where the published number lies among them, up to the rounding of its "
        "digits. Inside means between the 1st and the 99th percentile. Ratios are rival over OCReP for regression and "
        "differences in percentage points for classification. Our standard deviation is over draws on a typical split."
    )


def _counting() -> str:
    return (
        "In brackets: how many of one of our own splits, taken for the paper's, would lie inside, and how many 90 % "
        "of the time. Quoted numbers are not counted, nor OCReP's in tables 15 and 16, which repeat those of tables "
        "5 and 6. The verdict is that of the paper's own test (Welch, 99 %, over draws) on our reference split."
    )


def _quoted() -> str:
    return (
        "The paper quotes the numbers of ELM, RELM and TROP-ELM from other groups, who had other splits. Beside them "
        "stand our implementations with their own defaults, on our splits."
    )


def _sensitivity(study: Study) -> list[str]:
    variants = [Variant(b, t, g) for b in BIASES for t in TARGETS for g in GCV_METHODS]
    rows = []
    for variant in variants:
        judged = [
            Judged(cell, spread, spread.percentile(cell.error, cell.rounding), {})
            for cell in cells()
            if cell.experiment in ("ocrep_vs_cv", "gcv", "kibria", "hoerl_kennard")
            for spread in (study.spread(cell, variant),)
        ]
        if any(one.inside is not None for one in judged):
            methods = ("ocrep", "cv", "gcv", "kibria", "hoerl_kennard")
            counts = [share(one.inside for one in of_methods(judged, method)) for method in methods]
            rows.append([("**the reproduction**: " if variant == study.variant else "") + str(variant), *counts])
    return [
        "Published errors at fixed sizes between the 1st and the 99th percentile, for every reading.",
        table("reading | OCReP | CV | GCV | Kibria | Hoerl-Kennard", rows),
    ]


def _beyond(study: Study, figures: Mapping[str, str]) -> list[str]:
    pruned = tables.pruned(study)
    return [
        "### The library's own rules in the paper's network",
        "Median over the splits (their number) that all columns have, biases U(−1, 1), targets as they are. p = min(N, "
        "M) is the formula to the letter; it differs only where H is numerically singular. The default floor keeps γ "
        "at or above √ε·σ₁²; `ocrep_cv` is the library's own rule.",
        tables.beyond(study),
        "### M around N",
        "Hidden units over training rows along the columns. At M = N, where H turns from tall to wide, σ_p is "
        "smallest; the paper does not cover these sizes. Median over splits and draws.",
        tables.peak(study),
        *(
            ["### Pruned ELM", "The paper mentions it without numbers. Median over splits (number of splits).", pruned]
            if pruned
            else []
        ),
        "### Stability",
        *_figure(figures, "stability"),
    ]


def _misprints(study: Study) -> list[str]:
    told = [*MISPRINTS.values(), *MISPRINTS_IN_TEXT]
    for one in study.judged:
        cell = one.cell
        if cell.std_misprint and not cell.repeated and one.std is not None:
            told.append(
                f"{NAMES[cell.method]} on {title(cell.data)} M={cell.n_hidden} (table {cell.table}): std "
                f"{in_unit(cell.data, cell.std, 3)} printed, {in_unit(cell.data, one.std, 2)} ours."
            )
    best = [min(one.spread.means.values()) for one in study.judged if one.run and one.cell.data == "machine_cpu"]
    if best:
        told.append(f"The least mean RMSE of any method on any split of ours on Machine Cpu is {number(min(best), 3)}.")
    return [
        "## Suspected misprints in the paper",
        "The paper contradicts itself or its neighbours in these places. No number was changed; the cells concerned "
        "carry a note.",
        bullets(told),
    ]


def _what_was_run(study: Study) -> list[str]:
    counts: dict[tuple[str, str, str], set[tuple[int, int]]] = {}
    for case, rows in study.results.rows.items():
        key = case.kind, case.data, case.biases
        counts.setdefault(key, set()).update(place for place, _ in rows)
    lines = [
        [
            kind,
            title(data),
            "U({:g}, {:g})".format(*BIASES[biases]),
            str(len({split for split, _ in places})),
            str(len(places)),
        ]
        for (kind, data, biases), places in sorted(counts.items())
    ]
    n_rows = sum(map(len, study.results.rows.values()))
    versions = ", ".join(f"{name} {version}" for name, version in study.about["versions"].items())
    missing = [f"`{name}`: {study.about['missing'][name]}" for name in sorted(study.about["missing"])]
    return [
        "## What was run",
        f"{n_rows} rows of results with {versions}; revision {study.about['protocol']['revision']} of the experiments.",
        *(["Missing data sets:", bullets(missing)] if missing else []),
        table("experiment | data set | biases | splits | splits × draws", lines),
    ]
