"""The built site in a browser: every public name has a page, nothing leaves the page, search works offline."""

import os
import re
import zlib
from urllib.parse import unquote

import pytest
from support.pages import ROOT, load_tool

SITE = ROOT / "docs" / "_build" / "html"
PAGES = [
    *sorted(path.stem for path in (ROOT / "docs").glob("*.md")),
    "gallery/index",
    "gallery/plot_08_pipeline",
    "api/ocrep.PinvRegressor",
]
WIDTHS = [1280, 390]
# What ends right of the page, though no box within the article scrolls.
CUT = """
() => [...document.querySelectorAll("article :is(h1, h2, h3, p, li, code, img, table, svg, pre)")].filter(part => {
    for (let box = part.parentElement; box.tagName !== "ARTICLE"; box = box.parentElement)
        if (["auto", "scroll"].includes(getComputedStyle(box).overflowX)) return false;
    const scrolls = ["auto", "scroll"].includes(getComputedStyle(part).overflowX);
    return !scrolls && part.getBoundingClientRect().right > document.documentElement.clientWidth + 1;
}).map(part => part.textContent.trim().slice(0, 60) || part.outerHTML.slice(0, 80))
"""


def _inventory():
    """The names that the site documents, from the list that other sites read to link here."""
    _, _, _, _, packed = (SITE / "objects.inv").read_bytes().split(b"\n", 4)
    return {line.split()[0] for line in zlib.decompress(packed).decode().splitlines() if " py:" in line}


@pytest.fixture
def open_page(browser):
    """Open a page at a width; it must ask for files of the site only."""
    pages, outside = [], []

    def opened(name, width=1280):
        page = browser.new_page()
        pages.append(page)
        page.set_viewport_size({"width": width, "height": 900})
        page.on(
            "request", lambda asked: None if asked.url.startswith(("file:", "data:")) else outside.append(asked.url)
        )
        page.goto(f"{SITE.as_uri()}/{name}")
        return page

    yield opened
    for page in pages:
        page.close()
    assert outside == []


def test_every_public_name_and_every_method_has_a_place_on_the_site():
    public_names, shown = load_tool("public_names"), _inventory()
    for name, found in public_names.names():
        shadow = re.sub(r"^ocrep\.(\w+Display)$", r"ocrep.displays.\1", name)
        assert shadow in shown
        if isinstance(found, type):
            assert {f"{shadow}.{method}" for method, member in public_names.methods(found) if member.__doc__} <= shown


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_its_width_and_shows_its_pictures(open_page, name, width):
    page = open_page(f"{name}.html", width)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert page.evaluate(CUT) == []
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert page.evaluate("[...document.querySelectorAll('article img')].every(image => image.hasAttribute('alt'))")
    assert page.locator("h1").count() == 1
    for name in page.evaluate(
        "[...document.querySelectorAll('summary')].map(s => s.ariaLabel || s.textContent.trim())"
    ):
        assert name


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("number of units", "network"),
        ("when not", "why"),
        ("condition number", "theory"),
        ("load model", "models"),
        ("larger than memory", "out-of-core"),
        ("LightGBM", "choosing"),
        ("TabPFN", "choosing"),
        ("importance", "explain"),
        ("imbalanced", "imbalanced"),
        ("cross_val_score", "your-table"),
        ("text columns", "your-table"),
        ("intervals", "probabilities"),
        ("cluster", "scaling"),
        ("speed", "speed"),
        ("cite", "project"),
    ],
)
def test_search_finds_pages_without_a_network(open_page, words, page):
    found = open_page(f"search.html?q={words.replace(' ', '+')}")
    found.wait_for_selector("#search-results ul.search li a")
    found.wait_for_function("/found/.test(document.querySelector('.search-summary')?.textContent)")
    links = found.evaluate("[...document.querySelectorAll('#search-results ul.search li > a')].map(a => a.href)")
    assert any(f"/{page}.html" in link for link in links[:10]), links[:10]


def _built():
    return {path.relative_to(SITE).as_posix(): path.read_text(encoding="utf-8") for path in SITE.rglob("*.html")}


def test_no_page_loads_anything_from_elsewhere():
    loads = re.compile(
        r'<(?:script|img|iframe|link rel="(?:stylesheet|preload|icon)")[^>]*(?:src|href)="(?:https?:)?//[^"]*'
    )
    assert [found for text in _built().values() for found in loads.findall(text)] == []


def test_every_internal_link_has_its_target():
    pages = {name: text for name, text in _built().items() if not name.startswith("_static")}
    anchors = {name: set(re.findall(r'\bid="([^"]+)"', text)) for name, text in pages.items()}
    for name, text in pages.items():
        for link in set(re.findall(r'<a\b[^>]*\bhref="(?!https?:|mailto:|//)([^"]+)"', text)):
            path, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            assert (SITE / target).exists(), f"{name} links to {link}"
            assert not anchor or target not in anchors or unquote(anchor) in anchors[target], f"{name} links to {link}"
