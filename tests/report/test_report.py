"""The report: its numbers against refitting, its verdict on problems built so that it is known, and its page."""

import json
import math
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas
import pytest
from sklearn.model_selection import train_test_split
from support.problems import random_problem, smooth_problem, with_condition, with_spectrum
from support.weights import weights_of

from ocrep import PinvClassifier, PinvRegressor, TikhonovClassifier, TikhonovRegressor, rules
from ocrep._linalg.folds import FoldPlan
from ocrep.report import diagnose, write_report
from ocrep.report.page import render
from ocrep.report.verdict import Facts, RuleLine, judge


def rmse(model, X, y):
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


def missed(model, X, y):
    return float(np.mean(model.predict(X) != y))


def refitted_cv(estimator, X, y, error, gamma):
    """The oracle: each fold predicted by a fit on the others."""
    fold = FoldPlan().of(X)
    total = 0.0
    for v in range(3):
        held = fold == v
        fitted = type(estimator)(**estimator.get_params() | {"gamma": gamma}).fit(X[~held], y[~held])
        value = error(fitted, X[held], y[held])
        total += np.sum(held) * (value**2 if error is rmse else value)
    return (total / len(y)) ** (0.5 if error is rmse else 1.0)


def labelled(n_rows=90, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 5))
    return X, np.array(["red", "green", "blue"])[(X[:, :3] + 0.8 * rng.standard_normal((n_rows, 3))).argmax(axis=1)]


def split(X, y):
    return train_test_split(X, y, test_size=0.3, random_state=0)


@pytest.fixture(scope="module")
def regression():
    X, X_test, y, y_test = split(*smooth_problem(200, 5))
    return diagnose(PinvRegressor(60, random_state=0), X, y, X_test, y_test, title="Smooth")


@pytest.mark.parametrize(
    ("estimator", "data", "error"),
    [
        (TikhonovRegressor(), smooth_problem(90, 5), rmse),
        (TikhonovRegressor(fit_intercept=False), random_problem(70, 6, 2), rmse),
        (TikhonovClassifier(), labelled(), missed),
        (TikhonovClassifier(calibrate="loo", class_weight={"red": 5.0, "blue": 0.2}), labelled(seed=1), missed),
    ],
)
def test_every_number_is_that_of_a_refit(estimator, data, error):
    X, X_test, y, y_test = split(*data)
    d = diagnose(estimator, X, y, X_test, y_test, rules=["ocrep", "gcv", "none", 0.37])
    bare = type(estimator)(**estimator.get_params() | ({"calibrate": None} if error is missed else {}))
    for i in range(0, len(d.gammas), 9):
        fitted = type(bare)(**bare.get_params() | {"gamma": d.gammas[i]}).fit(X, y)
        W = np.atleast_2d(weights_of(fitted))
        assert d.train_error[i] == pytest.approx(error(fitted, X, y), rel=1e-8)
        assert d.test_error[i] == pytest.approx(error(fitted, X_test, y_test), rel=1e-8)
        assert d.norm[i] == pytest.approx(np.linalg.norm(W), rel=1e-8)
        assert d.condition[i] == pytest.approx(fitted.regularized_condition_number_, rel=1e-8)
        assert d.cv_error[i] == pytest.approx(refitted_cv(bare, X, y, error, d.gammas[i]), rel=1e-8)
    for line in d.rules:
        assert d.gammas[line.index] == line.gamma
        assert (line.cv_error, line.test_error, line.dof) == tuple(
            c[line.index] for c in (d.cv_error, d.test_error, d.dof)
        )
    H = X - X.mean(axis=0) if estimator.fit_intercept else X
    if bare.get_params().get("class_weight") is None:
        np.testing.assert_allclose(d.singular_values, np.linalg.svd(H, compute_uv=False), rtol=1e-9)
        sigma = np.array(d.singular_values)
        np.testing.assert_allclose(d.dof[1:], [np.sum(sigma**2 / (sigma**2 + g)) for g in d.gammas[1:]], rtol=1e-8)


def test_the_grid_begins_with_no_regularization_and_holds_every_choice(regression):
    assert regression.gammas[0] == 0.0
    assert regression.gammas == sorted(set(regression.gammas))
    assert {line.rule for line in regression.rules} | {s["rule"] for s in regression.not_applicable} == set(
        rules.names()
    )
    chosen = {line.rule: line.gamma for line in regression.rules}
    X, _, y, _ = split(*smooth_problem(200, 5))
    assert chosen["gcv"] == pytest.approx(PinvRegressor(60, random_state=0, gamma="gcv").fit(X, y).gamma_)
    assert [line.cv_error for line in regression.rules] == sorted(line.cv_error for line in regression.rules)
    assert all(skipped["reason"] for skipped in regression.not_applicable)


