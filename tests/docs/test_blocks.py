"""Every block of code on every page runs in a test, or stands in a list here that says why it cannot."""

import ast
import contextlib
import inspect
import re
import runpy
import sys

import pytest
import typer
from support.pages import PAGES, ROOT, blocks, load_tool, run_page, text_of
from support.shell import check_alike, check_exists, options_of, run_step, steps, words_of

import ocrep
from ocrep.cli import printing
from ocrep.cli.app import app
from ocrep.datasets import load

REGISTRY = "takes packages from the registry; the extra is compared with pyproject.toml"
ENVIRONMENT = "sets up .venv and runs for minutes; the target is looked up in the Makefile"
MINUTES = "takes minutes or hours; its options are parsed, and tests/study runs it on a tiny protocol"
CLUSTER = "run by tests/_rows/test_dask_cluster.py, which takes the commands from the page"
LOOKED_UP = {
    "README.md": {"make demo": ENVIRONMENT, "make test": ENVIRONMENT},
    "docs/install.md": {"pip install ocrep": REGISTRY, "pip install ocrep[cli]": REGISTRY},
    "docs/start.md": {"pip install ocrep[cli]": REGISTRY},
    "docs/scaling.md": {"dask scheduler": CLUSTER, "dask worker": CLUSTER},
    "docs/study/README.md": {f"python -m study {name}": MINUTES for name in ("report", "full", "quick")},
}
"""The beginnings of the commands that are looked up and not run here, by page."""

OTHER_BLOCKS = {("CONTRIBUTING.md", "text"): 1, ("docs/command-line.md", "text"): 1}
"""Blocks that are no code: a drawing."""

RUNNABLE = [
    "coming-from.md",
    "cross-validation.md",
    "explain.md",
    "forecasting.md",
    "imbalanced.md",
    "network.md",
    "probabilities.md",
    "reproducibility.md",
    "speed.md",
    "stacks.md",
    "start.md",
    "your-table.md",
]
"""Pages whose Python runs here; other tests run that of the others, with the files and clusters that it needs."""

NO_RUN = {"docs/gpu.md": 1, "docs/scaling.md": 3}
"""Blocks of Python that need a GPU or a cluster. test_gpu_page.py runs the first on another device, and
tests/_rows/test_dask_cluster.py the others on a cluster of processes, two of them with stand-ins for the classes that
would start workers by SLURM and Kubernetes."""


@pytest.mark.parametrize("page", RUNNABLE)
def test_the_code_of_a_page_runs_and_prints_what_it_says(page, capsys):
    assert run_page(f"docs/{page}", capsys) >= 1


def is_looked_up(page, command):
    return any(" ".join(words_of(command)).startswith(known) for known in LOOKED_UP.get(page, {}))


def table_with(target, name="machine_cpu"):
    """A bundled table as rows.csv and new.csv, with the target that the page names."""
    frame = load(name, as_frame=True).frame.rename(columns={"target": target})
    frame.to_csv("rows.csv", index=False)
    frame.drop(columns=target).head(20).to_csv("new.csv", index=False)


def exported(capsys):
    """The data sets as the page says: `ocrep datasets --export data`."""
    assert "`ocrep datasets --export data`" in text_of("docs/command-line.md")
    run_step("ocrep datasets --export data", 0, capsys)


