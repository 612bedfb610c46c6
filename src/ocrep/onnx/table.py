"""The coder of a table in a graph: columns of numbers, booleans, categories, durations, times, and dates as numbers.

A fitted `TableRegressor` or `TableClassifier` is a coder and an estimator behind it, and so is its graph: skl2onnx asks
here for the nodes of the coder, which take one input per column, (n, 1), and give the coded rows in double.

    number, boolean      NaN is a gap
    duration, time       seconds; hours since midnight
    date                 days since 1970-01-01 UTC, the time of day as a fraction; always double, since float32 has
                         steps of three minutes in our days
    few texts, ranks     text; what stands for a gap in a file, above all the empty text, does so here

The day of a date follows from whole days alone. Years that begin in March have their leap day at the end, and 400 of
them have 146,097 days. With z days since 1 March 0000 (719,468 more than since 1970) and e = ⌊z/146097⌋, the remainder
r = z − 146097·e lies in year

    a = ⌊(r − ⌊r/1460⌋ + ⌊r/36524⌋ − ⌊r/146096⌋)/365⌋

of these 400: the leap days up to r are taken away first, one in 1,460 days but for three ends of centuries, and the
very last day, 146,096, is such a leap day too. It is day d = r − (365·a + ⌊a/4⌋ − ⌊a/100⌋) of that year. From March on,
months have 31, 30, 31, 30, 31 days over and over, 153 in five, so that month m = ⌊(5d + 2)/153⌋ begins on day
⌊(153m + 2)/5⌋. January and February, m = 10 and 11, belong to the next year.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ocrep.onnx.network import Graph, OnnxExportError

_MICROSECONDS = {"duration": 1e6, "time": 3600e6, "date": 86_400e6}
_UNITS = {
    "number": "number",
    "boolean": "0 or 1",
    "duration": "seconds",
    "time": "hours since midnight",
    "date": "days since 1970-01-01 UTC, the time of day as a fraction",
    "rank": "text",
    "text": "text",
}


def unfolded(model: Any) -> Any:
    """A fitted model of a table as the pipeline that it is; other models as they are."""
    # By its attributes, because tables are trained above this room.
    if hasattr(model, "coder_") and hasattr(model, "model_"):
        if getattr(model, "target_transform", None) is not None:
            raise OnnxExportError(
                "A graph of a table gives what the network learned, here the logarithm of the target: fit it with "
                "target_transform=None to export it."
            )
        return Pipeline([("coder", model.coder_), ("model", model.model_)])
    return model


def is_coder(step: Any) -> bool:
    """Whether a fitted step codes a table."""
    return type(step).__name__ == "TableCoder"


def inputs_of(coder: Any) -> list[tuple[str, Any]]:
    """The names and types of the columns; raises if the coder reads letters of texts."""
    from skl2onnx.common.data_types import DoubleTensorType, StringTensorType

    known = set(_NODES)
    lettered = [coded.name for coded in coder.columns_ if {type(part).__name__ for part in coded.parts} - known]
    if lettered:
        raise OnnxExportError(
            f"A graph cannot read text of many values, which the model does in {', '.join(map(repr, lettered))}: "
            f"fit it with ignore={lettered!r} to export it."
        )
    if any(not coded.name for coded in coder.columns_):
        raise OnnxExportError("An input of a graph has a name, and a column of the table has none: give it one.")
    return [
        (coded.name, (StringTensorType if _holds_text(coded) else DoubleTensorType)([None, 1]))
        for coded in coder.columns_
    ]


def units_of(coder: Any) -> dict[str, str]:
    """What each input holds, for whoever reads the graph."""
    return {coded.name: _UNITS[_kind(coded)] for coded in coder.columns_}


def dates_of(coder: Any) -> set[str]:
    """The columns of dates."""
    return {coded.name for coded in coder.columns_ if _kind(coded) == "date"}


def _kind(coded: Any) -> str:
    """The kind of a column; in what order its dates are written does not matter here."""
    return "date" if coded.kind.endswith("date") else coded.kind


def _holds_text(coded: Any) -> bool:
    return _UNITS[_kind(coded)] == "text"


# ------------------------------------------------------------------------------
# Nodes


def conversion_options(coder: Any) -> dict[str, Any]:
    """Options of `convert_sklearn` for a coder."""
    kind = type(coder)
    return {
        "custom_parsers": {kind: _parse},
        "custom_conversion_functions": {kind: _convert},
        "custom_shape_calculators": {kind: _set_shape},
    }


def _parse(scope: Any, coder: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    from skl2onnx.common.data_types import DoubleTensorType

    operator = scope.declare_local_operator("OcrepTableCoder", coder)
    operator.inputs = inputs
    operator.outputs.append(scope.declare_local_variable("coded", DoubleTensorType()))
    return operator.outputs


def _set_shape(operator: Any) -> None:
    operator.outputs[0].type.shape = [operator.inputs[0].get_first_dimension(), len(operator.raw_operator.origin_)]


def _convert(scope: Any, operator: Any, container: Any) -> None:
    graph = Graph(scope, container)
    found: list[str] = []
    places: list[int] = []
    plain: list[tuple[int, Any, str]] = []
    first = 0
    for coded, variable in zip(operator.raw_operator.columns_, operator.inputs, strict=True):
        (part,) = coded.parts
        n_outputs = len(part.names)  # none, if a column was constant in the rows that taught the coder
        if type(part).__name__ == "Numbers" and not part.period:
            values = variable.full_name if coded.ranks is None else _ranks(graph, coded.ranks, variable.full_name)
            plain.append((first, part, values))
        elif n_outputs:
            found += _NODES[type(part).__name__](graph, part, variable.full_name)
            places += range(first, first + n_outputs)
        first += n_outputs
    if plain:  # all columns at once, since skl2onnx takes half a minute for the nodes of 2,000 columns
        firsts, parts, values = zip(*plain, strict=True)
        filled, missing = _filled(graph, [part.median for part in parts], graph.joined(values))
        gaps = np.flatnonzero([part.gaps for part in parts])
        found += (
            [filled, graph.double(graph("Gather", missing, graph.constant(gaps), axis=1))] if len(gaps) else [filled]
        )
        places += [*firsts, *(firsts[place] + 1 for place in gaps)]
    coded_rows = graph("Gather", graph.joined(found), graph.constant(np.argsort(places)), axis=1)
    graph.give(coded_rows, operator.outputs[0])


def _times(graph: Graph, part: Any, X: str) -> list[str]:
    hours, missing = _filled(graph, [part.median], X)
    circle = [_on_circle(graph, hours, part.period, side) for side in ("sin", "cos")]
    return [hours, *circle, *([graph.double(missing)] if part.gaps else [])]


def _dates(graph: Graph, part: Any, X: str) -> list[str]:
    days, missing = _filled(graph, [part.median], X)
    gaps = [graph.double(missing)] if part.gaps else []
    if not part.parts:
        return gaps
    floor = graph("Floor", days)
    whole = graph("Cast", floor, to=graph.types.INT64)
    year, months, day = _civil(graph, whole)
    weekday = _with(graph, "Mod", _with(graph, "Add", whole, 3), 7)  # 1970 began on a Thursday
    # As in the coder: moments are whole microseconds, and days are rounded to about as much.
    hours = _with(graph, "Mul", graph("Sub", days, floor), 24.0)
    hour = _with(graph, "Div", graph("Round", _with(graph, "Mul", hours, 1e6)), 1e6)
    plain = {"days": days, "hour": hour, "year": year, "month": _with(graph, "Add", months, 1), "day": day}
    plain["weekday"] = weekday
    circles = {"month": (graph.double(months), 12.0), "weekday": (graph.double(weekday), 7.0), "hour": (hour, 24.0)}
    found = []
    for name in part.parts:
        of, _, side = name.partition("_")
        found.append(_on_circle(graph, *circles[of], side) if side else graph.double(plain[of]))
    return [*found, *gaps]


def _civil(graph: Graph, days: str) -> tuple[str, str, str]:
    """Year, months since January, and day of the month, of whole days since 1970; see the module's docstring."""
    z = _with(graph, "Add", days, 719_468)
    r = _with(graph, "Mod", z, 146_097)  # never negative, while Div rounds towards 0
    e = _with(graph, "Div", graph("Sub", z, r), 146_097)
    leaps = graph("Sub", _with(graph, "Div", r, 1_460), _with(graph, "Div", r, 36_524))
    leaps = graph("Add", leaps, _with(graph, "Div", r, 146_096))
    a = _with(graph, "Div", graph("Sub", r, leaps), 365)
    leaps = graph("Sub", _with(graph, "Div", a, 4), _with(graph, "Div", a, 100))
    d = graph("Sub", r, graph("Add", _with(graph, "Mul", a, 365), leaps))
    m = _with(graph, "Div", _with(graph, "Add", _with(graph, "Mul", d, 5), 2), 153)
    first = _with(graph, "Div", _with(graph, "Add", _with(graph, "Mul", m, 153), 2), 5)
    day = _with(graph, "Add", graph("Sub", d, first), 1)
    since_january = _with(graph, "Add", m, 2)
    year = graph("Add", graph("Add", a, _with(graph, "Mul", e, 400)), _with(graph, "Div", since_january, 12))
    return year, _with(graph, "Mod", since_january, 12), day


