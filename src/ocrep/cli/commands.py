"""The commands, one function each: options to what the library takes, one call, and what is printed.

What a command computes belongs in `tables` or below. The library is imported inside the functions, after the options
have been checked: `ocrep --help` and a wrong option must answer at once.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, BadParameter, Context, Option

from ocrep.cli import options, printing
from ocrep.cli.options import (
    Activation,
    AsJson,
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
    MaxHidden,
    Missing,
    Model,
    NHidden,
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
    from ocrep.report import Diagnosis
    from ocrep.tables.comparison import Comparison
    from ocrep.tables.problem import Problem
    from ocrep.tables.training import LayerChoice, Trained


# ------------------------------------------------------------------------------
# Models: fit, predict, inspect, export.


def fit(
    data: Data,
    target: Target,
    out: Annotated[Path, Option("--out", "-o", metavar="MODEL", help="The model file to write (.skops).")],
    task: Task = "auto",
    drop_missing_target: DropMissingTarget = False,
    ignore: Ignore = None,
    ids: Annotated[
        list[str] | None,
        Option("--id", metavar="COLUMN", help="Not an input, but copied to predictions; may be repeated."),
    ] = None,
    dates: Dates = "parts",
    decimal: Decimal = None,
    thousands: Thousands = None,
    strip: Strip = None,
    na: Missing = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    candidates: Annotated[
        Literal["quick", "default", "thorough"] | None,
        Option("--candidates", help="How many networks to choose among, by exact cross-validation."),
    ] = None,
    n_hidden: NHidden = None,
    max_hidden: MaxHidden = None,
    gamma: Gamma = None,
    floor: Floor = None,
    activation: Activation = None,
    weight_init: WeightInit = None,
    weight_scale: WeightScale = None,
    direct_link: DirectLink = None,
    intercept: Intercept = None,
    class_weight: Annotated[
        Literal["balanced"] | None,
        Option("--class-weight", help="balanced: rare classes weigh as much as frequent ones."),
    ] = None,
    calibrate: Annotated[
        bool | None, Option("--calibrate/--no-calibrate", help="Whether a classifier learns probabilities; it does.")
    ] = None,
    test: Test = 0.3,
    refit: Annotated[
        bool, Option("--refit/--no-refit", help="Train the saved model on all rows, or on the training part only.")
    ] = True,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Train a network on a file of rows.

    Its error is measured on held-out rows, and the model is saved.
    """
    options.check_share(test, zero=True)
    chosen = options.network_options(
        n_hidden,
        gamma,
        floor,
        intercept,
        weight_scale,
        max_hidden=max_hidden,
        activation=activation,
        weight_init=weight_init,
        direct_link=direct_link,
    )
    if candidates is not None:
        if chosen:
            fixed = "it chooses the network, which --n-hidden, --gamma and others fix: leave out one or the other."
            raise BadParameter(fixed, param_hint="--candidates")
        chosen = {"candidates": candidates}
    reading = options.reading_options(decimal, thousands, strip, na, encoding, delimiter)
    from ocrep._files.reading import Reading
    from ocrep._files.writing import check_output, writing
    from ocrep.serialization import save_model
    from ocrep.tables.problem import UsageError, read_problem
    from ocrep.tables.training import Settings, train

    check_output(out, source=data, suffixes=(".skops",))
    settings = Settings(**chosen, calibrate=calibrate is not False, class_weight=class_weight, seed=seed)
    with printing.progress_bar() as progress, options.local_data(data) as path:
        problem = read_problem(
            path,
            target,
            task=task,
            ignore=ignore or (),
            ids=ids or (),
            drop_missing_target=drop_missing_target,
            dates=dates,
            reading=Reading(**reading),
            progress=progress,
        )
        # Only now is the task known. Calibration is on unless it is refused, so the option is an error only if given.
        for option, given in {"--calibrate": calibrate, "--class-weight": class_weight}.items():
            if given and problem.task != "classification":
                raise UsageError(f"{option} is for classification, but this is a regression.")
        trained = train(problem, settings, test=test, refit=refit, progress=progress)
        with writing(out):
            save_model(trained.model, out)
    if as_json:
        printing.json_object(_fit_result(problem, trained, out))
    else:
        _print_fit(options.data_name(data), problem, trained, out)


