"""The commands, one function each: options to what the library takes, one call, and what is printed.

What a command computes belongs in `tables` or below. The library is imported inside the functions, after the options
have been checked: `ocrep --help` and a wrong option must answer at once.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, BadParameter, Option

from ocrep.cli import options, printing
from ocrep.cli.options import (
    Activation,
    AsJson,
    Candidates,
    ClassWeight,
    Data,
    Dates,
    Decimal,
    Delimiter,
    DirectLink,
    DropMissingTarget,
    Encoding,
    Floor,
    Gamma,
    Ignore,
    Intercept,
    Keep,
    MaxHidden,
    Missing,
    Model,
    NHidden,
    Quiet,
    Report,
    Seed,
    Strip,
    Target,
    Task,
    Test,
    Thousands,
    WeightInit,
    WeightScale,
)

if TYPE_CHECKING:
    from ocrep.analysis.assessment import Advice
    from ocrep.report import Diagnosis, Examination
    from ocrep.report.examination import Ranking
    from ocrep.tables.comparison import Comparison
    from ocrep.tables.training import Problem, Trained


# ------------------------------------------------------------------------------
# Models: fit, predict, inspect, export.


def fit(
    data: Data,
    target: Target,
    out: Annotated[Path, Option("--out", "-o", metavar="MODEL", help="The model file to write (.skops).")],
    task: Task = "auto",
    drop_missing_target: DropMissingTarget = False,
    ignore: Ignore = None,
    keep: Keep = None,
    ids: Annotated[
        list[str] | None,
        Option("--id", metavar="COLUMN", help="Not an input, but copied to predictions; may be repeated."),
    ] = None,
    dates: Dates = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    strip: Strip = None,
    na: Missing = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    candidates: Candidates = None,
    n_hidden: NHidden = None,
    max_hidden: MaxHidden = None,
    gamma: Gamma = None,
    floor: Floor = None,
    activation: Activation = None,
    weight_init: WeightInit = None,
    weight_scale: WeightScale = None,
    direct_link: DirectLink = None,
    intercept: Intercept = None,
    class_weight: ClassWeight = None,
    test: Test = 0.3,
    refit: Annotated[
        bool, Option("--refit/--no-refit", help="Save a model trained on all rows, or the one that was tested.")
    ] = True,
    small: Annotated[
        bool, Option("--small", help="Keep only what predictions need: about a tenth of the size, or less.")
    ] = False,
    report: Report = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train a model on a file of rows, and save it.

    Its error is measured on held-out rows, beside those of simple models.
    """
    options.check_share(test, zero=True)
    if report is not None and test == 0:
        raise BadParameter("the page is about held-out rows: give --test a share above 0.", param_hint="--report")
    chosen = options.network_options(
        n_hidden,
        gamma,
        floor,
        intercept,
        weight_scale,
        candidates=candidates,
        max_hidden=max_hidden,
        activation=activation,
        weight_init=weight_init,
        direct_link=direct_link,
    )
    reading = options.reading_options(decimal, thousands, strip, na, encoding, delimiter)
    from ocrep._files.reading import Reading
    from ocrep._files.writing import check_output, writing
    from ocrep.report.diagnosis import diagnose_table, first_columns, keep_ranking
    from ocrep.report.page import write_report
    from ocrep.serialization import save_model
    from ocrep.tables.training import Settings, UsageError, problem_of_file, train_table

    check_output(out, source=data, suffixes=(".skops",))
    if report is not None:
        check_output(report, source=data, suffixes=(".html", ".htm"))
    about: dict[str, Any] = {"ignore": ignore or (), "keep": keep or (), "dates": dates}
    about["drop_missing_target"] = drop_missing_target
    settings = Settings(**chosen, **about, class_weight=class_weight, seed=seed)
    with printing.progress_bar(quiet=quiet) as progress, options.local_data(data) as path:
        problem = problem_of_file(
            path, target, settings, task=task, ids=ids or (), reading=Reading(**reading), progress=progress
        )
        if class_weight and not problem.labels:  # only now is the task known
            raise UsageError("--class-weight is for classification, but this is a regression.")
        trained = train_table(problem, test=test, refit=refit, for_report=report is not None, progress=progress)
        progress("Explaining", 0, None)
        if report is None:
            ranking = first_columns(trained)
        else:
            title = f"{options.data_name(data)}: {target}"
            found = diagnose_table(trained, title=title, command=_advised_command(data, target))
            assert found.examined is not None
            ranking = found.examined.ranking
            keep_ranking(trained, ranking)
            with writing(report):
                write_report(found, report)
        with writing(out):
            save_model(trained.model, out, for_prediction=small)
    if as_json:
        printing.json_object(_fit_result(problem, trained, ranking, out, report))
    else:
        _print_fit(options.data_name(data), problem, trained, ranking, out, report)


