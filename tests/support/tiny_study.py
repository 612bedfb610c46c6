"""A study small enough for a test: every experiment once, in seconds."""

import dataclasses

from ocrep.study.protocol import FIXED_SIZES, QUICK, Counts

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
