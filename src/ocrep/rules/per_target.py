"""`PerTarget`: any rule as one that chooses a γ for each target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from ocrep._linalg.folds import FoldPlan
from ocrep._linalg.spectrum import Spectrum
from ocrep.rules.base import Needs, Rule
from ocrep.rules.choice import Choice


@dataclass(frozen=True, slots=True)
class PerTarget(Rule):
    """A rule that chooses γ for each target, as if it were the only one.

    Parameters
    ----------
    rule : Rule
        A rule that can: its `targets` are not "together".
    """

    rule: Rule

    def __post_init__(self) -> None:
        self.rule.check_per_target()

    @classmethod
    def named(cls) -> tuple[Self, ...]:
        """Return no rule: `gamma_per_target=True` takes the place of a name."""
        return ()

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the rule."""
        return self.rule.name

    @property
    def needs(self) -> Needs:  # type: ignore[override]
        """What the rule reads."""
        return self.rule.needs

    @property
    def folds(self) -> FoldPlan | None:  # type: ignore[override]
        """How the rule divides the rows."""
        return self.rule.folds

    @property
    def searches(self) -> bool:  # type: ignore[override]
        """Whether the rule searches."""
        return self.rule.searches

    @property
    def grid(self) -> str | Sequence[float] | None:  # type: ignore[override]
        """The γ that the rule was told to try."""
        return self.rule.grid

    def for_own_features(self) -> Self:
        """The same with the rule for features that the user brings."""
        return replace(self, rule=self.rule.for_own_features())

    def with_folds(self, plan: FoldPlan) -> Self:
        """The same with the rule for other folds."""
        return replace(self, rule=self.rule.with_folds(plan))

    def choose(self, spectrum: Spectrum, **more: Any) -> Choice:
        """Choose a γ for each target."""
        return self.rule.choose(spectrum, **{**more, "per_target": True})

    def _choose(self, spectrum: Spectrum, folds: Any, rows: Any, /) -> Choice:
        return self.choose(spectrum, folds=folds, rows=rows)