def _advised_command(data: Path, target: str) -> str:
    """The command of a report's advice; with another name than that of the user's model, which it must not replace."""
    return shlex.join(["ocrep", "fit", str(data), "--target", target, "--out", "one-network.skops"])


def _fit_result(
    problem: Problem, trained: Trained, ranking: Ranking | None, out: Path, report: Path | None
) -> dict[str, Any]:
    model = trained.model
    return {
        "model": str(out),
        "task": problem.task,
        "task_reason": problem.reason or None,
        "target": problem.target,
        "inputs": {column.name: column.kind for column in trained.read.columns},
        "left_out": model.left_out_,
        "gaps": model.gaps_,
        "rows": trained.n_rows,
        "n_train": trained.n_train,
        "n_test": 0 if trained.assessment is None else trained.assessment.n_test,
        "scores": {} if trained.assessment is None else trained.assessment.scores,
        "assessment": trained.assessment and trained.assessment.to_json(),
        "importance": None if ranking is None else ranking.lines(),
        "report": report and str(report),
        "trained_on_all_rows": trained.on_all_rows,
        **_fitted_numbers(model.model_),
        "seconds": trained.seconds,
    }


def _print_fit(
    name: str, problem: Problem, trained: Trained, ranking: Ranking | None, out: Path, report: Path | None
) -> None:
    printing.lines(*printing.about_problem(name, problem, trained))
    printing.columns(trained.model)
    if trained.assessment is not None:
        printing.score_table(trained.assessment)
        printing.confusion_table(trained.assessment)
    pairs = [] if trained.assessment is None else [("Is it good?", trained.assessment.verdict.answer)]
    if ranking is not None:
        pairs += [("Which columns matter?", printing.first_columns(ranking))]
    printing.pairs(
        [*pairs, *printing.about_network(trained.model.model_), ("time to train", f"{trained.seconds:.2f} s")]
    )
    advice = trained.assessment.advice if trained.assessment else problem.advice
    notes = printing.notes(advice)
    if trained.assessment is None:
        notes += printing.note_on_folds(trained.model.assessment_)
    rows = f"all {trained.n_rows:,}" if trained.on_all_rows else f"{trained.n_train:,}"
    page = [] if report is None else [f"{report} holds the report."]
    printing.lines("", *notes, f"{out} holds the model, trained on {rows} rows.", *page)


def _fitted_numbers(network: Any) -> dict[str, Any]:
    """The fitted numbers of a network; None for those that a stack, or another kind of estimator, lacks."""
    names = ("gamma", "n_hidden", "rank", "condition_number", "regularized_condition_number", "weights")
    return {name: getattr(network, f"{name}_", None) for name in names}


