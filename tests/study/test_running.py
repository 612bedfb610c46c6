"""Running a study: its jobs in stages, folders that resume and refuse, published files, and the command line."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.studies import TINY, results

import study
from study.__main__ import main
from study.page import report_text
from study.protocol import FULL, QUICK, REVISION, Counts, Variant
from study.results import Row
from study.running import chosen_sizes, read_lines, stages


def path_rows(data, split, draw, errors, method="ocrep", targets="raw", biases="symmetric"):
    """Cross-validation errors by hidden size."""
    for size, error in errors.items():
        yield "path", data, biases, split, draw, Row(size, method, targets, error=1.0, cv_error=error)


def jobs_of(protocol, data_sets):
    """All jobs by stage, as if every path had its least error at a size of its own."""
    known, found = [], []

    def collected():
        return results(*map(of_path, known))

    def of_path(job):
        n_parts = protocol.segment_parts if job.data == "segment" else 1
        sizes = protocol.path_sizes(job.data)[job.part :: n_parts]
        best = {"ocrep": sizes[0], "cv": sizes[-1], "unregularized": sizes[len(sizes) // 2]}
        for method, least in best.items():
            errors = {m: abs(m - least) + 0.1 * job.draw for m in sizes}
            yield from path_rows(job.data, job.split, job.draw, errors, method, job.targets, job.biases)

    for stage in stages(protocol, data_sets, collected):
        found.append(stage)
        known += [job for job in stage if job.kind == "path"]
    return found


@pytest.fixture(scope="module")
def full():
    return jobs_of(FULL, FULL.data_sets)


def test_the_full_study_has_the_counts_of_its_protocol(full):
    jobs = [job for stage in full for job in stage]
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
    assert len({(job.split, job.draw, job.seed) for job in unique}) == len({job.seed for job in unique})


def test_what_decides_comes_first(full):
    assert {job.kind for job in full[0]} == {"fixed"}
    assert {job.split for job in full[0]} == {0}
    assert {job.biases for job in full[0]} == {"symmetric", "unit"}
    assert "segment" not in {job.data for job in full[0]}
    assert {job.data for job in full[1]} == {"delta_ailerons", "housing"}
    assert {job.biases for job in full[1]} == {"symmetric"}


def test_sizes_are_chosen_by_the_mean_over_draws_and_only_when_all_is_run():
    methods = ("ocrep", "cv", "unregularized")
    errors = [{10: 1.0, 20: 5.0, 30: 2.0}, {10: 9.0, 20: 1.0, 30: 2.0}]
    known = results(*(path_rows("iris", 0, draw, e, method) for draw, e in enumerate(errors) for method in methods))
    assert chosen_sizes(known, "iris", Variant(), 0, 6) == tuple((method, 30) for method in methods)
    assert chosen_sizes(known, "iris", Variant(), 0, 7) == ()
    assert chosen_sizes(known, "iris", Variant(), 1, 6) == ()
    assert chosen_sizes(known, "iris", Variant("unit"), 0, 6) == ()
    equal = results(*(path_rows("iris", 0, 0, {30: 1.0, 10: 1.0, 20: 1.0}, method) for method in methods))
    assert dict(chosen_sizes(equal, "iris", Variant(), 0, 3))["ocrep"] == 10  # the smallest


def test_jobs_at_chosen_sizes_know_them():
    stage = next(stage for stage in jobs_of(TINY, ("iris",)) if stage and stage[0].kind == "chosen")
    assert dict(stage[0].sizes) == {"ocrep": 5, "cv": 10, "unregularized": 10}
    assert {job.targets for job in stage} == {"raw"}


@pytest.mark.parametrize("protocol", [FULL, QUICK, TINY])
def test_a_protocol_is_plain_data(protocol):
    assert json.loads(json.dumps(protocol.as_dict()))["revision"] == REVISION
    assert protocol.splits_of("iris") == protocol.further_small
    assert dataclasses.replace(protocol, further=Counts(7, 2)).splits_of("housing") == Counts(7, 2)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with the whole tiny study, by one worker, and its report."""
    folder = tmp_path_factory.mktemp("study")
    study.report(study.run(TINY, folder, n_jobs=1, progress=True), folder)
    return folder


@pytest.fixture
def copy(finished, tmp_path):
    """A copy of that folder, to be changed."""
    return Path(shutil.copytree(finished, tmp_path / "copy"))


@pytest.mark.slow
def test_the_number_of_workers_changes_no_byte(finished, tmp_path):
    study.run(TINY, tmp_path, n_jobs=2)
    assert read_lines(tmp_path) == read_lines(finished)
    assert study.report(tmp_path).read_bytes() == (finished / "report.md").read_bytes()


def test_nothing_is_repeated(finished):
    before = (finished / "results.jsonl").read_bytes()
    known = study.run(TINY, finished, n_jobs=1)
    assert (finished / "results.jsonl").read_bytes() == before
    assert known.results.frame.equals(study.load_study(finished).results.frame)


def test_a_run_of_no_seconds_begins_nothing_and_the_next_goes_on(finished, tmp_path):
    assert study.run(TINY, tmp_path, n_jobs=1, seconds=0.0).results.frame.empty
    study.run(TINY, tmp_path, n_jobs=1)
    assert read_lines(tmp_path) == read_lines(finished)


