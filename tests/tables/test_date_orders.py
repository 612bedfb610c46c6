"""Dates with year, day or month first, also with AM and PM: the inputs are those as in ISO 8601, or a sentence asks."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ocrep import PinvRegressor, TableRegressor, fit_table, load_model, save_model, scan
from ocrep._files.convert import as_kind, dates_of
from ocrep._files.formats import DataError
from ocrep.tables.prediction import predict_file
from ocrep.tables.training import Settings, problem_of_file, train_table

N = 120
RNG = np.random.default_rng(0)
# The first rows do not tell the order of day and month.
DAYS = pd.Series(pd.to_datetime(["2024-03-05", "2024-07-08"] * 20 + [*pd.date_range("2023-01-01", periods=N - 40)]))
X = RNG.standard_normal(N)
Y = X + DAYS.dt.month
SMALL = Settings(n_hidden=5)
FORMS = {
    "%d/%m/%Y": "day-first date",
    "%d.%m.%Y": "day-first date",
    "%d-%m-%Y %H:%M": "day-first date",
    "%m/%d/%Y": "month-first date",
    "%m/%d/%Y %H:%M:%S": "month-first date",
    "%m/%d/%Y %I:%M:%S %p": "month-first date",
    "%d.%m.%Y %I:%M%p": "day-first date",
    "%Y/%m/%d": "date",
    "%Y.%m.%d": "date",
    "%Y/%m/%d %H:%M": "date",
    "%Y-%m-%d %I:%M %p": "date",
}


def frame_of(form, days=DAYS):
    texts = days.dt.strftime(form).astype(object)
    texts[7] = None
    return pd.DataFrame({"when": texts, "x": X, "y": Y})


def inputs_of(path):
    model = TableRegressor(PinvRegressor(3), random_state=0).fit(scan(path, target="y"))
    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    return model.coder_.columns_[0].kind, model.coder_.transform(frame)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("form", FORMS)
def test_the_inputs_are_those_of_dates_as_in_iso_8601(form, suffix, tmp_path):
    for name, one in {"iso": "%Y-%m-%d", "other": form}.items():
        getattr(frame_of(one), f"to_{suffix}")(tmp_path / f"{name}.{suffix}", index=False)
    (iso, wanted), (kind, found) = (inputs_of(tmp_path / f"{name}.{suffix}") for name in ("iso", "other"))
    assert (iso, kind) == ("date", FORMS[form])
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("form", FORMS)
def test_a_frame_of_texts_gives_the_model_of_a_frame_of_dates(form):
    frame = frame_of(form)
    dates = frame.assign(when=DAYS.where(np.arange(N) != 7).astype("datetime64[us]"))
    wanted, found = (fit_table(some, "y", n_hidden=10, test=0.0) for some in (dates, frame))
    for some in (frame, dates, frame[:1], frame[7:8]):  # also rows that do not tell the order, and a gap
        np.testing.assert_allclose(found.predict(some), wanted.predict(dates.loc[some.index]), rtol=1e-9)


def test_new_rows_have_the_order_of_training(tmp_path):
    frame_of("%d/%m/%Y").to_csv(tmp_path / "t.csv", index=False)
    model = train_table(problem_of_file(tmp_path / "t.csv", "y", SMALL), test=0).model
    frame_of("%d.%m.%Y")[:7].to_csv(tmp_path / "new.csv", index=False)
    predict_file(model, tmp_path / "new.csv", tmp_path / "p.parquet")
    found = pd.read_parquet(tmp_path / "p.parquet")["prediction"]
    np.testing.assert_allclose(found, model.predict(frame_of("%d/%m/%Y").assign(when=DAYS)[:7]), rtol=1e-9)
    for form, text in {"%Y-%m-%d": "2023-01-13", "%m/%d/%Y": "01/13/2023"}.items():
        frame_of(form)[52:].to_csv(tmp_path / "new.csv", index=False)
        with pytest.raises(DataError, match=f"'when' must hold dates such as 31/01/2026, but row 1 holds '{text}'"):
            predict_file(model, tmp_path / "new.csv", tmp_path / "p.parquet")


UNSURE = {
    "no day above 12": DAYS.where(DAYS.dt.day <= 12, DAYS[0]).dt.strftime("%d/%m/%Y"),
    "both orders": DAYS.dt.strftime("%d/%m/%Y").where(np.arange(N) % 2 == 0, DAYS.dt.strftime("%m/%d/%Y")),
    "short year": DAYS.dt.strftime("%d.%m.%y"),
    "no such hour": DAYS.dt.strftime("%Y/%m/%d 13:00 PM"),
}


@pytest.mark.parametrize("case", UNSURE)
def test_where_the_order_is_not_certain_a_sentence_says_what_to_do(case):
    frame = pd.DataFrame({"when": UNSURE[case], "x": X})
    with pytest.raises(DataError, match="Column 'when' holds dates") as error:
        TableRegressor(PinvRegressor(3)).fit(frame, Y)
    if case == "both orders":  # two texts of the column that contradict each other
        named = re.findall(r"'(\d\d)/(\d\d)/\d{4}'", str(error.value))
        assert any(int(first) > 12 for first, _ in named)
        assert any(int(second) > 12 for _, second in named)
    if case == "no day above 12":
        assert "dates='day-first'" in str(error.value)
        models = [TableRegressor(PinvRegressor(3, random_state=0), dates=f"{one}-first") for one in ("day", "month")]
        assert len({model.fit(frame, Y).coder_.columns_[0].kind for model in models}) == 2


def test_dates_can_be_left_out():
    frame = frame_of("%m/%d/%Y").assign(end=DAYS.dt.strftime("%d.%m.%Y"))
    model = TableRegressor(PinvRegressor(3), dates="drop").fit(frame.drop(columns="y"), Y)
    assert model.left_out_ == {"when": "holds dates", "end": "holds dates"}


def test_what_is_not_a_column_of_dates(tmp_path):
    columns = {
        "version": ["1.2.3", "10.2.15", "1.12.0", "2.0.1"],
        "some": ["31/12/2024", "30/12/2024", "unknown", "13/01/2024"],
        "three": ["12/13/14/2024", "1/2/3/2024", "1/13/2/2024", "1/2/13/2024"],
    }
    frame = pd.DataFrame({name: texts * 10 for name, texts in columns.items()})
    # A column that is declared as categories stays one.
    frame["day"] = pd.Series(["31/12/2024", "13/01/2024"] * 20).astype("category")
    model = TableRegressor(PinvRegressor(3, gamma=1.0)).fit(frame, np.arange(40) / 3)
    assert {column.kind for column in model.coder_.columns_} == {"text"}


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y %I:%M %p"])
def test_a_target_of_dates_is_refused(form, tmp_path):
    pd.DataFrame({"x": X, "y": DAYS.dt.strftime(form)}).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match="target"):
        train_table(problem_of_file(tmp_path / "t.csv", "y", SMALL), test=0)


def test_single_digits_and_spaces():
    words = [" 1/2/2024", "13/12/2024 7:05", None, "NA"]
    found = dates_of(pa.array(words, pa.string()), "day-first date")
    assert [str(one)[:16] for one in found] == ["2024-02-01T00:00", "2024-12-13T07:05", "NaT", "NaT"]


def test_hours_with_am_and_pm():
    words = ["1/31/2020 12:03:00 AM", "01/31/2020 1:30pm", "1/31/2020 12:00 PM", "1/31/2020 11:59 am", "1/31/2020"]
    found = dates_of(pa.array(words, pa.string()), "month-first date")
    assert [str(one)[11:16] for one in found] == ["00:03", "13:30", "12:00", "11:59", "00:00"]
    for wrong in ("1/31/2020 0:30 AM", "1/31/2020 13:30 PM", "1/31/2020 PM", "1:30 PM"):
        assert dates_of(pa.array([wrong]), "month-first date") is None


def test_each_text_is_read_for_itself():
    words = ["2020-01-31", "2020/1/5 3:05 pm", "2020-01-31T10:00:00.5", "2020.01.31 10:00+01:00", "2020-01-31 10", None]
    wanted = [dates_of(pa.array([word], pa.string()))[0] for word in words]
    np.testing.assert_array_equal(dates_of(pa.array(words, pa.string())), wanted)
    np.testing.assert_array_equal(as_kind(pa.array(words), "date", "when", 0), wanted)
    assert [str(one)[5:21] for one in wanted[1:4]] == ["01-05T15:05:00.0", "01-31T10:00:00.5", "01-31T09:00:00.0"]


@pytest.mark.parametrize("form", ["%Y/%m/%d %I:%M %p", "%m/%d/%Y %I:%M %p"])
def test_a_saved_model_reads_the_form_of_training(form, tmp_path):
    days = DAYS + pd.to_timedelta(np.arange(N) * 12 % 24, "h") + pd.Timedelta("30min")
    frame_of(form, days).to_csv(tmp_path / "t.csv", index=False)
    frame_of("%Y-%m-%d %H:%M", days).to_csv(tmp_path / "iso.csv", index=False)
    model, wanted = (
        train_table(problem_of_file(tmp_path / name, "y", SMALL), test=0).model for name in ("t.csv", "iso.csv")
    )
    save_model(model, tmp_path / "m.skops")
    predict_file(load_model(tmp_path / "m.skops"), tmp_path / "t.csv", tmp_path / "p.parquet")
    found = pd.read_parquet(tmp_path / "p.parquet")["prediction"]
    np.testing.assert_allclose(found, wanted.predict(frame_of("%Y-%m-%d %H:%M", days)), rtol=1e-9)
