"""The commands for problems and methods: diagnose, compare, datasets, study."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ocrep.cli import options
from ocrep.cli.options import AsJson, Data, DropMissingTarget, Gamma, Ignore, NHidden, Seed, Target, Task, Test
from ocrep.cli.printing import print_json, print_lines, print_pairs, print_table, progress_bar
from ocrep.cli.wording import about_problem

if TYPE_CHECKING:
    from ocrep.tables import Comparison, Problem

Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Worker processes.")]
StudyFolder = Annotated[
    Path,
    typer.Option("--out", "-o", metavar="FOLDER", help="Folder of the results; an interrupted study resumes there."),
]


def diagnose(
    data: Data,
    target: Target,
    report: Annotated[Path | None, typer.Option("--report", "-r", metavar="HTML", help="The page to write.")] = None,
    n_hidden: NHidden = "300",
    gamma: Gamma = "ocrep",
    task: Task = options.TaskName.auto,
    test: Test = 0.3,
    seed: Seed = 0,
    drop_missing_target: DropMissingTarget = False,
    ignore: Ignore = None,
    as_json: AsJson = False,
) -> None:
    """Diagnose the conditioning of a problem as γ varies; --report writes an interactive page."""
    chosen: dict[str, Any] = {"gamma": options.gamma_of(gamma), "n_hidden": options.n_hidden_of(n_hidden)}
    options.check_share(test)
    from ocrep import report as reports
    from ocrep._files.writing import check_output, writing
    from ocrep.tables import Settings, as_data_errors, network, prepare, read_problem

    if report is not None:
        check_output(report, source=data)
    with progress_bar() as progress:
        problem = read_problem(
            data, target, task=task.value, ignore=ignore or (), drop_missing_target=drop_missing_target
        )
        progress("Diagnosing", 0, None)
        parts = prepare(problem, test=test, seed=seed)
        estimator = network(problem.task, Settings(seed=seed, **chosen))
        with as_data_errors():
            found = reports.diagnose(estimator, *parts, title=f"{data.name}: {target}")
        if report is not None:
            with writing(report):
                reports.write_report(found, report)
    if as_json:
        print(found.to_json())
        return
    print_lines(*about_problem(data, problem), "")
    print_pairs([(finding.question, finding.answer) for finding in found.verdict.findings])
    print_lines("", f"{report} holds the report." if report else "--report FILE.html writes the full report as a page.")


def compare(
    data: Data,
    target: Target,
    splits: Annotated[int, typer.Option("--splits", min=2, help="Random splits.")] = 10,
    n_hidden: Annotated[int, typer.Option("--n-hidden", min=1, help="Hidden units for the rules.")] = 300,
    task: Task = options.TaskName.auto,
    test: Test = 0.3,
    seed: Seed = 0,
    published: Annotated[
        bool, typer.Option("--literature/--no-literature", help="Add ELM, RELM, … with their own defaults.")
    ] = True,
    drop_missing_target: DropMissingTarget = False,
    ignore: Ignore = None,
    as_json: AsJson = False,
) -> None:
    """Compare all rules for γ and methods of the literature, and mark significant differences from OCReP."""
    options.check_share(test)
    from ocrep.tables import compare_methods, read_problem

    with progress_bar() as progress:
        problem = read_problem(
            data, target, task=task.value, ignore=ignore or (), drop_missing_target=drop_missing_target
        )
        found = compare_methods(
            problem, n_hidden=n_hidden, n_splits=splits, test=test, seed=seed, published=published, progress=progress
        )
    if as_json:
        methods = [{**asdict(method), "verdict": method.verdict or None} for method in found.methods]
        print_json({"task": problem.task, **asdict(found), "methods": methods})
    else:
        print_lines(*about_problem(data, problem))
        _print_comparison(problem, found)


def _print_comparison(problem: Problem, found: Comparison) -> None:
    percent = 100 if problem.task == "classification" else 1
    rows = [
        (
            method.name,
            f"{percent * method.mean:.4g}",
            f"{percent * method.deviation:.2g}",
            f"{percent * method.difference:+.2g}",
            f"{method.p_value:.2g}",
            {"worse": "▲ worse", "better": "▼ better", "": ""}[method.verdict],
        )
        for method in found.methods
    ]
    error = "RMSE" if problem.task == "regression" else "% wrong"
    print_table(("method", error, "spread", "vs ocrep", "p", ""), rows, left=(0, 5))
    print_lines(
        f"Mean and standard deviation over {found.n_splits} splits; ▲ ▼ mark significant differences from ocrep: "
        "corrected paired t-test, p adjusted for all methods (Holm), below 0.05."
    )
    if found.not_applicable:
        print_lines(f"Not applicable here: {', '.join(found.not_applicable)} (--json gives the reasons).")


class FileFormat(StrEnum):
    """The values of --format."""

    csv = "csv"
    parquet = "parquet"


def datasets(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Default: all that are bundled.")
    ] = None,
    export: Annotated[Path | None, typer.Option("--export", metavar="FOLDER", help="Write them as files.")] = None,
    form: Annotated[FileFormat, typer.Option("--format", help="Format of the files.")] = FileFormat.csv,
    as_json: AsJson = False,
) -> None:
    """List the paper's data sets, or write them as files with a column `target`."""
    from ocrep.datasets import info
    from ocrep.datasets.registry import find

    try:
        chosen = [find(name) for name in names] if names else list(info())
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if export is not None:
        from ocrep.tables import export_data_set

        wanted = [record.name for record in chosen if names or record.bundled]
        with progress_bar():
            files = [export_data_set(name, export, form.value) for name in wanted]
        if as_json:
            print_json({"files": [str(file) for file in files]})
        else:
            print_lines(*map(str, files))
    elif as_json:
        print_json({"data_sets": [asdict(record) for record in chosen]})
    else:
        _print_data_sets(chosen)