def started(folder):
    """A process of its own that runs the tiny study; its workers find the study by the same path."""
    code = f"import study; from support.studies import TINY; study.run(TINY, {str(folder)!r}, n_jobs=2)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen([sys.executable, "-c", code], start_new_session=True, env=environment)


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_stopped(finished, tmp_path):
    process = started(tmp_path)
    results_file = tmp_path / "results.jsonl"
    until = time.monotonic() + 120
    while not (results_file.exists() and results_file.read_bytes().count(b"\n") >= 2):
        assert process.poll() is None, "the run ended without results"
        assert time.monotonic() < until
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    # However far it came on a fast machine: the first two jobs are kept, and the next line was cut off.
    kept = b"".join(results_file.read_bytes().splitlines(keepends=True)[:2])
    results_file.write_bytes(kept + b'{"key": "fixed/ir')
    study.run(TINY, tmp_path, n_jobs=1)
    assert read_lines(tmp_path) == read_lines(finished)


def test_two_runs_do_not_share_a_folder(tmp_path):
    process = started(tmp_path)
    try:
        while not (tmp_path / "about.json").exists():
            assert process.poll() is None, "the run ended without a folder"
            time.sleep(0.01)
        with pytest.raises(RuntimeError, match="Another run"):
            study.run(TINY, tmp_path)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("change", [{"reference_draws": 3}, {"name": "other"}])
def test_another_protocol_is_refused_by_name(finished, change):
    with pytest.raises(ValueError, match=f"protocol.{next(iter(change))} is .* use another folder"):
        study.run(dataclasses.replace(TINY, **change), finished)


def test_another_version_is_refused(copy):
    about = json.loads((copy / "about.json").read_text(encoding="utf-8"))
    about["versions"]["ocrep"] = "0.0.1"
    (copy / "about.json").write_text(json.dumps(about), encoding="utf-8")
    with pytest.raises(ValueError, match=r"versions.ocrep is .* now and was '0.0.1' then"):
        study.run(TINY, copy)


def test_results_of_another_revision_are_refused(copy, tmp_path):
    file = study.publish(copy, tmp_path / "results.parquet")
    about = json.loads((copy / "about.json").read_text(encoding="utf-8"))
    about["protocol"]["revision"] = REVISION - 1
    (copy / "about.json").write_text(json.dumps(about), encoding="utf-8")
    table = pq.read_table(file)
    pq.write_table(table.replace_schema_metadata({"ocrep.study": json.dumps(about)}), file)
    for source in (copy, file):
        with pytest.raises(ValueError, match=rf"{source.name} holds results of revision {REVISION - 1} "):
            study.load_study(source)


def test_two_results_of_one_job_are_refused(copy):
    key = next(iter(read_lines(copy)))
    with (copy / "results.jsonl").open("a", encoding="utf-8") as lines:
        lines.write(f'{{"key":"{key}","seconds":1,"rows":[[1,"ocrep","raw",1,1,1,1]]}}\n')
    with pytest.raises(ValueError, match=f"two different results of {key}"):
        study.load_study(copy)


def test_a_missing_data_set_is_named_and_the_others_run(tmp_path, monkeypatch):
    monkeypatch.setenv("OCREP_DATA", str(tmp_path / "nowhere"))
    protocol = dataclasses.replace(TINY, data_sets=("delta_ailerons", "iris"), reference_draws=1)
    known = study.run(protocol, tmp_path / "out", n_jobs=1)
    assert set(known.results.frame["data"]) == {"iris"}
    text = report_text(known, {})
    assert "set OCREP_DATA to a folder" in text
    assert str(tmp_path) not in text


def test_a_folder_that_cannot_be_written_is_refused_at_the_start(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(OSError, match="choose another folder"):
        study.run(TINY, tmp_path / "file" / "inside")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 10, 0))
    with pytest.raises(OSError, match="MB are free"):
        study.run(TINY, tmp_path / "full")


@pytest.mark.slow
def test_the_published_file_gives_the_same_report(finished, tmp_path):
    file = study.publish(finished, tmp_path / "results.parquet")
    again = study.report(file, tmp_path / "again")
    assert again.read_bytes() == (finished / "report.md").read_bytes()
    for figure in (finished / "figures").glob("*.svg"):
        assert figure.read_bytes() == (tmp_path / "again" / "figures" / figure.name).read_bytes()
    assert study.report(file).parent == tmp_path  # next to the file
    known = study.load_study(file)
    assert known.results.frame.equals(study.load_study(finished).results.frame)
    assert "machine" not in known.about


def test_what_holds_no_study_is_refused(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    with pytest.raises(ValueError, match="holds no results of a study"):
        study.load_study(tmp_path / "other.parquet")
    with pytest.raises(FileNotFoundError, match="holds no study"):
        study.load_study(tmp_path)


@pytest.mark.slow
def test_the_command_line(copy, tmp_path, capsys):
    protocols = {"quick": TINY}
    (copy / "report.md").unlink()
    main(["quick", "--out", str(copy), "--jobs", "1", "--for", "3600"], protocols)
    assert capsys.readouterr().out.startswith(f"{copy / 'report.md'} holds the report")
    page = (copy / "report.md").read_bytes()
    main(["publish", str(copy), str(tmp_path / "results.parquet")])
    main(["report", str(tmp_path / "results.parquet"), "--out", str(tmp_path / "again")])
    assert (tmp_path / "again" / "report.md").read_bytes() == page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["report", "nowhere"], "holds no study"),
        (["report", "no.parquet"], "no.parquet"),
        (["quick", "--out", "file"], "choose another folder"),
        (["quick", "--out", "x" * 300], "File name too long"),
    ],
)
def test_a_mistake_ends_in_one_sentence(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(SystemExit, match=words) as end:
        main(arguments)
    assert end.value.code.startswith("study: ")


@pytest.mark.parametrize("arguments", [[], ["quik", "--out", "a"], ["quick"], ["quick", "--out", "a", "--jobs", "0"]])
def test_a_command_that_cannot_be_understood_runs_nothing(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert not list(tmp_path.iterdir())
