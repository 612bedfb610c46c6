"""Rows on disk and in streams: mistakes are named with their file or block; what is not read."""

import subprocess
import sys

import dask.array as dask_array
import numpy as np
import pandas as pd
import polars
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import pytest
from scipy import sparse
from support.advice import some_advice
from support.rows_on_disk import NAMES, as_blocks, as_glob, smooth_frame, write
from support.weights import weights_of

from ocrep import PinvClassifier, PinvRegressor, TikhonovClassifier, TikhonovRegressor, scan
from ocrep._files.readers import BLOCK_BYTES, ParquetReader


@pytest.fixture
def frame():
    return smooth_frame(300)


def model(**options):
    return PinvRegressor(10, random_state=0, **options)


@pytest.mark.parametrize("kind", ["parquet", "feather", "csv"])
def test_a_folder_a_glob_a_list_and_a_path_name_the_same_rows(frame, tmp_path, kind):
    paths = write(frame, tmp_path, kind)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "notes.txt").write_text("no table")
    expected = model().fit(np.ascontiguousarray(frame[NAMES]), frame["y"])
    for source in (tmp_path, str(tmp_path), str(tmp_path / "part?.*"), paths, tuple(map(str, paths))):
        np.testing.assert_array_equal(weights_of(model().fit(scan(source, target="y"))), weights_of(expected))


def test_a_glob_of_folders_that_are_tables_names_their_files(frame, tmp_path):
    for i, rows in enumerate((slice(0, 100), slice(100, 300))):
        folder = tmp_path / f"{i}.parquet"
        folder.mkdir()
        (folder / "_SUCCESS").touch()
        frame[rows].to_parquet(folder / "part-0.parquet")
    expected = model().fit(np.ascontiguousarray(frame[NAMES]), frame["y"])
    np.testing.assert_array_equal(
        weights_of(model().fit(scan(str(tmp_path / "*.parquet"), target="y"))), weights_of(expected)
    )


def test_nothing_is_read_before_fit_and_a_failed_fit_changes_nothing(frame, tmp_path):
    path = tmp_path / "later.parquet"
    source = scan(path, target="y")
    fitted = model().fit(frame[NAMES], frame["y"])
    before = dict(vars(fitted))
    with pytest.raises(ValueError, match="There is no file"):
        fitted.fit(source)
    assert vars(fitted) == before
    frame.to_parquet(path)
    fitted.fit(source)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nothing*.parquet", r"No file matches nothing\*\.parquet"),
        ([], r"0 sample\(s\): there are no rows to learn from"),
        ([(np.zeros((0, 2)), np.zeros(0))], r"0 sample\(s\): there are no rows to learn from"),
    ],
)
def test_no_rows_at_all_raise(source, message):
    with pytest.raises(ValueError, match=message):
        model().fit(scan(source, target="y"))


def test_an_empty_folder_and_an_empty_dataset_raise(frame, tmp_path):
    with pytest.raises(ValueError, match="holds no Parquet, CSV"):
        scan(tmp_path)
    with pytest.raises(ValueError, match="dataset has no files"):
        scan(pyarrow.dataset.dataset([], schema=pyarrow.schema([("a", pyarrow.float64())])))
    frame.iloc[:0].to_parquet(tmp_path / "none.parquet")
    with pytest.raises(ValueError, match="there are no rows to learn from"):
        model().fit(scan(tmp_path, target="y"))
    frame.to_parquet(tmp_path / "some.parquet")  # one empty file among others is allowed
    model().fit(scan(tmp_path, target="y"))


