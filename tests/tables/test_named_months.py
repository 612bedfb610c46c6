"""Dates with names of months and times with AM or PM are the same columns as their ISO forms."""

import numpy as np
import pandas as pd
import pytest

from ocrep.tables import TableCoder

MOMENTS = pd.Series(pd.date_range("1999-12-25 00:07:30", periods=400, freq="40h7min"))
STYLES = ["%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d %Y", "%d-%b-%Y", "%d%b%Y", "%a, %d %b %Y", "%A, %B %d, %Y"]
CLOCKS = [" %H:%M:%S", " %I:%M:%S %p", ", %I:%M:%S%p"]
CHANGES = {"as it is": str, "large": str.upper, "small": str.lower, "bare": lambda text: text.removeprefix("0")}


def coded(train, new):
    coder = TableCoder().fit(pd.DataFrame({"when": train}))
    return coder.get_feature_names_out().tolist(), coder.transform(pd.DataFrame({"when": new}))


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("clock", ["", *CLOCKS])
@pytest.mark.parametrize("style", STYLES)
def test_the_style_of_dates_does_not_matter(style, clock, change):
    moments = MOMENTS if clock else MOMENTS.dt.normalize()
    texts = moments.dt.strftime(style + clock).map(CHANGES[change])
    texts[3] = None
    moments = moments.where(texts.notna())
    names, expected = coded(moments, moments)
    for train, new in ((texts, texts), (texts, moments), (moments, texts)):  # and new rows in another form
        if train is moments or new is moments or train is new:
            found_names, found = coded(train, new)
            assert found_names == names
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("late", ["%Y-%m-%d", "%d %b %Y", "%b %d, %Y"])
@pytest.mark.parametrize("early", ["%Y-%m-%d", "%d %b %Y", "%b %d, %Y"])
def test_styles_may_change_anywhere_in_a_column(early, late):
    days = MOMENTS[:60].dt.normalize()
    for n_early in (1, 30, 58):
        texts = pd.concat([days[:n_early].dt.strftime(early), days[n_early:].dt.strftime(late)])
        np.testing.assert_array_equal(coded(texts, days)[1], coded(days, days)[1])
        np.testing.assert_array_equal(coded(days.dt.strftime("%Y-%m-%d"), texts)[1], coded(days, days)[1])


@pytest.mark.parametrize("style", ["%I:%M:%S %p", "%I:%M:%S%p", "%H:%M:%S"])
@pytest.mark.parametrize("change", CHANGES)
def test_the_style_of_times_does_not_matter(style, change):
    hours = (MOMENTS - MOMENTS.dt.normalize()).dt.total_seconds() / 3600
    texts = MOMENTS.dt.strftime(style).map(CHANGES[change])
    names, found = coded(texts, texts)
    assert names == ["when", "when_sin", "when_cos"]
    np.testing.assert_allclose(found[:, 0], hours, rtol=1e-14)
    np.testing.assert_array_equal(coded(MOMENTS.dt.strftime("%H:%M:%S"), texts)[1], found)


@pytest.mark.parametrize("wrong", ["31 Feb 2023", "5 Apt 2023", "13:30 PM", "5 Apr", "tomorrow"])
def test_a_new_row_that_is_no_date_is_named(wrong):
    for right in (["5 Apr 2023", "7 May 2021"], ["1:30 PM", "2:40 AM"]):
        coder = TableCoder().fit(pd.DataFrame({"when": right * 20}))
        with pytest.raises(ValueError, match=f"'when'.*row 3 holds '{wrong}'"):
            coder.transform(pd.DataFrame({"when": [*right, wrong]}))


@pytest.mark.parametrize(
    "texts", [["05-Apr-23", "17-May-21"], ["5 Apr 2023", "2023-13-45"], ["Apr 5, 2023", "30 Feb 2023"]]
)
def test_texts_that_look_like_dates_and_are_not_read_are_named_with_what_helps(texts):
    with pytest.raises(ValueError, match=r"'when' holds dates .*ignore=\['when'\]"):
        TableCoder().fit(pd.DataFrame({"when": texts * 20}))


@pytest.mark.parametrize(
    "texts", [["may", "june"], ["12 march flies", "3 decks"], ["Apr 2023", "May 2021"], ["1:2", "3:1"]]
)
def test_words_are_no_dates(texts):
    coder = TableCoder().fit(pd.DataFrame({"what": texts * 20}))
    assert coder.transform(pd.DataFrame({"what": texts})).shape == (2, 1)
