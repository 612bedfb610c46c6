"""Pages of the documentation, whose code runs and prints what they say, and the tools that write pages."""

import importlib.util
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (".", ".github", ".github/ISSUE_TEMPLATE", "benchmarks", "docs", "docs/study")
PAGES = sorted(path.relative_to(ROOT).as_posix() for folder in FOLDERS for path in (ROOT / folder).glob("*.md"))
_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<kind>[^`\n]*)\n(?P<code>.*?)^(?P=indent)```\n"
    r"(?:\n(?P=indent)```text\n(?P<printed>.*?)^(?P=indent)```\n)?",
    flags=re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, and the block of text that follows it, if any."""

    page: str
    kind: str
    code: str
    printed: str | None

    def run(self, names, replace=()):
        """Run its Python in a dictionary of names; each pair of `replace` must stand in it."""
        code = self.code
        for old, new in replace:
            assert old in code, f"{self.page} does not say {old!r}"
            code = code.replace(old, new)
        exec(compile(code, self.page, "exec"), names)


def text_of(page):
    """The text of a page, named from the root of the repository."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page, *kinds):
    """The fenced blocks of a page of these kinds, such as `python no-run` or `sh`, or all but directives."""
    for found in _FENCE.finditer(text_of(page)):
        if found["kind"] in kinds or (not kinds and not found["kind"].startswith("{")):
            printed = found["printed"]
            code = textwrap.dedent(found["code"])
            yield Block(page, found["kind"], code, printed if printed is None else textwrap.dedent(printed))


def run_page(page, capsys, *, alone=False):
    """Run the Python blocks of a page one after the other; each must print the block of text that follows it.

    The blocks share their names, or each stands `alone`. Those marked `no-run` are run by other tests, with stand-ins
    for what they need. Gives the number of blocks that ran.
    """
    names, n_run = {}, 0
    for block in blocks(page, "python"):
        block.run({} if alone else names)
        printed = capsys.readouterr().out
        assert block.printed is None or printed == block.printed, f"{page} prints {printed!r}"
        n_run += 1
    assert n_run, f"{page} has no Python to run"
    return n_run


def load_tool(name):
    """A module of `tools/`, which is not a package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool
