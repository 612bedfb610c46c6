"""The last sentence of `ocrep compare`, and the sample of rows that simple models are trained on."""

import numpy as np
import pandas as pd
import pytest

from ocrep.tables.coding import TablePart
from ocrep.tables.comparison import Comparison, Method
from ocrep.tables.problem import read_problem


def comparison(**means):
    """Methods with errors of little spread around these means."""
    noise = 0.01 * np.sin(np.arange(10.0))
    methods = []
    for number, (name, mean) in enumerate(means.items()):
        errors = tuple(mean + np.roll(noise, number))
        methods.append(
            Method(name.replace("_model", " model").replace("gradient_", "gradient "), errors, mean, 0.01, 0.0, 1.0)
        )
    return Comparison(tuple(sorted(methods, key=lambda method: method.mean)), {}, 10, 0.3)


@pytest.mark.parametrize(
    ("means", "sentence"),
    [
        ({"ocrep_cv": 1.0, "kfold": 1.1}, "ocrep_cv has the least error."),
        ({"kfold": 1.0, "ocrep": 1.1}, "kfold has the least error."),
        ({"ocrep_cv": 1.0, "kfold": 0.999}, "No method is significantly better than ocrep_cv, the default: keep it."),
        (
            {"ocrep_cv": 1.0, "gcv": 0.8},
            "Use --gamma gcv: its error is 20 % below that of ocrep_cv, the default.",
        ),
        ({"ocrep_cv": 1.0, "RELM": 0.5}, "Use RELM: its error is 50 % below that of ocrep_cv, the default."),
        (
            {"ocrep_cv": 1.0, "linear_model": 0.9},
            "A linear model is better than all networks here: its error is 10 % below that of ocrep_cv, the default.",
        ),
        (
            {"ocrep_cv": 1.0, "gradient_boosting": 0.75},
            "Gradient boosting is better than all networks here: "
            "its error is 25 % below that of ocrep_cv, the default.",
        ),
    ],
)
def test_the_sentence(means, sentence):
    assert comparison(**means).advice() == sentence


def test_a_sample_of_rows_is_part_of_all_and_of_about_the_size(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"x": rng.standard_normal(4000), "t": rng.choice(["a", "b", "c"], 4000), "y": np.arange(4000.0)}
    )
    frame.to_parquet(tmp_path / "t.parquet")
    problem = read_problem(tmp_path / "t.parquet", "y", task="regression")
    part = TablePart.of(problem.rows, problem.survey)
    X, y = part.sample(10_000)
    np.testing.assert_array_equal(y, frame["y"])
    some, targets = part.sample(1000)
    np.testing.assert_array_equal(some, X[targets.astype(int)])
    assert len(targets) == pytest.approx(1000, abs=4 * np.sqrt(750))
    assert (np.diff(targets) > 0).all()