def _fit_result(problem: Problem, trained: Trained, out: Path) -> dict[str, Any]:
    network = trained.model[-1]
    choice = _choice_of(network)
    return {
        "model": str(out),
        "task": problem.task,
        "task_reason": problem.task_reason or None,
        "target": problem.target,
        "inputs": problem.kinds,
        "left_out": problem.left_out,
        "gaps": problem.gaps,
        "near_numbers": problem.near_numbers,
        "near_dates": problem.near_dates,
        "rows_dropped": problem.n_dropped,
        "n_train": trained.n_train,
        "n_test": trained.n_test,
        "scores": trained.scores,
        "assessment": trained.assessment and trained.assessment.to_json(),
        "trained_on_all_rows": trained.on_all_rows,
        "layer_choice": choice and choice.to_json(),
        "rule": str(network.gamma),
        **_fitted_numbers(network),
        "seconds": trained.seconds,
    }


def _print_fit(name: str, problem: Problem, trained: Trained, out: Path) -> None:
    network = trained.model[-1]
    choice = _choice_of(network)
    printing.lines(*printing.about_problem(name, problem))
    if trained.assessment is not None:
        printing.score_table(trained.assessment)
        printing.confusion_table(trained.assessment)
    if not network.gamma_:
        gamma = "0 (not regularized)"
    elif isinstance(network.gamma, int | float):
        gamma = f"{network.gamma_:.3g} (given)"
    else:
        rule = network.choice_.rule if isinstance(network.gamma, str) else network.gamma
        gamma = f"{network.gamma_:.3g} ({rule})"
    before = network.condition_number_
    after = network.regularized_condition_number_
    n_features = network.output_coef_.shape[-1]
    printing.pairs(
        [
            *(choice.sentences() if choice else ()),
            ("γ", gamma),
            ("condition number", f"{before:.3g} before, {after:.3g} with γ"),
            ("rank", f"{network.rank_} of {printing.features(n_features, network.n_hidden_)}"),
            ("time to train", f"{trained.seconds:.2f} s"),
        ]
    )
    # The advice about the model, where it has any, contains that about γ.
    notes = printing.notes(trained.assessment.advice) if trained.assessment else []
    if not notes and network.choice_.advice is not None:
        notes = [f"Note: {network.choice_.advice}"]
    rows = f"all {problem.n_rows:,}" if trained.on_all_rows else f"{trained.n_train:,}"
    printing.lines("", *notes, f"{out} holds the model, trained on {rows} rows.")


def _choice_of(network: Any) -> LayerChoice | None:
    from ocrep.tables.training import LayerChoice

    return LayerChoice.of(network)


def _fitted_numbers(network: Any) -> dict[str, Any]:
    """The fitted numbers of a network; None for those that another kind of estimator lacks."""
    names = ("gamma", "n_hidden", "rank", "condition_number", "regularized_condition_number")
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
    std: Annotated[bool, Option("--std", help="Add the standard deviation of each prediction.")] = False,
    digits: Annotated[
        int | None,
        Option("--digits", min=1, max=17, help="Significant digits of numbers. Default: 6 as text, else all."),
    ] = None,
    allow_unseen: Annotated[
        bool, Option("--allow-unseen", help="Accept texts that were not seen in training.")
    ] = False,
    decimal: Decimal = None,
    thousands: Thousands = None,
    strip: Strip = None,
    na: Missing = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    as_json: AsJson = False,
) -> None:
    """Predict the rows of a file of any size.

    Memory does not grow with the file, which is read as that of `fit` was.
    """
    if as_json and out == "-":
        taken = "standard output is taken by the predictions: write them to a file with --out."
        raise BadParameter(taken, param_hint="--json")
    reading = options.reading_options(decimal, thousands, strip, na, encoding, delimiter)
    from ocrep._files.writing import check_output
    from ocrep.tables.prediction import predict_file

    check_output(out, source=data, table=True)
    fitted = _load(model)
    with printing.progress_bar() as progress, options.local_data(data) as path:
        n_rows = predict_file(
            fitted,
            path,
            out,
            ids=ids,
            proba=proba,
            std=std,
            allow_unseen=allow_unseen,
            digits=digits,
            reading=reading,
            progress=progress,
        )
    if out != "-":
        rows = printing.counted(n_rows, "row")
        printing.result(as_json, {"predictions": out, "rows": n_rows}, f"{out} holds the predictions of {rows}.")


