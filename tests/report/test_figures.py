"""The axes of the report: values keep their order and distance, and ticks are few, round and distinct."""

import itertools
import math
import re

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from ocrep.report.figures import Scale, path, points, round_step
from ocrep.report.wording import percent, readable, scientific

exponents = st.floats(-12, 12)


@given(st.floats(-1e9, 1e9), exponents, st.booleans())
@example(9992.0, 1.0, True)
@settings(max_examples=300)
def test_ticks_of_a_linear_axis_are_few_and_even_and_labelled_with_their_values(low, exponent, share):
    reach = 10.0**exponent
    assume(reach > 1e-6 * abs(low))
    scale = Scale("linear", low, low + reach, percent=share)
    ticks = scale.ticks()
    assert 3 <= len(ticks) <= 8
    gaps = {round(b[0] - a[0], 3) for a, b in itertools.pairwise(ticks)}
    assert len(gaps) == 1
    for place, label in ticks:
        value = low + reach * place / 100.0
        assert scale.place(value) == pytest.approx(place, abs=1e-6)
        unit = 100 if share else 1
        assert number(label) == pytest.approx(unit * value, abs=1e-6 * unit * reach)


@given(exponents, st.floats(0.05, 30))
def test_ticks_of_a_logarithmic_axis_are_few_and_labelled_with_their_values(start, decades):
    low = 10.0**start
    scale = Scale("log", low, low * 10.0**decades)
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 9
    assert len({label for _, label in ticks}) == len(ticks)
    for place, label in ticks:
        assert 0.0 <= place <= 100.0
        assert math.log10(number(label)) == pytest.approx(start + decades * place / 100.0, abs=1e-3)


def number(label):
    """The value that a label says."""
    plain = label.replace("−", "-").replace(",", "").removesuffix("\u00a0%")
    match = re.fullmatch(r"(?:(-?[\d.]+)·|(-)?)10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", plain)
    if not match:
        return float(plain)
    power = int(match[3].translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))
    return float(match[1] or f"{match[2] or ''}1") * 10.0**power


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.sampled_from(["linear", "log"]))
def test_an_axis_around_values_holds_them(values, kind):
    scale = Scale.around([*values, math.nan, math.inf], kind)
    shown = [value for value in values if kind == "linear" or value > 1e-300]
    assert all(0.0 < scale.place(value) < 100.0 for value in shown)
    assert scale.low < scale.high


def test_an_axis_of_small_shares_has_enough_digits():
    labels = [label for _, label in Scale("linear", 0.001, 0.0045, percent=True).ticks()]
    assert labels == ["0.1\u00a0%", "0.2\u00a0%", "0.3\u00a0%", "0.4\u00a0%"]
    assert Scale("linear", 0.0, 0.55, percent=True).ticks()[1][1] == "10\u00a0%"


def test_what_a_logarithmic_axis_cannot_show_has_no_place():
    scale = Scale("log", 1.0, 100.0)
    assert [scale.place(value) for value in (1.0, 10.0, 100.0)] == pytest.approx([0.0, 50.0, 100.0])
    assert math.isnan(scale.place(0.0))
    assert math.isnan(scale.place(-1.0))
    assert Scale.around([0.0, -1.0], "log").place(1.0) == pytest.approx(50.0)


def test_a_line_breaks_where_a_value_is_not_known():
    x, y = Scale("linear", 0.0, 10.0), Scale("linear", 0.0, 1.0)
    assert path(x, y, [0, 5, 6, 10], [0.0, math.nan, 1.0, 0.5]) == "M0.0 1000.0M600.0 0.0L1000.0 500.0"
    assert points(x, y, [0, 5], [0.25, math.nan]) == "M0.0 750.0h0"
    assert path(x, y, [0, 1], [1e9, -1e9]) == "M0.0 -9999.0L100.0 9999.0"  # far outside, but short


@given(st.floats(1e-12, 1e12))
def test_a_round_step_is_round_and_the_least_one(least):
    step = round_step(least)
    assert step >= least * (1 - 1e-8)
    assert step <= 2.0 * least * (1 + 1e-8)
    mantissa = float(f"{step:e}".split("e")[0])
    assert mantissa in (1.0, 2.0, 2.5, 5.0)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0.0"),
        (0.5, "50.0"),
        (0.1234, "12.3"),
        (0.09999, "10.0"),
        (0.0995, "9.95"),
        (0.012, "1.20"),
        (0.0042, "0.42"),
    ],
)
def test_small_shares_keep_two_digits(share, text):
    assert percent(share) == f"{text}\u00a0%"


@pytest.mark.parametrize(("value", "text"), [(0.0, "0"), (1e6, "10⁶"), (-2.5e-7, "−2.5·10⁻⁷"), (1e-3, "10⁻³")])
def test_round_numbers_are_short(value, text):
    assert scientific(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.0123, "0.0123"),
        (0.00996, "0.00996"),
        (999.9, "1,000"),
        (-45.67, "−45.7"),
        (1234.0, "1,230"),
        (99999.0, "1.00 × 10⁵"),
        (3.5e-6, "3.50 × 10⁻⁶"),
        (-2e9, "−2.00 × 10⁹"),
        (math.nan, "–"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
    ],
)
def test_numbers_read_well(value, text):
    assert readable(value).replace("\u00a0", " ") == text
