"""Train on rows that lie in parts, on any engine: a plan goes out, a small part comes back for each, and parts merge.

`plan(model)` is small and can be pickled. `Plan.of` turns the rows of one part into a `Part`, a triangular factor (one
per fold); `Part.merge` joins them in any order; `Plan.finish` gives the fitted model. Ranges, labels and groups that
must be known first are found by `Plan.survey`.
"""

from ocrep.parts.plan import Plan as Plan
from ocrep.parts.plan import plan as plan
from ocrep.parts.summaries import Part as Part
from ocrep.parts.summaries import Survey as Survey

__all__ = ["Part", "Plan", "Survey", "plan"]
