"""Pages of the documentation, whose code runs and prints what they say, and the tools that write pages."""

import importlib.util
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(
    r"^(?P<indent> *)```python(?P<only_shown> no-run)?\n(?P<code>.*?)^(?P=indent)```\n"
    r"(?:\n(?P=indent)```text\n(?P<printed>.*?)^(?P=indent)```\n)?",
    flags=re.DOTALL | re.MULTILINE,
)


def run_page(page, capsys, *, alone=False):
    """Run the Python blocks of a page one after the other; each must print the block of text that follows it.

    The blocks share their names, or each stands `alone`. Those marked `no-run` are only compiled. Gives the number of
    blocks that ran.
    """
    names, n_run = {}, 0
    for block in _BLOCK.finditer((ROOT / page).read_text(encoding="utf-8")):
        code = compile(textwrap.dedent(block["code"]), page, "exec")
        if block["only_shown"]:
            continue
        exec(code, {} if alone else names)
        printed = capsys.readouterr().out
        expected = block["printed"]
        assert expected is None or printed == textwrap.dedent(expected), f"{page} prints {printed!r}"
        n_run += 1
    assert n_run, f"{page} has no Python to run"
    return n_run


def load_tool(name):
    """A module of `tools/`, which is not a package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool
