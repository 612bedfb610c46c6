import gzip
import hashlib
import struct
import subprocess
import sys
from dataclasses import FrozenInstanceError
from importlib.resources import files

import numpy as np
import pytest

from ocrep import datasets
from ocrep.datasets import loader

BUNDLED = [record.name for record in datasets.info() if record.bundled]
TARGET_MEAN = {"abalone": 9.9337, "machine_cpu": 105.622, "housing": 22.5328}
CLASS_COUNTS = {
    "iris": {"Iris-setosa": 50, "Iris-versicolor": 50, "Iris-virginica": 50},
    "diabetes": {"tested_negative": 500, "tested_positive": 268},
    "wine": {"1": 59, "2": 71, "3": 48},
    "segment": dict.fromkeys(["brickface", "cement", "foliage", "grass", "path", "sky", "window"], 330),
}

# The layout of the public copies: the ARFF is separated by spaces and ends its lines with CR LF.
CSV_TEXT = "RollRate,PitchRate,currPitch,currRoll,diffRollRate,target\n0.0020,0.5,-0.0,1,2,-3e-4\n4,5,6,7,8,9\n"
ARFF_TEXT = (
    "% 7129 cases\r\n\r\n@relation delta_ailerons\r\n@attribute RollRate numeric\r\n@attribute Sa numeric\r\n"
    "\r\n@DATA\r\n0.002 0.50 0.000 1 2 -0.0003\r\n% a comment\r\n\r\n4 5 6 7 8 9\r\n"
)
VALUES = np.array([[0.002, 0.5, 0.0, 1.0, 2.0, -3e-4], [4.0, 5.0, 6.0, 7.0, 8.0, 9.0]])


@pytest.fixture
def known_checksum(monkeypatch):
    monkeypatch.setattr(loader, "SHA256", loader.checksum(VALUES))


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """The download's cache folder, with no way to the network."""
    pooch = pytest.importorskip("pooch")
    requests = pytest.importorskip("requests")

    def offline(*args, **kwargs):
        raise requests.exceptions.ConnectionError("no route to host")

    monkeypatch.delenv("OCREP_DATA", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / project)
    monkeypatch.setattr(requests, "get", offline)
    return tmp_path / "ocrep"


def test_the_eight_sets_of_the_paper():
    assert sorted(datasets.names()) == sorted([*TARGET_MEAN, *CLASS_COUNTS, "delta_ailerons"])
    assert [record.name for record in datasets.info() if not record.bundled] == ["delta_ailerons"]


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_set_is_what_its_record_says(name):
    record = next(r for r in datasets.info() if r.name == name)
    bunch = datasets.load(name)
    assert bunch.data.shape == (record.n_rows, record.n_features) == (len(bunch.target), len(bunch.feature_names))
    assert bunch.data.dtype == np.float64
    assert np.isfinite(bunch.data).all()
    assert (bunch.name, bunch.task, bunch.frame) == (name, record.task, None)
    assert bunch.target.dtype == (np.float64 if record.task == "regression" else np.int64)
    assert len(bunch.get("target_names", [])) == (record.n_classes or 0)
    for text in (record.origin, record.citation, record.licence, str(record.n_rows)):
        assert text
        assert text in bunch.DESCR


@pytest.mark.parametrize("name", TARGET_MEAN)
def test_target_means(name):
    assert datasets.load(name).target.mean() == pytest.approx(TARGET_MEAN[name], rel=1e-5)


@pytest.mark.parametrize("name", CLASS_COUNTS)
def test_class_counts(name):
    bunch = datasets.load(name)
    counts = np.bincount(bunch.target)
    assert dict(zip(bunch.target_names, counts.tolist(), strict=True)) == CLASS_COUNTS[name]


def test_first_rows_keep_their_values_and_their_labels():
    abalone = datasets.load("abalone")
    assert abalone.data[0].tolist() == [0, 0.455, 0.365, 0.095, 0.514, 0.2245, 0.101, 0.15]
    assert abalone.target[:3].tolist() == [15, 7, 9]
    segment = datasets.load("segment")
    assert segment.data[0, :5].tolist() == [218, 178, 9, 0.11111111, 0]
    assert segment.target_names[segment.target[:2]].tolist() == ["path", "foliage"]


def test_abalone_sex_is_coded_in_the_order_of_uci():
    bunch = datasets.load("abalone")
    assert bunch.feature_names[0] == "sex"
    assert np.bincount(bunch.data[:, 0].astype(int)).tolist() == [1528, 1307, 1342]  # UCI's counts of M, F, I
    assert "M = 0, F = 1, I (infant) = 2" in bunch.DESCR


