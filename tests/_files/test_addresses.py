"""Files by address: what `file://` names is what the path names, whatever the format."""

import numpy as np
import pandas as pd
import pyarrow.feather
import pytest
from support.problems import smooth_problem

from ocrep import TikhonovClassifier, TikhonovRegressor, scan
from ocrep._rows.files import FileSource

X, Y = smooth_problem(300, 4)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(y=Y, label=np.where(Y > 0, "up", "down"))
INPUTS = list("abcd")


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".feather":
        pyarrow.feather.write_feather(pyarrow.Table.from_pandas(frame), str(path), compression="uncompressed")
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "more").mkdir()
    return tmp_path


def address(path):
    return path.as_uri().replace("%2A", "*")


def fitted(source, model=None, target="y"):
    return (model or TikhonovRegressor()).fit(scan(source, target=target, columns=INPUTS))


def same(one, other):
    assert one.gamma_ == pytest.approx(other.gamma_, rel=1e-9)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-9)


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv", ".tsv", ".csv.gz"])
def test_an_address_of_a_file_is_the_file(folder, suffix):
    path = folder / f"rows{suffix}"
    write(FRAME, path)
    same(fitted(address(path)), fitted(path))
    same(fitted(address(path), TikhonovClassifier(), "label"), fitted(path, TikhonovClassifier(), "label"))


@pytest.mark.parametrize(
    ("pattern", "n_files"),
    [("", 4), ("*.parquet", 3), ("part-*.parquet", 2), ("**/*.parquet", 4), ("*/*.parquet", 2), ("t*.parquet", 1)],
)
def test_folders_and_patterns_name_the_files_that_paths_name(folder, pattern, n_files):
    (folder / "table.parquet").mkdir()  # as Spark writes a table
    (folder / "table.parquet" / "_SUCCESS").touch()
    for name in ("part-1.parquet", "part-0.parquet", "more/part-2.parquet", "table.parquet/part-0.parquet"):
        write(FRAME[:50], folder / name)
    names = {}
    for source in (address(folder / pattern), str(folder / pattern)):
        rows = FileSource.of(source, target="y", sample_weight=None, columns=None)
        names[source] = [fingerprint.split()[0] for fingerprint in rows.fingerprints()]
    by_address, by_path = names.values()
    assert by_address == sorted(set(by_path))  # a folder in a folder may be matched twice by glob
    assert len(by_address) == n_files


def test_a_list_may_mix_addresses_paths_and_formats(folder):
    for number, name in enumerate(["a.parquet", "b.csv", "c.parquet"]):
        write(FRAME[100 * number : 100 * number + 100], folder / name)
    mixed = [address(folder / "a.parquet"), folder / "b.csv", address(folder / "c.parquet")]
    same(fitted(mixed), fitted([folder / "a.parquet", folder / "b.csv", folder / "c.parquet"]))
    same(fitted(address(folder)), fitted(folder))


def test_predictions_of_an_address(folder):
    write(FRAME, folder / "rows.parquet")
    model = fitted(folder / "rows.parquet")
    blocks = model.predict_blocks(scan(address(folder / "rows.parquet")))
    np.testing.assert_allclose(np.concatenate(list(blocks)), model.predict(FRAME[INPUTS]), rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nothing.parquet", r"There are no Parquet, CSV, Feather or Arrow files at file://.*nothing\.parquet"),
        ("nowhere/*.csv", r"There are no Parquet.* files at file://.*nowhere/\*\.csv"),
        ("more", "There are no Parquet"),
        ("empty.csv", r"empty\.csv is empty"),
        ("notes.md", r"notes\.md: files of this kind cannot be read"),
        ("broken.parquet", r"broken\.parquet cannot be opened \("),
    ],
)
def test_addresses_that_name_nothing_say_so(folder, name, told):
    (folder / "empty.csv").touch()
    (folder / "notes.md").write_text("a")
    (folder / "broken.parquet").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match=told):
        scan(address(folder / name), target="y")


def test_file_systems_that_arrow_does_not_know_are_named():
    with pytest.raises(ValueError, match=r"ftp://host/rows\.csv cannot be opened .*Arrow knows file://, s3://, gs://"):
        scan("ftp://host/rows.csv", target="y")