@pytest.mark.parametrize(
    ("page", "prepare"),
    [
        ("README.md", lambda capsys: table_with("y")),
        ("docs/start.md", lambda capsys: table_with("price")),
        ("docs/command-line.md", exported),
    ],
    ids=["README", "start", "command-line"],
)
def test_the_commands_of_a_page_run_and_print_what_it_says(page, prepare, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(printing, "SECONDS", 1e6)  # a busy machine must not add lines of progress
    prepare(capsys)
    code = n_run = 0
    for command, printed in steps(page):
        if not is_looked_up(page, command):
            expected_code = 3 if "lenght" in command else 0
            code, shown = run_step(command, code, capsys)
            assert code == expected_code, shown
            if printed is not None:
                check_alike(shown, printed)
            n_run += 1
    assert n_run >= 3


def test_the_jobs_of_an_array_run_as_the_page_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = load("iris", as_frame=True).frame
    (tmp_path / "rows").mkdir()
    for number in range(8):
        frame[number::8].to_csv(f"rows/rows-{number}.csv", index=False)
    for command, _ in steps("docs/parts.md"):
        words = words_of(command)
        first, last = next((word[8:].split("-") for word in words if word.startswith("--array=")), (0, 0))
        for number in range(int(first), int(last) + 1):
            python, script, *arguments = words_of(words[-1].replace("$SLURM_ARRAY_TASK_ID", str(number)))
            assert python == "python"
            monkeypatch.setattr(sys, "argv", [script, *arguments])
            runpy.run_path(str(ROOT / "examples" / script), run_name="__main__")
    assert "from 8 parts" in capsys.readouterr().out
    assert ocrep.load_model("rows/model.ocrep").score(frame.drop(columns="target"), frame["target"]) > 0.95


@pytest.mark.parametrize("page", LOOKED_UP)
def test_what_is_not_run_exists(page):
    commands = [command for command, _ in steps(page) if is_looked_up(page, command)]
    assert len(commands) == len(LOOKED_UP[page])
    for command in commands:
        check_exists(command)


def test_every_shell_command_is_run_or_listed():
    run = {"README.md", "docs/start.md", "docs/command-line.md", "docs/parts.md"}
    forgotten = [
        (page, command)
        for page in PAGES
        for command, _ in steps(page)
        if page not in run and not is_looked_up(page, command)
    ]
    assert forgotten == []


def test_every_block_of_python_is_run_or_listed():
    sources = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("tests/**/test_*.py"))
    for page in PAGES:
        if list(blocks(page, "python")):
            assert f'run_page("{page}"' in sources or page.removeprefix("docs/") in RUNNABLE, page
        assert len(list(blocks(page, "python no-run"))) == NO_RUN.get(page, 0), page


def test_no_block_is_of_another_kind():
    for page in PAGES:
        kinds = [block.kind for block in blocks(page)]
        for kind in set(kinds) - {"python", "python no-run", "sh", "console"}:
            assert kinds.count(kind) == OTHER_BLOCKS.get((page, kind)), (page, kind)


TOLD = [page for page in PAGES if page != "CHANGELOG.md"]  # a changelog tells of names that are gone


@pytest.mark.parametrize("page", TOLD)
def test_commands_options_and_files_named_in_sentences_exist(page):
    for span in (" ".join(span.split()) for span in spans_of(page)):
        if re.match(r"(ocrep|make|python|pip|dask) [a-z-]", span):
            check_exists(span)
        elif re.fullmatch(r"(benchmarks|docs|examples|src|study|tests|tools|\.github)/[\w./-]*", span):
            assert (ROOT / span).exists(), span
        elif (option := re.match(r"--[a-z][a-z-]*", span)) and option[0] != "--dependency":  # that one is SLURM's
            assert option[0] in options_of(typer.main.get_command(app)), span


def test_calls_named_in_sentences_fit_the_signatures():
    known, n_calls = arguments(), 0
    for page in TOLD:
        for call in calls_in(spans_of(page)):
            name = getattr(call.func, "attr", None) or getattr(call.func, "id", None)
            if name in known and (page, name) != ("docs/coming-from.md", "ELMRegressor"):  # that one is scikit-elm's
                named = {keyword.arg for keyword in call.keywords}
                assert named <= known[name], (page, ast.unparse(call))
                n_calls += 1
    assert n_calls > 80


def spans_of(page):
    """The code in the sentences of a page, without that of its blocks."""
    text = re.sub(r"^ *```.*?^ *```$", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`]+)`", text)


def calls_in(spans):
    """The calls in those spans that are Python, if dots stand for what is left out."""
    for span in spans:
        with contextlib.suppress(SyntaxError):
            tree = ast.parse(" ".join(span.split()).replace("…", "..."))
            yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def arguments():
    """The arguments of every public function, class and method by its name; those of methods of one name together."""
    public_names, known = load_tool("public_names"), {}
    for _, found in public_names.names():
        if not (inspect.isclass(found) and issubclass(found, Exception)):
            own = [one for _, one in public_names.methods(found)] if inspect.isclass(found) else []
            for function in (found, *(getattr(one, "__func__", one) for one in own if not isinstance(one, property))):
                known.setdefault(function.__name__, set()).update(inspect.signature(function).parameters)
    return known
