"""Which columns matter, what each does, and why a row is predicted as it is."""

from ocrep.explain.contributions import Contributions, contributions
from ocrep.explain.effects import Effect, effect
from ocrep.explain.importance import Importance, importance

__all__ = ["Contributions", "Effect", "Importance", "contributions", "effect", "importance"]