def _print_data_sets(records: Iterable[Any]) -> None:
    rows = [
        (
            record.name,
            record.task,
            f"{record.n_rows:,}",
            str(record.n_features),
            str(record.n_classes or ""),
            "yes" if record.bundled else "no",
            record.licence,
        )
        for record in records
    ]
    print_table(("name", "task", "rows", "inputs", "classes", "bundled", "licence"), rows, left=(0, 1, 5, 6))


def study_quick(out: StudyFolder, jobs: Jobs = 2, as_json: AsJson = False) -> None:
    """Run all experiments at a small size: about two minutes."""
    _study("quick", out, jobs, as_json)


def study_full(out: StudyFolder, jobs: Jobs = 2, as_json: AsJson = False) -> None:
    """Run all experiments as in the paper: hours; if interrupted, the same command resumes."""
    _study("full", out, jobs, as_json)


def study_report(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder with the results of a study.")],
    as_json: AsJson = False,
) -> None:
    """Write the report and the figures of a folder again."""
    from ocrep import study
    from ocrep._files.formats import DataError
    from ocrep._files.writing import writing

    try:
        study.about(folder)
    except (OSError, ValueError) as error:
        raise DataError(str(error)) from error
    with writing(folder):
        page = study.report(folder)
    _print_report_path(page, as_json)


def _study(protocol: str, out: Path, jobs: int, as_json: bool) -> None:
    from ocrep import study
    from ocrep._files.writing import OutputError, writing

    with writing(out):
        try:
            study.run(protocol, out, n_jobs=jobs)
        except (ValueError, RuntimeError) as error:  # the folder holds another study, or another run uses it
            raise OutputError(str(error)) from error
        page = study.report(out)
    _print_report_path(page, as_json)


def _print_report_path(page: Path, as_json: bool) -> None:
    if as_json:
        print_json({"report": str(page)})
    else:
        print_lines(f"{page} holds the report.")
