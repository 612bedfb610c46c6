"""A file written through `replacing` is complete or absent."""

import os
import stat

import pytest

from ocrep._files.atomic import replacing


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
