"""The report in a browser: silent, moved by one slider, sortable, usable by keyboard and on a phone."""

import math
import re

import numpy as np
import pytest
from support.chromium import CHROMIUM, FLAGS, HOSTILE

FIGURES = ["errors", "condition", "spectrum", "gain"]
PLOTS = {"regression": 4 + 2 + 4, "classification": 4 + 2 + 4}
"""Of γ; of predictions and residuals, or the ROC curve and calibration; of the effects of four inputs."""
ALL = ["regression", "classification", "hostile", "single row", "zeros"]


def drawn(page, figure):
    """The parts of a figure that follow γ: attributes by key, and those of the line at γ."""
    return page.evaluate(
        """name => {
            const plot = document.querySelector(`#figure-${name} .plot`);
            const found = [...plot.querySelectorAll('[data-key], line.here')];
            const told = part => Object.fromEntries([...part.attributes].map(one => [one.name, one.value]));
            return Object.fromEntries(found.map(part => [part.dataset.key || 'line', told(part)]));
        }""",
        figure,
    )


def scales(page, figure):
    """The two axes of a figure, read from its ticks' own attributes: from a value to a place between 0 and 1."""

    def scale(text):
        kind, low, high = text.split()
        low, high = float(low), float(high)
        if kind == "linear":
            return lambda value: (value - low) / (high - low)
        return lambda value: math.log(value / low) / math.log(high / low)

    return [scale(page.get_attribute(f"#figure-{figure} .plot", f"data-{axis}")) for axis in "xy"]


def places(path):
    """The points of a path in shares of the plot, from its lower left corner."""
    numbers = [float(number) / 1000 for number in re.findall(r"-?[\d.]+", path.replace("h0", ""))]
    return list(zip(numbers[::2], (1 - y for y in numbers[1::2]), strict=True))


def view(page):
    return page.evaluate("JSON.parse(document.getElementById('view').textContent)")


def move(page, key, times=1):
    """Move the slider by keyboard, and wait until the page has followed."""
    page.focus("#gamma")
    for _ in range(times):
        page.keyboard.press(key)
    settle(page)


def settle(page):
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def column(page, key):
    return page.evaluate(
        """key => {
            const headers = [...document.querySelectorAll('#rules thead th')];
            const at = headers.findIndex(header => header.dataset.key === key);
            return [...document.querySelectorAll('#rules tbody tr')].map(row => row.children[at].dataset.value);
        }""",
        key,
    )


@pytest.mark.parametrize("name", ALL)
def test_the_page_loads_without_a_word_and_without_the_network(open_report, name):
    page = open_report(name)
    assert page.locator("figure .plot").count() == PLOTS.get(name, 4)
    move(page, "Home")
    move(page, "End")


@pytest.mark.parametrize("name", ["regression", "classification"])
def test_one_slider_moves_all_figures(open_report, name):
    page = open_report(name)
    move(page, "ArrowRight", 12)
    data = view(page)
    at = int(page.input_value("#gamma"))
    gamma = data["curves"]["gammas"][at]
    assert at == data["start"] + 12
    for figure, keys in (("errors", ["train_error", "cv_error", "test_error"]), ("condition", ["condition"])):
        (across, up), parts = scales(page, figure), drawn(page, figure)
        assert parts["line"]["x1"] == parts["line"]["x2"]
        for key in keys:
            value = data["curves"][key][at]
            assert percentage(parts[key]["cx"]) == pytest.approx(across(gamma), abs=1e-9)
            assert percentage(parts["line"]["x1"]) == pytest.approx(across(gamma), abs=1e-9)
            assert 1 - percentage(parts[key]["cy"]) == pytest.approx(min(up(value), 1.0), abs=1e-9)
    across, up = scales(page, "spectrum")
    assert places(drawn(page, "spectrum")["root"]["d"].replace("H1000", ""))[0][1] == pytest.approx(
        up(math.sqrt(gamma)), abs=1e-3
    )
    across, up = scales(page, "gain")
    for key, values in (("gains", data["sigma"]), ("gain", data["fine"])):
        expected = [(across(s), up(s / (s * s + gamma))) for s in values]
        np.testing.assert_allclose(places(drawn(page, "gain")[key]["d"]), expected, atol=1e-3)


def percentage(text):
    assert text.endswith("%")
    return float(text[:-1]) / 100


def test_a_click_into_a_figure_moves_to_that_gamma(open_report):
    page = open_report("regression")
    data = view(page)
    plot = page.locator("#figure-condition .plot")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    across = scales(page, "condition")[0]
    wanted = len(data["places"]) - 20
    page.mouse.click(box["x"] + across(data["places"][wanted]) * box["width"], box["y"] + 0.7 * box["height"])
    settle(page)
    assert int(page.input_value("#gamma")) == wanted


def test_arrow_keys_move_the_slider_and_say_where_it_is(open_report):
    page = open_report("regression")
    start = int(page.input_value("#gamma"))
    words = page.inner_text("#gamma-words")
    move(page, "ArrowRight")
    assert int(page.input_value("#gamma")) == start + 1
    assert page.inner_text("#gamma-words") != words
    move(page, "ArrowLeft")
    assert page.inner_text("#gamma-words") == words
    move(page, "Home")
    assert page.inner_text("#gamma-words").startswith("γ = 0 (none")
    assert page.get_attribute("#gamma", "aria-valuetext").startswith("γ = 0 (none")
    assert page.locator("label[for=gamma]").inner_text() == "Regularization γ"
    assert drawn(page, "spectrum")["root"]["d"] == ""


def test_the_slider_moves_by_pointer_too(open_report):
    page = open_report("regression")
    page.locator("#gamma").scroll_into_view_if_needed()
    box = page.locator("#gamma").bounding_box()
    page.mouse.click(box["x"] + 0.9 * box["width"], box["y"] + box["height"] / 2)
    settle(page)
    assert int(page.input_value("#gamma")) > 0.8 * int(page.get_attribute("#gamma", "max"))


def test_every_rule_can_be_visited_and_shows_its_own_numbers(open_report):
    page = open_report("regression")
    buttons = page.locator("#rules .go")
    assert buttons.count() > 20
    for k in range(0, buttons.count(), 5):
        button = buttons.nth(k)
        button.click()
        settle(page)
        row = page.locator("#rules tbody tr").nth(k)
        told = {key: page.inner_text(f"[data-read={key}]") for key in ("train_error", "cv_error", "test_error", "dof")}
        assert [told[key] for key in ("train_error", "cv_error", "test_error", "dof")] == [
            row.locator("td").nth(at).inner_text() for at in (3, 1, 2, 4)
        ]
    chip = page.locator(".chip", has_text="gcv")
    chip.click()
    settle(page)
    assert chip.get_attribute("aria-pressed") == "true"
    assert "gcv" in page.get_attribute("#gamma", "aria-valuetext") or "…" in page.inner_text("#gamma-words")


def test_every_choice_is_marked_on_the_error_curve(open_report):
    page = open_report("regression")
    data = view(page)
    across, up = scales(page, "errors")
    marks = page.locator("#figure-errors svg.at").all()
    found = sorted(tuple(percentage(mark.get_attribute(axis)) for axis in "xy") for mark in marks)
    expected = sorted(
        (across(data["places"][i]), 1 - min(up(data["curves"]["cv_error"][i]), 1.0))
        for i in (rule["index"] for rule in data["rules"])
    )
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert "ocrep: γ = " in " ".join(mark.text_content() for mark in marks)


def test_the_table_sorts_both_ways_by_mouse_and_by_keyboard(open_report):
    page = open_report("regression")
    header = page.locator("#rules th[data-key=gamma]")
    header.locator("button").click()
    rising = [float(value) for value in column(page, "gamma")]
    assert rising == sorted(rising)
    assert header.get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Enter")
    assert [float(value) for value in column(page, "gamma")] == sorted(rising, reverse=True)
    assert header.get_attribute("aria-sort") == "descending"
    assert page.locator("#rules th[aria-sort]").count() == 1
    page.locator("#rules th[data-key=rule] button").click()
    assert column(page, "rule") == sorted(column(page, "rule"), key=str.lower)


def test_what_is_not_known_stays_last_both_ways(open_report):
    page = open_report("regression")
    page.evaluate("document.querySelector('#rules tbody tr').children[7].dataset.value = ''")
    for _ in range(2):
        page.click("#rules th[data-key=condition] button")
        assert column(page, "condition").index("") == len(column(page, "condition")) - 1


