"""`compare`: the model of `fit` beside others over splits, and the corrected tests of the differences."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocrep.tables.comparison import compare_methods, holm
from ocrep.tables.training import Settings, divided, problem_of_file


def problem(tmp_path, n=150, **settings):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (n, 3))
    frame = pd.DataFrame(x, columns=list("abc")).assign(y=x[:, 0] + 0.5 * rng.normal(size=n))
    frame.to_csv(tmp_path / "d.csv", index=False)
    return problem_of_file(tmp_path / "d.csv", "y", Settings(**settings))


def test_comparison_marks_what_really_differs(tmp_path):
    told = []
    found = compare_methods(
        problem(tmp_path, n_hidden=20),
        n_splits=3,
        rules=["ocrep", "none"],
        published=True,
        progress=lambda stage, done, total: told.append((done, total)),
    )
    methods = {method.name: method for method in found.methods}
    assert told == [(split, 3) for split in range(3)]
    assert {"network", "linear model", "gradient boosting", "γ by ocrep", "γ by none", "ELM", "RELM"} <= set(methods)
    assert methods["γ by none"].mean > methods["γ by ocrep"].mean
    assert methods["network"].verdict == ""
    for method in found.methods:
        assert method.mean == pytest.approx(np.mean(method.errors))
        assert method.difference == pytest.approx(method.mean - methods["network"].mean, abs=1e-12)
        assert (method.verdict != "") == (method.p_value < 0.05 and method.name != "network")
        if method.verdict:
            assert (method.verdict == "worse") == (method.difference > 0)
    with pytest.raises(ValueError, match="at least 2"):
        compare_methods(problem(tmp_path), n_splits=1)


def test_a_network_that_cannot_learn_is_told_what_is_better(tmp_path):
    found = compare_methods(problem(tmp_path, 400, n_hidden=1, gamma=1e9, layer={"direct_link": False}), n_splits=4)
    assert found.methods[-1].name == "network"
    assert found.advice().startswith(f"{found.methods[0].name} is better here: its error is ")


def test_labels_that_training_does_not_have_are_wrong_for_every_method(tmp_path, monkeypatch, rng):
    for slow in ("simple_models", "_installed"):
        monkeypatch.setattr(f"ocrep.tables.comparison.{slow}", lambda *rows, **options: {})
    k = np.concatenate([np.repeat(np.arange(4), 6), np.repeat(np.arange(4, 20), 2)])
    frame = pd.DataFrame({"a": k + 0.1 * rng.normal(size=len(k)), "b": rng.normal(size=len(k)), "k": k}).astype(
        {"k": str}
    )
    frame.assign(k="L" + frame["k"]).to_csv(tmp_path / "rare.csv", index=False)
    settings = Settings(n_hidden=50, gamma="kfold")
    rare = problem_of_file(tmp_path / "rare.csv", "k", settings)
    found = compare_methods(rare, n_splits=3, rules=["kfold", "ocrep"])
    for method in found.methods:
        for seed, error in enumerate(method.errors):
            training, (held_out,) = divided(replace(rare, settings=replace(settings, seed=seed)), 0.3)
            unknown = ~np.isin(held_out.y, training.sample.y)
            assert unknown.sum() >= 3
            assert error >= unknown.mean() - 1e-12
            assert error * len(unknown) == pytest.approx(round(error * len(unknown)))


def test_what_is_not_known_is_not_called_significant():
    assert holm([np.nan, 0.01]) == [1.0, 0.02]


def test_a_method_that_raises_is_not_applicable(tmp_path, monkeypatch):
    from ocrep.tables import comparison

    def fail(random_state):
        raise ValueError("not here")

    monkeypatch.setitem(comparison._LITERATURE, "regression", {"ELM": fail})
    found = compare_methods(problem(tmp_path, n_hidden=5), n_splits=2, published=True)
    assert found.not_applicable["ELM"] == "not here"


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_against_its_definition(p_values):
    adjusted = holm(p_values)
    order = np.argsort(p_values, kind="stable")
    for rank, index in enumerate(order):
        steps = [(len(p_values) - k) * p_values[order[k]] for k in range(rank + 1)]
        assert adjusted[index] == min(1.0, max(steps))
    assert all(a >= p for a, p in zip(adjusted, p_values, strict=True))