@pytest.mark.parametrize("kind", ["parquet", "csv", "feather"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda part: part.drop(columns="y"), "part1.* has no column 'y'"),
        (lambda part: part.drop(columns="c"), "part1.* has no column 'c'"),
        (lambda part: part.rename(columns={"c": "C"}), "part1.* has no column 'c': did you mean 'C'"),
        (lambda part: part.assign(f=1.0), "part1.* has a column 'f' that .*part0.* does not have"),
        (lambda part: part.assign(c="red"), r"part1.*: column 'c' holds texts, but inputs must be numbers"),
        (lambda part: part.assign(c=pd.Timestamp("2020-01-01")), "part1.*: column 'c' holds dates or times"),
        (lambda part: part.assign(w="red"), "part1.*: column 'w' holds texts, but weights must be numbers"),
        (lambda part: part.assign(y="red"), "part1.*: column 'y' holds texts, but numbers in .*part0"),
    ],
)
def test_a_file_unlike_the_first_is_named_before_any_row_is_read(frame, tmp_path, kind, change, message):
    frame = frame.assign(w=1.0)
    write(frame, tmp_path, kind)
    changed = tmp_path / "changed"
    changed.mkdir()
    other = write(change(frame), changed, kind)[1]
    other.replace(tmp_path / other.name)
    seen = []
    source = scan(str(tmp_path / f"*.{kind}"), target="y", sample_weight="w", progress=lambda *rows: seen.append(rows))
    with pytest.raises(ValueError, match=message):
        model().fit(source)
    assert not seen


def test_categories_raise(frame, tmp_path):
    frame.assign(c=pd.Categorical(["u", "v"] * 150)).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="column 'c' holds texts"):
        model().fit(scan(tmp_path, target="y"))
    model().fit(scan(tmp_path, target="y", columns=["a", "b"]))
    blocks = [pd.read_parquet(tmp_path / "rows.parquet")]
    with pytest.raises(ValueError, match="block 0: column 'c' holds texts, but inputs must be numbers"):
        model().fit(scan(blocks, target="y"))


@some_advice
def test_numbers_of_every_width_are_inputs(frame, tmp_path):
    X = pd.DataFrame(
        {
            "i": np.arange(300, dtype=np.int8) % 7,
            "u": np.arange(300, dtype=np.uint32) % 5,
            "h": frame["a"].astype(np.float16),
            "s": frame["b"].astype(np.float32),
            "t": frame["c"] > 0,
        }
    )
    table = X.assign(y=frame["y"])
    table.to_parquet(tmp_path / "rows.parquet")
    expected = model().fit(np.column_stack([X[name].to_numpy(dtype=float) for name in X]), frame["y"])
    for source in (scan(tmp_path, target="y"), scan([table], target="y")):
        np.testing.assert_array_equal(weights_of(model().fit(source)), weights_of(expected))
    table.drop(columns=["h", "s"]).to_csv(tmp_path / "rows.csv", index=False)
    model().fit(scan(tmp_path / "rows.csv", target="y"))  # True and False in a text file
    nullable = table[["i", "t", "y"]].astype({"i": "Int32", "t": "boolean"})
    np.testing.assert_array_equal(
        weights_of(model().fit(scan([nullable], target="y"))),
        weights_of(model().fit(X[["i", "t"]].to_numpy(dtype=float), frame["y"])),
    )


def test_float32_columns_stay_float32(frame, tmp_path):
    single = frame.astype(dict.fromkeys(NAMES, np.float32))
    fitted = model().fit(as_glob(single, tmp_path))
    expected = model().fit(np.ascontiguousarray(single[NAMES]), frame["y"])
    np.testing.assert_array_equal(weights_of(fitted), weights_of(expected))
    assert next(fitted.predict_blocks(scan(tmp_path))).dtype == np.float32


@pytest.mark.parametrize("scale", ["minmax", (-1.0, 1.0)])
@pytest.mark.parametrize("narrow", [0, 1])
def test_files_of_float32_and_float64_go_together_in_any_order(frame, tmp_path, small_blocks, narrow, scale):
    small_blocks(2**8)  # several blocks of either type
    parts = [frame[:100].reset_index(drop=True), frame[100:].reset_index(drop=True)]
    parts[narrow] = parts[narrow].astype(dict.fromkeys(NAMES, np.float32))
    for i, part in enumerate(parts):
        part.to_parquet(tmp_path / f"{i}.parquet")
    whole = pd.concat([part.astype(float) for part in parts])
    expected = model(input_scaling=scale).fit(np.ascontiguousarray(whole[NAMES]), whole["y"])
    fitted = model(input_scaling=scale).fit(scan(tmp_path, target="y"))
    np.testing.assert_allclose(weights_of(fitted), weights_of(expected), rtol=1e-10)  # blocks end at other rows
    np.testing.assert_array_equal(fitted.layer_.weights_, expected.layer_.weights_)


