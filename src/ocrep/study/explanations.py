"""Why published errors lie outside ours: a misprint, the paper's split, or unexplained."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from ocrep.study.published import Cell
from ocrep.study.wording import NAMES, title
from ocrep.study.yardsticks import Judged, Study

MISPRINT, SPLIT, UNEXPLAINED = "a suspected misprint", "the paper's split", "unexplained"


@dataclass(frozen=True, slots=True)
class Outside:
    """A published error outside the 1st to 99th percentile of ours, and the reason."""

    judged: Judged
    reason: str

    @property
    def name(self) -> str:
        """The cell in words."""
        cell = self.judged.cell
        return f"{NAMES[cell.method]} on {title(cell.data)} M={cell.n_hidden} (table {cell.table})"


def outside(study: Study) -> list[Outside]:
    """Return all published errors outside, in the paper's order, with reasons.

    The reason is the split if the published ratio to OCReP (of OCReP: of cross-validation to it) lies inside ours: then
    rule and rival agree with the paper as they should, and only the rows tested on are harder or easier.
    """
    inside = {_key(pair.rivalry.rival): pair.inside for pair in study.pairs}
    found = []
    for one in study.judged:
        if one.inside is not False or one.cell.quoted or one.cell.repeated:
            continue
        partner = _key(one.cell)
        if one.cell.method == "ocrep":
            rivals = (p.rivalry for p in study.pairs if p.rivalry.ocrep == one.cell and p.rivalry.rival.method == "cv")
            partner = next((_key(rivalry.rival) for rivalry in rivals), partner)
        reason = MISPRINT if one.cell.misprint else SPLIT if inside.get(partner) else UNEXPLAINED
        found.append(Outside(one, reason))
    return found


def _key(cell: Cell) -> tuple[str, str, int, str]:
    return cell.experiment, cell.data, cell.n_hidden, cell.method


@dataclass(frozen=True, slots=True)
class SplitOfPaper:
    """Where the errors of OCReP and cross-validation on one data set lie among our splits."""

    data: str
    percentiles: tuple[float, ...]

    @property
    def middle(self) -> float:
        """Their median."""
        return median(self.percentiles)

    @property
    def easy(self) -> bool:
        """Whether all lie below the 25th percentile."""
        return max(self.percentiles) < 25.0

    @property
    def hard(self) -> bool:
        """Whether all lie above the 75th percentile."""
        return min(self.percentiles) > 75.0


def splits_of_paper(study: Study) -> list[SplitOfPaper]:
    """Return the percentiles of OCReP and cross-validation by data set."""
    found = []
    for data in study.about["protocol"]["data_sets"]:
        own = [
            one.percentile
            for one in study.judged
            if one.cell.data == data
            and one.cell.experiment == "ocrep_vs_cv"
            and one.percentile is not None
            and not one.cell.misprint
        ]
        if own:
            found.append(SplitOfPaper(str(data), tuple(own)))
    return found


def by_reason(found: list[Outside]) -> dict[str, list[Outside]]:
    """Group by reason, in a fixed order."""
    grouped = {reason: [one for one in found if one.reason == reason] for reason in (SPLIT, MISPRINT, UNEXPLAINED)}
    return {reason: ones for reason, ones in grouped.items() if ones}
