"""The report in Markdown: a first page, the claims, every table and figure of the paper, and what lies beyond.

The report contains neither timings nor machine names, so that equal results give equal bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from ocrep.datasets import load
from study import tables
from study.claims import FAILS, HOLDS, IN_PART, NOT_TESTED, Claim, claims
from study.experiments import split_of
from study.figures import draw_figures
from study.judgement import (
    MISPRINT,
    SPLIT,
    UNEXPLAINED,
    Calibration,
    Study,
    calibrate,
    name_of,
    of_methods,
    outside,
    percentiles_by_data,
    share,
)
from study.protocol import BIASES, GCV_METHODS, REFERENCE_SPLIT, TARGETS
from study.published import MISPRINTS, MISPRINTS_IN_TEXT, in_unit, listed, number, title
from study.results import on_reference_split
from study.running import load_study
from study.tables import table

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
VERDICTS = {HOLDS: "hold", IN_PART: "hold in part", FAILS: "do not hold", NOT_TESTED: "not tested"}  # of several claims
GROUPS = {
    "OCReP and cross-validation": ("ocrep", "cv"),
    "GCV": ("gcv",),
    "Kibria's estimate": ("kibria",),
    "Hoerl and Kennard's estimate": ("hoerl_kennard",),
}
REASONS = {
    SPLIT: "while their ratios to OCReP (of OCReP: of cross-validation to it) agree, so that an unusual split would "
    "explain them",
    MISPRINT: "suspected misprints",
    UNEXPLAINED: "unexplained",
}
CENTRAL = "Published ratios in the central 95 % of ours"
QUESTIONS = {
    "biases": (
        "The biases",
        "Condition ratios with the printed digit",
        {name: f"U({low:g}, {high:g})" for name, (low, high) in BIASES.items()},
    ),
    "targets": ("The regression targets", CENTRAL, TARGETS),
    "gcv": ("GCV", CENTRAL, GCV_METHODS),
}


def report(source: str | Path | Study, folder: str | Path | None = None) -> Path:
    """Write report.md and the figures, and return the path of the report.

    Parameters
    ----------
    source : path or Study
        A folder with results, a Parquet file that `publish` wrote, or what `load_study` made of either.
    folder : path or None, default=None
        Where to write; None writes next to the results.

    Returns
    -------
    Path
        The report.
    """
    if not isinstance(source, Study):
        place = Path(source)
        folder = folder or (place if place.is_dir() else place.parent)
        source = load_study(place)
    folder = Path(folder or ".")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "report.md"
    path.write_text(report_text(source, draw_figures(source, folder)), encoding="utf-8", newline="\n")
    return path


def report_text(study: Study, figures: Mapping[str, str]) -> str:
    """Return the report; `figures` are paths by name, relative to the report."""
    found = claims(study)
    pruned = tables.pruned(study)
    parts = [
        "# The paper's experiments, run again",
        "R. Cancelliere, M. Gai, P. Gallinari, L. Rubini, *OCReP: An Optimally Conditioned Regularization for "
        "Pseudoinversion Based Neural Training*, Neural Networks 2015 (arXiv:1508.06095), recomputed with random "
        f"splits in place of its one unknown split. Protocol `{study.about['protocol']['name']}`.",
        *front_page(study, found, figures.get("overview")),
        "## The paper's claims",
        "Claims are in our words. In brackets: how many of the cases that a claim covers agree with it.",
        table(
            "section | claim | verdict | evidence",
            [[claim.section, claim.text, f"**{claim.counted}**", claim.evidence] for claim in found],
        ),
        "## How to read the tables",
        "Errors are RMSE for regression (Delta Ailerons in 10⁻⁴) and percent misclassified for classification, on the "
        "30 % of the rows held out for testing. The reference split is our first one, with as many draws of the hidden "
        "layer as the paper has. Over splits, means over few draws are drawn together until they vary as means over "
        "fifty draws would; the percentile says where the published number lies among them, up to the rounding of its "
        "digits. Inside means between the 1st and the 99th percentile. Ratios are rival over OCReP for regression and "
        "differences in percentage points for classification. Our standard deviation is over draws on a typical split.",
        table(
            "experiment | errors inside | std within 2× | M̄ in our range | ratios inside | same winner | same verdict",
            tables.verdict_rows(study),
        ),
        "In brackets: how many of one of our own splits, taken for the paper's, would lie inside, and how many 90 % "
        "of the time. Quoted numbers are not counted, nor OCReP's in tables 15 and 16, which repeat those of tables "
        "5 and 6. The verdict is that of the paper's own test (Welch, 99 %, over draws) on our reference split.",
        *_figure(figures, "gain"),
        *_figure(figures, "condition"),
        "## At fixed sizes (section 5.1)",
        *_tables(study, 2, 3, 4),
        *_figure(figures, "error_against_gamma"),
        "## At chosen sizes (section 5.2)",
        *_tables(study, 5, 6),
        *_figure(figures, "error_against_size"),
        "## Condition numbers (section 5.3)",
        *_tables(study, 7, 8),
        *about_segment(study),
        "## Other rules for γ (section 6.1)",
        *_tables(study, 9, 10, 11, 12, 13),
        "## Other methods (section 6.2)",
        "The paper quotes the numbers of ELM, RELM and TROP-ELM from other groups, who had other splits. Beside them "
        "stand our implementations with their own defaults, on our splits.",
        *_tables(study, 14, 15, 16),
        "## Other readings of the paper",
        "Published errors at fixed sizes between the 1st and the 99th percentile, for every reading.",
        tables.sensitivity(study),
        "## Beyond the paper",
        "### The library's own rules in the paper's network",
        "Median over the splits (their number) that all columns have, biases U(−1, 1), targets as they are. p = min(N, "
        "M) is the formula to the letter; it differs only where H is numerically singular. The default floor keeps γ "
        "at or above √ε·σ₁²; `ocrep_cv` is the library's own rule.",
        tables.beyond(study),
        "### M around N",
        "Hidden units over training rows along the columns. At M = N, where H turns from tall to wide, σ_p is "
        "smallest; the paper does not cover these sizes. Median over splits and draws.",
        tables.peak(study),
    ]
    if pruned:
        parts += ["### Pruned ELM", "The paper mentions it without numbers. Median over splits (number of splits)."]
        parts.append(pruned)
    parts += ["### Stability", *_figure(figures, "stability"), *_misprints(study), *_what_was_run(study)]
    return "\n\n".join(parts) + "\n"


def _figure(figures: Mapping[str, str], name: str) -> list[str]:
    return [f"![{FIGURES[name].partition('.')[0]}]({figures[name]})", f"*{FIGURES[name]}*"] if name in figures else []


def _tables(study: Study, *numbers: int) -> list[str]:
    return [part for table_number in numbers for part in tables.paper_table(study, table_number)]


def bullets(sentences: Iterable[str]) -> str:
    """Return a Markdown list."""
    return "\n".join(f"- {sentence}" for sentence in sentences)


def plural(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


# ------------------------------------------------------------------------------
# The first page: what reproduces, what does not and why, in words that follow from the results.


def front_page(study: Study, claims: list[Claim], overview: str | None) -> list[str]:
    """Return the first page."""
    findings = [*_errors(study), *_conditions(study), *_winners(study)]
    counts = Counter(claim.verdict for claim in claims)
    known = {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}
    verdicts = ", ".join(f"{n} {verdict if n == 1 else VERDICTS[verdict]}" for verdict, n in known.items())
    findings.append(f"**Claims** of the paper, {len(claims)} in all: {verdicts}.")
    parts = ["## What reproduces", _lead(study), bullets(findings)]
    if overview:
        parts += [
            f"![Where the published numbers lie among ours]({overview})",
            "*Each point is one published error (left) or one published comparison (right), at its percentile among "
            "our random splits. If the study reproduced the paper perfectly, the points of the right picture would be "
            "spread evenly, and those of each row of the left one would lie together anywhere.*",
        ]
    parts += ["### What does not, and why", bullets(_failures(study, claims)), "### How the paper was read"]
    return parts + _reading(study)


def _lead(study: Study) -> str:
    found = calibrate(of_methods(study.judged, "ocrep", "cv", "gcv", "kibria", "hoerl_kennard"))
    if not found.total:
        return "Too few splits were run to say where the published errors lie among ours."
    return (
        f"Of the {found.total} errors that the paper computed itself at fixed sizes and that were run here, "
        f"**{found.inside} lie inside, between the 1st and the 99th percentile of ours** over random splits. A perfect "
        f"reproduction would have {_expected(found)} there. The paper's split is unknown and moves all numbers of a "
        "data set together, so the ratio of a rival's error to OCReP's says more: "
        f"{_counted(calibrate([p for p in study.pairs if not p.rivalry.rival.quoted]))}."
    )


def _expected(found: Calibration) -> str:
    return f"{found.expected:.0f} (90 % of the time {found.low:.0f} to {found.high:.0f})"


def _counted(found: Calibration) -> str:
    return f"{found.inside} of {found.total} lie inside. A perfect reproduction would have {_expected(found)} there"


def _errors(study: Study) -> list[str]:
    """Sentences on the errors by method, on sizes and on standard deviations."""
    groups = {f"{name} at fixed sizes": of_methods(study.judged, *methods) for name, methods in GROUPS.items()}
    chosen = [one for one in study.judged if one.cell.experiment == "hidden_size"]
    groups["Errors at sizes chosen by cross-validation"] = chosen
    sentences = []
    for name, ones in groups.items():
        found = calibrate(ones)
        if found.total:
            word = "reproduced" if found.inside >= found.low else "reproduced in part"
            sentences.append(f"**{name}: {word}.** {_counted(found)}.")
    if any(one.size_inside is not None for one in chosen):
        inside = share(one.size_inside for one in chosen)
        sentences.append(f"**Chosen sizes**: {inside} published M̄ lie in the range of ours.")
    own = [one for one in study.judged if not one.cell.quoted and not one.cell.repeated]
    if any(one.std_agrees is not None for one in own):
        good = share(one.std_agrees for one in own if not one.cell.std_misprint)
        reference = share(one.own_std_agrees for one in own)
        sentences.append(
            f"**Standard deviations**: {good} are within a factor of two of those on a typical split of ours, "
            f"suspected misprints left out. Of those on our own reference split {reference} are."
        )
    return sentences


def _conditions(study: Study) -> list[str]:
    known = [one for one in study.conditions if one.ours is not None]
    if not known:
        return []
    plain = share(one.within for one in known if one.cell.method == "ocrep/unregularized")
    return [
        f"**Condition numbers**: {share(one.digit for one in known)} ratios have the printed digit, "
        f"{share(one.within for one in known)} are within a factor of two; of the ratios to the pseudoinverse {plain} "
        "are."
    ]


def _winners(study: Study) -> list[str]:
    pairs = [pair for pair in study.pairs if pair.run and not pair.rivalry.rival.quoted]
    if not pairs:
        return []
    ties = sum(pair.winner == "tie" or pair.rivalry.winner == "tie" for pair in pairs)
    return [
        f"**Winners**: the method with the smaller error is the paper's in {share(p.same_winner for p in pairs)} "
        f"comparisons ({plural(ties, 'tie')} not counted). The paper's verdict at 99 % on one split is repeated on our "
        f"reference split in {share(p.as_paper(p.welch) for p in pairs)}."
    ]


def _failures(study: Study, claims: list[Claim]) -> list[str]:
    sentences = [f"Section {c.section}: \u201c{c.text}\u201d {c.evidence}" for c in claims if c.verdict == FAILS]
    for data, places in percentiles_by_data(study).items():
        if max(places) < 25.0 or min(places) > 75.0:
            kind = "easy" if max(places) < 25.0 else "hard"
            ends = f"{number(min(places), 2)} and {number(max(places), 2)}"
            sentences.append(
                f"{title(data)}: the errors of OCReP and cross-validation all lie between the percentiles {ends} of "
                f"our splits. One {kind} split explains them together."
            )
    for reason, cells in outside(study).items():
        names = listed(name_of(cell) for cell in cells)
        sentences.append(f"{plural(len(cells), 'error')} outside, {REASONS[reason]}: {names}.")
    return sentences or ["Nothing that was run contradicts the paper."]


def _reading(study: Study) -> list[str]:
    lines = []
    for question, support in study.decision.support.items():
        subject, measure, names = QUESTIONS[question]
        if not any(one.total for one in support):
            continue
        chosen = getattr(study.variant, question)
        counts = [f"{one.inside} of {one.total} with {names[one.reading]}" for one in support]
        distances = listed(number(one.distance, 2) for one in support)
        lines.append(f"{subject}: **{names[chosen]}**. {measure}: {listed(counts)} (mean distance {distances}).")
    return [
        "The paper leaves three things open. They were decided by rules that were written down before the study was "
        "run (the text at the head of `study/judgement.py`), from numbers that do not depend on the split; the "
        "other readings are shown as sensitivity below.",
        bullets(lines) if lines else "Nothing was run that could decide, so the first reading stands.",
    ]


# ------------------------------------------------------------------------------
# Segment, misprints, and what was run.


def distinct_rows(split: int) -> tuple[int, int]:
    """Return how many training rows of a split of Segment there are, and how many of them differ."""
    X = split_of(load("segment"), split)[0]
    return len(X), len(np.unique(X, axis=0))


def about_segment(study: Study) -> list[str]:
    """Return a paragraph on the largest size of Segment, nearly as many units as distinct rows; none if not run."""
    n_hidden = max(study.sizes_of("segment"), default=0)
    conditions = study.results.numbers("fixed", "segment", study.variant, n_hidden, "unregularized", "condition")
    if conditions.empty:
        return []
    sentences = [f"**Segment with {n_hidden} units.**"]
    reference = on_reference_split(conditions)
    if len(reference):
        n_rows, n_distinct = distinct_rows(REFERENCE_SPLIT)
        ratio = float((1.0 / reference).median())
        tolerance = max(n_hidden, 64) * np.finfo(float).eps  # relative to σ₁, as `Spectrum` has it
        sentences.append(
            f"Of the {n_rows} training rows of the reference split {n_distinct} differ from each other. In the median "
            f"over draws σ_p/σ₁ is {number(ratio, 2)} there, {ratio / tolerance:,.0f} times the rank tolerance."
        )
    own, full = (study.results.numbers("fixed", "segment", study.variant, n_hidden, m) for m in ("ocrep", "ocrep_full"))
    splits = set(conditions.index.get_level_values("split"))
    singular = set(full.index.get_level_values("split"))  # p = min(N, M) was stored only where it differs
    if singular:
        counts, rest = (sorted(distinct_rows(split)[1] for split in some) for some in (singular, splits - singular))
        others = f", on the other splits {rest[0]} to {rest[-1]}" if rest else ""
        sentences.append(
            f"H is numerically singular on {len(singular)} of {len(splits)} splits: there {counts[0]} to {counts[-1]} "
            f"training rows differ{others}. On these splits OCReP misclassifies {number(own[full.index].mean(), 3)} % "
            f"with p the numerical rank and {number(full.mean(), 3)} % with p = min(N, M)."
        )
    else:
        sentences.append(f"H is not numerically singular on any of the {len(splits)} splits that were run.")
    return [" ".join(sentences)]


def _misprints(study: Study) -> list[str]:
    sentences = [*MISPRINTS.values(), *MISPRINTS_IN_TEXT]
    for one in study.judged:
        cell = one.cell
        if cell.std_misprint and not cell.repeated and one.std is not None:
            printed = in_unit(cell.data, cell.std, 3)
            sentences.append(f"{name_of(cell)}: std {printed} printed, {in_unit(cell.data, one.std, 2)} ours.")
    best = [one.spread.means.min() for one in study.judged if one.run and one.cell.data == "machine_cpu"]
    if best:
        least = number(min(best), 3)
        sentences.append(f"The least mean RMSE of any method on any split of ours on Machine Cpu is {least}.")
    return [
        "## Suspected misprints in the paper",
        "The paper contradicts itself or its neighbours in these places. No number was changed; the cells concerned "
        "carry a note.",
        bullets(sentences),
    ]


def _what_was_run(study: Study) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in study.about["versions"].items())
    missing = [f"`{name}`: {study.about['missing'][name]}" for name in sorted(study.about["missing"])]
    return [
        "## What was run",
        f"{len(study.results.frame)} rows of results with {versions}; revision "
        f"{study.about['protocol']['revision']} of the experiments.",
        *(["Missing data sets:", bullets(missing)] if missing else []),
        tables.what_was_run(study),
    ]
