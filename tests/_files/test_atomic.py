"""A file written through `replacing` is complete or absent."""

import errno
import fcntl
import os
import stat
import time
from pathlib import Path

import numpy as np
import pytest

import ocrep
from ocrep import PinvRegressor
from ocrep._files import writing
from ocrep._files.writing import replacing
from ocrep.onnx import save_onnx


def test_the_new_file_takes_the_old_ones_place_and_mode(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    target.chmod(0o640)
    with replacing(target) as part:
        part.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["a.txt"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")

    def interrupted():
        with replacing(target) as part:
            part.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_the_mask_of_the_process_is_never_changed(tmp_path, monkeypatch):
    def fail(mask):
        raise AssertionError("for a moment, the files of other threads would have another mode")

    monkeypatch.setattr(os, "umask", fail)
    with replacing(tmp_path / "a.txt") as part:
        part.write_text("a")
    ocrep.save_model(PinvRegressor(3, random_state=0).fit(np.eye(4), np.arange(4.0)), tmp_path / "m.skops")


def test_a_new_file_has_the_mode_that_open_gives(tmp_path):
    with replacing(tmp_path / "a.txt") as part:
        part.write_text("new")
    (tmp_path / "b.txt").write_text("plain")
    modes = {(tmp_path / name).stat().st_mode for name in ("a.txt", "b.txt")}
    assert len(modes) == 1


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "none" / "a.txt"):
        pass


def test_a_link_stays_a_link_and_its_target_is_replaced(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with replacing(tmp_path / "link") as part:
        part.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_pipe_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"), replacing(tmp_path / "pipe"):
        pass
    assert (tmp_path / "pipe").is_fifo()


@pytest.fixture
def windows(monkeypatch):
    """File operations that refuse what Windows refuses: to flush a read-only handle, to replace an open file."""
    fsync, replace = os.fsync, os.replace

    def strict_fsync(handle):
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        fsync(handle)

    def strict_replace(source, target):
        handles = Path("/proc/self/fd")
        opened = {os.readlink(handles / name) for name in os.listdir(handles) if (handles / name).is_symlink()}
        if {os.path.realpath(source), os.path.realpath(target)} & opened:
            raise PermissionError(errno.EACCES, "The process cannot access the file", source)
        replace(source, target)

    monkeypatch.setattr(os, "fsync", strict_fsync)
    monkeypatch.setattr(os, "replace", strict_replace)
    monkeypatch.setattr(writing, "_WAITS", (0.0, 0.0))


def test_windows_takes_every_kind_of_file(windows, tmp_path):
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20.0)
    model = PinvRegressor(3, random_state=0).fit(X, y)
    for _ in range(2):  # the second time over a file that exists
        ocrep.save_model(model, tmp_path / "model.skops")
        save_onnx(model, tmp_path / "model.onnx")
        with replacing(tmp_path / "a.txt") as part:
            part.write_text("new")
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "model.onnx", "model.skops"]
    np.testing.assert_array_equal(ocrep.load_model(tmp_path / "model.skops").predict(X), model.predict(X))


def test_windows_waits_for_a_program_that_has_the_file_open(windows, monkeypatch, tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    handle = target.open()
    waited = []
    monkeypatch.setattr(time, "sleep", lambda seconds: (waited.append(seconds), handle.close()))
    with replacing(target) as part:
        part.write_text("new")
    assert target.read_text() == "new"
    assert len(waited) == 1


def test_windows_keeps_the_old_file_if_it_stays_open(windows, tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with target.open(), pytest.raises(PermissionError), replacing(target) as part:
        part.write_text("new")
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("name", ["a" * 255, "ü" * 127])
def test_the_longest_names_can_be_written(name, tmp_path):
    with replacing(tmp_path / name) as part:
        part.write_text("new")
    assert os.listdir(tmp_path) == [name]


def test_what_a_killed_write_left_is_found(tmp_path):
    target = tmp_path / "a+b.txt"
    with replacing(target) as part:
        part.write_text("new")
        assert writing.unfinished(target) == [part]
    assert writing.unfinished(target) == []
