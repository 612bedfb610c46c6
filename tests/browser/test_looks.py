"""The report on paper, on a phone, in the dark and for assistive technology."""

import itertools

import numpy as np
import pypdfium2
import pytest
from axe_playwright_python.sync_playwright import Axe

# Each figure becomes a rectangle of a colour of its own, so that a printed page shows whether it is whole.
FLAT = """
    body, body * { color: transparent !important; background: white !important; border-color: white !important; }
    figure { border-radius: 0 !important; print-color-adjust: exact; }
    figure * { visibility: hidden; }
"""
SHEETS = {"A4": (210, 297), "Letter": (216, 279)}
DOTS = 2.0  # per typographic point


def printed(page, sheet, folder):
    """The pages of the PDF as arrays of pixels."""
    path = folder / "page.pdf"
    page.pdf(path=str(path), format=sheet, print_background=False)
    document = pypdfium2.PdfDocument(path)
    try:
        return [page.render(scale=DOTS).to_numpy()[:, :, :3].astype(int) for page in document]
    finally:
        document.close()


@pytest.mark.parametrize("name", ["regression", "classification"])
@pytest.mark.parametrize("sheet", SHEETS)
def test_no_figure_is_cut_on_paper(open_report, tmp_path, name, sheet):
    page = open_report(name)
    n_figures = page.locator("figure").count()
    assert n_figures >= 9
    colours = [(255, 0, 20 * k) for k in range(n_figures)]
    rules = (
        f"#{figure.get_attribute('id')} {{ background: rgb{c} !important; }}" for figure, c in figures(page, colours)
    )
    page.add_style_tag(content=FLAT + "".join(rules))
    pages = printed(page, sheet, tmp_path)
    for colour in colours:
        where = [np.argwhere((np.abs(pixels - colour[::-1]) < 4).all(axis=2)) for pixels in pages]
        where = [found for found in where if len(found)]
        assert len(where) == 1, f"{colour} is on {len(where)} pages"
        height, width = np.ptp(where[0], axis=0) + 1
        assert len(where[0]) == pytest.approx(height * width, rel=0.01)  # a whole rectangle
        millimetres = 25.4 / 72 / DOTS * np.array([width, height])
        assert millimetres[0] == pytest.approx(0.42 * SHEETS[sheet][0], rel=0.25)
        assert 60 < millimetres[1] < 140  # without a legend, figures of effects are less high than the others


def figures(page, colours):
    return zip(page.locator("figure").all(), colours, strict=True)


def test_paper_looks_the_same_from_any_window(open_report, tmp_path):
    told = [printed(open_report("regression", width), "A4", tmp_path) for width in (320, 700, 1280, 2400)]
    for one, other in itertools.pairwise(told):
        assert len(one) == len(other)
        assert all((a == b).all() for a, b in zip(one, other, strict=True))


def test_curves_and_marks_are_on_paper(open_report, tmp_path):
    page = open_report("regression")
    pages = printed(page, "A4", tmp_path)
    for red, green, blue in ((0, 114, 178), (0, 128, 93), (198, 82, 0)):
        assert sum(int((np.abs(pixels - (blue, green, red)) < 6).all(axis=2).sum()) for pixels in pages) > 500


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("name", "width"), [("regression", 1280), ("classification", 390), ("hostile", 390), ("zeros", 1280)]
)
def test_axe_finds_no_violation(open_report, name, width, scheme):
    page = open_report(name, width)
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # colours that fade would be measured half-way
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    found = Axe().run(page, options={"resultTypes": ["violations"]})
    assert found.response["violations"] == []


def test_landmarks_have_names_of_their_own(open_report):
    page = open_report("regression")
    regions = page.get_by_role("region").all()
    names = [
        region.evaluate("e => e.ariaLabel || document.getElementById(e.getAttribute('aria-labelledby')).innerText")
        for region in regions
    ]
    assert len(names) >= 4
    assert len(set(names)) == len(names)


def test_a_phone_shows_rule_gamma_and_error_of_every_row(open_report):
    page = open_report("regression", 390)
    ends = page.evaluate(
        """() => {
            const frame = document.querySelector('.scroller:has(#rules)').getBoundingClientRect();
            const heads = [...document.querySelectorAll('#rules thead th')].slice(0, 3).map(head => head.dataset.key);
            const cells = [...document.querySelectorAll('#rules tbody tr')].map(row => row.children[2]);
            return [heads, frame.right, Math.max(...cells.map(cell => cell.getBoundingClientRect().right))];
        }"""
    )
    assert ends[0] == ["rule", "gamma", "cv_error"]
    assert ends[2] <= ends[1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_stand_out_from_their_card(open_report, scheme):
    page = open_report("regression")
    page.emulate_media(color_scheme=scheme)
    found = page.evaluate(
        """() => {
            const rgb = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
            const card = rgb(getComputedStyle(document.querySelector('figure')).backgroundColor);
            const lines = [...document.querySelectorAll('figure .curve, figure .dots, figure .mark:not(.dot)')];
            return [card, lines.map(line => rgb(getComputedStyle(line).stroke))];
        }"""
    )
    card, lines = luminance(np.array(found[0])), luminance(np.array(found[1]))
    contrast = (np.maximum(card, lines) + 0.05) / (np.minimum(card, lines) + 0.05)
    assert len(lines) > 20
    assert contrast.min() > 4.0


def luminance(colour):
    """The relative luminance of WCAG."""
    share = colour / 255.0
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]
