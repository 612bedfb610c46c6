"""Commands on the pages of the documentation: run in this process, or looked up without running them."""

import ast
import re
import shlex
import tomllib
from importlib.util import find_spec

import typer
from support.pages import ROOT, blocks, text_of

from ocrep.cli.app import app
from ocrep.cli.running import run
from study.__main__ import parser

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?")
# What differs from run to run: seconds, the date of a file, versions of libraries.
_OWN = re.compile(r"\d+\.\d+ s$|\d{4}-\d\d-\d\dT\S+|\d+\.\d+\.\d+")


def steps(page):
    """The commands in the shell blocks of a page, each with what it prints where the page shows it."""
    for block in blocks(page, "sh", "console"):
        code = block.code.replace("\\\n", " ")
        if block.kind == "sh":
            yield from ((line, None) for line in code.splitlines() if line and not line.startswith("#"))
        else:
            for step in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
                yield tuple(step.split("\n", 1))


def words_of(command):
    """The words of a command, without variables set before it and without its comment."""
    words = shlex.split(command, comments=True)
    while words and re.match(r"[A-Z_]+=", words[0]):
        del words[0]
    return words


def run_step(command, last_code, capsys):
    """Run `ocrep …`, `head -N FILE` or `echo $?`; gives the exit code and what was printed."""
    program, *rest = words_of(command)
    if program == "ocrep":
        code = run(rest)
        shown = capsys.readouterr()
        return code, shown.out + shown.err
    if program == "head":
        with open(rest[1], encoding="utf-8") as file:
            return 0, "".join(next(file) for _ in range(int(rest[0][1:])))
    assert (program, rest) == ("echo", ["$?"]), command
    return 0, f"{last_code}\n"


def check_alike(shown, expected):
    """The same words, and the same numbers but for rounding that differs between machines and versions."""
    (words, numbers), (right_words, right_numbers) = (_parted(text) for text in (shown, expected))
    assert words == right_words
    for number, right in zip(numbers, right_numbers, strict=True):
        assert abs(number - right) <= 0.05 * abs(right) + 0.03, (number, right, shown)


def _parted(text):
    """Lines with signs in place of numbers, in the order of their words, and their numbers."""
    lines = [_OWN.sub("…", " ".join(line.split())) for line in text.strip().splitlines()]
    pairs = [(_NUMBER.sub("#", line), [float(n.replace(",", "")) for n in _NUMBER.findall(line)]) for line in lines]
    pairs.sort(key=lambda pair: pair[0])  # methods of nearly equal error may change places
    return [words for words, _ in pairs], [number for _, numbers in pairs for number in numbers]


def options_of(command):
    """The options of a command of the program, and of the commands below it."""
    own = {option for one in command.params for option in (*one.opts, *one.secondary_opts) if option.startswith("-")}
    return own.union({"--help", "--debug"}, *map(options_of, getattr(command, "commands", {}).values()))


def check_exists(command):
    """What a command names exists: the program's options, targets, scripts with theirs, modules, extras."""
    program, *rest = words_of(command.replace("[--", "--").replace("FILE]", "FILE").replace("…", ""))
    _CHECKS[program](rest)


def _check_ocrep(words):
    command = typer.main.get_command(app)
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        command, words = command.commands[words[0]], words[1:]
    if hasattr(command, "commands"):
        assert set(words) <= options_of(command), words
    elif words:
        command.make_context("ocrep", words)  # raises at an option that does not exist


def _check_make(words):
    targets = set(re.findall(r"^([\w-]+):", text_of("Makefile"), flags=re.MULTILINE))
    assert set(words) <= targets, words


def _check_python(words):
    script, *options = words
    if script == "-c":
        ast.parse(options[0])
    elif script == "-m":
        assert find_spec(options[0])
        if options[0] == "study":
            parser().parse_args(options[1:])  # exits at an option that does not exist
    else:
        paths = [path for path in (ROOT / script, ROOT / "examples" / script) if path.exists()]
        text = paths[0].read_text(encoding="utf-8")
        assert all(option in text for option in options if option.startswith("--")), words


def _check_pip(words):
    extras = tomllib.loads(text_of("pyproject.toml"))["project"]["optional-dependencies"]
    action, wanted = words
    name, _, extra = wanted.rstrip("]").partition("[")
    assert action == "install"
    assert name in ("ocrep", ".")
    assert not extra or extra in extras


def _check_dask(words):
    module = __import__(f"distributed.cli.dask_{words[0]}", fromlist=["main"])
    known = {option for one in module.main.params for option in (*one.opts, *one.secondary_opts)}
    assert {word for word in words if word.startswith("--")} <= known, words


def _check_sbatch(words):
    _check_python(words_of(words[words.index("--wrap") + 1])[1:])


_CHECKS = {
    "ocrep": _check_ocrep,
    "make": _check_make,
    "python": _check_python,
    "pip": _check_pip,
    "dask": _check_dask,
    "sbatch": _check_sbatch,
}
