"""The stages of a study: what is run, in which order, and what later stages take from earlier ones."""

import dataclasses
from collections import Counter

import pytest
from support.tiny_study import TINY

from ocrep.study.protocol import FULL, QUICK, Counts, Variant
from ocrep.study.results import Results, Row
from ocrep.study.schedule import chosen_sizes, stages


def finished(protocol, data_sets):
    """All jobs by stage, as if every path had its least error at a size of its own."""
    results, found = Results(), []
    for stage in stages(protocol, data_sets, results):
        found.append(stage)
        for job in stage:
            if job.kind == "path":
                n_parts = protocol.segment_parts if job.data == "segment" else 1
                sizes = protocol.path_sizes(job.data)[job.part :: n_parts]
                best = {"ocrep": sizes[0], "cv": sizes[-1], "unregularized": sizes[len(sizes) // 2]}
                rows = [
                    Row(m, method, job.targets, error=1.0, cv_error=abs(m - least) + 0.1 * job.draw)
                    for method, least in best.items()
                    for m in sizes
                ]
                results.add(job.key, rows)
    return found


def test_the_full_study_has_the_counts_of_its_protocol():
    jobs = [job for stage in finished(FULL, FULL.data_sets) for job in stage]
    keys = Counter(job.key for job in jobs)
    unique = {job.key: job for job in jobs}.values()
    fixed = Counter((job.data, job.biases, job.split == 0) for job in unique if job.kind == "fixed")
    for biases in ("symmetric", "unit"):
        assert all(fixed[data, biases, True] == 50 for data in FULL.data_sets)
        assert fixed["abalone", biases, False] == 300
        assert fixed["iris", biases, False] == 1500
        assert fixed["segment", biases, False] == 30
    paths = Counter((job.data, job.split == 0) for job in unique if job.kind == "path")
    assert (paths["housing", True], paths["housing", False]) == (10, 10)
    assert (paths["segment", True], paths["segment", False]) == (3 * 15, 10 * 15)
    chosen = Counter((job.data, job.split == 0) for job in unique if job.kind == "chosen")
    assert (chosen["iris", True], chosen["iris", False]) == (50, 100)
    assert (chosen["segment", True], chosen["segment", False]) == (50, 100)
    assert max(keys.values()) <= 3  # a later stage may name a job again; it is not run again
    assert len({(job.split, job.draw, job.seed) for job in unique}) == len({job.seed for job in unique})


def test_what_decides_comes_first():
    found = finished(FULL, FULL.data_sets)
    assert {job.kind for job in found[0]} == {"fixed"}
    assert {job.split for job in found[0]} == {0}
    assert {job.biases for job in found[0]} == {"symmetric", "unit"}
    assert "segment" not in {job.data for job in found[0]}
    assert {job.data for job in found[1]} == {"delta_ailerons", "housing"}
    assert {job.biases for job in found[1]} == {"symmetric"}


def test_sizes_are_chosen_by_the_mean_over_draws_and_only_when_all_is_run():
    results = Results()
    for draw, errors in enumerate(([1.0, 5.0, 2.0], [9.0, 1.0, 2.0])):
        for method in ("ocrep", "cv", "unregularized"):
            rows = [Row(10 * k, method, "raw", error=1.0, cv_error=e) for k, e in enumerate(errors, 1)]
            results.add(f"path/iris/0/{draw}/symmetric/raw/0", rows)
    assert chosen_sizes(results, "iris", Variant(), 0, 6) == (("ocrep", 30), ("cv", 30), ("unregularized", 30))
    assert chosen_sizes(results, "iris", Variant(), 0, 7) == ()
    assert chosen_sizes(results, "iris", Variant(), 1, 6) == ()
    assert chosen_sizes(results, "iris", Variant("unit"), 0, 6) == ()


def test_of_equal_sizes_the_smallest_is_chosen():
    results = Results()
    for method in ("ocrep", "cv", "unregularized"):
        results.add("path/iris/0/0/symmetric/raw/0", [Row(m, method, "raw", cv_error=1.0) for m in (30, 10, 20)])
    assert dict(chosen_sizes(results, "iris", Variant(), 0, 3))["ocrep"] == 10


def test_jobs_at_chosen_sizes_know_them():
    (stage,) = [stage for stage in finished(TINY, ("iris",)) if stage and stage[0].kind == "chosen"][:1]
    assert dict(stage[0].sizes) == {"ocrep": 5, "cv": 10, "unregularized": 10}
    assert {job.targets for job in stage} == {"raw"}


@pytest.mark.parametrize("protocol", [FULL, QUICK, TINY])
def test_a_protocol_is_plain_data(protocol):
    import json

    assert json.loads(json.dumps(protocol.as_dict()))["revision"] == 1
    assert protocol.splits_of("iris") == protocol.further_small
    assert dataclasses.replace(protocol, further=Counts(7, 2)).splits_of("housing") == Counts(7, 2)
