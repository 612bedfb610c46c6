"""A study small enough for a test: every experiment once, in seconds."""

import dataclasses

from ocrep.study.protocol import FIXED_SIZES, QUICK

TINY = dataclasses.replace(
    QUICK,
    name="tiny",
    data_sets=("iris", "machine_cpu"),
    reference_draws=2,
    further_splits=1,
    further_draws=1,
    path_step=5,
    path_largest=10,
    fixed_sizes=tuple((name, (6, 9)) for name in FIXED_SIZES),
    literature=(),
)
