"""The page about ridge heads runs and prints what it says."""

from support.pages import run_page


def test_the_page_runs(capsys):
    assert run_page("docs/ridge-head.md", capsys) == 7