def inspect(model: Model, as_json: AsJson = False) -> None:
    """Show what a model file holds."""
    from sklearn.pipeline import Pipeline

    from ocrep.serialization import blaming, model_info
    from ocrep.tables.training import describe

    fitted = _load(model)
    info = model_info(model)
    about = describe(fitted)
    network = fitted[-1] if isinstance(fitted, Pipeline) else fitted
    # A file may hold anything under these names: if that cannot be shown, the file is to blame and not the program.
    with blaming(model):
        choice = _choice_of(network)
        summary = network.summary() if hasattr(network, "summary") else None
        values = {
            "file": asdict(info),
            "table": None if about is None else asdict(about),
            "network": {"rule": str(network.get_params().get("gamma")), **_fitted_numbers(network)},
            "summary": summary and asdict(summary),
            "layer_choice": choice and choice.to_json(),
        }
        text = printing.json_text(values) if as_json else None
    if text is not None:
        print(text)
        return
    pairs = [
        ("file", f"{info.type_name}, written {info.created}"),
        ("versions", f"ocrep {info.ocrep_version}, scikit-learn {info.sklearn_version}"),
    ]
    if about is not None:
        by_kind = [f"{name} ({kind})" for name, kind in about.kinds.items()]
        pairs += [("predicts", f"{about.target} ({about.task})"), ("inputs", ", ".join(by_kind))]
        pairs += [("ids", ", ".join(about.ids))] if about.ids else []
        pairs += printing.score_pairs(about.scores, None)
    pairs += choice.sentences() if choice else []
    printing.pairs(pairs)
    printing.lines("", type(network).__name__ if summary is None else str(summary))


