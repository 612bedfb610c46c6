"""The numbers of the last part of a report: one network, its spectrum, and its errors along γ and under every rule.

One fit that keeps the factors of its folds is all that is trained. Each rule is asked for its γ; a grid from γ = 0 to
100·σ₁² holds all of these γ and some in between; and every quantity is evaluated along that grid (`Evaluator`,
`Spectrum`). The line of a rule in the table is a column of these curves, so that the table, the figures and the
slider always agree.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from ocrep.analysis.evaluator import Evaluator, both_or_none, gamma_grid, rule_name, rules_to_compare
from ocrep.displays.spectral import levels
from ocrep.estimators import PinvClassifier, PinvRegressor
from ocrep.estimators.base import ClosedForm, fit_silently
from ocrep.report.examination import Examination, Ranking, ReadableRows, examination, ranked, reading
from ocrep.report.goodness import Goodness, goodness
from ocrep.report.verdict import Facts, Finding, RuleLine, Verdict, judge
from ocrep.report.wording import finite, percent, readable
from ocrep.rules import resolve

if TYPE_CHECKING:
    from ocrep.tables.training import Trained

QUICKLY = 50_000
"""About so many rows are predicted to rank the columns after each training."""
DEFAULT_TITLE = "Conditioning and regularization"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All numbers of a report.

    The errors, `condition`, `dof` and `norm` run along the grid `gammas`, which begins with γ = 0 and holds the γ of
    every rule: no number is interpolated. Errors are RMSE, or the share of misclassified rows for a classifier.

    Parameters
    ----------
    title, estimator : str
        Heading, and the network as text.
    task, error_name : str
        "regression" or "classification", and the name of the error.
    table : dict
        Where the rows come from, with the keys that `diagnose` takes.
    n_train, n_test, n_folds, n_columns : int
        Rows, folds of the cross-validation and columns of H.
    n_hidden : int or None
        Hidden units; None without a hidden layer.
    rank : int
        Numerical rank of H.
    floor, tolerance : float
        Precision floor and rank tolerance, in units of σ.
    condition_number : float
        μ(H).
    chosen_rule, chosen_gamma : str and float
        What the network itself uses.
    singular_values : list of float
        Those of H.
    gammas : list of float
        The grid.
    train_error, cv_error, condition, dof, norm : list of float
        Along the grid.
    rules : list
        The rules that apply, by cross-validation error. Each has `rule` (its name), `gamma`, `index` (the place of γ in
        the grid), `train_error`, `cv_error`, `test_error`, `cv_noise` (one standard error of the difference between
        its cross-validation error and the least one), `dof`, `norm`, `condition`, `edge` and `floored`.
    not_applicable : list of dict
        The other rules: `rule` and `reason`.
    verdict : object
        Its `findings` have a `question`, an `answer` and a `detail` each; `recommended` is the rule to use, or None.
    advised : str
        The line of Python, or the command, that trains with the recommended rule.
    test_error : list of float or None
        Along the grid, if there are test rows.
    goodness : object or None
        If there are test rows: `finding` (the answer in words), `models` (the scores of the network and of simple
        models, by name), `advice`, and what the figures show (`true` and `predicted`, or `classes`, `confusion` and
        `roc`).
    examined : Examination or None
        If there are test rows: which columns matter, what each does, where the model is wrong, and whether to trust it.

    See Also
    --------
    write_report : Makes a page of it.

    Examples
    --------
    >>> from ocrep import PinvRegressor
    >>> from ocrep.datasets import load
    >>> from ocrep.report import diagnose, write_report
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> diagnosis = diagnose(PinvRegressor(20, random_state=0), X, y, rules=["ocrep", "ocrep_cv", "gcv"])
    >>> len(diagnosis.rules), diagnosis.rank
    (3, 26)
    >>> diagnosis.findings()[0].question
    'Which rule should I use?'
    >>> diagnosis.to_json()[:8]
    '{"title"'
    >>> diagnosis.error_text(12.345)
    '12.35'
    """

    title: str
    estimator: str = field(repr=False)
    task: str
    error_name: str
    table: dict[str, Any] = field(repr=False)
    n_train: int
    n_test: int
    n_folds: int
    n_columns: int
    n_hidden: int | None
    rank: int
    floor: float
    tolerance: float
    condition_number: float
    chosen_rule: str
    chosen_gamma: float
    singular_values: list[float] = field(repr=False)
    gammas: list[float] = field(repr=False)
    train_error: list[float] = field(repr=False)
    cv_error: list[float] = field(repr=False)
    condition: list[float] = field(repr=False)
    dof: list[float] = field(repr=False)
    norm: list[float] = field(repr=False)
    rules: list[RuleLine] = field(repr=False)
    not_applicable: list[dict[str, str]] = field(repr=False)
    verdict: Verdict
    advised: str = field(repr=False)
    test_error: list[float] | None = field(default=None, repr=False)
    goodness: Goodness | None = field(default=None, repr=False)
    examined: Examination | None = field(default=None, repr=False)

    def error_text(self, error: float) -> str:
        """Format an error for readers: shares of misclassified rows as percentages.

        Parameters
        ----------
        error : float
            An RMSE, or a share of misclassified rows.

        Returns
        -------
        str
            A few digits.
        """
        return percent(error) if self.task == "classification" and error == error else readable(error, 4)

    def findings(self) -> list[Finding]:
        """The questions with their answers, in the order of the page.

        Returns
        -------
        list
            Each has a `question`, an `answer` and a `detail`.
        """
        good = [] if self.goodness is None else [self.goodness.finding]
        first = good if self.examined is None else self.examined.findings()
        return [*first, *self.verdict.findings]

    def _repr_html_(self) -> str:
        """The questions and answers, for notebooks."""
        rows = "".join(
            f"<tr><th style='text-align: left'>{escape(finding.question)}</th><td>{escape(finding.answer)}</td></tr>"
            for finding in self.findings()
        )
        return f"<table><caption><b>{escape(self.title)}</b></caption>{rows}</table>"

    def to_json(self) -> str:
        """Return all numbers as strict JSON; infinity and NaN become null.

        Returns
        -------
        str
            One JSON object.
        """
        values = finite(asdict(self))
        if self.examined is not None:
            del values["examined"]["goodness"]  # the same as that of the diagnosis
        return json.dumps(values, ensure_ascii=False, allow_nan=False)


