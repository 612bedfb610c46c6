"""A real browser for the report: Debian's Chromium, driven by Playwright, with a fresh profile and no network."""

import numpy as np
import pytest
from playwright.sync_api import sync_playwright
from support.chromium import CHROMIUM, FLAGS, HOSTILE

from ocrep import PinvClassifier, PinvRegressor, TikhonovRegressor
from ocrep.report import diagnose, write_report


def _diagnosis(name):
    rng = np.random.default_rng(0)
    X, X_test = rng.uniform(-1, 1, (140, 4)), rng.uniform(-1, 1, (60, 4))
    y, y_test = (np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * rng.standard_normal(len(x)) for x in (X, X_test))
    if name == "regression":
        return diagnose(PinvRegressor(50, random_state=0), X, y, X_test, y_test, title="Smooth")
    if name == "classification":
        labels = [np.array(["a", "b", "c"])[np.digitize(t, [-0.5, 0.5])] for t in (y, y_test)]
        return diagnose(PinvClassifier(40, random_state=0), X, labels[0], X_test, labels[1], title="Classes")
    if name == "hostile":
        return diagnose(PinvRegressor(9, gamma=0.3, random_state=0), X, y, title=HOSTILE, rules=["ocrep", "gcv"])
    if name == "single row":
        return diagnose(TikhonovRegressor("ocrep", fit_intercept=False), X[:1], y[:1], rules=["kfold", "none"])
    assert name == "zeros"
    return diagnose(TikhonovRegressor("ocrep", fit_intercept=False), 0 * X, y, rules=["none"])


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """The address of a report by name, written once."""
    folder = tmp_path_factory.mktemp("reports")
    known = {}

    def address(name):
        if name not in known:
            known[name] = folder / f"{name.replace(' ', '-')}.html"
            write_report(_diagnosis(name), known[name])
        return known[name].as_uri()

    return address


@pytest.fixture(scope="session")
def chromium():
    with sync_playwright() as playwright:
        yield playwright.chromium


@pytest.fixture(scope="session")
def browser(chromium, tmp_path_factory):
    options = {"executable_path": CHROMIUM, "args": FLAGS, "headless": True}
    context = chromium.launch_persistent_context(tmp_path_factory.mktemp("profile"), **options)
    yield context
    context.close()


@pytest.fixture
def open_report(browser, report):
    """Open a report at a width; what it says on the console and asks of the network must stay empty."""
    pages, said = [], []

    def opened(name, width=1280, height=900):
        page = browser.new_page()
        pages.append(page)
        page.set_viewport_size({"width": width, "height": height})
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: said.append(request.url) if request.url != report(name) else None)
        page.goto(report(name))
        page.wait_for_selector("html[data-ready=true]")
        return page

    yield opened
    for page in pages:
        page.close()
    assert said == []