def export(
    model: Model,
    out: Annotated[Path, Argument(metavar="ONNX", help="The ONNX file to write (.onnx).")],
    double: Annotated[bool, Option("--double", help="Compute in float64 instead of float32.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a model as an ONNX graph, for use without Python."""
    from ocrep._files.writing import check_output, writing
    from ocrep.onnx import save_onnx
    from ocrep.tables.problem import UsageError
    from ocrep.tables.training import describe, example_rows, without_frame

    check_output(out, source=model, suffixes=(".onnx",))
    fitted = _load(model)
    about = describe(fitted)
    if about is not None and any(kind.endswith("date") for kind in about.kinds.values()):
        raise UsageError("An ONNX graph cannot read dates, which this model does: train it with --dates drop.")
    dtype = "float64" if double else "float32"
    with writing(out):
        save_onnx(without_frame(fitted), out, dtype=dtype, example=example_rows(fitted))
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
    context: Context,
    data: Data,
    target: Target,
    report: Annotated[Path | None, Option("--report", "-r", metavar="HTML", help="The page to write.")] = None,
    task: Task = "auto",
    drop_missing_target: DropMissingTarget = False,
    ignore: Ignore = None,
    dates: Dates = "parts",
    decimal: Decimal = None,
    thousands: Thousands = None,
    strip: Strip = None,
    na: Missing = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    n_hidden: NHidden = None,
    max_hidden: MaxHidden = None,
    gamma: Gamma = None,
    floor: Floor = None,
    activation: Activation = None,
    weight_init: WeightInit = None,
    weight_scale: WeightScale = None,
    direct_link: DirectLink = None,
    intercept: Intercept = None,
    test: Test = 0.3,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Diagnose a problem as γ varies.

    The conditioning, and the errors of all rules; --report writes a page about it.
    """
    chosen = options.network_options(
        n_hidden,
        gamma,
        floor,
        intercept,
        weight_scale,
        max_hidden=max_hidden,
        activation=activation,
        weight_init=weight_init,
        direct_link=direct_link,
    )
    options.check_share(test)
    reading = options.reading_options(decimal, thousands, strip, na, encoding, delimiter)
    from ocrep import report as reports
    from ocrep._files.reading import Reading
    from ocrep._files.writing import check_output, writing
    from ocrep.tables.leaks import leaks_of
    from ocrep.tables.problem import read_problem
    from ocrep.tables.training import Settings, as_data_errors, examined, plain_network, prepare

    if report is not None:
        check_output(report, source=data, suffixes=(".html", ".htm"))
    name = options.data_name(data)
    settings = Settings(seed=seed, **chosen)
    with printing.progress_bar() as progress, options.local_data(data) as path:
        problem = read_problem(
            path,
            target,
            task=task,
            ignore=ignore or (),
            drop_missing_target=drop_missing_target,
            dates=dates,
            reading=Reading(**reading),
            progress=progress,
        )
        progress("Diagnosing", 0, None)
        parts = prepare(problem, test=test, seed=seed)
        estimator = plain_network(problem.task, settings)
        which = examined(problem.task, settings)
        # Another name than that of the user's model, which the command must not replace.
        out = ("--out", "one-network.skops")
        again = _same_command(context, "fit", without=("report", "gamma", "as_json"), more=out)
        with as_data_errors():
            wrong = (*problem.advice(), *leaks_of(problem))
            about = {"inputs": list(problem.kinds), "left_out": problem.left_out, "n_dropped": problem.n_dropped}
            about |= {"command": again, "examined": which, "advice": wrong}
            found = reports.diagnose(estimator, *parts, title=f"{name}: {target}", table=about)
        if report is not None:
            with writing(report):
                reports.write_report(found, report)
    if as_json:
        print(found.to_json())
    else:
        _print_diagnosis(name, problem, found, report)


def _same_command(context: Context, name: str, *, without: Collection[str], more: Sequence[str]) -> str:
    """The command `name` with what was given to this one, less the parameters `without`, and `more` at its end."""
    words: list[str] = []
    for parameter in context.command.params:
        source = None if parameter.name is None else context.get_parameter_source(parameter.name)
        if source is not None and source.name == "COMMANDLINE" and parameter.name not in without:
            words += _words(parameter, context.params[parameter.name])
    return shlex.join(["ocrep", name, *words, *more])


def _words(parameter: Any, value: Any) -> Iterator[str]:
    """A parameter as it is typed, an option by its long name."""
    if parameter.param_type_name == "argument":
        yield str(value)
    elif parameter.is_flag:
        yield max(parameter.opts if value else parameter.secondary_opts, key=len)
    else:
        for one in value if parameter.multiple else [value]:
            yield max(parameter.opts, key=len)
            yield str(one)


def _print_diagnosis(name: str, problem: Problem, found: Diagnosis, report: Path | None) -> None:
    printing.lines(*printing.about_problem(name, problem), found.table["examined"], "")
    findings = list(found.verdict.findings)
    advice = list(found.table["advice"])
    if found.goodness is not None:
        findings = [found.goodness.finding, *findings]
        advice = [*found.goodness.advice, *advice]
    printing.pairs([(finding.question, finding.answer) for finding in findings])
    notes = printing.notes(advice)
    if found.advised:
        notes += [f"To train with that rule: {found.advised}"]
    page = f"{report} holds the report." if report else "--report FILE.html writes the full report as a page."
    printing.lines("", *notes, page)


def compare(
    data: Data,
    target: Target,
    task: Task = "auto",
    drop_missing_target: DropMissingTarget = False,
    ignore: Ignore = None,
    dates: Dates = "parts",
    decimal: Decimal = None,
    thousands: Thousands = None,
    strip: Strip = None,
    na: Missing = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
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
    reading = options.reading_options(decimal, thousands, strip, na, encoding, delimiter)
    from ocrep._files.reading import Reading
    from ocrep.tables.comparison import MAIN_RULES, compare_methods
    from ocrep.tables.leaks import leaks_of
    from ocrep.tables.problem import read_problem

    with printing.progress_bar() as progress, options.local_data(data) as path:
        problem = read_problem(
            path,
            target,
            task=task,
            ignore=ignore or (),
            drop_missing_target=drop_missing_target,
            dates=dates,
            reading=Reading(**reading),
            progress=progress,
        )
        found = compare_methods(
            problem,
            n_hidden=n_hidden,
            n_splits=splits,
            test=test,
            seed=seed,
            rules=None if every else MAIN_RULES,
            published=every if published is None else published,
            progress=progress,
        )
        leaks = leaks_of(problem)
    if as_json:
        methods = [{**asdict(method), "verdict": method.verdict or None} for method in found.methods]
        about = {"task": problem.task, **asdict(found), "methods": methods, "advice": found.advice()}
        printing.json_object({**about, "leaks": [one.sentence() for one in leaks]})
    else:
        printing.lines(*printing.about_problem(options.data_name(data), problem))
        _print_comparison(problem, found, leaks)


def _print_comparison(problem: Problem, found: Comparison, leaks: Sequence[Advice]) -> None:
    factor, error = (100, "% wrong") if problem.task == "classification" else (1, "RMSE")
    rows = []
    for method in found.methods:
        mean = f"{factor * method.mean:.4g}"
        spread = f"{factor * method.deviation:.2g}"
        # What is rounding would be printed as +1.4e-16.
        difference = factor * method.difference if factor * abs(method.difference) > 1e-12 else 0.0
        mark = {"worse": "▲ worse", "better": "▼ better", "": ""}[method.verdict]
        rows.append([method.name, mean, spread, f"{difference:+.2g}", f"{method.p_value:.2g}", mark])
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