def diagnose(
    estimator: ClosedForm,
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    title: str = DEFAULT_TITLE,
    rules: Iterable[Any] | None = None,
    table: dict[str, Any] | None = None,
) -> Diagnosis:
    """Evaluate one network under many γ, which is factored once.

    Parameters
    ----------
    estimator : PinvRegressor, PinvClassifier, TikhonovRegressor or TikhonovClassifier
        The network; a copy is fitted, and the estimator is not changed. Its own rule is always compared.
    X, y : array-like
        Training rows.
    X_test, y_test : array-like, default=None
        Test rows, on which the network, a linear model, gradient boosting and a constant are scored; the choice of a
        rule does not use them.
    title : str
        Heading of the report.
    rules : iterable of str, Rule or float, default=None
        Values for the parameter `gamma`; None compares all names in `ocrep.rules.names()`.
    table : dict, default=None
        Where the rows come from, for a page in its reader's own words; all keys may be left out. "inputs": names of the
        columns that are inputs. "left_out": the other columns, each with the reason. "n_dropped": number of rows
        without a target. "command": the command that trains on the table, to which the advised options are added.
        "examined": a sentence on the network that is examined. "advice": what seems wrong with the columns.

    Returns
    -------
    Diagnosis
        The numbers; `write_report` makes a page of them.

    See Also
    --------
    write_report : Makes a page of the result.
    ocrep.compare_rules : A table of all rules only.

    Examples
    --------
    >>> from ocrep import PinvRegressor
    >>> from ocrep.datasets import load
    >>> from ocrep.report import diagnose, write_report
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> diagnosis = diagnose(PinvRegressor(20, random_state=0), X, y, rules=["ocrep", "ocrep_cv", "gcv"])
    >>> len(diagnosis.rules), diagnosis.rank
    (3, 26)
    >>> table = {"inputs": [f"column {k}" for k in range(6)], "command": "ocrep fit cpu.csv --target erp"}
    >>> diagnose(PinvRegressor(20, random_state=0), X, y, rules=["ocrep_cv"], table=table).advised
    'ocrep fit cpu.csv --target erp --gamma ocrep_cv'
    """
    model = clone(estimator)
    # A rule that cross-validates has folds of its own, which `store_folds` must not contradict.
    model.set_params(store_folds=resolve(model.gamma).folds is not None or model.store_folds or True)
    fit_silently(model, X, y)
    about = _about_table(table, model)
    network = Evaluator.of(model, (X, y), test=both_or_none(X_test, y_test))
    spectrum = network.spectrum

    asked = rules_to_compare(rules)
    if rule_name(estimator.gamma) not in map(rule_name, asked):
        asked = [estimator.gamma, *asked]
    outcomes = [network.apply(rule) for rule in asked]
    gammas = np.append(0.0, gamma_grid(spectrum, [outcome.gamma for outcome in outcomes]))
    curves = {
        "train_error": network.training_errors(gammas),
        "cv_error": network.cv_errors(gammas),
        "condition": np.asarray(spectrum.condition(gammas)),
        "dof": np.asarray(spectrum.dof(gammas)),
        "norm": np.asarray(spectrum.norm(gammas)),
    }
    if network.test is not None:
        curves["test_error"] = network.test_errors(gammas)
    best = int(np.nanargmin(curves["cv_error"])) if np.isfinite(curves["cv_error"]).any() else 0
    noise = network.cv_noise(gammas, float(gammas[best]))
    lines = []
    for outcome in outcomes:
        if outcome.gamma is not None:
            at = int(np.argmin(np.abs(gammas - outcome.gamma)))
            lines.append(
                RuleLine(
                    rule=outcome.rule,
                    gamma=outcome.gamma,
                    index=at,
                    edge=outcome.edge,
                    floored=outcome.floored,
                    cv_noise=float(noise[at]),
                    **{name: float(values[at]) for name, values in curves.items()},
                )
            )

    floor, tolerance = levels(spectrum)
    n_columns = spectrum.right.n_features
    condition_number = float(spectrum.condition())
    verdict = judge(
        Facts(
            labels=network.labels,
            n_rows=spectrum.n_rows,
            n_columns=n_columns,
            n_resolved=int(np.sum(np.asarray(spectrum.sigma) > floor)),
            rank=spectrum.rank,
            most_directions=min(n_columns, spectrum.n_rows - int(spectrum.intercept_fitted)),
            condition_number=condition_number,
            floor_condition=spectrum.largest / floor if floor else math.inf,
            best_cv_error=float(curves["cv_error"][best]),
            best_cv_gamma=float(gammas[best]),
            rules=lines,
        )
    )
    good = None if y_test is None else goodness(model, X, y, X_test, y_test)
    return Diagnosis(
        title=title,
        estimator=repr(estimator),
        task="classification" if network.labels else "regression",
        error_name=network.error_name,
        table=about,
        n_train=len(y),
        n_test=0 if y_test is None else len(y_test),
        n_folds=network.folds.plan.n_folds if network.folds else 0,
        n_columns=n_columns,
        n_hidden=getattr(model, "n_hidden_", None),
        rank=spectrum.rank,
        floor=floor,
        tolerance=tolerance,
        condition_number=condition_number,
        chosen_rule=rule_name(estimator.gamma),
        chosen_gamma=model.gamma_,
        singular_values=np.asarray(model.singular_values_).tolist(),
        gammas=gammas.tolist(),
        **{name: values.tolist() for name, values in curves.items()},
        rules=sorted(lines, key=lambda line: line.cv_error if math.isfinite(line.cv_error) else math.inf),
        not_applicable=[
            {"rule": outcome.rule, "reason": outcome.reason} for outcome in outcomes if outcome.gamma is None
        ],
        verdict=verdict,
        advised=_advised(estimator, verdict.recommended, about["command"]),
        goodness=good,
        examined=None if good is None else _examined(model, X, X_test, y_test, good, about, title),
    )