def _one_hot(graph: Graph, part: Any, X: str) -> list[str]:
    """The rows of a table in which the part itself has coded each text, an unknown one and a gap."""
    texts = [*part.texts, _unknown(part.texts)]
    table = part(SimpleNamespace(texts=texts, codes=np.arange(len(texts) + 1)))
    place_of = {text: place for place, text in enumerate(part.texts)}
    place = _places(graph, X, place_of, unknown=len(texts) - 1, gap=len(texts))
    return [graph("Gather", graph.constant(table), graph.squeezed(place), axis=0)]


def _ranks(graph: Graph, ranks: list[str], X: str) -> str:
    """The places of ordered categories; NaN for a gap, and for a text that is none of them."""
    rank = _places(graph, X, {text: place for place, text in enumerate(ranks)}, unknown=-1, gap=-1)
    known = _with(graph, "GreaterOrEqual", rank, 0)
    return graph("Where", known, graph.double(rank), graph.constant(np.full(1, np.nan)))


_NODES = {"Numbers": _times, "Dates": _dates, "OneHot": _one_hot}


def _places(graph: Graph, X: str, place_of: dict[str, int], *, unknown: int, gap: int) -> str:
    from ocrep._files.convert import MISSING_WORDS  # needs pyarrow, which tables need and networks do not

    place_of = {**place_of, **dict.fromkeys(MISSING_WORDS, gap)}
    known: dict[str, Any] = {"keys_strings": list(place_of), "values_int64s": list(place_of.values())}
    return graph("LabelEncoder", X, op_domain="ai.onnx.ml", op_version=2, default_int64=unknown, **known)