@pytest.mark.parametrize("kind", ["csv", "feather"])
def test_bad_numbers_are_named_with_file_row_and_column(frame, tmp_path, kind):
    first = int(300 / 3**1.5)  # where the second file begins
    frame.loc[first + 10, "c"] = np.nan
    with pytest.raises(ValueError, match=r"part1.*, row 11: column 'c' holds NaN \(a missing value\)"):
        model().fit(as_glob(frame, tmp_path, kind))


def test_bad_numbers_are_named_with_block_row_and_column(frame):
    blocks = [(X.copy(), y) for X, y in as_blocks(frame, 100)]
    blocks[1][0][7, 2] = np.nan
    with pytest.raises(ValueError, match="block 1, row 8: column 2 holds NaN"):
        model().fit(scan(blocks))
    with pytest.raises(ValueError, match="block 1, row 8: column 2 holds NaN"):
        list(model().fit(*blocks[0]).predict_blocks(block[0] for block in blocks))
    with pytest.raises(ValueError, match="block 1, row 8: column 2 holds NaN"):
        model().fit(scan([(sparse.csr_array(X), y) for X, y in blocks]))


def test_numbers_whose_sum_overflows_are_numbers(frame):
    X = frame[NAMES].to_numpy(copy=True)
    X[:2, 0] = 1.5e308
    with np.errstate(over="ignore"):
        assert np.isfinite(weights_of(model().fit(scan([(X, frame["y"])])))).all()


def test_text_in_a_column_of_numbers_is_named_with_its_line(frame, tmp_path):
    paths = write(frame, tmp_path, "csv")
    header, *lines = paths[1].read_text().splitlines()
    # Types are inferred from the first block, so the bad value must lie in a later one.
    lines *= BLOCK_BYTES // len("\n".join(lines)) + 2
    bad = lines[-1].rpartition(",")[0] + ",oops"
    paths[1].write_text("\n".join([header, *lines, bad, *lines[:9]]) + "\n")
    message = rf"part1.csv, line {len(lines) + 2}: column 'a' must hold numbers, but it holds 'oops'"
    with pytest.raises(ValueError, match=message):
        model().fit(scan(tmp_path, target="y"))
    with pytest.raises(ValueError, match=message):
        list(model().fit(frame[NAMES], frame["y"]).predict_blocks(scan(paths)))
    paths[1].write_text("\n".join([header, *lines, "1,2", *lines[:9]]) + "\n")
    with pytest.raises(ValueError, match=rf"part1.csv, line {len(lines) + 2}: it has 2 values"):
        model().fit(scan(tmp_path, target="y"))


def test_a_file_that_is_damaged_is_named(frame, tmp_path):
    for kind in ("parquet", "feather"):
        paths = write(frame, tmp_path, kind)
        paths[1].write_bytes(paths[1].read_bytes()[:-100])
        with pytest.raises(ValueError, match=f"part1.{kind} cannot be read"):
            model().fit(scan(paths, target="y"))


def test_statistics_that_lie_are_found_out(frame, tmp_path, monkeypatch):
    source = as_glob(frame, tmp_path)
    monkeypatch.setattr(ParquetReader, "stated_range", lambda self, columns: (np.full(5, -0.5), np.full(5, 0.5)))
    with pytest.raises(ValueError, match=r"part0.parquet: column 'a' holds values outside the range"):
        model().fit(source)


def test_statistics_are_not_needed(frame, tmp_path):
    expected = model().fit(np.ascontiguousarray(frame[NAMES]), frame["y"])
    pyarrow.parquet.write_table(
        pyarrow.Table.from_pandas(frame, preserve_index=False), tmp_path / "rows.parquet", write_statistics=["a"]
    )
    np.testing.assert_array_equal(weights_of(model().fit(scan(tmp_path, target="y"))), weights_of(expected))


