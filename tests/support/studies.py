"""Studies whose answers are known by construction."""

import itertools

from ocrep.study.protocol import FULL, Variant
from ocrep.study.results import Results, Row
from ocrep.study.yardsticks import Study

ABOUT = {
    "protocol": FULL.as_dict() | {"name": "made"},
    "versions": {"ocrep": "1", "numpy": "2"},
    "missing": {},
}


def made(*parts, variant=None, about=ABOUT):
    """A study with the rows of all parts; `variant` takes the place of the decision."""
    results = Results()
    for kind, data, biases, place, row in itertools.chain(*parts):
        results.put(kind, data, biases, place, row)
    study = Study(results, about)
    if variant is not None:
        study.__dict__["decision"] = type(study.decision)(variant, study.decision.support)
    return study


def rows(
    data,
    n_hidden,
    method,
    center,
    *,
    kind="fixed",
    n_splits=60,
    n_draws=4,
    noise=0.0,
    shift=0.01,
    scale="raw",
    biases="symmetric",
    first=0,
    **numbers,
):
    """Errors `center`·(1 + shift·k) on split k = first, first + 1, …, with draws that alternate by ±noise."""
    for split, draw in itertools.product(range(first, first + n_splits), range(n_draws)):
        error = center * (1 + shift * split) + (noise if draw % 2 else -noise)
        yield kind, data, biases, (split, draw), Row(n_hidden, method, scale, error=error, **numbers)


SYMMETRIC = Variant("symmetric", "raw", "gcv")
