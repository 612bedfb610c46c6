"""The study's runner: resumable, deterministic, alone in its folder, and in stages that depend on each other."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.tiny_study import TINY

from ocrep import study
from ocrep.study import runner, store
from ocrep.study.store import alone, collected, read_lines


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with the whole tiny study, by one worker."""
    folder = tmp_path_factory.mktemp("study")
    study.run(TINY, folder, n_jobs=1, progress=True)
    study.report(folder)
    return folder


def results(folder):
    """The results without their timings."""
    return {key: line["rows"] for key, line in read_lines(folder).items()}


@pytest.mark.slow
def test_the_number_of_workers_changes_no_byte(finished, tmp_path):
    study.run(TINY, tmp_path, n_jobs=2)
    assert results(tmp_path) == results(finished)
    assert study.report(tmp_path).read_bytes() == (finished / "report.md").read_bytes()


def test_nothing_is_repeated(finished, monkeypatch):
    monkeypatch.setattr(runner, "_work", lambda *args: pytest.fail("a finished job was run again"))
    before = results(finished)
    assert study.run(TINY, finished, n_jobs=1).rows == collected(read_lines(finished)).rows
    assert results(finished) == before
    assert not (finished / "results.jsonl").exists()


def test_a_run_of_no_seconds_begins_nothing_and_the_next_goes_on(finished, tmp_path, monkeypatch):
    assert study.run(TINY, tmp_path, n_jobs=1, seconds=0.0).rows == {}
    monkeypatch.setattr(store, "PART_BYTES", 20_000)
    study.run(TINY, tmp_path, n_jobs=1)
    parts = sorted(path.name for path in tmp_path.glob("results*"))
    assert len(parts) > 2
    assert parts[:2] == ["results-000.jsonl.gz", "results-001.jsonl.gz"]
    assert results(tmp_path) == results(finished)


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from support.tiny_study import TINY
from ocrep import study
study.run(TINY, {folder!r}, n_jobs=2)
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_stopped(finished, tmp_path):
    code = SCRIPT.format(tests=str(Path(__file__).parents[1]), folder=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
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
    assert results(tmp_path) == results(finished)
    assert study.report(tmp_path).read_bytes() == (finished / "report.md").read_bytes()


def test_two_runs_do_not_share_a_folder(finished):
    with alone(finished), pytest.raises(RuntimeError, match="Another run"):
        study.run(TINY, finished)


@pytest.mark.parametrize("change", [{"reference_draws": 3}, {"name": "other"}])
def test_another_protocol_is_refused_by_name(finished, change):
    with pytest.raises(ValueError, match=f"protocol.{next(iter(change))} is .* use another folder"):
        study.run(dataclasses.replace(TINY, **change), finished)


def test_another_version_is_refused(finished, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(finished, folder)
    about = study.about(folder)
    about["versions"]["ocrep"] = "0.0.1"
    (folder / "about.json").write_text(json.dumps(about))
    with pytest.raises(ValueError, match=r"versions.ocrep is .* now and was '0.0.1' then"):
        study.run(TINY, folder)


def test_a_missing_data_set_is_named_and_the_others_run(tmp_path, monkeypatch):
    monkeypatch.setenv("OCREP_DATA", str(tmp_path / "nowhere"))
    protocol = dataclasses.replace(TINY, data_sets=("delta_ailerons", "iris"), reference_draws=1)
    records = study.run(protocol, tmp_path / "out", n_jobs=1)
    assert {case.data for case in records.rows} == {"iris"}
    text = study.report(tmp_path / "out").read_text(encoding="utf-8")
    assert "set OCREP_DATA to a folder" in text
    assert str(tmp_path) not in text


def test_a_folder_that_cannot_be_written_is_refused_at_the_start(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(OSError, match="choose another folder"):
        study.run(TINY, tmp_path / "file" / "inside")
    monkeypatch.setattr(store.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 10, 0))
    with pytest.raises(OSError, match="MB are free"):
        study.run(TINY, tmp_path / "full")


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no study"):
        study.report(tmp_path)
    with pytest.raises(ValueError, match="Did you mean 'quick'"):
        study.run("quik", tmp_path)
