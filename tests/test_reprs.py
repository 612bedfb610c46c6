"""Every value that a user may print is shown in one short line, whatever its size."""

import numpy as np
import pytest
from support.problems import smooth_problem

from ocrep import PinvClassifier, PinvRegressor, parts, rules, scan, significance
from ocrep.report import diagnose

X, Y = smooth_problem(300, 30)
LABELS = np.digitize(Y, np.quantile(Y, np.linspace(0.1, 0.9, 9)))
MODEL = PinvRegressor(60, random_state=0, calibrate="loo").fit(X, Y)
CLASSIFIER = PinvClassifier(60, random_state=0, calibrate="loo").fit(X, LABELS)
LABELLER = PinvClassifier(20, random_state=0, calibrate="loo").fit(X, np.c_[LABELS > 3, LABELS > 5])
DIAGNOSIS = diagnose(PinvRegressor(20, random_state=0), X[::2], Y[::2], X[1::2], Y[1::2], rules=["ocrep", "gcv"])
VALUES = {
    "factor": MODEL.factor_,
    "folds": MODEL.folds_,
    "spectrum": MODEL.spectrum_,
    "choice": MODEL.choice_,
    "curve": MODEL.choice_.curve,
    "layer": MODEL.layer_,
    "hidden map": MODEL.layer_.map_,
    "errors": MODEL.calibrator_,
    "calibrator": CLASSIFIER.calibrator_,
    "calibrator of labels": LABELLER.calibrator_,
    "rule": rules.KFold(n_folds=7),
    "diagnosis": DIAGNOSIS,
    "verdict": DIAGNOSIS.verdict,
    "goodness": DIAGNOSIS.goodness,
    "scan": scan([(X, Y)]),
    "plan": parts.plan(PinvRegressor(60, random_state=0), n_features=30),
    "comparison": significance.corrected_paired_t_test([1.0, 2.0, 3.0], [1.0, 2.5, 2.0], test_share=0.3),
    "estimator": MODEL,
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_shown_in_one_short_line(name):
    text = repr(VALUES[name])
    assert "\n" not in text
    assert len(text) <= 450
    assert text.strip("<").startswith(type(VALUES[name]).__name__)


def test_arrays_are_shown_by_their_shape_and_defaults_left_out():
    assert repr(CLASSIFIER.calibrator_) == "Calibrator(slope=<10 × 10>, offset=<10>)"
    assert repr(scan([(X, Y)])) == "Scan(source=<IterableSource>)"


def test_a_notebook_shows_the_questions_and_answers_of_a_diagnosis():
    shown = diagnose(PinvRegressor(5, random_state=0), X, Y, rules=["ocrep"], title="<b>")._repr_html_()
    assert "<caption><b>&lt;b&gt;</b></caption>" in shown
    assert "Which rule should I use?" in shown
    assert DIAGNOSIS._repr_html_().index("Is it good?") < DIAGNOSIS._repr_html_().index("Which rule")
