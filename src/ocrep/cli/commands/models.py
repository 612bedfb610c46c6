"""The commands for models: fit, predict, inspect, export."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, BadParameter, Option

from ocrep.cli import options, printing
from ocrep.cli.grouped import grouped
from ocrep.cli.groups import FileOptions, NetworkOptions, TableOptions
from ocrep.cli.options import AsJson, Data, Model, Seed, Test

if TYPE_CHECKING:
    from ocrep.tables.problem import Problem
    from ocrep.tables.training import LayerChoice, Settings, Trained

IdsOfFit = Annotated[
    list[str] | None, Option("--id", metavar="COLUMN", help="Not an input, but copied to predictions; may be repeated.")
]
Candidates = Annotated[
    Literal["quick", "default", "thorough"] | None,
    Option("--candidates", help="How many networks to choose among, by exact cross-validation."),
]
ClassWeight = Annotated[
    Literal["balanced"] | None, Option("--class-weight", help="balanced: rare classes weigh as much as frequent ones.")
]
Calibrate = Annotated[
    bool | None, Option("--calibrate/--no-calibrate", help="Whether a classifier learns probabilities; it does.")
]
Refit = Annotated[
    bool, Option("--refit/--no-refit", help="Train the saved model on all rows, or on the training part only.")
]


@grouped
def fit(
    data: Data,
    table: TableOptions,
    out: Annotated[Path, Option("--out", "-o", metavar="MODEL", help="The model file to write (.skops).")],
    file: FileOptions,
    network: NetworkOptions,
    candidates: Candidates = None,
    class_weight: ClassWeight = None,
    calibrate: Calibrate = None,
    ids: IdsOfFit = None,
    test: Test = 0.3,
    refit: Refit = True,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Train a network on a file of rows.

    Its error is measured on held-out rows, and the model is saved.
    """
    options.check_share(test, zero=True)
    chosen = _chosen(candidates, network, calibrate=calibrate is not False, class_weight=class_weight, seed=seed)
    from ocrep._files.writing import check_output, writing
    from ocrep.serialization import save_model
    from ocrep.tables.problem import UsageError
    from ocrep.tables.training import train

    check_output(out, source=data, suffixes=(".skops",))
    with printing.progress_bar() as progress, options.local_data(data) as path:
        problem = table.read(path, file, ids=ids or (), progress=progress)
        for option, given in {"--calibrate": calibrate, "--class-weight": class_weight}.items():
            if given and problem.task != "classification":
                raise UsageError(f"{option} is for classification, but this is a regression.")
        trained = train(problem, chosen, test=test, refit=refit, progress=progress)
        with writing(out):
            save_model(trained.model, out)
    if as_json:
        return printing.json_object(_fit_result(problem, trained, out))
    return _print_fit(data, problem, trained, out)


def _chosen(candidates: str | None, network: NetworkOptions, **more: Any) -> Settings:
    """What `fit` trains: one network as the options say, or one of the candidates; not both."""
    chosen = network.chosen()
    if candidates is not None:
        if network != NetworkOptions():
            fixed = "it chooses the network, which --n-hidden, --gamma and others fix: leave out one or the other."
            raise BadParameter(fixed, param_hint="--candidates")
        chosen["candidates"] = candidates
    from ocrep.tables.training import Settings

    return Settings(**chosen, **more)


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


def _choice_of(network: Any) -> LayerChoice | None:
    from ocrep.tables.training import LayerChoice

    return LayerChoice.of(network)


def _fitted_numbers(network: Any) -> dict[str, Any]:
    """Return the fitted numbers of a network; None for those that another kind of estimator lacks."""
    names = ("gamma", "n_hidden", "rank", "condition_number", "regularized_condition_number")
    return {name: getattr(network, f"{name}_", None) for name in names}


def _print_fit(data: Path, problem: Problem, trained: Trained, out: Path) -> None:
    network = trained.model[-1]
    choice = _choice_of(network)
    before, after = network.condition_number_, network.regularized_condition_number_
    n_features = network.coef_.shape[-1]
    printing.lines(*printing.about_problem(options.data_name(data), problem))
    if trained.assessment is not None:
        printing.score_table(trained.assessment)
        printing.confusion_table(trained.assessment)
    pairs = [
        *(choice.sentences() if choice else ()),
        ("γ", _told_gamma(network)),
        ("condition number", f"{before:.3g} before, {after:.3g} with γ"),
        ("rank", f"{network.rank_} of {printing.features(n_features, network.n_hidden_)}"),
        ("time to train", f"{trained.seconds:.2f} s"),
    ]
    printing.pairs(pairs)
    rows = f"all {problem.n_rows:,}" if trained.on_all_rows else f"{trained.n_train:,}"
    of_gamma = [] if network.choice_.advice is None else [f"Note: {network.choice_.advice}"]
    said = (trained.assessment and printing.notes(trained.assessment.advice)) or of_gamma
    printing.lines("", *said, f"{out} holds the model, trained on {rows} rows.")


def _told_gamma(network: Any) -> str:
    rule = network.choice_.rule if isinstance(network.gamma, str) else network.gamma
    given = "given" if isinstance(network.gamma, int | float) else rule
    return f"{network.gamma_:.3g} ({given})" if network.gamma_ else "0 (not regularized)"


@grouped
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
    *,
    file: FileOptions,
    as_json: AsJson = False,
) -> None:
    """Predict the rows of a file of any size.

    Memory does not grow with the file, which is read as that of `fit` was.
    """
    if as_json and out == "-":
        taken = "standard output is taken by the predictions: write them to a file with --out."
        raise BadParameter(taken, param_hint="--json")
    from ocrep._files.writing import check_output
    from ocrep.tables.prediction import predict_file

    check_output(out, source=data, table=True)
    wanted: dict[str, Any] = {"ids": ids, "proba": proba, "std": std, "allow_unseen": allow_unseen, "digits": digits}
    fitted = _load(model)
    with printing.progress_bar() as progress, options.local_data(data) as path:
        n_rows = predict_file(fitted, path, out, **wanted, reading=file.given(), progress=progress)
    if out != "-":
        rows = printing.counted(n_rows, "row")
        printing.result(as_json, {"predictions": out, "rows": n_rows}, f"{out} holds the predictions of {rows}.")


def inspect(model: Model, as_json: AsJson = False) -> None:
    """Show what a model file holds."""
    from sklearn.pipeline import Pipeline

    from ocrep.serialization import blaming, model_info
    from ocrep.tables.training import describe

    fitted = _load(model)
    info, about = model_info(model), describe(fitted)
    network = fitted[-1] if isinstance(fitted, Pipeline) else fitted
    with blaming(model):
        choice, summary = _choice_of(network), network.summary() if hasattr(network, "summary") else None
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

    check_output(out, source=model, suffixes=(".onnx",))
    fitted = _load(model)
    from ocrep.onnx import save_onnx
    from ocrep.tables.problem import UsageError
    from ocrep.tables.training import describe, example_rows, without_frame

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
