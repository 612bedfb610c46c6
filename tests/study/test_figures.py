"""The study's figures: what is drawn, that it is always the same, and that huge errors do not flatten the rest."""

import numpy as np
import pytest
from support.studies import SYMMETRIC, made, rows

from study.figures import VERMILION, draw_figures, illustration
from study.results import Row

GAMMAS = [10.0**exponent for exponent in range(-10, 6)]
SIZES = [5, 10, 15, 20]
LARGEST = {"housing": 300, "iris": 100, "wine": 100}


def curve(data, n_draws=3, gamma=1e-3, biases="symmetric"):
    """Errors along the grid, and the rules' own γ."""
    for draw in range(n_draws):
        where = "fixed", data, biases, 0, draw
        for g in GAMMAS:
            error = 3.0 + 0.1 * draw + 0.1 * (np.log10(g) + 2.0) ** 2
            yield *where, Row(LARGEST[data], "grid", "raw", error=1e6 if g == GAMMAS[0] else error, gamma=g)
        for method, own in (("ocrep", gamma), ("cv", 1e-2)):
            yield *where, Row(LARGEST[data], method, "raw", error=3.0, gamma=own)


def path(data, n_draws=2, errors=None, methods=("ocrep", "cv", "unregularized"), split=0, size=15):
    for draw in range(n_draws):
        for method in methods:
            along = errors or [9.0, 5.0, 4.0 + 0.1 * draw, 1e6 if method == "unregularized" else 3.9]
            for m, error in zip(SIZES, along, strict=True):
                yield "path", data, "symmetric", split, draw, Row(m, method, "raw", error=error, cv_error=error)
    yield "chosen", data, "symmetric", split, 0, Row(size, "ocrep", "raw", error=4.0)


def stability(data):
    for k in range(-2, 3):
        row = Row(9, "leave_one_out", "raw", error=10.0**-k, gamma=10.0**k, cv_error=1.0 + k * k)
        yield "stability", data, "symmetric", 0, 0, row


def everything(*sets):
    sets = sets or ("housing", "iris", "wine")
    parts = [part for name in sets for part in (curve(name), path(name), stability(name))]
    return made(*parts, *(rows(name, 50, "ocrep", 2.0) for name in sets), variant=SYMMETRIC)


@pytest.fixture
def drawn(monkeypatch):
    """The figures as objects, without the files."""
    kept = {}
    from matplotlib.figure import Figure

    monkeypatch.setattr(Figure, "savefig", lambda self, file, **_: kept.setdefault(file.stem, self))

    def draw(study, folder):
        kept.clear()
        draw_figures(study, folder)
        return {name: {axis.get_title(): axis for axis in figure.axes} for name, figure in kept.items()}

    return draw


def test_every_figure_is_written_twice_the_same(tmp_path):
    names = ["overview", "gain", "condition", "error_against_gamma", "error_against_size", "stability"]
    for folder in (tmp_path / "a", tmp_path / "b"):
        assert draw_figures(everything("housing"), folder) == {name: f"figures/{name}.png" for name in names}
    for name in names:
        png, svg = (tmp_path / "a" / "figures" / f"{name}.{suffix}" for suffix in ("png", "svg"))
        assert png.read_bytes().startswith(b"\x89PNG")
        assert svg.read_bytes() == (tmp_path / "b" / "figures" / svg.name).read_bytes()
        assert b"</svg>" in svg.read_bytes()


@pytest.mark.parametrize(
    ("parts", "further"),
    [
        ([], []),
        ([curve("iris")], ["error_against_gamma"]),
        ([path("iris")], ["error_against_size"]),
        ([path("iris", split=1)], []),
        ([curve("iris", biases="unit")], []),
        ([stability("iris")], ["stability"]),
    ],
)
def test_no_figure_without_results(tmp_path, drawn, parts, further):
    assert list(drawn(made(*parts, variant=SYMMETRIC), tmp_path)) == ["gain", "condition", *further]


def test_the_panels(tmp_path, drawn):
    axes = drawn(everything(), tmp_path)
    assert list(axes["error_against_gamma"]) == ["Housing, M = 300", "Iris, M = 100", "Wine, M = 100"]
    assert list(axes["error_against_size"]) == ["Housing", "Iris", "Wine"]
    assert axes["error_against_size"]["Housing"].get_ylabel() == "test RMSE"
    assert axes["error_against_size"]["Iris"].get_ylabel().startswith("% misclassified")
    lines = {line.get_label(): line for line in axes["error_against_size"]["Iris"].lines}
    assert set(lines) == {"OCReP", "unregularized", "cross-validation", "M̄ of OCReP in the table"}
    assert lines["OCReP"].get_ydata()[2] == pytest.approx(4.05)
    assert lines["M̄ of OCReP in the table"].get_xdata()[0] == 15
    assert lines["OCReP"].get_color() == VERMILION
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in lines.values()}
    assert len(looks) == 4