@pytest.mark.parametrize("name", ["regression", "classification", "hostile"])
@pytest.mark.parametrize("width", [320, 360])
def test_nothing_sticks_out_on_a_narrow_screen(open_report, name, width):
    page = open_report(name, width, 740)
    sizes = page.evaluate("[document.documentElement.scrollWidth, document.body.scrollWidth, innerWidth]")
    assert max(sizes) == width
    inside = page.evaluate("(s => s.scrollWidth - s.clientWidth)(document.querySelector('.scroller:has(#rules)'))")
    assert inside > 0  # the table scrolls within its own frame
    for figure in FIGURES:
        for element in (page.locator(f"#figure-{figure} .plot"), *page.locator(f"#figure-{figure} .plot > text").all()):
            box = element.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width


def test_figures_follow_the_width_of_the_window(open_report):
    page = open_report("regression", 1280)
    wide = page.locator("#figure-gain .plot").bounding_box()["width"]
    page.set_viewport_size({"width": 375, "height": 800})
    assert 230 < page.locator("#figure-gain .plot").bounding_box()["width"] < 345 < wide


def test_pictures_have_words_that_follow_the_slider(open_report):
    page = open_report("regression")
    images = page.get_by_role("img").filter(has=page.locator("[data-key]"))
    assert images.count() == 4
    before = [image.get_attribute("aria-label") for image in images.all()]
    assert all("γ = " in text and any(c.isdigit() for c in text) for text in before)
    move(page, "ArrowRight", 5)
    after = [image.get_attribute("aria-label") for image in images.all()]
    assert all(old != new for old, new in zip(before, after, strict=True))
    assert page.locator("figcaption").count() == page.get_by_role("img").count() == PLOTS["regression"]


def test_the_keyboard_reaches_everything_and_focus_is_seen(open_report):
    page = open_report("hostile")
    reached = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        place = page.evaluate(
            """() => {
                const e = document.activeElement, style = getComputedStyle(e);
                const name = e.id || e.className || e.closest('th')?.dataset.key || e.tagName;
                return [name, style.outlineStyle, style.outlineWidth];
            }"""
        )
        if place[0] == "BODY":
            break
        reached.add(place[0])
        assert place[1] != "none", place
        assert place[2] != "0px", place
    assert {"skip", "chip", "gamma", "scroller", "go", "rule", "cv_error", "SUMMARY"} <= reached


def test_strings_of_the_user_stay_text(open_report):
    page = open_report("hostile")
    assert page.inner_text("h1") == HOSTILE
    assert page.title() == HOSTILE
    assert page.locator("img:not([role])").count() == 0


def test_dark_screens_and_paper_each_get_their_colours(open_report):
    page = open_report("regression")

    def ink():
        return page.evaluate("getComputedStyle(document.querySelector('#figure-gain .plot text')).fill")

    light = ink()
    page.emulate_media(color_scheme="dark")
    assert ink() != light
    page.emulate_media(color_scheme="dark", media="print")
    assert ink() == light


def test_without_scripts_all_but_the_slider_is_there(chromium, report, open_report):
    browser = chromium.launch(executable_path=CHROMIUM, args=FLAGS)
    page = browser.new_page(java_script_enabled=False)
    page.goto(report("regression"))
    assert page.locator(".message").is_visible()
    assert page.locator(".finding").count() >= 6 + 3
    for question in ("Which columns matter?", "What does each column do?", "Where is it wrong?", "Can I trust it?"):
        assert page.get_by_role("heading", name=question).is_visible()
    assert page.locator("#rules tbody tr").count() > 20
    assert not page.locator("#gamma").is_visible()
    assert page.locator("figure .plot").count() == PLOTS["regression"]
    assert all(plot.is_visible() for plot in page.locator("figure .plot").all())
    still = {figure: drawn(page, figure) for figure in ("spectrum", "gain")}
    browser.close()
    # The advised γ, which is where the script starts.
    page = open_report("regression")
    for figure, parts in still.items():
        for key, attributes in drawn(page, figure).items():
            now, then = (re.findall(r"[\d.]+", path) for path in (attributes["d"], parts[key]["d"]))
            np.testing.assert_allclose(np.array(now, float), np.array(then, float), atol=0.1001)


def test_the_control_keeps_its_height_while_the_slider_moves(open_report):
    page = open_report("regression", 375)
    heights = set()
    for index in {rule["index"] for rule in view(page)["rules"]}:
        page.evaluate(
            "i => { const s = document.getElementById('gamma'); s.value = i; s.dispatchEvent(new Event('input')); }",
            index,
        )
        settle(page)
        heights.add(page.locator(".control").bounding_box()["height"])
    assert len(heights) == 1