def _examined(
    model: ClosedForm, X: Any, X_test: Any, y_test: Any, good: Goodness, about: dict[str, Any], title: str
) -> Examination:
    """The examination of a network, under the names that `table` gives its inputs."""
    parts = [_named(rows, about["inputs"]) for rows in (X, X_test)]
    bare = reading(model, about["inputs"])  # the names may be those of the table
    return examination(
        bare,
        parts[1],
        np.asarray(y_test),
        ReadableRows.of(bare, parts[0]),
        title=title,
        good=good,
        command=about["command"],
    )


def _named(rows: Any, names: list[str]) -> Any:
    """Rows as a frame of numbers with these names."""
    import pandas

    return pandas.DataFrame(rows.toarray() if sparse.issparse(rows) else np.asarray(rows), columns=names)


def diagnose_table(trained: Trained, *, title: str = DEFAULT_TITLE, command: str = "") -> Diagnosis:
    """Evaluate a model of a table: how good it is on held-out rows, and one of its networks under many γ.

    Parameters
    ----------
    trained : Trained
        The model, with the held-out rows that it was assessed on.
    title : str
        Heading of the report.
    command : str, default=""
        The command that trains on the table; advice is then given as options of the program.

    Returns
    -------
    Diagnosis
        Its `goodness` is that of the model; the rest is about its best network whose layer does not learn from targets.
    """
    model, coded = trained.assessed, trained.coded
    assert model is not None
    assert coded is not None
    assert trained.held_out is not None
    frame, y_test, _, _ = model._rows(trained.held_out, whole=False)
    X_test = model.coder_.transform(frame)
    network = model.model_
    estimator, which = clone(network), "Below, the network is examined under other γ."
    if hasattr(network, "weights_"):
        results = network.cv_results_
        exact = [n for n in np.argsort(results["rank_test_score"]) if results["judged"][n] == "exact"]
        kind = PinvClassifier if hasattr(network, "classes_") else PinvRegressor
        estimator = kind(**results["params"][exact[0]], random_state=network.random_state)
        units = estimator.n_hidden
        which = (
            f"Below, one network of the stack, with {units} {estimator.activation} units, is examined under other γ."
        )
    about: dict[str, Any] = {"inputs": [column.name for column in trained.read.columns], "command": command}
    about |= {"left_out": trained.read.left_out, "examined": which, "n_dropped": trained.n_dropped}
    advice = () if trained.assessment is None else trained.assessment.advice
    on_columns = tuple(one for one in advice if one.code in ("near_numbers", "leak"))
    found = diagnose(estimator, coded.inputs, coded.y, title=title, table={**about, "advice": on_columns})
    good = goodness(network, coded.inputs, coded.y, X_test, y_test, trained.assessment)
    if good is not None:
        good = replace(good, advice=[one for one in good.advice if one not in on_columns])
    numbers = trained.held_out.numbers
    read = coded.read
    examined = examination(
        model,
        frame,
        y_test,
        ReadableRows.of_values(None, read.columns, [column.values for column in read.columns]),
        title=title,
        good=good,
        advice=advice,
        numbers=numbers if numbers is not None and len(numbers) == len(y_test) else None,
        n_train=trained.n_train,
        command=command,
    )
    return replace(found, n_test=len(y_test), goodness=good, examined=examined)