def test_columns_that_the_place_in_a_dataset_gives(frame, tmp_path):
    table = pyarrow.Table.from_pandas(frame.assign(k=np.arange(300) % 3), preserve_index=False)
    pyarrow.dataset.write_dataset(
        table,
        tmp_path,
        format="parquet",
        partitioning=pyarrow.dataset.partitioning(pyarrow.schema([("k", pyarrow.int64())]), flavor="hive"),
    )
    dataset = pyarrow.dataset.dataset(tmp_path, partitioning="hive")
    fitted = model().fit(scan(dataset, target="y"))
    assert fitted.feature_names_in_.tolist() == [*NAMES, "k"]
    ordered = pd.concat([part for _, part in frame.assign(k=np.arange(300) % 3).groupby("k")])
    expected = model().fit(np.ascontiguousarray(ordered[[*NAMES, "k"]]), ordered["y"])
    np.testing.assert_array_equal(weights_of(fitted), weights_of(expected))
    memory = scan(pyarrow.dataset.dataset(table.drop_columns(["k"])), target="y")
    np.testing.assert_array_equal(
        weights_of(model().fit(memory)), weights_of(model().fit(np.ascontiguousarray(frame[NAMES]), frame["y"]))
    )


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([(np.ones((3, 2)), np.ones(3)), (np.ones((3, 1)), np.ones(3))], "block 1 has 1 columns, but the first block"),
        ([(np.ones((3, 2)), np.ones(4))], r"block 0: X has 3 rows, but y has the shape \(4,\)"),
        ([(np.ones((3, 2)), np.ones(3), np.ones(2))], "block 0: X has 3 rows, but sample_weight"),
        ([(np.ones((3, 2)), np.ones(3), np.ones((3, 1)))], "block 0: sample_weight has the shape"),
        ([(np.ones((3, 2)), np.ones(3), np.full(3, "x"))], "block 0: the weights must be numbers"),
        ([pd.DataFrame([[1.0, 1.0, 1.0]], columns=["a", "a", "y"])], "block 0: it has two columns named 'a'"),
        ([(np.ones((3, 2)), np.ones(3)), (np.ones((3, 2)), np.ones((3, 1)))], "block 1: y has the shape"),
        ([(np.ones((3, 2)), np.array(["a", "b", "c"]))], "block 0: the targets must be numbers"),
        ([(np.ones(3), np.ones(3))], "block 0: Expected 2D array, got 1D array"),
        ([(np.array([["a"]]), np.ones(1))], "block 0: column 0 holds texts, but inputs must be numbers"),
        ([(np.ones((3, 2)),)], "block 0: it has 1 parts"),
        ([np.ones((3, 2))], "block 0: it is a ndarray: give"),
        ([pd.DataFrame({"a": [1.0]})], "block 0: it has no column 'y'; it has 'a'"),
        ([pd.DataFrame({"y": [1.0]})], "block 0: Found array with 0 feature\\(s\\)"),
        (
            [pd.DataFrame({"a": [1.0], "y": [1.0]}), pd.DataFrame({"b": [1.0], "y": [1.0]})],
            "block 1 has the columns 'b', but the first block 'a'",
        ),
        ([(np.ones((3, 2)), np.ones(3), np.zeros(3))], "weights are zero|no row of positive weight"),
    ],
)
@pytest.mark.filterwarnings("ignore:Column .* in the first block")
@pytest.mark.parametrize("once", [False, True])
def test_bad_blocks_are_named_by_number(blocks, message, once):
    with pytest.raises(ValueError, match=message):
        model().fit(scan(iter(blocks) if once else blocks, target="y"))


