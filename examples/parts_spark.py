"""Train on a Spark dataframe: each partition becomes a part where it lies, and parts merge in a tree.

`fit_on_spark(model, frame, target)` needs Spark 4 with PyArrow, and ocrep on the workers. Cache a frame that is costly
or not deterministic: it is read twice.
"""

import math
from functools import reduce

import pyarrow as pa
from pyspark import TaskContext

from ocrep import parts

# So many parts are merged by one task.
ARITY = 8


def fit_on_spark(model, frame, target):
    """The fitted model; `frame` has the inputs and the target as columns."""
    plan = parts.plan(model)

    def survey(X, y, number):
        return plan.survey(X, y, part_number=number)

    plan = plan.with_survey(accumulated(frame, target, survey, parts.Survey))

    def part(X, y, number, plan=plan):
        return plan.of(X, y, part_number=number)

    return plan.finish(accumulated(frame, target, part, parts.Part))


def accumulated(frame, target, work, kind):
    """work(X, y, number) of every partition, merged."""

    def of_partition(batches):
        batches = list(batches)
        if batches:
            rows = pa.Table.from_batches(batches).to_pandas()
            # The number of a partition is the same when its task is run again, here or elsewhere.
            yield row(work(rows.drop(columns=target), rows[target], TaskContext.get().partitionId()))

    def of_some(batches):
        found = [kind.from_bytes(data) for batch in batches for data in batch.column("part").to_pylist()]
        if found:
            yield row(reduce(kind.merge, found))

    def row(made):
        return pa.RecordBatch.from_pydict({"part": [made.to_bytes()]})

    n_parts = frame.rdd.getNumPartitions()
    made = frame.mapInArrow(of_partition, "part binary")
    while n_parts > ARITY:
        n_parts = math.ceil(n_parts / ARITY)
        made = made.repartition(n_parts).mapInArrow(of_some, "part binary")
    return reduce(kind.merge, (kind.from_bytes(bytes(data)) for (data,) in made.collect()))
