"""The first page of the report: what reproduces, what does not and why, in words that follow from the results."""

from __future__ import annotations

from collections import Counter

from ocrep.study.claims import FAILS, HOLDS, IN_PART, NOT_TESTED, Claim
from ocrep.study.explanations import (
    MISPRINT,
    SPLIT,
    UNEXPLAINED,
    SplitOfPaper,
    by_reason,
    outside,
    splits_of_paper,
)
from ocrep.study.protocol import BIASES, GCV_METHODS, TARGETS
from ocrep.study.wording import bullets, listed, number, plural, title
from ocrep.study.yardsticks import Calibration, Judged, Study, calibrate, of_methods, share

WORDS = {HOLDS: "hold", IN_PART: "hold in part", FAILS: "do not hold", NOT_TESTED: "not tested"}
_BIASES = {name: f"U({low:g}, {high:g})" for name, (low, high) in BIASES.items()}
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
QUESTIONS = {
    "biases": ("The biases", "Condition ratios with the printed digit", _BIASES),
    "targets": ("The regression targets", "Published ratios in the central 95 % of ours", TARGETS),
    "gcv": ("GCV", "Published ratios in the central 95 % of ours", GCV_METHODS),
}


def front_page(study: Study, claims: list[Claim], overview: str | None) -> list[str]:
    """Return the first page."""
    parts = ["## What reproduces", _lead(study), bullets(_findings(study, claims))]
    if overview:
        parts += [f"![Where the published numbers lie among ours]({overview})", _caption()]
    return [
        *parts,
        "### What does not, and why",
        bullets(_failures(study, claims)),
        "### How the paper was read",
        *_reading(study),
    ]


def _lead(study: Study) -> str:
    fixed = _at_fixed_sizes(study)
    found = calibrate(fixed)
    if not found.total:
        return "Too few splits were run to say where the published errors lie among ours."
    return (
        f"Of the {found.total} errors that the paper computed itself at fixed sizes and that were run here, "
        f"**{found.inside} lie inside, between the 1st and the 99th percentile of ours** over random splits; a perfect "
        f"reproduction would have {_expected(found)} there. The paper's split is unknown and moves all numbers of a "
        "data set together, so the ratio of a rival's error to OCReP's says more: "
        f"{_counted(calibrate([p for p in study.pairs if not p.rivalry.rival.quoted]))}."
    )


def _at_fixed_sizes(study: Study) -> list[Judged]:
    return of_methods(study.judged, "ocrep", "cv", "gcv", "kibria", "hoerl_kennard")


def _expected(found: Calibration) -> str:
    return f"{found.expected:.0f} (90 % of the time {found.low:.0f} to {found.high:.0f})"


def _counted(found: Calibration) -> str:
    return f"{found.inside} of {found.total} lie inside; of a perfect reproduction {_expected(found)} would"


def _findings(study: Study, claims: list[Claim]) -> list[str]:
    counts = Counter(claim.verdict for claim in claims)
    known = {verdict: counts[verdict] for verdict in WORDS if counts[verdict]}
    verdicts = ", ".join(f"{n} {verdict if n == 1 else WORDS[verdict]}" for verdict, n in known.items())
    told = f"**Claims** of the paper, {len(claims)} in all: {verdicts}."
    return [*_errors(study), *_conditions(study), *_winners(study), told]


def _errors(study: Study) -> list[str]:
    """Sentences on the errors by method, on sizes and on standard deviations."""
    groups = {f"{name} at fixed sizes": of_methods(study.judged, *methods) for name, methods in GROUPS.items()}
    chosen = [one for one in study.judged if one.cell.experiment == "hidden_size"]
    groups["Errors at sizes chosen by cross-validation"] = chosen
    told = []
    for name, ones in groups.items():
        found = calibrate(ones)
        if found.total:
            word = "reproduced" if found.inside >= found.low else "reproduced in part"
            told.append(f"**{name}: {word}.** {_counted(found)}.")
    if any(one.size_inside is not None for one in chosen):
        told.append(
            f"**Chosen sizes**: {share(one.size_inside for one in chosen)} published M̄ lie in the range of ours."
        )
    own = [one for one in study.judged if not one.cell.quoted and not one.cell.repeated]
    if any(one.std_agrees is not None for one in own):
        good = share(one.std_agrees for one in own if not one.cell.std_misprint)
        reference = share(one.own_std_agrees for one in own)
        told.append(
            f"**Standard deviations**: {good} are within a factor of two of those on a typical split of ours, "
            f"suspected misprints left out. Of those on our own reference split {reference} are."
        )
    return told


def _conditions(study: Study) -> list[str]:
    known = [one for one in study.conditions if one.ours is not None]
    if not known:
        return []
    within = [one for one in known if one.within]
    plain = share(one.within for one in known if one.cell.method == "ocrep/unregularized")
    return [
        f"**Condition numbers**: {share(one.digit for one in known)} ratios have the printed digit, {len(within)} of "
        f"{len(known)} are within a factor of two; of the ratios to the pseudoinverse {plain} are."
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


def _caption() -> str:
    return (
        "*Each point is one published error (left) or one published comparison (right), at its percentile among our "
        "random splits. If the study reproduced the paper perfectly, the points of the right picture would be spread "
        "evenly, and those of each row of the left one would lie together anywhere.*"
    )


def _failures(study: Study, claims: list[Claim]) -> list[str]:
    told = [f"Section {c.section}: \u201c{c.text}\u201d {c.evidence}" for c in claims if c.verdict == FAILS]
    told += [_split_told(one) for one in splits_of_paper(study) if one.easy or one.hard]
    for reason, ones in by_reason(outside(study)).items():
        told.append(f"{plural(len(ones), 'error')} outside, {REASONS[reason]}: {listed(one.name for one in ones)}.")
    return told or ["Nothing that was run contradicts the paper."]


def _split_told(one: SplitOfPaper) -> str:
    kind = "easy" if one.easy else "hard"
    ends = f"{number(min(one.percentiles), 2)} and {number(max(one.percentiles), 2)}"
    return (
        f"{title(one.data)}: the errors of OCReP and cross-validation all lie between the percentiles {ends} of our "
        f"splits. One {kind} split explains them together."
    )


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
        "run (the text at the head of `ocrep/study/decision.py`), from numbers that do not depend on the split; the "
        "other readings are shown as sensitivity below.",
        bullets(lines) if lines else "Nothing was run that could decide, so the first reading stands.",
    ]