@pytest.mark.parametrize("once", [False, True])
def test_a_class_that_was_not_given_is_named(frame, tmp_path, once):
    labels = np.array(["u"] * 200 + ["v"] * 99 + ["w"])
    blocks = as_blocks(frame.assign(y=labels), 100)
    classifier = PinvClassifier(10, random_state=0)
    with pytest.raises(ValueError, match="block 2, row 100: the label 'w' is not among the classes"):
        classifier.fit(scan(iter(blocks) if once else blocks, classes=["u", "v"]))
    with pytest.raises(ValueError, match=r"part2.parquet, row .*: the label 'w' is not among"):
        classifier.fit(as_glob(frame.assign(y=labels), tmp_path, classes=["u", "v"]))
    with pytest.raises(ValueError, match="block 0, row 1: the label 'u' is not among"):
        classifier.fit(scan(blocks, classes=[0, 1]))


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (PinvRegressor("auto"), "n_hidden='auto' needs all rows"),
        (PinvRegressor(gamma="loo"), "gamma='loo' reads the rows once more"),
        (PinvClassifier(class_weight="balanced"), "class_weight='balanced' counts all rows first"),
        (PinvClassifier(calibrate="loo"), "calibrate='loo' reads the rows once more"),
    ],
)
def test_what_reads_the_rows_again_raises_before_a_stream_is_read(estimator, message):
    def blocks():
        raise AssertionError("The stream was read.")
        yield

    with pytest.raises(ValueError, match=message):
        estimator.fit(scan(blocks(), classes=[0, 1]))


def test_a_classifier_must_know_the_classes_of_a_stream():
    with pytest.raises(ValueError, match=r"give ocrep.scan classes=\[…\]"):
        PinvClassifier().fit(scan(iter([])))


def test_a_stream_without_weight_raises(frame):
    blocks = [(X, y, np.zeros(len(y))) for X, y in as_blocks(frame)]
    with pytest.raises(ValueError, match=r"give the model input_scaling=\(low, high\)"):
        model().fit(scan(iter(blocks)))
    with pytest.raises(ValueError, match="All sample weights are zero"):
        model(input_scaling=None).fit(scan(iter(blocks)))


@pytest.mark.parametrize("kind", ["list", "arrays", "csv", "iterator"])
def test_the_first_block_may_have_no_weight(frame, tmp_path, kind):
    weight = np.arange(len(frame)) >= 200
    X, y = np.ascontiguousarray(frame[NAMES]), np.asarray(frame["y"])
    blocks = [(X[i : i + 100], y[i : i + 100], weight[i : i + 100]) for i in (0, 100, 200)]
    sources = {
        "list": lambda: scan(blocks),
        "arrays": lambda: scan(X, y, weight),
        "csv": lambda: as_glob(frame.assign(w=weight.astype(int)), tmp_path, "csv"),
        "iterator": lambda: scan(iter(blocks)),
    }
    found = model(input_scaling=None, gamma=0.1).fit(sources[kind]())
    expected = model(input_scaling=None, gamma=0.1).fit(X[200:], y[200:])
    np.testing.assert_allclose(weights_of(found), weights_of(expected), rtol=1e-9)


@pytest.mark.parametrize("kind", ["parquet", "csv", "feather"])
def test_a_file_that_is_replaced_between_two_passes_is_named(frame, tmp_path, kind):
    paths, passes = write(frame, tmp_path, kind), []

    def replace_second_file(done, _):
        passes.append(done)
        if done == len(frame) and passes.count(done) == 1:
            other = tmp_path / "other"
            other.mkdir()
            write(frame.assign(y=-frame["y"], a=0.5 * frame["a"]), other, kind)[1].replace(paths[1])

    source = scan(paths, target="y", sample_weight=None, progress=replace_second_file)
    with pytest.raises(ValueError, match=rf"part1\.{kind} was changed while it was read: start again"):
        PinvRegressor(10, weight_init="pairs", random_state=0).fit(source)


def test_a_stream_is_read_once(frame):
    source = scan(iter(as_blocks(frame)))
    model().fit(source)
    with pytest.raises(ValueError, match="has been read already"):
        model().fit(source)


