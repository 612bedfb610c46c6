"""Rows of very many columns: the work on names grows as their number, not as its square."""

import numpy as np
import pytest

from ocrep import scan
from ocrep._files.formats import DataError, check_columns

N = 1_000


class Name(str):
    """A name that counts how often it is compared with another one."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


class Frame:
    """As much of a data frame as a scan reads."""

    shape = (2, N)

    def __init__(self, columns):
        self.columns = columns

    def __getitem__(self, name):
        return np.ones(2)


def names():
    """New objects each time, since Python does not compare an object with itself."""
    Name.compared = 0
    return [Name(f"column {i}") for i in range(N)]


@pytest.fixture(autouse=True)
def _few_comparisons():
    yield
    assert Name.compared < 10 * N


def test_a_frame_of_many_columns():
    (block,) = scan([Frame(names())], target="column 7").source.blocks()
    assert block.X.shape == (2, N - 1)


def test_many_columns_that_were_asked_for():
    columns = names()
    (block,) = scan([Frame([*names(), "y"])], target="y", columns=columns[::-1]).source.blocks()
    assert block.columns == tuple(columns[::-1])


def test_many_columns_of_a_file():
    wanted = names()
    check_columns("rows.csv", wanted, names())
    with pytest.raises(DataError, match=r"rows\.csv has no column 'z'"):
        check_columns("rows.csv", [*wanted, "z"], names())