def test_delta_ailerons_is_told_in_its_unit(tmp_path, drawn):
    errors = [9e-4, 5e-4, 4e-4, 3.9e-4]
    (axis,) = drawn(made(path("delta_ailerons", errors=errors), variant=SYMMETRIC), tmp_path)[
        "error_against_size"
    ].values()
    assert axis.get_ylabel() == "test RMSE, 10⁻⁴"
    assert axis.lines[0].get_ydata()[0] == pytest.approx(9.0)


@pytest.mark.parametrize("sets", [("iris",), ("iris", "wine"), ("housing", "iris", "wine")])
def test_the_legend_fits(tmp_path, drawn, sets):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    axes = drawn(everything(*sets), tmp_path)
    for name in ("overview", "error_against_gamma", "error_against_size", "stability"):
        figure = next(iter(axes[name].values())).figure
        (legend,) = figure.legends
        assert legend.get_window_extent(FigureCanvasAgg(figure).get_renderer()).width <= figure.bbox.width


def test_the_choices_are_marked_on_the_mean_curve(tmp_path, drawn):
    study = made(curve("housing", n_draws=1, gamma=1e-4), variant=SYMMETRIC)
    (axis,) = drawn(study, tmp_path)["error_against_gamma"].values()
    marks = {line.get_label(): line.get_xydata()[0] for line in axis.lines if line.get_label().startswith("γ by")}
    assert marks["γ by OCReP (geometric mean)"] == pytest.approx([1e-4, 3.4])
    assert marks["γ by cross-validation (geometric mean)"] == pytest.approx([1e-2, 3.0])
    assert axis.get_xlim() == pytest.approx((5e-11, 2e5))


def test_a_choice_outside_the_usual_range_is_seen(tmp_path, drawn):
    study = made(curve("housing", gamma=1e-12), variant=SYMMETRIC)
    (axis,) = drawn(study, tmp_path)["error_against_gamma"].values()
    assert axis.get_xlim()[0] < 1e-12
    (mark,) = (line for line in axis.lines if line.get_label().startswith("γ by OCReP"))
    assert mark.get_ydata()[0] == axis.get_ylim()[1] < 20.0  # its huge error sits on the upper edge


def test_huge_errors_do_not_set_the_scale_and_no_axis_goes_below_zero(tmp_path, drawn):
    axes = drawn(everything(), tmp_path)
    for name in ("error_against_gamma", "error_against_size"):
        for axis in axes[name].values():
            bottom, top = axis.get_ylim()
            assert 0.0 <= bottom < 3.6
            assert 4.5 < top < 20.0


@pytest.mark.parametrize(
    "errors", [[0.0] * 4, [None, 5.0, 4.0, 4.0], [float("inf"), 1e200, 2.0, 2.0]], ids=["zero", "unknown", "infinite"]
)
def test_odd_errors(tmp_path, drawn, errors):
    study = made(*(path(data, errors=errors, methods=("ocrep",)) for data in ("housing", "iris")), variant=SYMMETRIC)
    for axis in drawn(study, tmp_path)["error_against_size"].values():
        bottom, top = axis.get_ylim()
        assert 0.0 <= bottom < top < 20.0


def test_every_published_number_has_its_place_in_the_overview(tmp_path, drawn):
    parts = [rows(data, 50, method, 2.0) for data in ("iris", "wine") for method in ("ocrep", "cv", "gcv")]
    study = made(*parts, rows("machine_cpu", 50, "kibria", 30.0), variant=SYMMETRIC)
    left, right = drawn(study, tmp_path)["overview"].values()
    assert [label.get_text() for label in left.get_yticklabels()] == ["Machine Cpu", "Iris", "Wine"]
    places = [line for line in left.lines if line.get_linestyle() == "None" and len(line.get_xdata())]
    assert len(places) == 7 + 1  # and a cross on the suspected misprint
    assert all(0 <= line.get_xdata()[0] <= 100 for line in places)
    assert len([line for line in right.lines if line.get_linestyle() == "None" and len(line.get_xdata())]) == 4


def test_the_gain_is_the_same_at_both_ends_and_the_condition_least_at_one(tmp_path, drawn):
    axes = drawn(made(variant=SYMMETRIC), tmp_path)
    (condition,) = axes["condition"].values()
    beta, mu = condition.lines[0].get_data()
    assert beta[np.argmin(mu)] == pytest.approx(1.0)
    spectrum = illustration()
    gains = spectrum.gain(spectrum.largest * spectrum.smallest)
    assert gains[0] == pytest.approx(gains[-1])
