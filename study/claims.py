"""The claims of the paper's sections 3 and 5 to 7 in our words, each recomputed, with a verdict and its evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from study.judgement import Pair, Study, share
from study.protocol import N_FOLDS, PAPER_GRID, REFERENCE_SPLIT, REGRESSION
from study.published import NAMES, listed, number, title
from study.results import on_reference_split

HOLDS, IN_PART, FAILS, NOT_TESTED = "holds", "holds in part", "does not hold", "not tested"
NEAR = 1.1  # an error up to this many times the least one is close to it
RISES = 1.05  # a curve that ends above this many times its minimum has risen
RISES_MUCH = 1.2
MANY = 2


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim, recomputed."""

    section: str
    text: str
    verdict: str
    evidence: str
    agree: tuple[bool, ...]  # for each case that the claim covers, whether it agrees

    @property
    def counted(self) -> str:
        """The verdict, with the number of cases that agree if it is not all of many."""
        count = f" ({share(self.agree)})" if self.verdict in (IN_PART, FAILS) and len(self.agree) > MANY else ""
        return self.verdict + count


def claims(study: Study) -> list[Claim]:
    """Return all claims, in the paper's order."""
    found = ((section, text, check(study)) for section, text, check in CHECKS)
    return [Claim(section, text, *_verdict(cases), tuple(cases[0])) for section, text, cases in found]


Found = tuple[list[bool], str]  # which of the cases the claim covers agree with it, and the evidence


def _verdict(found: Found) -> tuple[str, str]:
    agree, evidence = found
    if not agree:
        return NOT_TESTED, "Nothing was run that could decide."
    verdict = HOLDS if all(agree) else IN_PART if 2 * sum(agree) >= len(agree) else FAILS
    return verdict, evidence


def near_the_minimum(study: Study) -> Found:
    """OCReP's and cross-validation's error over the least along the grid, at the largest size."""
    excess: dict[str, dict[str, float]] = {"ocrep": {}, "cv": {}}
    for data in study.data_sets:
        curve = study.results.along_gamma(data, study.variant, study.sizes_of(data)[-1])
        for method, found in excess.items():
            errors = study.results.numbers("fixed", data, study.variant, study.sizes_of(data)[-1], method)
            own = on_reference_split(errors)
            if curve is not None and len(own) and curve.mean[curve.best] > 0:
                found[data] = float(own.mean()) / float(curve.mean[curve.best])
    agree = [ratio <= NEAR for found in excess.values() for ratio in found.values()]
    worst = (f"{NAMES[method]} at most {_worst(found)}" for method, found in excess.items() if found)
    counts = [share(r <= NEAR for r in found.values()) for found in excess.values()]
    return agree, (
        f"Within 10 % of the least error along the grid on the reference split: OCReP on {counts[0]} data sets (those "
        f"whose least error is not 0), CV on {counts[1]}; {', '.join(worst)} times it."
    )


def _worst(by_data: dict[str, float]) -> str:
    data = max(by_data, key=lambda name: by_data[name])
    return f"{number(by_data[data], 3)} ({title(data)})"


def dispersion(study: Study) -> Found:
    """The standard deviation over draws at the smallest γ shown over that at OCReP's γ."""
    ratios = {}
    for data in study.data_sets:
        n_hidden = study.sizes_of(data)[-1]
        curve = study.results.along_gamma(data, study.variant, n_hidden)
        gamma = study.results.chosen_gamma(data, study.variant, n_hidden, "ocrep")
        if curve is not None and gamma is not None and curve.n_draws > 1:
            at = float(np.interp(np.log(gamma), np.log(curve.at), curve.std))
            ratios[data] = float(curve.std[0]) / at if at > 0 else np.inf
    larger = {data: ratio > 2.0 for data, ratio in ratios.items()}
    finite = [ratio for ratio in ratios.values() if np.isfinite(ratio)]
    middle = f", in the median {number(float(np.median(finite)), 2)} times" if finite else ""
    return list(larger.values()), (
        f"The standard deviation at γ = 1e-10 is more than twice that at OCReP's γ on {share(larger.values())} data "
        f"sets{middle}."
    )