def test_iris_is_the_copy_of_uci():
    # Fisher's paper, and scikit-learn, have 4.9, 3.1, 1.5, 0.2 and 4.9, 3.6, 1.4, 0.1 here.
    assert datasets.load("iris").data[[34, 37]].tolist() == [[4.9, 3.1, 1.5, 0.1]] * 2


def test_segment_has_the_constant_input_and_the_duplicates_it_speaks_of():
    bunch = datasets.load("segment")
    assert set(bunch.data[:, bunch.feature_names.index("region_pixel_count")]) == {9.0}
    assert len(bunch.data) - len(np.unique(np.c_[bunch.data, bunch.target], axis=0)) == 224
    assert "region_pixel_count" in bunch.DESCR
    assert "224" in bunch.DESCR


def test_every_call_returns_fresh_arrays():
    first = datasets.load("iris")
    first.data[:] = -1
    first.target[:] = -1
    first.feature_names.clear()
    second = datasets.load("iris")
    assert second.data.min() > 0
    assert second.target.min() == 0
    assert len(second.feature_names) == 4


def test_return_x_y():
    bunch = datasets.load("wine")
    X, y = datasets.load("wine", return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)


def test_as_frame():
    pd = pytest.importorskip("pandas")
    plain = datasets.load("housing")
    bunch = datasets.load("housing", as_frame=True)
    assert isinstance(bunch.data, pd.DataFrame)
    assert isinstance(bunch.target, pd.Series)
    assert list(bunch.frame.columns) == [*plain.feature_names, "target"]
    np.testing.assert_array_equal(bunch.frame.to_numpy(), np.c_[plain.data, plain.target])
    X, y = datasets.load("housing", as_frame=True, return_X_y=True)
    pd.testing.assert_frame_equal(X, bunch.data)
    pd.testing.assert_series_equal(y, bunch.target)


def test_as_frame_without_pandas_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"ocrep\[data\]"):
        datasets.load("iris", as_frame=True)


@pytest.mark.parametrize(("name", "near"), [("Abalon", "abalone"), ("delta-ailerons", "delta_ailerons")])
def test_unknown_name_lists_the_known_and_the_nearest(name, near):
    with pytest.raises(ValueError, match=f"Did you mean '{near}'") as error:
        datasets.load(name)
    assert all(known in str(error.value) for known in datasets.names())


def test_unknown_name_with_nothing_near():
    with pytest.raises(ValueError, match="Known: 'abalone'"):
        datasets.load("zzz")


def test_info_is_a_frozen_record_each_and_prints_as_a_table():
    lines = str(datasets.info()).splitlines()
    assert len(lines) == 1 + len(datasets.names())
    assert lines[0].split() == ["name", "task", "rows", "inputs", "classes", "bundled", "licence"]
    assert lines[1].split()[:4] == ["abalone", "regression", "4177", "8"]
    with pytest.raises(FrozenInstanceError):
        datasets.info()[0].n_rows = 1


def test_bundled_files_are_small_and_carry_no_time_stamp():
    packed = {path.name: path.read_bytes() for path in files("ocrep.datasets").joinpath("data").iterdir()}
    assert sorted(packed) == sorted(f"{name}.csv.gz" for name in [*BUNDLED, "penguins"])
    assert sum(map(len, packed.values())) < 400_000
    for name, data in packed.items():
        assert data[3:8] == bytes(5)  # no flags (no file name) and time 0
        if name != "penguins.csv.gz":  # a raw table, of which any column can be the target
            assert gzip.decompress(data).splitlines()[0].endswith(b",target")


def test_names_and_info_need_no_numpy():
    use = "from ocrep import datasets; datasets.names(); str(datasets.info())"
    code = f"import sys; {use}; print('numpy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
    assert "load" in dir(datasets)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        datasets.nothing  # noqa: B018


def test_csv_and_arff_give_the_same_numbers():
    csv, arff = loader.parse_csv(CSV_TEXT), loader.parse_arff(ARFF_TEXT)
    np.testing.assert_array_equal(csv, VALUES)
    assert csv.tobytes() == arff.tobytes() == VALUES.tobytes()  # to the bit, the sign of zero too


