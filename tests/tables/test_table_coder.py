"""`TableCoder`: columns of every kind and library as numbers, and target codes that do not see their own rows."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from ocrep import PinvRegressor, PinvRegressorCV, TableRegressor
from ocrep.tables import TableCoder

N = 120


def table(n=N, seed=0):
    """A column of each kind; `big` needs 64 bits."""
    rng = np.random.default_rng(seed)
    moments = pd.Series(pd.date_range("2020-01-31 06:30", periods=n, freq="31h")).astype("datetime64[us]")
    frame = pd.DataFrame(
        {
            "x": rng.standard_normal(n),
            "big": 1e8 + rng.integers(0, 999, n),
            "count": pd.array(rng.integers(0, 9, n), dtype="Int64"),
            "flag": pd.array(rng.random(n) < 0.5, dtype="boolean"),
            "when": moments,
            "zoned": moments.dt.tz_localize("UTC"),
            "long": pd.to_timedelta(rng.integers(0, 10**6, n), unit="s").astype("timedelta64[us]"),
            "price": [Decimal(int(k)) / 4 for k in rng.integers(1, 99, n)],
            "few": np.array(["red", "green", None], dtype=object)[rng.integers(0, 3, n)],
            "string": pd.array(rng.choice(["u", "v", "w"], n), dtype="string"),
            "category": pd.Categorical(rng.choice(["p", "q", "r"], n)),
            "size": pd.Categorical(rng.choice(["S", "M", "L"], n), categories=["S", "M", "L"], ordered=True),
            "many": [f"town {k} of the north" for k in rng.integers(0, 50, n)],
            "self": rng.choice(["left", "right"], n),
            "index": rng.standard_normal(n),
            "0": rng.standard_normal(n),
        }
    )
    for row, name in enumerate(["x", "count", "flag", "when", "long", "string", "size", "many"]):
        frame.loc[row, name] = None
    return frame


def targets(frame):
    return frame["many"].fillna("").str.len().to_numpy() + np.arange(len(frame)) % 7 / 4


def outputs_of(coder, column):
    place = coder.feature_names_in_.tolist().index(column)
    return coder.get_feature_names_out()[coder.origin_ == place].tolist()


def test_every_kind_of_column_becomes_numbers():
    frame = table()
    coder = TableCoder(random_state=0).fit(frame, targets(frame))
    coded = pd.DataFrame(coder.transform(frame), columns=coder.get_feature_names_out())
    assert coded.shape[1] == len(coder.origin_) == len(set(coded.columns))
    assert np.isfinite(coded.to_numpy()).all()
    np.testing.assert_array_equal(coded["big"], frame["big"])
    np.testing.assert_array_equal(coded["price"], frame["price"].astype(float))
    np.testing.assert_array_equal(coded["long"].iloc[5:], frame["long"].dt.total_seconds().iloc[5:])
    np.testing.assert_array_equal(coded["size"].iloc[7:], frame["size"].cat.codes.iloc[7:])
    np.testing.assert_array_equal(coded["when_hour"].iloc[4:], (frame["when"].dt.hour + 0.5).iloc[4:])
    np.testing.assert_array_equal(coded["when_weekday"].iloc[4:], frame["when"].dt.day_of_week.iloc[4:])
    hours = frame["zoned"].dt.hour + 0.5
    np.testing.assert_allclose(coded["zoned_hour_cos"], np.cos(hours / 12 * np.pi), atol=1e-12)
    assert coded["x"][0] == np.median(frame["x"].dropna())
    np.testing.assert_array_equal(coded["x_gap"], frame["x"].isna())
    assert "index_gap" not in coded
    assert outputs_of(coder, "self") in (["self_left"], ["self_right"])
    assert {"few_gap"} < set(outputs_of(coder, "few"))
    assert {"many_mean", "many_frequency", "many_letters0", "many_length"} < set(outputs_of(coder, "many"))
    assert coder.gaps_["x"] == 1
    assert coder.gaps_["few"] == frame["few"].isna().sum()
    assert "index" not in coder.gaps_


def test_rows_are_coded_the_same_whatever_library_order_and_types_they_come_in():
    frame = table()
    y = targets(frame)
    coder = TableCoder(random_state=0).fit(frame, y)
    wanted = coder.transform(frame)
    as_arrow = pa.Table.from_pandas(frame)
    as_texts = frame.drop(columns=["long", "size"]).astype(object).map(lambda v: None if pd.isna(v) else str(v))
    others = {
        "order": frame[frame.columns[::-1]].assign(more=1),
        "arrow": as_arrow,
        "polars": polars.from_arrow(as_arrow),
        "objects": frame.astype(object),
        "texts": as_texts.assign(long=frame["long"], size=frame["size"].astype(object)),
        "categories": frame.assign(**{name: frame[name].astype("category") for name in ("few", "string", "many")}),
    }
    for name, other in others.items():
        np.testing.assert_allclose(coder.transform(other), wanted, rtol=1e-12, atol=1e-9, err_msg=name)
    # polars does not know ordered categories, or calls them so only of late.
    plain = TableCoder(ignore=["size"], random_state=0)
    wanted = clone(plain).fit(frame, y).transform(frame)
    for same in (as_arrow, polars.from_arrow(as_arrow)):
        np.testing.assert_allclose(clone(plain).fit(same, y).transform(frame), wanted, rtol=1e-6, atol=1e-6)


def test_arrays_have_columns_by_place():
    X = np.array([[1.0, np.nan], [2.0, 5.0], [3.0, 4.0]])
    coder = TableCoder().fit(X)
    np.testing.assert_array_equal(coder.transform(X), [[1, 4.5, 1], [2, 5, 0], [3, 4, 0]])
    assert not hasattr(coder, "feature_names_in_")
    with pytest.raises(ValueError, match="X has 1 features, but TableCoder is expecting 2 features"):
        coder.transform(X[:, :1])


def test_unseen_texts_gaps_and_empty_columns_are_no_error():
    frame = table().drop(columns="size")
    coder = TableCoder(random_state=0).fit(frame, targets(frame))
    new = frame.head(4).assign(many="nowhere", few="blue", string=None, x=np.nan, when=pd.NaT, category="z", count=None)
    coded = pd.DataFrame(coder.transform(new), columns=coder.get_feature_names_out())
    assert np.isfinite(coded.to_numpy()).all()
    assert (coded[["many_mean", "many_frequency"]] == 0).all(axis=None)
    assert (coded["x_gap"] == 1).all()


def test_rare_and_unknown_categories_share_a_column():
    frame = pd.DataFrame({"c": ["a"] * 40 + ["b"] * 20 + ["r1"] * 3 + ["r2"] * 3})
    coder = TableCoder().fit(frame)
    assert coder.get_feature_names_out().tolist() == ["c_b", "c_other"]
    new = pd.DataFrame({"c": ["a", "b", "r2", "new", None]})
    np.testing.assert_array_equal(coder.transform(new), [[0, 0], [1, 0], [0, 1], [0, 1], [0, 1]])


def test_texts_of_a_small_table_that_hardly_repeat_have_no_column_each():
    frame = pd.DataFrame({"name": [f"{3 * letter} Smith" for letter in "abcdefghijkl"]})
    coder = TableCoder(random_state=0).fit(frame)
    assert coder.get_feature_names_out().tolist() == ["name_letters0", "name_length", "name_words"]


@pytest.mark.parametrize(
    ("texts", "first"),
    [
        (["2024-03-01", "2024-02-13"], "2024-03-01"),
        (["01/03/2024", "13/02/2024"], "2024-03-01"),
        (["03/01/2024", "02/13/2024"], "2024-03-01"),
        (["2024/3/1 14:30", "2024/2/13 09:00"], "2024-03-01 14:30"),
    ],
)
def test_dates_are_read_where_their_order_is_certain(texts, first):
    frame = pd.DataFrame({"d": texts * 20})
    coder = TableCoder().fit(frame)
    days = coder.transform(frame)[0, coder.get_feature_names_out().tolist().index("d_days")]
    np.testing.assert_allclose(days, pd.Timestamp(first).timestamp() / 86400)


def test_the_order_of_day_and_month_can_be_told():
    frame = pd.DataFrame({"d": ["01/02/2024", "05/06/2024"] * 9, "x": np.arange(18.0)})
    with pytest.raises(ValueError, match=r"Column 'd' .* '01/02/2024', in which the order .* dates='day-first'"):
        TableCoder().fit(frame)
    found = {}
    for order in ("day-first", "month-first"):
        coder = TableCoder(dates=order).fit(frame)
        names = coder.get_feature_names_out().tolist()
        found[order] = coder.transform(frame)[0, [names.index("d_day"), names.index("d_month")]].tolist()
    assert found == {"day-first": [1, 2], "month-first": [2, 1]}
    assert TableCoder(dates="drop").fit(frame.assign(d=pd.Timestamp("2024-01-01"))).left_out_ == {"d": "holds dates"}


def test_only_constants_ids_and_empty_columns_are_left_out():
    n = 200
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "same": "a",
            "empty": None,
            "lists": [[1, 2]] * n,
            "code": [f"{rng.integers(2**40):x}-7" for _ in range(n)],
            "seqno": rng.permutation(n) + 1000,
            "CustomerID": rng.choice(10**9, n, replace=False),
            "day": np.arange(n),
            "population": rng.choice(10**7, n, replace=False),
            "name": [f"{rng.choice(['Ann', 'Bob'])} number {k}" for k in range(n)],
            "gap_or_one": np.where(np.arange(n) % 2, 1.0, np.nan),
            "year": rng.integers(1990, 2020, n),
        }
    )
    coder = TableCoder().fit(frame)
    assert set(coder.left_out_) == {"same", "empty", "lists", "code", "seqno", "CustomerID"}
    kept = TableCoder(keep=["seqno", "code"], ignore=["year"]).fit(frame)
    assert set(kept.left_out_) == {"same", "empty", "lists", "CustomerID", "year"}


def test_numbers_in_text_are_numbers_unless_they_are_codes():
    frame = pd.DataFrame({"n": ["1.5", "2", "NA"] * 9, "zip": ["01234", "91234", "00001"] * 9})
    coder = TableCoder().fit(frame)
    assert coder.get_feature_names_out().tolist()[:2] == ["n", "n_gap"]
    np.testing.assert_array_equal(coder.transform(frame)[0, :2], [1.5, 0])
    assert len(outputs_of(coder, "zip")) == 2


# ------------------------------------------------------------------------------
# Target codes


def categories(n_rows, n_categories, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"c": [f"k{k}" for k in rng.integers(0, n_categories, n_rows)]}), rng.standard_normal(n_rows)


def codes_of(coded, coder, name="c_mean"):
    return coded[:, coder.get_feature_names_out().tolist().index(name)]


def test_a_row_is_coded_by_the_targets_of_the_other_folds():
    frame, y = categories(600, 60)
    y += frame["c"].str.len().to_numpy() * 2
    fold = np.arange(600) % 4
    coder = TableCoder(target="numbers", random_state=0)
    first = codes_of(coder.fit_transform(frame, y, None, fold), coder)
    changed = y + np.where(fold == 2, 1000.0 * np.random.default_rng(1).standard_normal(600), 0.0)
    second = codes_of(coder.fit_transform(frame, changed, None, fold), coder)
    np.testing.assert_array_equal(first[fold == 2], second[fold == 2])
    assert (first[fold != 2] != second[fold != 2]).mean() > 0.9
    without = TableCoder(target="numbers", random_state=0).fit(frame[fold != 2], y[fold != 2])
    rows = frame[fold == 2]
    np.testing.assert_allclose(first[fold == 2], codes_of(without.transform(rows), without))


def test_each_of_several_targets_has_its_own_codes(rng):
    frame = pd.DataFrame({"c": [f"town {k}" for k in rng.integers(0, 50, 600)]})
    Y = rng.normal(size=(600, 2)) + 3.0 * (frame["c"].str.len() % 2).to_numpy()[:, None] * [1, -1]
    fold = np.arange(600) % 3
    several = TableCoder(random_state=0)
    coded = several.fit_transform(frame, Y, None, fold)
    for i in range(2):
        alone = TableCoder(random_state=0)
        wanted = codes_of(alone.fit_transform(frame, Y[:, i], None, fold), alone)
        np.testing.assert_allclose(codes_of(coded, several, f"c_mean_{i}"), wanted)
        np.testing.assert_allclose(
            codes_of(several.transform(frame), several, f"c_mean_{i}"), codes_of(alone.transform(frame), alone)
        )
    assert make_pipeline(TableCoder(), PinvRegressor(5)).fit(frame, Y).predict(frame).shape == (600, 2)
    labels = TableCoder().fit(frame, (Y > 0).astype(int))
    assert {"c_mean_1_0", "c_mean_1_1"} < set(labels.get_feature_names_out())


def test_numbers_are_targets_of_numbers_however_they_are_written(rng):
    frame = pd.DataFrame({"c": [f"town {k}" for k in rng.integers(0, 50, 300)]})
    y = rng.normal(size=300).round(3)
    wanted = TableCoder(random_state=0).fit(frame, y)
    for written in (y.astype(str), np.array([Decimal(str(number)) for number in y]), y.astype(object)):
        coder = TableCoder(random_state=0).fit(frame, written)
        np.testing.assert_allclose(codes_of(coder.transform(frame), coder), codes_of(wanted.transform(frame), wanted))
    with pytest.raises(ValueError, match="y has no value in 1 of 300 rows"):
        TableCoder().fit(frame, np.append(y[1:], np.nan))


def test_codes_are_means_shrunk_by_the_analysis_of_variance():
    effects = np.random.default_rng(1).standard_normal(50)
    frame, noise = categories(20_000, 50)
    y = 10 + effects[frame["c"].str[1:].astype(int)] + noise
    coder = TableCoder(target="numbers").fit(frame, y)
    codes = codes_of(coder.transform(frame), coder)
    means = pd.Series(y).groupby(frame["c"]).transform("mean") - y.mean()
    weight = frame.groupby("c")["c"].transform("size")
    spread = np.var(effects, ddof=1)
    np.testing.assert_allclose(codes, means * weight / (weight + 1 / spread), atol=0.002)


def test_categories_of_noise_have_codes_near_zero_on_new_rows():
    frame, y = categories(5000, 1000)
    coder = TableCoder(target="numbers", random_state=0)
    coded = codes_of(coder.fit_transform(frame, y), coder)
    assert np.std(coded) < 0.1
    assert abs(np.corrcoef(coded, y)[0, 1]) < 0.05 or np.ptp(coded) == 0


def test_weights_equal_repetition():
    frame, y = categories(400, 50)
    y += frame["c"].str.len().to_numpy()
    rng = np.random.default_rng(2)
    frame["few"] = [f"few {k}" for k in np.minimum(rng.geometric(0.3, 400), 12)]  # some of them are rare
    frame["x"] = np.where(rng.random(400) < 0.1, np.nan, rng.standard_normal(400))
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 99, 400), unit="D")
    frame.loc[::7, "day"] = pd.NaT
    weight = rng.integers(1, 4, 400)
    fold = np.arange(400) % 3
    again = np.repeat(np.arange(400), weight)
    weighted, repeated = (TableCoder(target="numbers", random_state=0) for _ in range(2))
    first = weighted.fit_transform(frame, y, weight, fold)
    second = repeated.fit_transform(frame.iloc[again], y[again], None, fold[again])
    assert weighted.get_feature_names_out().tolist() == repeated.get_feature_names_out().tolist()
    np.testing.assert_allclose(first[again], second, atol=1e-9)
    np.testing.assert_allclose(weighted.transform(frame), repeated.transform(frame), atol=1e-9)
    small = TableCoder(target="numbers", random_state=0).fit(frame, y, np.full(400, 1e-3))
    plain = TableCoder(target="numbers", random_state=0).fit(frame, y)
    np.testing.assert_allclose(codes_of(small.transform(frame), small), codes_of(plain.transform(frame), plain))


def test_labels_have_a_code_for_each_class():
    frame, y = categories(900, 60)
    labels = np.where(frame["c"].str[1:].astype(int) % 3 == 0, "x", np.where(y > 0, "y", "z"))
    coder = TableCoder().fit(frame, labels)
    names = coder.get_feature_names_out().tolist()
    assert names[:4] == ["c_mean_x", "c_mean_y", "c_mean_z", "c_frequency"]
    of_x = coder.transform(frame)[:, 0]
    assert of_x[labels == "x"].min() > 0.3 > -0.1 > of_x[labels != "x"].max()
    two = TableCoder().fit(frame, labels == "x")
    assert two.get_feature_names_out().tolist()[:2] == ["c_mean_True", "c_frequency"]


def test_a_sample_teaches_where_rows_are_many():
    frame, y = categories(3000, 50)
    y += frame["c"].str.len().to_numpy()
    coder = TableCoder(target="numbers", sample_rows=500, random_state=0)
    coded = coder.fit_transform(frame, y)
    assert len(coded) == 3000
    assert np.exp(codes_of(coder.transform(frame), coder, "c_frequency")).max() < 40


def test_a_coder_can_be_fitted_again_and_keeps_nothing():
    frame, other = table(), table(80, seed=3).drop(columns=["flag", "0"])
    y, y_other = targets(frame), targets(other)
    used = TableCoder(random_state=0).fit(frame, y)
    for coder in (clone(used).fit(other, y_other), used.fit(other, y_other)):
        fresh = TableCoder(random_state=0).fit(other, y_other)
        np.testing.assert_array_equal(coder.transform(other), fresh.transform(other))
        assert coder.get_feature_names_out().tolist() == fresh.get_feature_names_out().tolist()


def test_outputs_can_be_frames():
    frame = table().assign(x_gap=1.5 * np.arange(N))
    coder = TableCoder(random_state=0).set_output(transform="pandas").fit(frame, targets(frame))
    assert coder.transform(frame).columns.tolist() == coder.get_feature_names_out().tolist()
    as_polars = coder.set_output(transform="polars").transform(frame)
    assert as_polars.shape == (N, len(coder.origin_))


def test_long_texts_are_read_up_to_a_limit():
    rng = np.random.default_rng(0)
    words = np.array(["alpha", "beta", "gamma", "delta", "omega"])
    texts = [" ".join(rng.choice(words, 2000)) for _ in range(60)]
    frame = pd.DataFrame({"t": texts})
    coder = TableCoder(random_state=0).fit(frame)
    longer = pd.DataFrame({"t": [text + " and more" for text in texts]})
    np.testing.assert_array_equal(coder.transform(frame), coder.transform(longer))


def test_2000_columns_and_100_000_categories():
    wide = pd.DataFrame(np.random.default_rng(0).standard_normal((30, 2000)))
    assert TableCoder().fit(wide).transform(wide).shape == (30, 2000)
    tall = pd.DataFrame({"c": [f"k{k // 2} x" for k in range(200_000)]})
    coder = TableCoder(random_state=0, sample_rows=20_000)
    assert len(coder.fit_transform(tall, np.arange(200_000.0))) == 200_000


# ------------------------------------------------------------------------------
# What cannot be used


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"a": [1, 1, 1], "b": [None] * 3}), "no column to learn from: 'a' is constant; 'b' is empty"),
        (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), "two columns named 'a': rename"),
        (pd.DataFrame({"d": ["2024-01-31", "31/12/2024", "2024-02-01"]}), "Column 'd' holds dates that are not all"),
        (
            pd.DataFrame({"m": [1, "two", 3.5]}, dtype=object),
            r"Column 'm' holds values of several types, int and .* str",
        ),
        (pd.DataFrame({"x": [1.0, np.inf]}), "Column 'x' holds an infinite number in row 2"),
        (pd.DataFrame({"x": []}), "no rows"),
        (pd.DataFrame(index=[0, 1]), "no columns"),
    ],
)
def test_a_frame_that_cannot_be_used_is_refused_in_a_sentence(frame, message):
    with pytest.raises(ValueError, match=message):
        TableCoder().fit(frame)


def test_other_mistakes():
    frame = table()
    with pytest.raises(ValueError, match="no column 'Few': did you mean 'few'"):
        TableCoder(ignore=["Few"]).fit(frame)
    with pytest.raises(ValueError, match="Unknown dates 'dayfirst'"):
        TableCoder(dates="dayfirst").fit(frame)
    with pytest.raises(TypeError, match="Arrow table, or an array"):
        TableCoder().fit("table.csv")
    coder = TableCoder(random_state=0).fit(frame)
    with pytest.raises(ValueError, match="no column 'x', which the model needs"):
        coder.transform(frame.drop(columns="x"))
    with pytest.raises(ValueError, match="Column 'x' must hold numbers, as in training, but row 3 holds 'much'"):
        coder.transform(frame.head(3).assign(x=["1", "2", "much"]))
    with pytest.raises(ValueError, match="Column 'long' must hold durations"):
        coder.transform(frame.assign(long=1.0))
    with pytest.raises(ValueError, match="y has 3 values, but X has 120 rows"):
        TableCoder().fit(frame, [1, 2, 3])
    with pytest.raises(ValueError, match="one number per row"):
        TableCoder().fit_transform(frame, fold=[1, 2])
    with pytest.raises(ValueError, match="sample_weight must hold"):
        TableCoder().fit(frame, targets(frame), -np.ones(N))


def test_many_columns_of_text_share_the_columns_for_their_letters():
    rng = np.random.default_rng(0)
    texts = {f"t{i}": [f"word {k}" for k in rng.integers(0, 90, 600)] for i in range(60)}
    one, all_of_them = (TableCoder(random_state=0).fit(pd.DataFrame(some)) for some in ({"t0": texts["t0"]}, texts))
    n_letters = [sum("_letters" in name for name in coder.get_feature_names_out()) for coder in (one, all_of_them)]
    assert n_letters == [20, 600]


def test_codes_with_letters_that_mean_something_are_no_ids():
    """The last letters of an aircraft's number tell its owner; those of random codes and running ones tell nothing."""
    rng = np.random.default_rng(0)
    n = 400
    owner = rng.choice(["UW", "AA", "DL", "SW"], n)
    numbers = rng.permutation(n)
    hexadecimal = [f"{number:08X}" for number in rng.choice(2**32, n, replace=False)]
    letters = np.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    frame = pd.DataFrame(
        {
            "tail": [f"N{100 + number}{mark}" for number, mark in zip(numbers, owner, strict=True)],
            "country": [f"{mark}-{number}" for number, mark in zip(numbers, owner, strict=True)],
            "running": [f"ID{number:05d}X" for number in numbers],
            "letters": [f"{letters[k // 260]}{letters[k // 10 % 26]}{k % 10}" for k in numbers],
            "random": [f"{number}z{own}" for number, own in enumerate(hexadecimal)],
            "plate": ["".join(own) + f"{k}" for k, own in enumerate(rng.choice(letters, (n, 2)))],
        }
    )
    y = pd.Series(owner).map({"UW": 0.0, "AA": 1.0, "DL": 2.0, "SW": 3.0}) + 0.1 * rng.normal(size=n)
    coder = TableCoder(target="numbers").fit(frame, y)
    assert set(coder.left_out_) == {"running", "letters", "random", "plate"}
    model = TableRegressor(PinvRegressorCV("quick", random_state=0), random_state=0).fit(frame[["tail"]], y)
    assert model.assessment_["models"]["network"]["r2"] > 0.5