def _verdicts(pairs: Iterable[Pair]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """The paper's verdicts, and ours by Welch's test on the reference split and by the paired test over splits."""
    listed_pairs = [pair for pair in pairs if pair.run]
    paper = Counter(pair.rivalry.verdict for pair in listed_pairs)
    welch = Counter(pair.welch for pair in listed_pairs if pair.welch)
    over = Counter(found[0] for pair in listed_pairs if (found := pair.paired_test))
    return paper, welch, over


def _wins(counts: Counter[str], rival: str) -> str:
    if counts["not rival"]:  # where the paper marks only rivals that are better
        return f"{rival} {counts['rival']}, not {rival} {counts['not rival']}"
    return f"{rival} {counts['rival']}, OCReP {counts['ocrep']}, neither {counts['tie']}"


def _counts(pairs: list[Pair], rival: str) -> str:
    paper, welch, over = _verdicts(pairs)
    return (
        f"Better in the paper: {_wins(paper, rival)}; by the paper's own test on our reference split: "
        f"{_wins(welch, rival)}; over all splits (corrected paired test, 5 %): {_wins(over, rival)}."
    )


def _pairs(study: Study, experiment: str, **where: object) -> list[Pair]:
    found = [pair for pair in study.pairs if pair.run and pair.rivalry.rival.experiment == experiment]
    return [pair for pair in found if all(getattr(pair.rivalry.rival, k) in v for k, v in where.items())]  # type: ignore[operator]


def cv_slightly_better(study: Study) -> Found:
    """Whether cross-validation wins more often than OCReP at fixed sizes, by both tests."""
    pairs = _pairs(study, "ocrep_vs_cv")
    _, welch, over = _verdicts(pairs)
    agree = [counts["rival"] > counts["ocrep"] for counts in (welch, over)] if pairs else []
    return agree, _counts(pairs, "CV")


def unregularized_rises(study: Study) -> Found:
    """Whether the unregularized error has a minimum inside the path and rises much after it."""
    found = {}
    for data in study.data_sets:
        curve = study.results.along_sizes(data, study.variant, "unregularized")
        if curve is not None and len(curve.at) > 2:
            found[data] = float(curve.mean[curve.best :].max()) > RISES_MUCH * float(curve.mean[curve.best])
    return list(found.values()), f"It rises by more than 20 % from its minimum on {share(found.values())} data sets."


def ocrep_keeps_decreasing(study: Study) -> Found:
    """Whether the OCReP curve ends near its minimum."""
    rises, agree = [], []
    for data in study.data_sets:
        curve = study.results.along_sizes(data, study.variant, "ocrep")
        if curve is None or len(curve.at) < 3:
            continue
        least, last = float(curve.mean[curve.best]), float(curve.mean[-1])
        agree.append(last <= RISES * least)
        if not agree[-1]:
            place = f"{number(least, 3)} at M={curve.at[curve.best]:.0f} to {number(last, 3)} at M={curve.at[-1]:.0f}"
            rises.append(f"{title(data)} rises from {place}")
    exceptions = f" {listed(rises)}." if rises else ""
    return agree, f"On {share(agree)} data sets the curve ends within 5 % of its minimum.{exceptions}"


def regression_at_chosen_sizes(study: Study) -> Found:
    """Regression: no significant winner against CV, and better than without regularization."""
    return _at_chosen_sizes(study, REGRESSION)


def classification_at_chosen_sizes(study: Study) -> Found:
    """Classification: better than CV in three of four, and better than without regularization."""
    return _at_chosen_sizes(study, [data for data in study.data_sets if data not in REGRESSION])


def _at_chosen_sizes(study: Study, data_sets: Iterable[str]) -> Found:
    cv = _pairs(study, "hidden_size", data=tuple(data_sets), method=("cv",))
    plain = _pairs(study, "hidden_size", data=tuple(data_sets), method=("unregularized",))
    agree = [bool(pair.as_paper(pair.welch)) for pair in (*cv, *plain) if pair.welch]
    return agree, f"Against CV. {_counts(cv, 'CV')} Against none. {_counts(plain, 'unregularized')}"


def smaller_deviations(study: Study) -> Found:
    """OCReP's standard deviation over draws against its rivals', on the reference split, at chosen sizes."""
    agree, printed = [], []
    for pair in _pairs(study, "hidden_size"):
        printed.append((pair.rivalry.ocrep.std or 0.0) < (pair.rivalry.rival.std or 0.0))
        ours = [spread.deviations.get(REFERENCE_SPLIT) for spread in (pair.ocrep, pair.rival)]
        if ours[0] is not None and ours[1] is not None and max(ours[0], ours[1]) > 0.0:
            agree.append(ours[0] < ours[1])
    return agree, (
        f"At chosen sizes OCReP has the smaller standard deviation in {share(agree)} comparisons with CV and with the "
        f"unregularized network on our reference split; in the paper's own numbers in {share(printed)}."
    )


def pseudoinversions_saved(study: Study) -> Found:
    """How many solutions a search takes, with and without a decomposition for each γ."""
    naive, shared = N_FOLDS * len(PAPER_GRID), N_FOLDS + 1
    return [True, False], (
        f"A search that decomposes H anew for each of {len(PAPER_GRID)} γ and {N_FOLDS} folds takes {naive} "
        f"decompositions. One decomposition serves all γ, so {shared} are enough: {N_FOLDS} more than OCReP."
    )


def better_conditioned(study: Study) -> Found:
    """Whether OCReP's condition number is below that of the pseudoinverse and of CV."""
    found = [one for one in study.conditions if one.ours is not None]
    agree = [bool(one.ours is not None and one.ours < 1.0) for one in found]
    cv = [one.ours for one in found if one.cell.method == "ocrep/cv" and one.ours is not None]
    least = f"; the smallest ratio to CV is {number(min(cv), 2)}" if cv else ""
    return agree, (
        f"The ratio of mean condition numbers is below 1 in {share(agree)} cases, as the theorem demands{least}. "
        f"{share(one.digit for one in found)} have the printed digit, {share(one.within for one in found)} are within "
        "a factor of two."
    )


def _as_paper(pairs: list[Pair], rival: str) -> Found:
    return [bool(pair.as_paper(pair.welch)) for pair in pairs if pair.welch], _counts(pairs, rival)


def gcv_small_and_large(study: Study) -> Found:
    """GCV on small data sets and on Segment."""
    return _as_paper(_pairs(study, "gcv", data=("iris", "wine", "machine_cpu", "segment")), "GCV")


def gcv_medium(study: Study) -> Found:
    """GCV on medium data sets, by size."""
    return _as_paper(_pairs(study, "gcv", data=("abalone", "housing", "delta_ailerons", "diabetes")), "GCV")


def kibria(study: Study) -> Found:
    """Kibria's estimate."""
    return _as_paper(_pairs(study, "kibria"), "Kibria")


def hoerl_kennard(study: Study) -> Found:
    """Hoerl and Kennard's estimate."""
    return _as_paper(_pairs(study, "hoerl_kennard"), "Hoerl-Kennard")


def only_with_few_units(study: Study) -> Found:
    """Whether the ridge estimates win only at the smallest size."""
    pairs = [*_pairs(study, "kibria"), *_pairs(study, "hoerl_kennard")]
    wins = [pair.rivalry.rival for pair in pairs if pair.welch == "rival"]
    named = listed(f"{title(cell.data)} M={cell.n_hidden}" for cell in wins) or "none"
    agree = [cell.n_hidden == 50 for cell in wins]
    return agree, f"Wins of either on our reference split, by the paper's test: {named}."


def quoted(experiment: str, rival: str) -> Callable[[Study], Found]:
    """Return the check of a comparison with numbers that the paper quotes, with our implementation of the rival.

    It holds if the better method is the paper's in the mean over splits, and significantly so.
    """

    def check(study: Study) -> Found:
        pairs = _pairs(study, experiment)
        same = [pair.winner == pair.rivalry.verdict for pair in pairs]
        agree = same + [bool(pair.as_paper(found[0])) for pair in pairs if (found := pair.paired_test)]
        _, _, over = _verdicts(pairs)
        return agree, (
            f"The paper quotes {rival}; here it is our implementation. In the mean over splits the paper's winner is "
            f"better on {share(same)} data sets; over splits (corrected paired test, 5 %): {_wins(over, rival)}."
        )

    return check


def stable(study: Study) -> Found:
    """The change of predictions without one row, and the leave-one-out error, at γ = σ₁σ_p."""
    agree, factors, losses = [], [], []
    for data in study.data_sets:
        curves = study.results.stability(data)
        if curves is None:
            continue
        change, loss = curves["error"], curves["cv_error"]
        at = int(np.argmin(np.abs(np.log(change.at))))
        factors.append(float(change.mean[0] / change.mean[at]))
        losses.append(float(loss.mean[at] / loss.mean.min()))
        agree.append(factors[-1] > 2.0 and losses[-1] <= NEAR)
    if not agree:
        return [], ""
    near = sum(loss <= NEAR for loss in losses)
    return agree, (
        f"At γ = σ₁σ_p predictions change {min(factors):,.0f} to {max(factors):,.0f} times less than with the smallest "
        f"γ when one row is left out. They change less still with a larger γ: the least condition number "
        f"does not make the change least. The leave-one-out error is within 10 % of its least on {near} of "
        f"{len(losses)} data sets."
    )


CHECKS: tuple[tuple[str, str, Callable[[Study], Found]], ...] = (
    ("3.3", "The γ of least condition number gives stable solutions, and these predict well.", stable),
    ("5.1", "OCReP and cross-validation perform alike, close to the best γ of the grid.", near_the_minimum),
    ("5.1", "Small γ give widely spread errors.", dispersion),
    ("5.1", "At fixed sizes cross-validation is better in slightly more cases.", cv_slightly_better),
    ("5.2", "Without regularization the error falls first and then rises much, on all data sets.", unregularized_rises),
    ("5.2", "The error curves of OCReP keep decreasing.", ocrep_keeps_decreasing),
    (
        "5.2",
        "Regression at chosen sizes: comparable with cross-validation, always better than no regularization.",
        regression_at_chosen_sizes,
    ),
    (
        "5.2",
        "Classification at chosen sizes: better than cross-validation on three of four, always better than no "
        "regularization.",
        classification_at_chosen_sizes,
    ),
    ("5.2", "OCReP has the smaller standard deviation in almost all cases.", smaller_deviations),
    ("5.1, 5.3, 7", "OCReP saves hundreds of pseudoinversions.", pseudoinversions_saved),
    ("5.3", "OCReP is better conditioned than no regularization and than cross-validation.", better_conditioned),
    ("6.1", "On small data sets and Segment OCReP beats GCV in all cases.", gcv_small_and_large),
    (
        "6.1",
        "On medium data sets GCV wins with 50 units, three of four are ties with 100, OCReP wins with more.",
        gcv_medium,
    ),
    ("6.1", "Kibria's estimate is better in two cases, OCReP in twelve.", kibria),
    ("6.1", "Hoerl and Kennard's estimate is better in three cases, OCReP in eight.", hoerl_kennard),
    ("6.1", "Both estimates are better only with 50 units.", only_with_few_units),
    ("6.2", "OCReP beats ELM on all four classification sets.", quoted("elm", "ELM")),
    ("6.2", "OCReP beats RELM on Segment and loses to it on Diabetes.", quoted("relm", "RELM")),
    ("6.2", "OCReP always has a lower RMSE than TROP-ELM.", quoted("trop_elm", "TROP-ELM")),
)