def _unknown(texts: list[str]) -> str:
    """A text that is none of these."""
    return "?" * (1 + max(map(len, texts), default=0))


def _filled(graph: Graph, medians: list[float], X: str) -> tuple[str, str]:
    """Numbers with the median of each column in gaps; and where the gaps are."""
    missing = graph("IsNaN", X)
    return graph("Where", missing, graph.constant(np.array(medians)), X), missing


def _on_circle(graph: Graph, X: str, period: float, side: str) -> str:
    angle = _with(graph, "Mul", X, 2 * np.pi / period)
    # onnxruntime has a cosine of doubles only in newer versions.
    return graph("Sin", angle if side == "sin" else _with(graph, "Add", angle, np.pi / 2))


def _with(graph: Graph, kind: str, X: str, number: float) -> str:
    """An operation with one number: a double with doubles, a whole number with whole ones."""
    return graph(kind, X, graph.constant(np.array([number])))


# ------------------------------------------------------------------------------
# Rows to compare a graph with its model on


def example_of(coder: Any, spread: Any, n_rows: int, *, single: bool) -> tuple[Any, dict[str, np.ndarray]]:
    """Rows as an Arrow table, and as what the graph takes: all texts, an unknown one, gaps, leap days, numbers.

    `spread` is how far the coded numbers lie from their medians in training.
    """
    import pyarrow

    rng = np.random.default_rng(0)
    n_rows = max([n_rows, *(2 + len(_texts(coded)) for coded in coder.columns_)])
    spreads = np.broadcast_to(spread, len(coder.origin_))
    table, feed = {}, {}
    first = 0
    for coded in coder.columns_:
        kind = _kind(coded)
        if _holds_text(coded):
            known = _texts(coded)
            values = rng.permutation(np.resize(np.array([*known, _unknown(known), ""], dtype=object), n_rows))
            table[coded.name] = pyarrow.array([text or None for text in values], pyarrow.string())
        else:
            (part,) = coded.parts
            values = part.median + rng.uniform(-2.0, 2.0, n_rows) * (spreads[first] if part.names else 1.0)
            if kind == "date":
                values[: n_rows // 2] = np.resize(_leap_days(part.median), n_rows // 2)
            values[rng.permutation(n_rows)[: n_rows // 8]] = np.nan
            values, table[coded.name] = _as_read(values, kind, single)
        number = np.float32 if single and kind != "date" else np.float64
        feed[coded.name] = (values if _holds_text(coded) else values.astype(number)).reshape(-1, 1)
        first += len(coded.parts[0].names)
    return pyarrow.table(table), feed


def _texts(coded: Any) -> list[str]:
    (part,) = coded.parts
    return coded.ranks or getattr(part, "texts", [])


def _leap_days(median: float) -> np.ndarray:
    """The ends of February and of the year, about the median."""
    year = int(np.datetime64(int(np.floor(median)), "D").astype("M8[Y]").astype(np.int64))
    leap = year - year % 4 + 2  # years are counted from 1970, and 1972 is one
    march, january = ((12 * np.array([leap, leap + 1]) + month).astype("M8[M]") for month in (2, 12))
    days = np.concatenate(
        [first.astype("M8[D]").astype(np.int64) + shift for first in (march, january) for shift in (-2, -1, 0)]
    )
    return days + np.linspace(0.0, 0.9, len(days))


def _as_read(values: np.ndarray, kind: str, single: bool) -> tuple[np.ndarray, Any]:
    """Numbers that both a graph and a table hold exactly, and the column of that table."""
    import pyarrow

    missing = np.isnan(values)
    if kind == "boolean":
        values = np.where(missing, np.nan, values > 0.5)
        return values, pyarrow.array(values == 1.0, mask=missing)
    if kind == "number":
        values = values.astype(np.float32 if single else np.float64).astype(np.float64)
        return values, pyarrow.array(values)
    if kind != "date":  # 1/64 is whole microseconds, of seconds and of hours, and has few digits
        values = (np.rint(values * 64) / 64).astype(np.float32).astype(np.float64)
        values = values % 24.0 if kind == "time" else values
    unit = _MICROSECONDS[kind]
    moments = np.rint(np.where(missing, 0.0, values) * unit).astype(np.int64)
    types = {"duration": pyarrow.duration("us"), "time": pyarrow.time64("us"), "date": pyarrow.timestamp("us")}
    return np.where(missing, np.nan, moments / unit), pyarrow.array(moments, mask=missing).cast(types[kind])
