"""The verdict on a diagnosis in plain language; a pure function of its numbers.

All questions about errors come down to one: is a rule's γ as good as the best one? It is if its cross-validation
error exceeds the least over all γ by at most one standard error of the difference. The standard error of an RMSE
comes from a few folds only, so it is bounded to 1–5 % of the least error: below that no difference counts, however
alike the folds are, and above it every difference does. Test rows have no part in this.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ocrep.report.wording import percent, readable

# Measured inputs seldom have more than four good digits; from here on, errors in the others may grow to the size of the
# weights themselves.
ILL_CONDITIONED = 1e4
# Relative to the least RMSE: an excess below the first never counts, one above the second always does.
LEAST_EXCESS = 0.01
MOST_EXCESS = 0.05
QUESTIONS = {
    "advice": "Which rule should I use?",
    "conditioning": "Is the problem ill conditioned?",
    "ocrep": "Does OCReP regularize too much here?",
    "need": "Is regularization needed at all?",
    "information": "How complex is the fit?",
}
PREFERRED = ("ocrep", "ocrep_cv", "kfold", "gcv")
"""The first of these rules that is as good as the best γ is advised, so good conditioning has priority."""

Level = Literal["good", "note", "warn"]
_Answer: TypeAlias = tuple[str, Level, str, str]  # code, level, answer and detail of a finding


@dataclass(frozen=True, slots=True)
class RuleLine:
    """One rule's γ and the properties of the network under it.

    Parameters
    ----------
    rule : str
        The name of the rule.
    gamma : float
        Its γ.
    index : int
        The place of γ in the grid.
    edge : {"low", "high"} or None
        The end of the searched range at which γ lies, if it lies at one.
    floored : bool
        Whether the precision floor set γ.
    cv_noise : float
        The standard error of its cross-validation error above the least one.
    train_error, cv_error : float
        Its errors in training and in cross-validation.
    dof, norm, condition : float
        Effective degrees of freedom, length of the weights and condition number.
    test_error : float or None
        Its error on test rows, if there are any.
    """

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
    """The numbers that the verdict depends on.

    Parameters
    ----------
    labels : bool
        Whether labels are predicted.
    n_rows, n_columns : int
        The shape of H.
    n_resolved : int
        Singular values above the precision floor.
    rank, most_directions : int
        The rank of H, and the largest that a matrix of this shape can have.
    condition_number : float
        μ(H).
    floor_condition : float
        The condition number at which σ_p equals the precision floor, 1/√ε.
    best_cv_error, best_cv_gamma : float
        The least cross-validation error over all γ, and its γ.
    rules : sequence of RuleLine
        The rules that apply.
    """

    labels: bool
    n_rows: int
    n_columns: int
    n_resolved: int
    rank: int
    most_directions: int
    condition_number: float
    floor_condition: float
    best_cv_error: float
    best_cv_gamma: float
    rules: Sequence[RuleLine] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Finding:
    """A question, a short answer, and the numbers behind it.

    Parameters
    ----------
    topic, code : str
        What it is about, and the kind of the answer.
    level : {"good", "note", "warn"}
        How much attention it needs.
    question, answer, detail : str
        What the report shows.
    """

    topic: str
    code: str
    level: Level
    question: str
    answer: str
    detail: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """All findings, and the rule to use.

    Parameters
    ----------
    findings : tuple of Finding
        One for each question.
    recommended : str or None
        The rule to use; None if no rule applies.
    """

    findings: tuple[Finding, ...] = field(repr=False)
    recommended: str | None


def judge(facts: Facts) -> Verdict:
    """Say which rule to use, how H is conditioned, whether OCReP's γ is right, and how complex the fit is."""
    line = _recommended(facts)
    answers = (_advice(facts, line), _conditioning(facts), _ocrep(facts), _need(facts, line), _information(facts, line))
    findings = (
        Finding(topic, code, level, QUESTIONS[topic], answer, detail)
        for topic, (code, level, answer, detail) in zip(QUESTIONS, answers, strict=True)
    )
    return Verdict(tuple(findings), None if line is None else line.rule)


def _as_good_as_best(facts: Facts, line: RuleLine) -> bool:
    """Whether the excess over the least CV error is within one standard error, limited to 1–5 % of an RMSE."""
    excess = line.cv_error - facts.best_cv_error
    if facts.labels:
        return excess <= line.cv_noise
    allowed = max(line.cv_noise, LEAST_EXCESS * facts.best_cv_error)
    return excess <= min(allowed, MOST_EXCESS * facts.best_cv_error)


def _line(facts: Facts, rule: str) -> RuleLine | None:
    return next((line for line in facts.rules if line.rule == rule), None)


def _recommended(facts: Facts) -> RuleLine | None:
    preferred = [line for line in (_line(facts, rule) for rule in PREFERRED) if line]
    if not math.isfinite(facts.best_cv_error):
        return preferred[0] if preferred else None
    good = [line for line in preferred if _as_good_as_best(facts, line)]
    judged = [line for line in facts.rules if math.isfinite(line.cv_error)]
    return good[0] if good else min(judged, key=lambda line: line.cv_error, default=None)


