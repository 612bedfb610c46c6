"""The Spark recipe on a local Spark: `make test-spark`."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession
from support.problems import smooth_problem

from ocrep import PinvClassifier, PinvRegressor

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))
from parts_spark import fit_on_spark

X, Y = smooth_problem(3000, 4)
NEW = pd.DataFrame(smooth_problem(50, 4, seed=9)[0], columns=list("abcd"))
LABELS = np.array(["low", "mid", "up"])[np.digitize(Y, [-0.4, 0.6])]


@pytest.fixture(scope="module")
def spark():
    builder = SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    yield session
    session.stop()


def frame_of(spark, rows, folder, n_partitions):
    rows.to_parquet(folder / "rows.parquet")
    return spark.read.parquet(str(folder / "rows.parquet")).repartition(n_partitions).cache()


@pytest.mark.parametrize("n_partitions", [1, 3, 20])
@pytest.mark.parametrize(
    ("model", "y"),
    [
        (PinvRegressor(40, gamma="kfold", random_state=0, fit_intercept=True), Y),
        (PinvClassifier(40, gamma="ocrep_cv", random_state=0, class_weight="balanced", weight_init="pairs"), LABELS),
    ],
    ids=["regression", "classification"],
)
def test_spark_gives_the_model_of_fit(spark, model, y, n_partitions, tmp_path):
    rows = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    found = fit_on_spark(model, frame_of(spark, rows, tmp_path, n_partitions), "y")
    fitted = model.fit(rows[list("abcd")], rows["y"])
    np.testing.assert_allclose(found.gamma_, fitted.gamma_, rtol=1e-5)
    found, fitted = found.with_gamma(fitted.gamma_), fitted.with_gamma(fitted.gamma_)
    answer = "predict" if isinstance(model, PinvRegressor) else "decision_function"
    expected = getattr(fitted, answer)(NEW)
    np.testing.assert_allclose(getattr(found, answer)(NEW), expected, rtol=0, atol=1e-10 * np.max(np.abs(expected)))


def test_a_task_that_is_killed_and_run_again_does_no_harm(spark, tmp_path):
    def fail_at_first(batches):
        if TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("killed")
        yield from batches

    rows = pd.DataFrame(X, columns=list("abcd")).assign(y=Y)
    model = PinvRegressor(40, gamma="kfold", random_state=0)
    frame = frame_of(spark, rows, tmp_path, 4)
    found = fit_on_spark(model, frame.mapInArrow(fail_at_first, frame.schema), "y")
    np.testing.assert_allclose(found.gamma_, model.fit(rows[list("abcd")], rows["y"]).gamma_, rtol=1e-5)
