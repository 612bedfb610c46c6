"""The study's figures: what is drawn, that it is always the same, and that huge errors do not flatten the rest."""

import copy
import sys

import numpy as np
import pytest

from ocrep.study import figures
from ocrep.study.figures import draw_figures

GAMMAS = [10.0**exponent for exponent in range(-12, 8)]
SIZES = [5, 10, 15, 20]


def curve(data, draw, *, n_hidden=30, split=0, gamma=1e-3, **changes):
    least = 3.0 + 0.1 * draw
    errors = [least + 0.1 * (np.log10(g) + 2.0) ** 2 for g in GAMMAS]
    errors[0] = 1e6  # what a tiny γ does
    record = {"kind": "curve", "data": data, "split": split, "draw": draw, "n_hidden": n_hidden, "gammas": GAMMAS}
    return record | {"errors": errors, "chosen": {"ocrep": gamma, "cv": 1e-2}} | changes


def path(data, draw, method, *, errors=None, split=0):
    errors = errors or [9.0, 5.0, 4.0 + 0.1 * draw, 1e6 if method == "unregularized" else 3.9]
    record = {"kind": "path", "data": data, "split": split, "draw": draw, "method": method, "sizes": SIZES}
    return record | {"cv_errors": errors, "test_errors": errors, "n_hidden": 15, "error": errors[2]}


def both_kinds(*sets):
    sets = sets or ("housing", "iris", "wine")
    curves = [curve(data, draw) for data in sets for draw in range(3)]
    paths = [path(d, draw, m) for d in sets for draw in range(2) for m in ("ocrep", "unregularized", "cv", "gcv")]
    return [*curves, *paths, {"kind": "fixed", "data": "iris", "split": 0}, {"kind": "versions"}]


@pytest.fixture
def drawn(monkeypatch):
    """The figures as objects, without the files."""
    kept = {}
    from matplotlib.figure import Figure

    monkeypatch.setattr(Figure, "savefig", lambda self, file, **_: kept.setdefault(file.stem, self))

    def draw(records, folder):
        kept.clear()
        draw_figures(records, folder)
        return {name: {axis.get_title(): axis for axis in figure.axes} for name, figure in kept.items()}

    return draw


def test_every_figure_is_written_twice_the_same_and_the_records_stay(tmp_path):
    records = both_kinds("housing")
    before = copy.deepcopy(records)
    names = ["gain", "condition", "error_against_gamma", "error_against_size"]
    for folder in (tmp_path / "a", tmp_path / "b"):
        assert draw_figures(records, folder) == [f"figures/{name}.png" for name in names]
    for name in names:
        png, svg = (tmp_path / "a" / "figures" / f"{name}.{suffix}" for suffix in ("png", "svg"))
        assert png.read_bytes().startswith(b"\x89PNG")
        assert svg.read_bytes() == (tmp_path / "b" / "figures" / svg.name).read_bytes()
        assert b"</svg>" in svg.read_bytes()
    assert len(list((tmp_path / "a" / "figures").iterdir())) == 2 * len(names)
    assert records == before


@pytest.mark.parametrize(
    ("records", "further"),
    [
        ([], []),
        ([curve("iris", 0)], ["error_against_gamma"]),
        ([path("iris", 0, "ocrep")], ["error_against_size"]),
        ([curve("iris", 0, split=1), path("iris", 0, "ocrep", split=1)], []),
        ([path("iris", 0, "gcv")], []),
    ],
)
def test_no_figure_without_records(tmp_path, drawn, records, further):
    assert list(drawn(records, tmp_path)) == ["gain", "condition", *further]


