"""The verdict on a diagnosis in plain language; a pure function of its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ocrep.report.wording import percent, readable

ILL_CONDITIONED = 1e4
LEAST_EXCESS, MOST_EXCESS = 0.01, 0.05
"""Relative to the least RMSE: an excess below the first never counts, one above the second always does."""
PREFERRED = ("ocrep", "ocrep_cv", "kfold", "gcv")
"""The first of these rules that is as good as the best γ is advised, so good conditioning has priority."""

TOO_FEW = "There are too few rows for cross-validation."

Level = Literal["good", "note", "warn"]


@dataclass(frozen=True, slots=True)
class RuleLine:
    """One rule's γ and the properties of the network under it; `index` is the place of γ in the grid."""

    rule: str
    gamma: float
    index: int
    edge: str | None
    floored: bool
    cv_noise: float
    train_error: float
    cv_error: float
    dof: float
    norm: float
    condition: float
    test_error: float | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """The numbers that the verdict depends on."""

    labels: bool
    n_rows: int
    n_columns: int
    n_resolved: int
    """Singular values above the precision floor."""
    rank: int
    most_directions: int
    """The largest possible rank of a matrix of this shape."""
    condition_number: float
    floor_condition: float
    """The condition number at which σ_p equals the precision floor: 1/√ε."""
    best_cv_error: float
    best_cv_gamma: float
    rules: Sequence[RuleLine] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Finding:
    """A question, a short answer, and the numbers behind it."""

    topic: str
    code: str
    level: Level
    question: str
    answer: str
    detail: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """All findings, and the rule to use (None if no rule applies)."""

    findings: tuple[Finding, ...] = field(repr=False)
    recommended: str | None


def judge(facts: Facts) -> Verdict:
    """Say which rule to use, how H is conditioned, whether OCReP's γ is right, and how many units carry information."""
    recommended = _recommended(facts)
    findings = (_advice(facts, recommended), _conditioning(facts), _ocrep(facts), _need(facts, recommended))
    rule = None if recommended is None else recommended.rule
    return Verdict((*findings, _information(facts, recommended)), rule)


def tolerance(facts: Facts, line: RuleLine) -> float:
    """The excess over the least CV error that does not count: one standard error, limited to 1–5 % of an RMSE."""
    if facts.labels:
        return line.cv_noise
    best = facts.best_cv_error
    return min(max(line.cv_noise, LEAST_EXCESS * best), MOST_EXCESS * best)


def as_good_as_best(facts: Facts, line: RuleLine) -> bool:
    """Whether the CV error of a rule exceeds the least one by no more than the tolerance."""
    return line.cv_error - facts.best_cv_error <= tolerance(facts, line)


def _line(facts: Facts, rule: str) -> RuleLine | None:
    return next((line for line in facts.rules if line.rule == rule), None)


def _recommended(facts: Facts) -> RuleLine | None:
    preferred = [line for line in (_line(facts, rule) for rule in PREFERRED) if line]
    if not math.isfinite(facts.best_cv_error):
        return preferred[0] if preferred else None
    good = [line for line in preferred if as_good_as_best(facts, line)]
    judged = [line for line in facts.rules if math.isfinite(line.cv_error)]
    return good[0] if good else min(judged, key=lambda line: line.cv_error, default=None)


def _advice(facts: Facts, line: RuleLine | None) -> Finding:
    question = "Which rule should I use?"
    if line is None:
        detail = "None of the requested rules applies to these rows; the notes below the table say why."
        return Finding("advice", "none", "warn", question, "None of these.", detail)
    answer = f'gamma="{line.rule}", that is γ = {readable(line.gamma)}.'
    if not math.isfinite(facts.best_cv_error):
        detail = "There are too few rows for cross-validation, so this is only the default."
        return Finding("advice", "default", "note", question, answer, detail)
    error = _error(facts, line.cv_error)
    if as_good_as_best(facts, line):
        best = _error(facts, facts.best_cv_error)
        detail = f"Its cross-validation error, {error}, is as good as the least over all γ, {best}."
        if line.rule in PREFERRED:
            detail += f" It is the first of {', '.join(PREFERRED)} for which that holds."
    else:
        best = f"{readable(facts.best_cv_gamma)}, which no rule found, would have {_error(facts, facts.best_cv_error)}"
        detail = f"It has the least cross-validation error of all rules, {error}; γ = {best}."
    if line.test_error is not None:
        detail += f" On the test rows, which this advice does not use, the error is {_error(facts, line.test_error)}."
    return Finding("advice", line.rule, "good", question, answer, detail)


