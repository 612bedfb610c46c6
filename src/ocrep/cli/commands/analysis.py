"""The commands for problems and methods: diagnose, compare, datasets, study."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, BadParameter, Context, Option

from ocrep.cli import options, printing
from ocrep.cli.advised import command_of
from ocrep.cli.grouped import grouped
from ocrep.cli.groups import FileOptions, NetworkOptions, TableOptions
from ocrep.cli.options import AsJson, Data, Seed, Test

if TYPE_CHECKING:
    from ocrep.analysis.assessment import Advice
    from ocrep.report import Diagnosis
    from ocrep.tables.comparison import Comparison
    from ocrep.tables.problem import Problem

Jobs = Annotated[int, Option("--jobs", min=1, help="Worker processes.")]
Seconds = Annotated[
    float | None,
    Option("--for", metavar="SECONDS", min=0.0, help="Begin no job after so many seconds; the same command resumes."),
]
StudyFolder = Annotated[
    Path, Option("--out", "-o", metavar="FOLDER", help="Folder of the results; an interrupted study resumes there.")
]

_ROUNDING = 1e-12


@grouped
def diagnose(
    context: Context,
    data: Data,
    table: TableOptions,
    file: FileOptions,
    network: NetworkOptions,
    report: Annotated[Path | None, Option("--report", "-r", metavar="HTML", help="The page to write.")] = None,
    test: Test = 0.3,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Diagnose a problem as γ varies.

    The conditioning, and the errors of all rules; --report writes a page about it.
    """
    chosen = network.chosen()
    options.check_share(test)
    from ocrep import report as reports
    from ocrep._files.writing import check_output, writing
    from ocrep.tables.leaks import leaks_of
    from ocrep.tables.training import Settings, as_data_errors, examined, plain_network, prepare

    if report is not None:
        check_output(report, source=data, suffixes=(".html", ".htm"))
    with printing.progress_bar() as progress, options.local_data(data) as path:
        problem = table.read(path, file, progress=progress)
        progress("Diagnosing", 0, None)
        parts = prepare(problem, test=test, seed=seed)
        settings = Settings(seed=seed, **chosen)
        estimator, which = plain_network(problem.task, settings), examined(problem.task, settings)
        with as_data_errors():
            out = ("--out", "one-network.skops")  # never over the model of `fit`
            again = command_of(context, "fit", without=("report", "gamma", "as_json"), more=out)
            wrong = (*problem.advice(), *leaks_of(problem))
            about = {"inputs": list(problem.kinds), "left_out": problem.left_out, "n_dropped": problem.n_dropped}
            about |= {"command": again, "examined": which, "advice": wrong}
            found = reports.diagnose(estimator, *parts, title=f"{options.data_name(data)}: {table.target}", table=about)
        if report is not None:
            with writing(report):
                reports.write_report(found, report)
    if as_json:
        print(found.to_json())
        return
    _print_diagnosis(options.data_name(data), problem, found, report)


def _print_diagnosis(name: str, problem: Problem, found: Diagnosis, report: Path | None) -> None:
    printing.lines(*printing.about_problem(name, problem), found.table["examined"], "")
    good = [] if found.goodness is None else [found.goodness.finding]
    printing.pairs([(finding.question, finding.answer) for finding in (*good, *found.verdict.findings)])
    of_model = () if found.goodness is None else found.goodness.advice
    said = printing.notes((*of_model, *found.table["advice"]))
    said += [f"To train with that rule: {found.advised}"] if found.advised else []
    page = f"{report} holds the report." if report else "--report FILE.html writes the full report as a page."
    printing.lines("", *said, page)