def test_a_function_that_does_not_start_anew_is_found_out(frame):
    used = iter(as_blocks(frame))
    with pytest.raises(ValueError, match=r"gave .* rows when it was first read, and now"):
        model().fit(scan(lambda: used))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: scan(3), TypeError, "cannot read a int"),
        (lambda: scan(np.ones((3, 2)), columns=["a"]), ValueError, "this is an array"),
        (lambda: scan([], columns="a"), ValueError, "must be a list of names"),
        (lambda: scan([], columns=[]), ValueError, "must be a list of names"),
        (lambda: scan([], checkpoint_every=-1), ValueError, "number of seconds"),
        (lambda: model().fit(scan([]), np.ones(3)), ValueError, "give fit only the scan"),
        (lambda: PinvClassifier(class_weight="even").fit(scan([])), ValueError, "must be 'balanced', a dict"),
        (lambda: model().predict_blocks([]), Exception, "not fitted"),
        (lambda: list(model().fit([[1.0], [2.0]], [1, 2]).predict_blocks(3)), TypeError, "cannot read a int"),
        (lambda: list(model().fit([[1.0], [2.0]], [1, 2]).predict_blocks("rows")), TypeError, "cannot read a str"),
        (lambda: model().fit(scan(np.ones(3), np.ones(3))), ValueError, "Expected 2D array.*rows × columns"),
        (lambda: model().fit(scan(np.ones((3, 0)), np.ones(3))), ValueError, "0 feature"),
        (lambda: model().fit(scan(np.ones((3, 1)), np.ones(2))), ValueError, "X has 3 rows, but y"),
        (lambda: model().fit(scan(np.ones((3, 1)))), ValueError, "requires y to be passed.*name its column as target="),
        (
            lambda: model().fit(scan(np.full((3, 1), "a"), np.ones(3))),
            ValueError,
            "column 0 holds texts, but inputs must be numbers",
        ),
    ],
)
def test_calls_that_cannot_work_raise(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"target": "y", "columns": ["a", "y"]}, "'y' is named twice among target, sample_weight, groups"),
        ({"target": "y", "sample_weight": "y"}, "'y' is named twice"),
        ({"target": "y", "groups": "y"}, "'y' is named twice"),
        ({"target": "y", "groups": [1, 2]}, "groups is a list, but here it names a column"),
        ({"target": ["y", "y"]}, "'y' is named twice"),
        ({"target": "y", "columns": ["a", "a"]}, "'a' is named twice"),
        ({"target": 3}, "target is a int, but here it names a column"),
        ({"target": "y", "sample_weight": np.ones(300)}, "sample_weight is a ndarray, but here it names a column"),
        ({"progress": True}, "progress=True must be a function"),
    ],
)
def test_a_column_has_one_role(frame, tmp_path, roles, message):
    for source in (tmp_path / "rows.parquet", [frame]):
        with pytest.raises((ValueError, TypeError), match=message):
            scan(source, **roles)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([], "must be a list of all labels"),
        (2, "must be a list of all labels"),
        (["u", None], "none of them missing"),
        ([0.0, np.nan], "none of them missing"),
        (["u", 1], "mixes texts with numbers"),
    ],
)
def test_classes_that_are_not_labels_raise(classes, message):
    with pytest.raises(ValueError, match=message):
        scan([], classes=classes)


@pytest.mark.parametrize("classes", [[True, False], [1, 0], None])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_booleans_are_labels(frame, tmp_path, kind, classes):
    labels = frame["y"] > 0
    fitted = TikhonovClassifier().fit(as_glob(frame.assign(y=labels), tmp_path, kind, classes=classes))
    np.testing.assert_array_equal(fitted.predict(frame[NAMES]).astype(bool), fitted.decision_function(frame[NAMES]) > 0)
    expected = TikhonovClassifier().fit(np.ascontiguousarray(frame[NAMES]), labels)
    np.testing.assert_array_equal(weights_of(fitted), weights_of(expected))


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather"])
def test_a_missing_label_is_named_with_file_and_row(frame, tmp_path, kind):
    labels = np.array(["u", "v"] * 150, dtype=object)
    labels[int(300 / 3**1.5) + 10] = None
    with pytest.raises(ValueError, match=f"part1.{kind}, row 11: the label is missing"):
        TikhonovClassifier().fit(as_glob(frame.assign(y=labels), tmp_path, kind))