def _conditioning(facts: Facts) -> Finding:
    question, kappa = "Is the problem ill conditioned?", readable(facts.condition_number)
    if not facts.rank:
        return Finding("conditioning", "zero", "warn", question, "All features are zero.", "H has rank 0.")
    amplified = f"The condition number is {kappa}: relative errors in the data may grow by this factor in the weights."
    if facts.rank < facts.most_directions:
        detail = f"H has rank {facts.rank}, and {facts.most_directions} would be possible. {amplified}"
        return Finding("conditioning", "singular", "warn", question, "Yes: H is numerically singular.", detail)
    if facts.condition_number >= facts.floor_condition:
        detail = f"{amplified} The smallest singular values are below the precision floor."
        return Finding("conditioning", "below_floor", "warn", question, "Yes, severely.", detail)
    if facts.condition_number >= ILL_CONDITIONED:
        return Finding("conditioning", "ill", "warn", question, "Yes.", amplified)
    return Finding("conditioning", "well", "good", question, "No.", amplified)


def _ocrep(facts: Facts) -> Finding:
    question, line = "Does OCReP regularize too much here?", _line(facts, "ocrep")
    if line is None or not math.isfinite(facts.best_cv_error):
        detail = "The rule ocrep was not requested." if line is None else TOO_FEW
        return Finding("ocrep", "unknown", "note", question, "Unknown.", detail)
    compared = (
        f"At its γ = {readable(line.gamma)} the cross-validation error is {_error(facts, line.cv_error)}; the least "
        f"error, {_error(facts, facts.best_cv_error)}, is at γ = {readable(facts.best_cv_gamma)}."
    )
    if as_good_as_best(facts, line):
        detail = f"{compared} The difference is within the variation between the folds."
        return Finding("ocrep", "right", "good", question, "No.", detail)
    if line.gamma > facts.best_cv_gamma:
        return Finding("ocrep", "too_much", "warn", question, f"Yes: {_excess(facts, line)}.", compared)
    answer = f"No, too little: {_excess(facts, line)}."
    return Finding("ocrep", "too_little", "warn", question, answer, compared)


def _need(facts: Facts, recommended: RuleLine | None) -> Finding:
    question, line = "Is regularization needed at all?", _line(facts, "none")
    if line is None or not math.isfinite(facts.best_cv_error):
        detail = "The rule none was not requested." if line is None else TOO_FEW
        return Finding("need", "unknown", "note", question, "Unknown.", detail)
    compared = f"Without it the cross-validation error is {_error(facts, line.cv_error)}"
    if as_good_as_best(facts, line):
        detail = f"{compared}, which is as good as the least over all γ, {_error(facts, facts.best_cv_error)}."
        return Finding("need", "not_needed", "good", question, "Not for the error.", detail)
    detail = f"{compared}; the best γ has {_error(facts, facts.best_cv_error)}."
    if recommended == line:
        answer = "A little would help, but no rule chooses that γ."
        return Finding("need", "not_found", "note", question, answer, detail)
    return Finding("need", "needed", "note", question, f"Yes: without it {_excess(facts, line)}.", detail)


def _information(facts: Facts, line: RuleLine | None) -> Finding:
    question = "How many units carry information?"
    resolved = facts.n_resolved
    detail = (
        f"H has {facts.n_columns} columns and rank {facts.rank}; {resolved} singular values are above the precision "
        "floor."
    )
    if line is None:
        return Finding("information", "rank", "note", question, f"At most {resolved} of {facts.n_columns}.", detail)
    used = f"{line.dof:.1f}" if line.dof < 100.0 else f"{line.dof:.0f}"
    detail += f" With {line.rule} the fit uses {used} effective degrees of freedom for {facts.n_rows:,} rows."
    few = line.dof < 0.5 * facts.n_columns
    if few:
        detail += " Fewer units may do as well: compare them with ocrep.hidden_size_path."
    answer = f"About {line.dof:.0f} of {facts.n_columns}."
    return Finding("information", "few" if few else "most", "note" if few else "good", question, answer, detail)


def _excess(facts: Facts, line: RuleLine) -> str:
    """The excess over the least error, in words."""
    best = facts.best_cv_error
    if facts.labels:
        points = 100.0 * (line.cv_error - best)
        return f"{points:.1f} percentage points more rows are misclassified"
    if best <= 0.0 or line.cv_error >= 2.0 * best:
        times = math.inf if best <= 0.0 else line.cv_error / best
        return f"the error is {readable(times)} times the best"
    return f"the error is {100.0 * (line.cv_error / best - 1.0):.0f}\u00a0% above the best"


def _error(facts: Facts, value: float) -> str:
    return percent(value) if facts.labels else readable(value)
