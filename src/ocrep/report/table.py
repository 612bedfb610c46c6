"""`Table`: where the rows of a report come from."""

from __future__ import annotations

from dataclasses import dataclass, field

from ocrep._documentation import shown_in_short
from ocrep.analysis.advice import Advice


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """The table that the rows come from, for a report in its reader's own words.

    Parameters
    ----------
    inputs : list of str
        The columns that are inputs.
    left_out : dict of str to str
        The columns that are not, and why.
    n_dropped : int
        Rows without a target, which were dropped.
    command : str
        The command that trains on the table; the options that are advised are added to it.
    examined : str
        A sentence on the network that is examined, and on what the command trains.
    advice : tuple of Advice
        What seems wrong with the columns.

    Examples
    --------
    >>> from ocrep import TikhonovRegressor
    >>> from ocrep.datasets import load
    >>> from ocrep.report import Table, diagnose
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> table = Table([f"column {k}" for k in range(6)], {"name": "ignored"}, command="ocrep fit cpu.csv --target erp")
    >>> diagnose(TikhonovRegressor(), X, y, rules=["kfold"], table=table).advised
    'ocrep fit cpu.csv --target erp --gamma kfold'
    """

    inputs: list[str]
    left_out: dict[str, str] = field(default_factory=dict)
    n_dropped: int = 0
    command: str = ""
    examined: str = ""
    advice: tuple[Advice, ...] = ()

    __repr__ = shown_in_short