@pytest.mark.parametrize(
    "frames_of",
    [
        lambda table: table,
        lambda table: table.assign(y=table["y"].astype("string")),
        lambda table: table.assign(y=table["y"].where(table["y"].notna(), np.nan)),
        polars.from_pandas,
        lambda table: pyarrow.Table.from_pandas(table, preserve_index=False),
    ],
    ids=["None", "pandas.NA", "NaN", "polars", "arrow"],
)
def test_a_missing_label_is_named_with_block_and_row(frame, frames_of):
    labels = np.array(["u", "v"] * 150, dtype=object)
    labels[7] = None
    blocks = [frame.assign(y="u"), frames_of(frame.assign(y=labels))]
    with pytest.raises(ValueError, match="block 1, row 8: the label is missing"):
        TikhonovClassifier().fit(scan(blocks, target="y"))


def test_a_plan_without_rows_raises(frame):
    lazy, dask = polars.from_pandas(frame).lazy(), dask_array.ones((300, 5))
    fitted = model().fit(frame[NAMES], frame["y"])
    for call in (scan, lambda source: list(fitted.predict_blocks(source))):
        with pytest.raises(TypeError, match="cannot read a LazyFrame, which is a plan"):
            call(lazy)
        with pytest.raises(TypeError, match="cannot read Dask collections"):
            call(dask)
    with pytest.raises(TypeError, match="must return blocks, and not None"):
        model().fit(scan(lambda: None))
    for source in ({"a": [1.0]}, b"rows.parquet"):
        with pytest.raises(TypeError, match=r"ocrep.scan cannot read a (dict|bytes)"):
            scan(source)


def test_sparse_matrices_of_every_format_are_rows(frame):
    X, y = frame[NAMES].to_numpy(), frame["y"]
    expected = model().fit(sparse.csr_matrix(X), y)
    for form in (sparse.coo_matrix, sparse.csc_array):
        np.testing.assert_array_equal(weights_of(model().fit(scan(form(X), y))), weights_of(expected))
        (predicted,) = expected.predict_blocks(form(X))
        np.testing.assert_allclose(predicted, expected.predict(X), rtol=1e-9, atol=1e-12)


def test_training_on_a_file_without_a_named_target_raises(frame, tmp_path):
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=r"requires y to be passed.*name its column as target="):
        model().fit(scan(tmp_path))
    frame[["y"]].to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=r"rows.parquet: Found array with 0 feature\(s\) \(shape=\(300, 0\)\)"):
        model().fit(scan(tmp_path, target="y"))
    with pytest.raises(ValueError, match=r"rows.parquet has no column 'a'"):
        list(model().fit(frame[NAMES], frame["y"]).predict_blocks(scan(tmp_path)))


def test_targets_that_cannot_be_learned_raise(frame, tmp_path):
    path = tmp_path / "rows.parquet"
    frame.assign(y=pd.Timestamp("2020-01-01")).to_parquet(path)
    with pytest.raises(ValueError, match="the target 'y' holds dates or times, not numbers or texts"):
        model().fit(scan(path, target="y"))


@some_advice
def test_given_classes_say_whether_a_text_file_holds_numbers_or_texts(frame, tmp_path):
    frame.assign(y=np.arange(300) % 2).to_csv(tmp_path / "rows.csv", index=False)
    for classes in (["0", "1"], [0, 1]):
        fitted = TikhonovClassifier().fit(scan(tmp_path, target="y", classes=classes))
        assert fitted.classes_.tolist() == classes


@pytest.mark.parametrize("classes", [None, [2**53, 2**53 + 1]])
def test_large_whole_labels_of_text_files_stay_apart(frame, tmp_path, classes):
    labels = 2**53 + (frame["a"] > 0).astype(int)
    frame.assign(y=labels).to_csv(tmp_path / "rows.csv", index=False)
    found = TikhonovClassifier().fit(scan(tmp_path, target="y", classes=classes))
    np.testing.assert_array_equal(found.classes_, [2**53, 2**53 + 1])
    np.testing.assert_array_equal(found.coef_, TikhonovClassifier().fit(frame[NAMES], labels).coef_)