def first_columns(trained: Trained) -> Ranking | None:
    """The columns of a table model by importance on held-out rows, at a small part of the cost of training it.

    The ranking is kept in the `assessment_` of the model; None if no rows were held out.
    """
    if trained.assessed is None or trained.held_out is None:
        return None
    frame, y, _, _ = trained.assessed._rows(trained.held_out, whole=False)
    found = ranked(trained.assessed, ReadableRows.of(trained.assessed, frame), y, n_repeats=2, most=QUICKLY)
    keep_ranking(trained, found)
    return found


def keep_ranking(trained: Trained, found: Ranking | None) -> None:
    """Let the model's `assessment_` hold its columns by importance."""
    if found is not None and trained.model.assessment_ is not None:
        trained.model.assessment_["importance"] = found.lines()


def _about_table(table: dict[str, Any] | None, model: ClosedForm) -> dict[str, Any]:
    """All keys of `table`, with what stands for those that were left out."""
    names = getattr(model, "feature_names_in_", range(1, model.n_features_in_ + 1))
    about = {
        "inputs": [str(name) for name in names],
        "left_out": {},
        "n_dropped": 0,
        "command": "",
        "examined": "",
        "advice": (),
    }
    for key in table or {}:
        if key not in about:
            raise ValueError(f"table has the key {key!r}, which has no meaning here: use {', '.join(about)}.")
    return about | (table or {})


def _advised(estimator: ClosedForm, rule: str | None, command: str) -> str:
    """The line that trains with the recommended rule: the command if there is one, else a line of Python."""
    if rule is None:
        return ""
    if command:
        return f"{command} --gamma {rule}"
    # The estimator's own rule may be an object or a number, which its name describes but is not.
    gamma = estimator.gamma if rule == rule_name(estimator.gamma) else rule
    return repr(clone(estimator).set_params(gamma=gamma))
