"""A study small enough for a test, studies whose answers are known by construction, and published numbers by name."""

import dataclasses
import itertools

from study.judgement import Study
from study.protocol import FIXED_SIZES, FULL, QUICK, Counts, Variant
from study.published import cells, rivalries
from study.results import Results, Row, frame_of

# Every experiment once, in seconds.
TINY = dataclasses.replace(
    QUICK,
    name="tiny",
    data_sets=("iris", "machine_cpu"),
    reference_draws=2,
    further=Counts(2, 1),
    further_small=Counts(2, 1),
    path_draws=2,
    path_splits=1,
    path_step=5,
    path_largest=10,
    chosen_draws=2,
    beyond_splits=1,
    fixed_sizes=tuple((name, (6, 9)) for name in FIXED_SIZES),
    elm_size=9,
    literature=(),
)
ABOUT = {
    "protocol": FULL.as_dict() | {"name": "made"},
    "versions": {"ocrep": "1", "numpy": "2"},
    "missing": {},
}
SYMMETRIC = Variant("symmetric", "raw", "gcv")


def results(*parts):
    """The rows (kind, data, biases, split, draw, Row) of all parts."""
    return Results.of(frame_of(itertools.chain(*parts)))


def made(*parts, variant=None, about=ABOUT):
    """A study with the rows of all parts; `variant` takes the place of the decision."""
    return Study(results(*parts), about, variant)


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
        yield kind, data, biases, split, draw, Row(n_hidden, method, scale, error=error, **numbers)


def cell(experiment, data, n_hidden, method):
    where = experiment, data, n_hidden, method
    return next(c for c in cells() if (c.experiment, c.data, c.n_hidden, c.method) == where)


def rivalry(experiment, data, method, n_hidden=None):
    found = (r for r in rivalries() if (r.rival.experiment, r.rival.data, r.rival.method) == (experiment, data, method))
    return next(r for r in found if n_hidden in (None, r.rival.n_hidden))