@pytest.mark.parametrize(("late", "kind"), [("7.0", "i"), (" 1e3", "i"), ("2.5", "f"), ("1e300", "f")])
def test_whole_targets_of_a_text_file_may_be_followed_by_others(tmp_path, late, kind):
    path, n = tmp_path / "rows.csv", BLOCK_BYTES // 3
    path.write_text("a,y\n" + "".join(f"{i % 10},{i % 7}\n" for i in range(n)) + f"1,{late}\n")
    *_, last = scan(path, target="y").source.blocks()
    assert last.y[-1] == float(late)
    assert last.y.dtype.kind == kind


def test_a_late_text_among_whole_targets_is_named_with_its_row(tmp_path):
    path, n = tmp_path / "rows.csv", BLOCK_BYTES // 3
    path.write_text("a,y\n" + "".join(f"{i % 10},{i % 7}\n" for i in range(n)) + "1,oops\n")
    with pytest.raises(ValueError, match=rf"rows.csv, row {n + 1}: column 'y' must hold numbers, but it holds 'oops'"):
        TikhonovClassifier().fit(scan(path, target="y"))


def test_part_of_a_file_is_a_fragment_too(frame, tmp_path):
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    whole = pyarrow.dataset.dataset(tmp_path / "rows.parquet")
    (fragment,) = whole.get_fragments()
    part = pyarrow.dataset.FileSystemDataset(
        [fragment.subset(row_group_ids=[0, 2])], schema=whole.schema, format=whole.format
    )
    rows = np.r_[0:100, 200:300]
    expected = model().fit(np.ascontiguousarray(frame.loc[rows, NAMES]), frame.loc[rows, "y"])
    seen = []
    source = scan(part, target="y", progress=lambda *rows: seen.append(rows))
    np.testing.assert_array_equal(weights_of(model().fit(source)), weights_of(expected))
    assert seen[-1] == (200, 200)


@pytest.mark.parametrize("rows", [1, 7, 100, 1000])
@pytest.mark.parametrize("entries", [30, 300, 10_000])
def test_blocks_of_any_size_are_read_as_blocks_of_one_size(small_blocks, rows, entries):
    small_blocks(entries)
    X, y, w = np.random.default_rng(0).standard_normal((200, 2)), np.arange(200.0), np.arange(200.0)
    seen = []
    blocks = [(X[a : a + rows], y[a : a + rows], w[a : a + rows]) for a in range(0, 200, rows)]
    found = TikhonovRegressor(1.0, solver="qr").fit(scan(blocks, progress=lambda done, total: seen.append(done)))
    assert seen[-1] == 200
    here = TikhonovRegressor(1.0, solver="qr").fit(X, y, w)
    np.testing.assert_allclose(weights_of(found), weights_of(here), rtol=1e-12)
    assert found.factor_.counts.weight_sum == w.sum()


def test_rows_without_weights_among_others_count_one():
    blocks = [(np.ones((2, 1)), np.ones(2), None), (np.ones((2, 1)), np.ones(2), np.full(2, 3.0))]
    assert TikhonovRegressor(1.0).fit(scan(blocks)).factor_.counts.weight_sum == 8.0


def test_streams_work_where_nothing_that_reads_files_is_installed():
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['pyarrow', 'pandas', 'h5py', 'zarr', 'polars', 'dask']))\n"
        "import numpy\n"
        "from ocrep import PinvRegressor, scan\n"
        "X = numpy.arange(8.0)[:, None]\n"
        "PinvRegressor(2, random_state=0).fit(scan([(X, X[:, 0])]))\n"
        "try:\n"
        "    scan('rows.parquet')\n"
        "except ImportError as error:\n"
        "    print(error)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == 'ocrep.scan on files needs pandas and pyarrow: pip install "ocrep[files]".'