def test_checksum_sees_values_and_row_order_but_not_memory_layout():
    known = hashlib.sha256(struct.pack("<12d", *VALUES.ravel())).hexdigest()
    assert loader.checksum(VALUES) == known
    assert loader.checksum(np.asfortranarray(VALUES)) == known
    assert loader.checksum(VALUES.astype(">f8")) == known
    assert loader.checksum(VALUES[::-1]) != known
    assert loader.checksum(np.nextafter(VALUES, 1)) != known


@pytest.mark.parametrize(
    ("file", "text"),
    [("delta_ailerons.csv", CSV_TEXT), ("delta.ailerons.arff", ARFF_TEXT)],
    ids=["csv", "arff"],
)
@pytest.mark.usefixtures("known_checksum")
def test_delta_ailerons_from_the_folder_of_the_user(monkeypatch, tmp_path, file, text):
    (tmp_path / file).write_bytes(text.encode())
    monkeypatch.setenv("OCREP_DATA", str(tmp_path))
    bunch = datasets.load("delta_ailerons")
    np.testing.assert_array_equal(bunch.data, VALUES[:, :5])
    np.testing.assert_array_equal(bunch.target, VALUES[:, 5])
    assert bunch.feature_names == ["RollRate", "PitchRate", "currPitch", "currRoll", "diffRollRate"]
    assert bunch.task == "regression"
    assert "OCREP_DATA" in bunch.DESCR


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("delta_ailerons.csv", CSV_TEXT, r"checksum .*shape read: \(2, 6\)"),
        ("delta.ailerons.arff", ARFF_TEXT, "checksum"),
        ("delta_ailerons.csv", "a,b\n1,two\n", "could not convert"),
        ("delta.ailerons.arff", "<html>not found</html>", "no @data line"),
        ("delta_ailerons.csv", "", "checksum"),
    ],
    ids=["csv numbers", "arff numbers", "csv words", "html page", "empty"],
)
def test_a_wrong_file_is_refused_and_left_in_place(monkeypatch, tmp_path, file, text, why):
    (tmp_path / file).write_text(text)
    monkeypatch.setenv("OCREP_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=rf"{file} is not the Delta Ailerons data: .*{why}.*Replace it"):
        datasets.load("delta_ailerons")
    assert (tmp_path / file).exists()


@pytest.mark.usefixtures("known_checksum")
def test_a_folder_without_the_file_is_an_error_even_if_a_download_is_at_hand(monkeypatch, tmp_path, cache):
    cache.mkdir()
    (cache / "delta.ailerons.arff").write_text(ARFF_TEXT)
    monkeypatch.setenv("OCREP_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"neither delta_ailerons\.csv nor .* unset OCREP_DATA"):
        datasets.load("delta_ailerons")


@pytest.mark.usefixtures("known_checksum")
def test_a_download_is_kept_and_read_again(cache):
    cache.mkdir()
    (cache / "delta.ailerons.arff").write_text(ARFF_TEXT)
    np.testing.assert_array_equal(datasets.load("delta_ailerons").target, VALUES[:, 5])
    assert (cache / "delta.ailerons.arff").exists()


def test_a_wrong_download_is_refused_and_deleted(cache):
    cache.mkdir()
    (cache / "delta.ailerons.arff").write_text(ARFF_TEXT)
    with pytest.raises(ValueError, match=r"checksum .* deleted"):
        datasets.load("delta_ailerons")
    assert not (cache / "delta.ailerons.arff").exists()


REMEDY = (
    r"Set OCREP_DATA to a folder with delta_ailerons\.csv, or be online on first use, with pooch: "
    r'pip install "ocrep\[data\]"'
)


@pytest.mark.usefixtures("cache")
def test_offline_says_what_to_do():
    with pytest.raises(FileNotFoundError, match=rf"download failed \(no route to host\)\. {REMEDY}"):
        datasets.load("delta_ailerons")


def test_without_pooch_says_what_to_do(monkeypatch):
    monkeypatch.delenv("OCREP_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(FileNotFoundError, match=rf"pooch is not installed\. {REMEDY}"):
        datasets.load("delta_ailerons")


def test_the_table_of_penguins_is_the_raw_one():
    frame = datasets.load_penguins()
    assert frame.shape == (344, 17)
    assert frame["Species"].str.split().str[0].value_counts().to_dict() == {
        "Adelie": 152,
        "Gentoo": 124,
        "Chinstrap": 68,
    }
    assert frame["Body Mass (g)"].sum() == 1437000
    assert "CC0" in frame.attrs["DESCR"]
    assert "Gorman" in frame.attrs["DESCR"]
