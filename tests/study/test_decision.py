"""The reading of the paper: decided by the published ratios, and by nothing else."""

import dataclasses
import itertools

import numpy as np
import pytest
from support.studies import made, rows

from ocrep.study import decision
from ocrep.study.decision import condition_ratio, decide
from ocrep.study.protocol import BIASES, Variant
from ocrep.study.published import cells, rivalries
from ocrep.study.results import Row

PLAIN = [cell for cell in cells() if cell.method == "ocrep/unregularized" and cell.data != "segment"]
RATIOS = [
    r
    for r in rivalries()
    if r.rival.data in decision.DECIDING_SETS
    and r.rival.experiment in ("ocrep_vs_cv", "gcv", "kibria", "hoerl_kennard")
]


def conditions(biases, factor):
    """Condition numbers whose ratios are the published ones times a factor."""
    for cell in PLAIN:
        for method, condition in (("ocrep", factor * cell.error), ("unregularized", 1.0)):
            yield from rows(cell.data, cell.n_hidden, method, 1.0, n_splits=1, biases=biases, condition=condition)


def errors(biases, scale, gcv, factor):
    """Errors whose ratios to OCReP are the published ones times a factor; GCV's under one of its names."""
    for pair in RATIOS:
        method = gcv if pair.rival.method == "gcv" else pair.rival.method
        options = {"biases": biases, "scale": scale, "n_splits": 30, "n_draws": 2}
        yield from rows(
            pair.rival.data,
            pair.rival.n_hidden,
            method,
            factor * pair.rival.error,
            noise=1e-3 * pair.rival.error,
            **options,
        )
    for data, n_hidden, error in {(p.ocrep.data, p.ocrep.n_hidden, p.ocrep.error) for p in RATIOS}:
        yield from rows(data, n_hidden, "ocrep", error, biases=biases, scale=scale, n_splits=30, n_draws=2)


def test_seven_ratios_decide_the_biases():
    assert len(PLAIN) == 7
    study = made(conditions("symmetric", 1.3), conditions("unit", 1.01))
    found = decide(study.results)
    assert found.variant.biases == "unit"
    symmetric, unit = found.support["biases"]
    assert (unit.inside, unit.total) == (7, 7)
    assert symmetric.inside < 7
    assert symmetric.distance == pytest.approx(np.log(1.3))


def test_with_as_many_digits_the_nearer_biases_win():
    study = made(conditions("symmetric", 3.0), conditions("unit", 4.0))
    assert [one.inside for one in decide(study.results).support["biases"]] == [0, 0]
    assert decide(study.results).variant.biases == "symmetric"


@pytest.mark.parametrize(("right", "wrong"), [("unit", "raw"), ("raw", "unit")])
@pytest.mark.parametrize(("named", "other"), [("gcv", "gcv_lambda"), ("gcv_lambda", "gcv")])
def test_targets_and_n_follow_the_ratios_on_two_data_sets(right, wrong, named, other):
    good, bad = errors("symmetric", right, named, 1.0), errors("symmetric", wrong, named, 1.3)
    false = [row for row in errors("symmetric", right, other, 1.4) if row[-1].method == other]
    found = decide(made(good, bad, false).results)
    assert found.variant == Variant("symmetric", right, named)
    support = {one.reading: one for one in found.support["targets"]}
    assert support[right].inside == support[right].total == 24
    assert support[right].distance == 0.0
    assert support[wrong].inside < 24


def test_nothing_to_decide_leaves_the_first_reading():
    found = decide(made().results)
    assert found.variant == Variant()
    assert all(one.total == 0 for support in found.support.values() for one in support)


def test_other_data_sets_and_segment_do_not_decide():
    parts = [
        rows("abalone", m, method, 1.0, scale=scale)
        for m, method, scale in itertools.product((50, 300), ("ocrep", "kibria", "cv"), ("raw", "unit"))
    ]
    parts += [
        rows("segment", 1500, m, 1.0, n_splits=1, condition=c) for m, c in (("ocrep", 1.0), ("unregularized", 9.0))
    ]
    assert all(one.total == 0 for support in decide(made(*parts).results).support.values() for one in support)


def test_condition_ratios_are_of_means_over_the_draws_that_both_have():
    cell = next(cell for cell in PLAIN if cell.data == "iris")
    numbers = {("ocrep", 0): 2.0, ("ocrep", 1): 4.0, ("unregularized", 0): 10.0, ("unregularized", 1): 50.0}
    numbers |= {("ocrep", 2): 1e9}
    parts = [
        ("fixed", "iris", "symmetric", (0, draw), Row(100, m, "raw", condition=c)) for (m, draw), c in numbers.items()
    ]
    assert condition_ratio(made(parts).results, Variant(), cell) == {0: pytest.approx(0.1)}


def test_a_variant_says_what_it_is():
    text = str(Variant("unit", "unit", "gcv_lambda"))
    assert "U(0, 1)" in text
    assert "scaled to [0, 1]" in text
    assert "γ = λ" in text
    assert {dataclasses.replace(Variant(), biases=name).biases for name in BIASES} == set(BIASES)