def test_the_panels(tmp_path, drawn):
    further = [curve("housing", draw, n_hidden=300, errors=[7.0] * len(GAMMAS)) for draw in range(2)]
    axes = drawn([*both_kinds(), *further], tmp_path)
    assert list(axes["error_against_gamma"]) == ["Housing, M = 300", "Iris, M = 30", "Wine, M = 30"]
    assert list(axes["error_against_size"]) == ["Housing", "Iris", "Wine"]
    assert axes["error_against_size"]["Housing"].get_ylabel() == "test RMSE"
    assert axes["error_against_size"]["Iris"].get_ylabel().startswith("% misclassified")
    lines = {line.get_label(): line for line in axes["error_against_size"]["Iris"].lines}
    assert set(lines) == {"OCReP", "unregularized", "cross-validation", "mean size chosen with OCReP"}
    assert lines["OCReP"].get_ydata()[2] == pytest.approx(4.05)
    assert lines["mean size chosen with OCReP"].get_xdata()[0] == 15
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in lines.values()}
    assert len(looks) == 4


@pytest.mark.parametrize("sets", [("iris",), ("iris", "wine"), ("iris", "wine", "diabetes")])
def test_the_legend_fits(tmp_path, drawn, sets):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    axes = drawn(both_kinds(*sets), tmp_path)
    for name in ("error_against_gamma", "error_against_size"):
        figure = next(iter(axes[name].values())).figure
        (legend,) = figure.legends
        assert legend.get_window_extent(FigureCanvasAgg(figure).get_renderer()).width <= figure.bbox.width


def test_the_choices_are_marked_on_the_mean_curve(tmp_path, drawn):
    records = [curve("housing", 0, gamma=1e-4), curve("housing", 1, gamma=1e-2)]
    (axis,) = drawn(records, tmp_path)["error_against_gamma"].values()
    marks = {line.get_label(): line.get_xydata()[0] for line in axis.lines if line.get_label().startswith("γ by")}
    assert marks["γ by OCReP"] == pytest.approx([1e-3, 3.15])
    assert marks["γ by cross-validation"] == pytest.approx([1e-2, 3.05])
    assert axis.get_xlim() == pytest.approx((5e-11, 2e5))


def test_a_choice_outside_the_usual_range_is_seen(tmp_path, drawn):
    (axis,) = drawn([curve("housing", 0, gamma=1e-11)], tmp_path)["error_against_gamma"].values()
    assert axis.get_xlim()[0] < 1e-11


def test_huge_errors_do_not_set_the_scale(tmp_path, drawn):
    axes = drawn(both_kinds(), tmp_path)
    for name in ("error_against_gamma", "error_against_size"):
        for axis in axes[name].values():
            bottom, top = axis.get_ylim()
            assert bottom < 3.6
            assert 4.5 < top < 20.0


def test_a_choice_with_a_huge_error_sits_on_the_upper_edge(tmp_path, drawn):
    (axis,) = drawn([curve("housing", 0, gamma=1e-12)], tmp_path)["error_against_gamma"].values()
    (mark,) = (line for line in axis.lines if line.get_label() == "γ by OCReP")
    assert mark.get_ydata()[0] == axis.get_ylim()[1] < 20.0


@pytest.mark.parametrize(
    "errors",
    [[0.0] * 4, [None, 5.0, 4.0, 4.0], [float("nan")] * 4, [float("inf"), 1e200, 2.0, 2.0]],
    ids=["zero", "unknown", "none known", "infinite"],
)
def test_odd_errors(tmp_path, drawn, errors):
    records = [path(data, 0, "ocrep", errors=errors) for data in ("housing", "iris")]
    records.append(path("iris", 1, "ocrep", errors=[4.0 if error is None else error for error in errors]))
    for axis in drawn(records, tmp_path)["error_against_size"].values():
        bottom, top = axis.get_ylim()
        assert bottom < top < 20.0


def test_the_gain_is_the_same_at_both_ends_and_the_condition_least_at_one(tmp_path, drawn):
    axes = drawn([], tmp_path)
    (condition,) = axes["condition"].values()
    beta, mu = condition.lines[0].get_data()
    assert beta[np.argmin(mu)] == pytest.approx(1.0)
    spectrum = figures.illustration()
    gains = spectrum.gain(spectrum.largest * spectrum.smallest)
    assert gains[0] == pytest.approx(gains[-1])


def test_matplotlib_is_asked_for_by_name(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"ocrep\[plot\]"):
        draw_figures([], tmp_path)