def _advice(facts: Facts, line: RuleLine | None) -> _Answer:
    if line is None:
        detail = "None of the requested rules applies to these rows; the notes below the table say why."
        return "none", "warn", "None of these.", detail
    answer = f"{line.rule}, that is γ = {readable(line.gamma)}."
    if not math.isfinite(facts.best_cv_error):
        detail = "There are too few rows for cross-validation, so this is only the default."
        return "default", "note", answer, detail
    error = _error(facts, line.cv_error)
    best = _error(facts, facts.best_cv_error)
    if _as_good_as_best(facts, line):
        detail = f"Its cross-validation error, {error}, is as good as the least over all γ, {best}."
        if line.rule in PREFERRED:
            detail += f" It is the first of {', '.join(PREFERRED)} for which that holds."
    else:
        best = f"{readable(facts.best_cv_gamma)}, which no rule found, would have {best}"
        detail = f"It has the least cross-validation error of all rules, {error}; γ = {best}."
    if line.test_error is not None:
        detail += f" On the test rows, which this advice does not use, the error is {_error(facts, line.test_error)}."
    return line.rule, "good", answer, detail


def _conditioning(facts: Facts) -> _Answer:
    if not facts.rank:
        return "zero", "warn", "All features are zero.", "H has rank 0."
    kappa = readable(facts.condition_number)
    amplified = f"The condition number is {kappa}: relative errors in the data may grow by this factor in the weights."
    # Not the number of columns: with fewer rows than columns, H cannot have a higher rank.
    if facts.rank < facts.most_directions:
        detail = f"H has rank {facts.rank}, and {facts.most_directions} would be possible. {amplified}"
        return "singular", "warn", "Yes: H is numerically singular.", detail
    if facts.condition_number >= facts.floor_condition:
        detail = f"{amplified} The smallest singular values are below the precision floor."
        return "below_floor", "warn", "Yes, severely.", detail
    ill = facts.condition_number >= ILL_CONDITIONED
    return ("ill", "warn", "Yes.", amplified) if ill else ("well", "good", "No.", amplified)


def _unknown(rule: str, line: RuleLine | None) -> _Answer:
    detail = f"The rule {rule} was not requested." if line is None else "There are too few rows for cross-validation."
    return "unknown", "note", "Unknown.", detail


def _ocrep(facts: Facts) -> _Answer:
    line = _line(facts, "ocrep")
    if line is None or not math.isfinite(facts.best_cv_error):
        return _unknown("ocrep", line)
    compared = (
        f"At its γ = {readable(line.gamma)} the cross-validation error is {_error(facts, line.cv_error)}; the least "
        f"error, {_error(facts, facts.best_cv_error)}, is at γ = {readable(facts.best_cv_gamma)}."
    )
    if _as_good_as_best(facts, line):
        return "right", "good", "No.", f"{compared} The difference is within the variation between the folds."
    if line.gamma > facts.best_cv_gamma:
        return "too_much", "warn", f"Yes: {_excess(facts, line)}.", compared
    return "too_little", "warn", f"No, too little: {_excess(facts, line)}.", compared


def _need(facts: Facts, recommended: RuleLine | None) -> _Answer:
    line = _line(facts, "none")
    if line is None or not math.isfinite(facts.best_cv_error):
        return _unknown("none", line)
    best = _error(facts, facts.best_cv_error)
    compared = f"Without it the cross-validation error is {_error(facts, line.cv_error)}"
    if _as_good_as_best(facts, line):
        detail = f"{compared}, which is as good as the least over all γ, {best}."
        return "not_needed", "good", "Not for the error.", detail
    detail = f"{compared}; the best γ has {best}."
    # The least error of all rules may be that of γ = 0, although some γ that no rule chooses would be better.
    if recommended == line:
        return "not_found", "note", "A little would help, but no rule chooses that γ.", detail
    return "needed", "note", f"Yes: without it {_excess(facts, line)}.", detail


def _information(facts: Facts, line: RuleLine | None) -> _Answer:
    detail = (
        f"H has {facts.n_columns} columns and rank {facts.rank}; {facts.n_resolved} singular values are above the "
        "precision floor."
    )
    if line is None:
        return "rank", "note", f"It has at most {facts.n_resolved} degrees of freedom.", detail
    used = f"{line.dof:.1f}" if line.dof < 100.0 else f"{line.dof:.0f}"
    answer = f"It uses {used} effective degrees of freedom."
    detail += (
        f" That is the number of free parameters of a linear model as flexible as this fit with {line.rule}, for "
        f"{facts.n_rows:,} rows; it is not a number of units to keep."
    )
    # A fit with half as many free parameters as rows follows their noise.
    return ("many", "note", answer, detail) if line.dof >= 0.5 * facts.n_rows else ("few", "good", answer, detail)


def _excess(facts: Facts, line: RuleLine) -> str:
    """The excess over the least error, in words."""
    best = facts.best_cv_error
    if facts.labels:
        return f"{100.0 * (line.cv_error - best):.1f} percentage points more rows are misclassified"
    ratio = line.cv_error / best if best > 0.0 else math.inf
    if ratio >= 2.0:
        return f"the error is {readable(ratio)} times the best"
    return f"the error is {100.0 * (ratio - 1.0):.0f}\u00a0% above the best"


def _error(facts: Facts, value: float) -> str:
    return percent(value) if facts.labels else readable(value)