def test_the_estimator_stays_as_it_is_and_its_own_rule_is_compared():
    X, X_test, y, y_test = split(*smooth_problem(80, 4))
    estimator = PinvRegressor(20, gamma=rules.KFold(n_folds=4), random_state=0)
    before = str(estimator.get_params())
    d = diagnose(estimator, X, y, X_test, y_test, rules="ocrep")
    assert str(estimator.get_params()) == before
    assert not hasattr(estimator, "factor_")
    assert d.n_folds == 4
    assert {line.rule for line in d.rules} == {"ocrep", repr(estimator.gamma)}
    assert d.chosen_rule == repr(estimator.gamma)
    assert d.chosen_gamma in [line.gamma for line in d.rules]


def test_without_test_rows_there_is_no_test_error():
    X, y = smooth_problem(60, 4)
    d = diagnose(PinvRegressor(15, random_state=0), X, y, rules=["ocrep", "none"])
    assert d.test_error is None
    assert d.rules[0].test_error is None
    page = render(d)
    assert "Test error" not in page
    assert 'data-read="test_error"' not in page
    with pytest.raises(ValueError, match="both X_test and y_test"):
        diagnose(PinvRegressor(15), X, y, X)


def test_too_few_rows_for_folds_and_zero_features_are_named():
    d = diagnose(TikhonovRegressor("gcv", fit_intercept=False), [[1.0, 2.0]], [1.0], rules=["ocrep", "kfold"])
    assert all(math.isnan(error) for error in d.cv_error)
    assert {skipped["rule"] for skipped in d.not_applicable} == {"kfold", "gcv"} - {line.rule for line in d.rules}
    assert {f.topic: f.code for f in d.verdict.findings}["advice"] == "default"
    assert json.loads(d.to_json())["cv_error"][0] is None
    assert "too few rows for cross-validation" in render(d)
    zero = diagnose(TikhonovRegressor("gcv", fit_intercept=False), np.zeros((9, 2)), np.arange(9.0), rules=["ocrep"])
    assert {f.topic: f.code for f in zero.verdict.findings}["conditioning"] == "zero"
    assert "All features are zero" in render(zero)