def predict(
    model: Model,
    data: Data,
    out: Annotated[
        str, Option("--out", "-o", metavar="FILE", help="CSV, TSV (.gz), Parquet or Feather; - prints CSV.")
    ] = "-",
    ids: Annotated[
        list[str] | None,
        Option("--id", metavar="COLUMN", help="A column to copy; may be repeated. Default: the ids of `fit`."),
    ] = None,
    proba: Annotated[
        bool | None,
        Option("--proba/--no-proba", help="Whether to add the probability of each class. Default: up to 20 classes."),
    ] = None,
    interval: Annotated[
        float | None,
        Option(
            "--interval",
            metavar="SHARE",
            help="Add an interval that should hold this share of the targets, such as 0.9.",
        ),
    ] = None,
    digits: Annotated[
        int | None,
        Option("--digits", min=1, max=17, help="Significant digits of numbers. Default: 6 as text, else all."),
    ] = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    strip: Strip = None,
    na: Missing = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Predict the rows of a file of any size.

    Memory use does not grow with the file. It is read with the options that `fit` was given.
    """
    if as_json and out == "-":
        taken = "standard output is taken by the predictions: write them to a file with --out."
        raise BadParameter(taken, param_hint="--json")
    if interval is not None and not 0.0 < interval < 1.0:
        raise BadParameter(f"{interval:g} must be above 0 and below 1.", param_hint="--interval")
    reading = options.reading_options(decimal, thousands, strip, na, encoding, delimiter)
    from ocrep._files.writing import check_output
    from ocrep.tables.prediction import predict_file

    check_output(out, source=data, table=True)
    fitted = _load(model)
    with printing.progress_bar(quiet=quiet) as progress, options.local_data(data) as path:
        found = predict_file(
            fitted,
            path,
            out,
            ids=ids,
            proba=proba,
            interval=interval,
            digits=digits,
            reading=reading,
            progress=progress,
        )
    note = printing.about_unlike(found)
    if note and not quiet:
        printing.to_stderr(note)
    if out != "-":
        values = {"predictions": out, "rows": found.n_rows, "rows_unlike_training": found.n_unlike}
        told = f"{out} holds the predictions of {printing.counted(found.n_rows, 'row')}."
        printing.result(as_json, {**values, "columns_unlike_training": found.unlike}, told)


def inspect(model: Model, as_json: AsJson = False) -> None:
    """Show what a model file holds."""
    from sklearn.pipeline import Pipeline

    from ocrep.serialization import blaming, model_info
    from ocrep.tables.prediction import columns_of

    fitted = _load(model)
    info = model_info(model)
    # A file may hold anything under these names: if that cannot be shown, the file is to blame and not the program.
    with blaming(model):
        network = fitted[-1] if isinstance(fitted, Pipeline) else fitted
        network = getattr(network, "model_", network)
        about = getattr(fitted, "source_", {})
        columns = columns_of(fitted)
        assessment = getattr(fitted, "assessment_", None)
        small = getattr(network, "_for_prediction", False)
        summary = network.summary() if hasattr(network, "summary") and not small else None
        values = {
            "file": asdict(info),
            "target": about.get("target"),
            "ids": about.get("ids", []),
            "inputs": columns,
            "left_out": getattr(fitted, "left_out_", {}),
            "assessment": assessment,
            "network": {"rule": str(network.get_params().get("gamma")), **_fitted_numbers(network)},
            "summary": summary and asdict(summary),
        }
        text = printing.json_text(values)
        scores = dict((assessment or {}).get("models", {}))
    if as_json:
        print(text)
        return
    pairs = [
        ("file", f"{info.type_name}, written {info.created}"),
        ("versions", f"ocrep {info.ocrep_version}, scikit-learn {info.sklearn_version}"),
    ]
    if "target" in about:
        task = "classification" if hasattr(fitted, "classes_") else "regression"
        pairs += [("predicts", f"{about['target']} ({task})")]
    if columns:
        pairs += [("inputs", ", ".join(f"{name} ({kind})" for name, kind in columns.items()))]
    if about.get("ids"):
        pairs += [("ids", ", ".join(about["ids"]))]
    pairs += [(f"{name}, {(assessment or {})['judged_on']}", printing.scores(own)) for name, own in scores.items()]
    if (assessment or {}).get("importance"):
        first = (assessment or {})["importance"][:5]
        pairs += [
            ("columns that matter most", ", ".join(f"{one['column']} ({one['importance']:.2g})" for one in first))
        ]
    printing.pairs(pairs)
    only = " (only what predictions need)" if small else ""
    printing.lines("", f"{type(network).__name__}{only}" if summary is None else str(summary))


def explain(
    model: Model,
    data: Data,
    target: Annotated[
        str | None,
        Option("--target", "-t", metavar="COLUMN", help="The column that the model predicts. Default: that of `fit`."),
    ] = None,
    row: Annotated[
        int | None, Option("--row", min=1, help="Explain the prediction of this row, counted from 1; needs no target.")
    ] = None,
    report: Report = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    strip: Strip = None,
    na: Missing = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Say which columns matter to a model, and what each does.

    Give rows that it was not trained on. --row explains one prediction, and --report writes a page.
    """
    reading = options.reading_options(decimal, thousands, strip, na, encoding, delimiter)
    from ocrep._files.writing import check_output, writing
    from ocrep.report.examination import MOST_ROWS, examine_file, why
    from ocrep.report.page import write_report
    from ocrep.tables.prediction import row_of, rows_with_targets

    if report is not None:
        check_output(report, source=data, suffixes=(".html", ".htm"))
    fitted = _load(model)
    name = options.data_name(data)
    found = reason = None
    with printing.progress_bar(quiet=quiet) as progress, options.local_data(data) as path:
        if row is not None:
            reason = why(fitted, row_of(fitted, path, row, reading=reading, progress=progress))
        if row is None or report is not None:
            told = rows_with_targets(fitted, path, target, most=MOST_ROWS, reading=reading, progress=progress)
            progress("Explaining", 0, None)
            found = examine_file(fitted, told, title=f"{name}: {model.name}")
        if report is not None and found is not None:
            with writing(report):
                write_report(found, report)
    if as_json:
        values: dict[str, Any] = {"model": str(model), "data": str(data), "report": report and str(report)}
        if reason is not None:
            values |= {"row": row, **asdict(reason)}
        printing.json_object(values if found is None else values | json.loads(found.to_json()))
        return
    if reason is not None:
        _print_reason(name, row, reason)
    if found is not None:
        _print_explanation(name, told, found)
    if report is not None:
        printing.lines(f"{report} holds the report.")


def _print_explanation(name: str, told: Any, found: Examination) -> None:
    from ocrep.report.wording import readable, short, with_error

    printing.lines(
        f"{name}: {printing.counted(told.n_rows, 'row')}, {printing.counted(len(found.inputs), 'column')} used."
    )
    if told.n_dropped:
        printing.lines(f"Left out: {printing.counted(told.n_dropped, 'row')} without a target.")
    assert found.ranking is not None
    assert found.goodness is not None
    rows = []
    for line in found.ranking.lines():
        # Of columns that say the same, the first is shown.
        known = [one for one in found.effects if f"{line['column']} + ".startswith(f"{one.column} + ")]
        does = known[0].in_short() if known else ""
        rows.append([short(line["column"]), with_error(line["importance"], line["std_error"]), does])
    printing.table(("column", "importance", "what it does"), rows, left=(0, 2))
    scores = printing.scores(found.goodness.models["network"])
    falls = f"{found.ranking.in_words()} falls when a column is shuffled, from {readable(found.ranking.score)}"
    of_label = next(
        (f", as the probability of {one.output}" for one in found.effects if one.scale == "probability"), ""
    )
    printing.lines(
        f"Importance: how much {falls}; ± one standard error. Effects: what a value adds to that of the average "
        f"row{of_label}.",
        f"On these {printing.counted(found.n_rows, 'row')}: {scores}.",
    )
    notes = [f"{finding.question} {finding.answer}" for finding in found.trust if finding.level == "warn"]
    seen = "If the model was trained on these rows, it looks better here than it is."
    printing.lines("", *(f"Note: {note}" for note in (*notes, seen)))


def _print_reason(name: str, row: int | None, reason: Any) -> None:
    from ocrep.report.wording import minus

    printing.lines(f"Row {row:,} of {name}: predicted {reason.prediction}.")
    rows = [[one["column"], one["value"], minus(f"{one['added']:+.4g}")] for one in reason.contributions]
    printing.table(("column", "value", "adds"), rows, left=(0, 1))
    printing.lines(reason.sentence())


def export(
    model: Model,
    out: Annotated[Path, Argument(metavar="ONNX", help="The ONNX file to write (.onnx).")],
    double: Annotated[bool, Option("--double", help="Inputs and outputs in float64 instead of float32.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a model as an ONNX graph, for use without Python."""
    from ocrep._files.writing import check_output, writing
    from ocrep.onnx import save_onnx

    check_output(out, source=model, suffixes=(".onnx",))
    fitted = _load(model)
    dtype = "float64" if double else "float32"
    with writing(out):
        save_onnx(fitted, out, dtype=dtype)
    result = {"onnx": str(out), "dtype": dtype, "bytes": out.stat().st_size}
    printing.result(as_json, result, f"{out} holds the model as an ONNX graph in {dtype}.")


def _load(path: Path) -> Any:
    from ocrep.serialization import ModelFileError, load_model

    try:
        return load_model(path)
    except OSError as error:
        raise ModelFileError(str(error) if error.strerror is None else f"{path}: {error.strerror}.") from error


# ------------------------------------------------------------------------------
# Problems and methods: diagnose, compare, datasets.


def diagnose(
    data: Data,
    target: Target,
    report: Report = None,
    task: Task = "auto",
    drop_missing_target: DropMissingTarget = False,
    ignore: Ignore = None,
    keep: Keep = None,
    dates: Dates = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    strip: Strip = None,
    na: Missing = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    candidates: Candidates = None,
    n_hidden: NHidden = None,
    max_hidden: MaxHidden = None,
    gamma: Gamma = None,
    floor: Floor = None,
    activation: Activation = None,
    weight_init: WeightInit = None,
    weight_scale: WeightScale = None,
    direct_link: DirectLink = None,
    intercept: Intercept = None,
    class_weight: ClassWeight = None,
    test: Test = 0.3,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Examine the model that `fit` would train, without saving it.

    How good it is on held-out rows, and how its regularization was chosen; --report writes a page about it.
    """
    chosen = options.network_options(
        n_hidden,
        gamma,
        floor,
        intercept,
        weight_scale,
        candidates=candidates,
        max_hidden=max_hidden,
        activation=activation,
        weight_init=weight_init,
        direct_link=direct_link,
    )
    options.check_share(test)
    reading = options.reading_options(decimal, thousands, strip, na, encoding, delimiter)
    from ocrep._files.reading import Reading
    from ocrep._files.writing import check_output, writing
    from ocrep.report.diagnosis import diagnose_table
    from ocrep.report.page import write_report
    from ocrep.tables.training import Settings, problem_of_file, train_table

    if report is not None:
        check_output(report, source=data, suffixes=(".html", ".htm"))
    name = options.data_name(data)
    about: dict[str, Any] = {"ignore": ignore or (), "keep": keep or (), "dates": dates}
    about["drop_missing_target"] = drop_missing_target
    settings = Settings(**chosen, **about, class_weight=class_weight, seed=seed)
    with printing.progress_bar(quiet=quiet) as progress, options.local_data(data) as path:
        problem = problem_of_file(path, target, settings, task=task, reading=Reading(**reading), progress=progress)
        trained = train_table(problem, test=test, refit=False, progress=progress)
        progress("Diagnosing", 0, None)
        found = diagnose_table(trained, title=f"{name}: {target}", command=_advised_command(data, target))
        if report is not None:
            with writing(report):
                write_report(found, report)
    if as_json:
        print(found.to_json())
    else:
        _print_diagnosis(name, problem, trained, found, report)


def _print_diagnosis(name: str, problem: Problem, trained: Trained, found: Diagnosis, report: Path | None) -> None:
    printing.lines(*printing.about_problem(name, problem, trained))
    assert trained.assessment is not None
    printing.score_table(trained.assessment)
    assert found.examined is not None
    printing.pairs([(finding.question, finding.answer) for finding in found.examined.findings()])
    printing.lines("", found.table["examined"], "")
    printing.pairs([(finding.question, finding.answer) for finding in found.verdict.findings])
    page = f"{report} holds the report." if report else "--report FILE.html writes the full report as a page."
    printing.lines("", *printing.notes(trained.assessment.advice), page)


def compare(
    data: Data,
    target: Target,
    task: Task = "auto",
    drop_missing_target: DropMissingTarget = False,
    ignore: Ignore = None,
    keep: Keep = None,
    dates: Dates = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    strip: Strip = None,
    na: Missing = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    candidates: Candidates = None,
    splits: Annotated[int, Option("--splits", min=2, help="Random splits.")] = 5,
    every: Annotated[
        bool, Option("--all", help="Add all rules for γ, on one network, and the methods of the literature.")
    ] = False,
    test: Test = 0.3,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare the model of `fit` with others.

    A linear model, gradient boosting and, where they are installed, LightGBM and CatBoost, over random splits.
    """
    options.check_share(test)
    reading = options.reading_options(decimal, thousands, strip, na, encoding, delimiter)
    from ocrep._files.reading import Reading
    from ocrep.tables.comparison import compare_methods
    from ocrep.tables.leaks import advice_on_leaks
    from ocrep.tables.training import Settings, problem_of_file, read_of

    about: dict[str, Any] = {"ignore": ignore or (), "keep": keep or (), "dates": dates}
    about["drop_missing_target"] = drop_missing_target
    settings = Settings(candidates=candidates or "default", **about, seed=seed)
    with printing.progress_bar(quiet=quiet) as progress, options.local_data(data) as path:
        problem = problem_of_file(path, target, settings, task=task, reading=Reading(**reading), progress=progress)
        found = compare_methods(
            problem,
            n_splits=splits,
            test=test,
            rules=None if every else (),
            published=every,
            progress=progress,
        )
        leaks = advice_on_leaks(*read_of(problem), labels=problem.labels)
    if as_json:
        methods = [{**asdict(method), "verdict": method.verdict or None} for method in found.methods]
        values = {"task": problem.task, **asdict(found), "methods": methods, "advice": found.advice()}
        printing.json_object({**values, "leaks": [one.sentence() for one in leaks]})
    else:
        _print_comparison(problem, found, leaks)


def _print_comparison(problem: Problem, found: Comparison, leaks: Sequence[Advice]) -> None:
    factor, error = (100, "% wrong") if problem.labels else (1, "RMSE")
    rows = []
    for method in found.methods:
        mean = printing.number(factor * method.mean)
        spread = f"{factor * method.deviation:.2g}"
        # What is rounding would be printed as +1.4e-16.
        difference = factor * method.difference if factor * abs(method.difference) > 1e-12 else 0.0
        mark = {"worse": "▲ worse", "better": "▼ better", "": ""}[method.verdict]
        rows.append([method.name, mean, spread, f"{difference:+.2g}", f"{method.p_value:.2g}", mark])
    printing.table(("method", error, "spread", "vs network", "p", ""), rows, left=(0, 5))
    printing.lines(
        f"Mean and standard deviation over {found.n_splits} splits; ▲ ▼ mark significant differences from the network, "
        "which ocrep fit trains: corrected paired t-test, p adjusted for all methods (Holm), below 0.05."
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
        rows = []
        for one in chosen:
            sizes = (f"{one.n_rows:,}", str(one.n_features), str(one.n_classes or ""))
            rows.append((one.name, one.task, *sizes, "yes" if one.bundled else "no", one.licence))
        header = ("name", "task", "rows", "inputs", "classes", "bundled", "licence")
        printing.table(header, rows, left=(0, 1, 5, 6))


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
    path = folder / f"{name}.{suffix}"
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with table_writer(path) as write:
        write(data.frame.assign(**named))
    return path
