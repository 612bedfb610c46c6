"""The harness itself: every bad outcome is told, with the files it came from."""

import pytest
from hypothesis import strategies as st
from support import fuzzing


def test_all_bad_outcomes_are_told_and_their_files_kept(tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)

    @fuzzing.cases(8, 8, st.integers(0, 7))
    def wrong(number):
        (here / "input").write_text(str(number))
        if number == 3:
            raise fuzzing.Hang
        assert number % 2 == 0, "odd"

    with pytest.raises(pytest.fail.Exception, match="4 of 8 cases ended badly") as told:
        wrong()
    assert all(f"wrong({number},): " in str(told.value) for number in (1, 3, 5, 7))
    kept = [folder for folder in tmp_path.iterdir() if folder != here]
    assert all(str(folder) in str(told.value) for folder in kept)
    assert sorted((folder / "input").read_text() for folder in kept) == ["1", "3", "5", "7"]