def test_json_says_the_same_and_is_strict(regression):
    found = json.loads(regression.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert found["gammas"] == regression.gammas
    assert found["rules"][0]["rule"] == regression.rules[0].rule
    assert found["verdict"]["recommended"] == regression.verdict.recommended


# --- The verdict -----------------------------------------------------------------------------------------------------


def codes(d):
    return {finding.topic: finding.code for finding in d.verdict.findings}


def exact_targets(H, noise, seed=1):
    """Targets that all directions of H explain alike, but for the noise."""
    U = np.linalg.svd(H, full_matrices=False)[0]
    rng = np.random.default_rng(seed)
    return U.sum(axis=1) * np.sqrt(len(H)) + noise * rng.standard_normal(len(H))


def diagnosed(H, y, **options):
    return diagnose(TikhonovRegressor(fit_intercept=False), H, y, **options)


def test_ocrep_is_too_much_where_weak_directions_carry_the_signal():
    # Four directions of which one is 100 times weaker, all equally useful: γ = σ₁σ_p damps the weak one away.
    H = with_spectrum([1.0, 0.9, 0.8, 0.01], 400)
    found = diagnosed(H, exact_targets(H, noise=0.05))
    assert codes(found) | {"advice": ""} == {
        "advice": "",
        "conditioning": "well",
        "ocrep": "too_much",
        "need": "not_needed",
        "information": "few",
    }
    assert found.verdict.recommended in ("ocrep_cv", "kfold")
    advised = next(line for line in found.rules if line.rule == found.verdict.recommended)
    assert advised.cv_error < 0.5 * next(line for line in found.rules if line.rule == "ocrep").cv_error


def test_ocrep_is_right_where_weak_directions_carry_only_noise():
    # Strong directions carry the signal, sixty weak ones nothing: σ₁σ_p lies between the two.
    H = with_spectrum([*np.linspace(30.0, 20.0, 5), *np.linspace(0.02, 0.001, 60)], 120)
    U = np.linalg.svd(H, full_matrices=False)[0]
    y = 3.0 * U[:, :5].sum(axis=1) * np.sqrt(120) + np.random.default_rng(0).standard_normal(120)
    found = diagnosed(H, y)
    assert codes(found) == {
        "advice": "ocrep",
        "conditioning": "ill",
        "ocrep": "right",
        "need": "needed",
        "information": "few",
    }
    assert found.verdict.recommended == "ocrep"
    dof = next(line.dof for line in found.rules if line.rule == "ocrep")
    assert dof == pytest.approx(5.0, abs=0.5)
    assert next(f for f in found.verdict.findings if f.topic == "information").answer == (
        f"It uses {dof:.1f} effective degrees of freedom."
    )


def test_a_fit_that_uses_half_as_many_parameters_as_rows_is_complex():
    H = np.eye(12)[:, :8] + 0.01 * np.random.default_rng(0).standard_normal((12, 8))
    found = diagnosed(H, H @ np.arange(8.0), rules=[1e-6])
    assert codes(found)["information"] == "many"


def test_ocrep_is_too_little_where_nothing_can_be_learned():
    # Targets of pure noise ask for the largest γ there is. Rounded, H has the same folds whatever BLAS computed it.
    H = np.round(with_condition(3.0, n_rows=40, n_columns=30), 6)
    found = diagnosed(H, np.random.default_rng(3).standard_normal(40))
    assert codes(found)["ocrep"] == "too_little"


def test_conditioning_is_named_by_its_size():
    y = np.random.default_rng(0).standard_normal(120)
    for kappa, code in ((10.0, "well"), (1e6, "ill"), (1e9, "below_floor")):
        assert codes(diagnosed(with_condition(kappa), y, rules=["ocrep"]))["conditioning"] == code
    H = with_condition(10.0)
    assert codes(diagnosed(np.hstack([H, H]), y, rules=["ocrep"]))["conditioning"] == "singular"
    # More columns than rows is no defect: all directions that rows allow are there.
    assert codes(diagnosed(with_condition(5.0).T, y[:12], rules=["ocrep"]))["conditioning"] == "well"


def line(rule, gamma, cv, noise=0.0, **more):
    values = {"index": 0, "train_error": cv, "test_error": None, "dof": 5.0, "norm": 1.0, "condition": 10.0}
    return RuleLine(rule=rule, gamma=gamma, cv_error=cv, cv_noise=noise, edge=None, floored=False, **values | more)


def facts(lines, best=1.0, at=0.1, labels=False):
    sizes = {"n_rows": 100, "n_columns": 8, "n_resolved": 8, "rank": 8, "most_directions": 8}
    return Facts(
        labels=labels,
        condition_number=50.0,
        floor_condition=6.7e7,
        best_cv_error=best,
        best_cv_gamma=at,
        rules=lines,
        **sizes,
    )


@pytest.mark.parametrize(
    ("excess", "noise", "labels", "code"),
    [
        (0.009, 0.0, False, "right"),  # under one per cent is no difference
        (0.02, 0.0, False, "too_much"),
        (0.02, 0.03, False, "right"),  # the folds differ by more
        (0.2, 5.0, False, "too_much"),  # one wild fold excuses no more than five per cent
        (0.02, 0.03, True, "right"),
        (0.04, 0.03, True, "too_much"),
    ],
)
def test_what_counts_as_a_difference(excess, noise, labels, code):
    best = 0.1 if labels else 1.0
    verdict = judge(facts([line("ocrep", 1.0, best + excess, noise)], best, labels=labels))
    assert {f.topic: f.code for f in verdict.findings}["ocrep"] == code


def test_of_equals_the_best_conditioned_rule_is_advised():
    lines = [line("gcv", 0.1, 1.0), line("kfold", 0.1, 1.0), line("ocrep_cv", 0.1, 1.0), line("ocrep", 9.0, 1.5)]
    assert judge(facts(lines)).recommended == "ocrep_cv"
    assert judge(facts([*lines[:3], line("ocrep", 9.0, 1.005)])).recommended == "ocrep"
    missed_by_all = judge(facts([line("ocrep", 9.0, 1.5), line("bic", 0.2, 1.2)]))
    assert missed_by_all.recommended == "bic"
    assert "γ = 0.100, which no rule found, would have 1.00" in missed_by_all.findings[0].detail
    assert judge(facts([line("bic", 0.2, 1.0), line("ocrep", 9.0, 1.5)])).recommended == "bic"


def test_the_test_error_has_no_part_in_the_advice():
    lines = [line("ocrep", 1.0, 1.0, test_error=9.0), line("kfold", 0.1, 1.0, test_error=0.1)]
    verdict = judge(facts(lines))
    assert verdict.recommended == "ocrep"
    assert "9.00" in verdict.findings[0].detail


def test_no_rule_and_no_error_leave_nothing_to_divide_by():
    assert judge(facts([])).recommended is None
    answers = " ".join(
        f.answer for f in judge(facts([line("ocrep", 1.0, 0.5), line("none", 0.0, 0.0)], best=0.0)).findings
    )
    assert "∞ times the best" in answers
    assert "It has at most 8 degrees of freedom." in [f.answer for f in judge(facts([])).findings]


# --- The page --------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Tags with their attributes, and the text of each script."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self._stack = [], {}, []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._stack.append(dict(attributes).get("id") or tag)

    def handle_endtag(self, tag):
        self._stack and self._stack.pop()

    def handle_data(self, data):
        if self._stack:
            self.texts[self._stack[-1]] = self.texts.get(self._stack[-1], "") + data


def test_the_page_loads_nothing_from_anywhere(regression):
    page = Page(render(regression))
    loads = [
        (tag, a) for tag, a in page.tags if tag != "a" and any(k in a for k in ("src", "href", "srcset", "action"))
    ]
    assert loads == [("link", {"rel": "icon", "href": "data:,"})]
    ids = {a["id"] for _, a in page.tags if "id" in a}
    links = [a["href"] for tag, a in page.tags if tag == "a"]
    assert len(links) == 8
    assert {link[0] for link in links} == {"#"}
    assert {link[1:] for link in links} <= ids
    policy = next(a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    assert not re.search(r"@import|url\(", page.texts["style"])


def test_the_page_is_small_even_for_a_very_wide_network(regression):
    assert len(render(regression).encode()) < 200_000
    wide = replace(regression, singular_values=np.geomspace(1e3, 1e-9, 20_000).tolist(), rank=20_000)
    assert len(render(wide).encode()) < 2_000_000


def test_the_page_is_complete_without_scripts(regression):
    page = render(regression)
    tags = Page(page).tags
    assert next(a for tag, a in tags if tag == "html")["lang"] == "en"
    assert any(a.get("name") == "viewport" for tag, a in tags)
    assert page.count('<tr data-rule="') == len(regression.rules)
    for finding in regression.verdict.findings:
        assert finding.question in page
    assert "<noscript>" in page
    images = [a for _, a in tags if a.get("role") == "img"]
    assert len(images) == 6 + 5  # two of predictions, four of γ, and one for each input
    assert all(re.search(r"\d", a["aria-label"]) for a in images)


def test_strings_of_the_user_cannot_become_markup():
    evil = '</script><script>alert("x")</script><img src=x onerror=alert(2)><!-- \u2028 &'
    X, X_test, y, y_test = split(*labelled())
    y, y_test = (np.where(labels == "red", evil, labels) for labels in (y, y_test))
    frames = [pandas.DataFrame(rows, columns=[evil, "b", "c", "d", "<b>e</b>"]) for rows in (X, X_test)]
    table = {"left_out": {evil: evil}, "n_dropped": 1, "command": evil, "examined": evil}
    estimator = PinvClassifier(8, random_state=0)
    d = diagnose(estimator, frames[0], y, frames[1], y_test, title=evil, rules=["ocrep"], table=table)
    d = replace(d, rules=[replace(d.rules[0], rule=evil), *d.rules[1:]], chosen_rule=evil)
    text = render(d)
    page = Page(text)
    assert [a for tag, a in page.tags if tag == "script"] == [{"type": "application/json", "id": "view"}, {}]
    assert "alert(" not in page.texts["script"]
    assert json.loads(page.texts["view"])["rules"][0]["rule"] == evil
    assert evil not in text
    assert page.texts["h1"].strip() == evil
    assert evil in page.texts["p"]
    assert not {"b", "img"} & {tag for tag, _ in page.tags}
    assert text.count("&lt;img src=x onerror=alert(2)&gt;") > 6


def test_a_report_is_written_whole_or_not_at_all(tmp_path, regression, monkeypatch):
    path = tmp_path / "report.html"
    write_report(regression, path)
    written = path.read_text(encoding="utf-8")
    assert written == render(regression)
    monkeypatch.setattr("pathlib.Path.write_text", lambda *_, **__: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_report(regression, path)
    assert path.read_text(encoding="utf-8") == written
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_library_is_named(regression, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"ocrep\[report\]"):
        render(regression)


def test_classifiers_show_per_cent():
    X, y = labelled(60)
    d = diagnose(PinvClassifier(10, random_state=0), X, y, rules=["ocrep", "loo", "none", "discrepancy"])
    assert d.task == "classification"
    assert all(0.0 <= error <= 1.0 for error in d.cv_error)
    assert "\u00a0%</td>" in render(d)


def test_advice_to_use_no_regularization_does_not_call_it_needed():
    verdict = judge(facts([line("none", 0.0, 1.02), line("ocrep", 9.0, 3.0)]))
    assert verdict.recommended == "none"
    found = next(finding for finding in verdict.findings if finding.topic == "need")
    assert (found.code, found.answer) == ("not_found", "A little would help, but no rule chooses that γ.")