@grouped
def compare(
    data: Data,
    table: TableOptions,
    file: FileOptions,
    splits: Annotated[int, Option("--splits", min=2, help="Random splits.")] = 10,
    n_hidden: Annotated[int | None, Option("--n-hidden", min=1, help="Hidden units for the rules.")] = None,
    every: Annotated[bool, Option("--all", help="Compare all rules, and the methods of the literature.")] = False,
    published: Annotated[
        bool | None, Option("--literature/--no-literature", help="Whether to add ELM, RELM, … Default: with --all.")
    ] = None,
    test: Test = 0.3,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Compare rules for γ and simple models.

    Eight rules, a linear model and gradient boosting over random splits; significant differences are marked.
    """
    options.check_share(test)
    from ocrep.tables.comparison import MAIN_RULES, compare_methods
    from ocrep.tables.leaks import leaks_of

    wanted: dict[str, Any] = {"n_hidden": n_hidden, "n_splits": splits, "test": test, "seed": seed}
    with printing.progress_bar() as progress, options.local_data(data) as path:
        problem = table.read(path, file, progress=progress)
        wanted |= {"rules": None if every else MAIN_RULES, "published": every if published is None else published}
        found, leaks = compare_methods(problem, **wanted, progress=progress), leaks_of(problem)
    if as_json:
        methods = [{**asdict(method), "verdict": method.verdict or None} for method in found.methods]
        about = {"task": problem.task, **asdict(found), "methods": methods, "advice": found.advice()}
        printing.json_object({**about, "leaks": [one.sentence() for one in leaks]})
    else:
        printing.lines(*printing.about_problem(options.data_name(data), problem))
        _print_comparison(problem, found, leaks)


def _signed(difference: float) -> str:
    return f"{difference if abs(difference) > _ROUNDING else 0.0:+.2g}"


def _print_comparison(problem: Problem, found: Comparison, leaks: Sequence[Advice]) -> None:
    percent, error = (100, "% wrong") if problem.task == "classification" else (1, "RMSE")
    rows = []
    for method in found.methods:
        mark = {"worse": "▲ worse", "better": "▼ better", "": ""}[method.verdict]
        spread, difference = f"{percent * method.deviation:.2g}", _signed(percent * method.difference)
        rows.append([method.name, f"{percent * method.mean:.4g}", spread, difference, f"{method.p_value:.2g}", mark])
    printing.table(("method", error, "spread", "vs ocrep", "p", ""), rows, left=(0, 5))
    printing.lines(
        f"Mean and standard deviation over {found.n_splits} splits; ▲ ▼ mark significant differences from ocrep: "
        "corrected paired t-test, p adjusted for all methods (Holm), below 0.05."
    )
    if found.not_applicable:
        printing.lines(f"Not applicable here: {', '.join(found.not_applicable)} (--json gives the reasons).")
    printing.lines("", *printing.notes(leaks), found.advice())


def datasets(
    names: Annotated[list[str] | None, Argument(metavar="[NAME]...", help="Default: all that are bundled.")] = None,
    export: Annotated[Path | None, Option("--export", metavar="FOLDER", help="Write them as files.")] = None,
    form: Annotated[Literal["csv", "parquet"], Option("--format", help="Format of the files.")] = "csv",
    as_json: AsJson = False,
) -> None:
    """List the paper's data sets, or write them as files.

    The column to learn is called `target`.
    """
    from ocrep.datasets import info
    from ocrep.datasets.registry import find

    try:
        chosen = [find(name) for name in names] if names else list(info())
    except ValueError as error:
        raise BadParameter(str(error)) from None
    if export is not None:
        with printing.progress_bar():
            files = [str(_export(one.name, export, form)) for one in chosen if names or one.bundled]
        printing.result(as_json, {"files": files}, *files)
    elif as_json:
        printing.json_object({"data_sets": [asdict(record) for record in chosen]})
    else:
        _print_data_sets(chosen)


def _export(name: str, folder: Path, suffix: str) -> Path:
    """Write a data set to a file with a column `target`, labels by name, and return its path."""
    from ocrep._files.formats import DataError
    from ocrep._files.writing import table_writer, writing
    from ocrep.datasets import load

    try:
        data = load(name, as_frame=True)
    except OSError as error:  # the data set that is not bundled
        raise DataError(f"{name} cannot be loaded: {error}") from error
    named = {"target": data.target_names[data.target]} if data.task == "classification" else {}
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with table_writer(folder / f"{name}.{suffix}") as write:
        write(data.frame.assign(**named))
    return folder / f"{name}.{suffix}"


def _print_data_sets(records: Iterable[Any]) -> None:
    rows = []
    for one in records:
        sizes = f"{one.n_rows:,}", str(one.n_features), str(one.n_classes or "")
        rows.append((one.name, one.task, *sizes, "yes" if one.bundled else "no", one.licence))
    printing.table(("name", "task", "rows", "inputs", "classes", "bundled", "licence"), rows, left=(0, 1, 5, 6))


def study_quick(out: StudyFolder, jobs: Jobs = 2, seconds: Seconds = None, as_json: AsJson = False) -> None:
    """Run all experiments at a small size: about a minute."""
    _study("quick", out, jobs, seconds, as_json)


def study_full(out: StudyFolder, jobs: Jobs = 2, seconds: Seconds = None, as_json: AsJson = False) -> None:
    """Run all experiments as in the paper: hours; if interrupted, the same command resumes."""
    _study("full", out, jobs, seconds, as_json)


def _study(protocol: str, out: Path, jobs: int, seconds: float | None, as_json: bool) -> None:
    from ocrep import study
    from ocrep._files.writing import OutputError, writing

    try:
        with writing(out):
            study.run(protocol, out, n_jobs=jobs, seconds=seconds)
    except (ValueError, RuntimeError) as error:  # the folder holds another study, or another run uses it
        raise OutputError(str(error)) from error
    study_report(out, as_json=as_json)


def study_report(
    folder: Annotated[
        Path | None, Argument(metavar="FOLDER", help="A folder with the results of a study.", show_default=False)
    ] = None,
    source: Annotated[
        Path | None, Option("--from", metavar="FILE", help="A Parquet file with published results instead.")
    ] = None,
    out: Annotated[
        Path | None, Option("--out", "-o", metavar="FOLDER", help="Where to write; next to the results by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the report and the figures again, from a folder or from published results."""
    from ocrep import study
    from ocrep._files.formats import DataError
    from ocrep._files.writing import writing

    if (folder is None) == (source is None):
        raise BadParameter("Give either a FOLDER with results, or --from FILE.")
    place = folder or source
    assert place is not None
    try:
        known = study.load_study(place)
    except (OSError, ValueError) as error:
        raise DataError(str(error)) from error
    with writing(out or place):
        page = study.report(known, out or (place if place.is_dir() else place.parent))
    text = (
        f"{page} holds the report: its first page says what reproduces. The figures are in {page.parent / 'figures'}."
    )
    printing.result(as_json, {"report": str(page)}, text)
