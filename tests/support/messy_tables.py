"""Tables as files, of any content and in any shape, for fuzzing."""

import codecs
import gzip
import random
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

WORDS = [
    "red",
    "blue",
    "green",
    "a b",
    "ä",
    "yes",
    "no",
    "true",
    "False",
    "'",
    '"',
    "x" * 300,
    "=1+1",
    "\u202e",
    "\x1b[2J",
]
MISSING = ["", "NA", "nan", "null", "-", "?", "n/a", " ", "None", "#N/A"]
ODD_NUMBERS = ["1e308", "-1e308", "1e400", "inf", "-inf", "1e-320", "-0", "0x1f", "1_000", "9007199254740993", "1e-170"]
FOREIGN = [
    "1,5",
    "1.234,5",
    "$26,313.93",
    "12 %",
    "1 234",
    "€5",
    "(12)",
    "5-",
    "١٢",
    "1'000",
    " 7 ",
    "+3",
    "1e",
    ".",
    "1.2.3",
]
DATES = [
    "2020-01-31",
    "31.12.2020",
    "2020-02-30",
    "1/2/2021",
    "2020-01-01T12:00:00Z",
    "9999-12-31",
    "0001-01-01",
    "12:30",
    "2020/01/31",
    "2020.01.31",
    "2020-01-31 1:30 pm",
    "1/31/2020 12:03:00 AM",
    "2020-01-31 13:30 PM",
]
NAMES = [
    "x",
    "x",
    "",
    " ",
    "y ",
    "Y",
    "a,b",
    'q"',
    "n\nl",
    "\x1b[31m",
    "\0",
    "ü",
    "prediction",
    "0",
    "x" * 500,
    "\ufeffx",
    "year",
]


def _time(r):
    return f"{r.randrange(1, 13)}:{r.randrange(60):02} {r.choice(['AM', 'pm'])}"


KINDS = {
    "number": lambda r, i: f"{r.uniform(-5, 5):.4g}",
    "count": lambda r, i: str(r.randrange(5)),
    "id": lambda r, i: str(10**6 + i),
    "long id": lambda r, i: str(2**53 + i % 4),
    "same": lambda r, i: "7",
    "word": lambda r, i: r.choice(WORDS[:3]),
    "any word": lambda r, i: r.choice(WORDS),
    "truth": lambda r, i: r.choice(["True", "False"]),
    "date": lambda r, i: f"20{r.randrange(10, 24)}-0{r.randrange(1, 9)}-1{r.randrange(9)}",
    "ordered date": lambda r, i: f"{r.randrange(1, 29)}{r.choice('/.')}{r.randrange(1, 13)}/20{r.randrange(10, 24)}",
    "year-first date": lambda r, i: f"20{r.randrange(10, 24)}/{r.randrange(1, 13)}/{r.randrange(1, 29)} {_time(r)}",
    "any date": lambda r, i: r.choice(DATES),
    "missing": lambda r, i: r.choice(MISSING),
    "odd number": lambda r, i: r.choice(ODD_NUMBERS),
    "foreign number": lambda r, i: r.choice(FOREIGN),
    "decimal comma": lambda r, i: f"{r.uniform(0, 9):.2f}".replace(".", ","),
    "tiny": lambda r, i: f"{r.uniform(1, 2):.4f}e-170",
    "huge": lambda r, i: f"{r.uniform(1, 2):.4f}e160",
    "sentinel": lambda r, i: "1e12" if i == 3 else f"{r.uniform(-1, 1):.3f}",
    "unique text": lambda r, i: f"t{i}",
    "padded": lambda r, i: " " * r.randrange(50) + "1" + " " * r.randrange(50),
}
USUAL = ["number", "number", "count", "word", "truth", "date", "ordered date", "year-first date", "sentinel", "number"]
TARGETS = ["number", "number", "number", "word", "count", "truth"]
FAULTS = [
    "kind",
    "kind",
    "dirt",
    "dirt",
    "dirt",
    "name",
    "name",
    "target",
    "ragged",
    "bytes",
    "bytes",
    "quotes",
    "encoding",
]


@dataclass
class Table:
    """A table before it becomes bytes."""

    names: list[str]
    kinds: list[str]
    dirt: list[str | None]
    n_rows: int
    suffix: str
    delimiter: str = ","
    quoting: str = "needed"
    encoding: str = "utf-8"
    end: str = "\n"
    ragged: bool = False
    mutations: int = 0


def table_of(seed):
    """A file from a number: its bytes and its suffix. The first column is y; a few things about it are wrong."""
    r = random.Random(seed)
    k = r.randrange(1, 6)
    table = Table(
        names=["y", *(f"c{i}" for i in range(k))],
        kinds=[r.choice(TARGETS), *(r.choice(USUAL) for _ in range(k))],
        dirt=[None] * (k + 1),
        n_rows=r.choice([12, 30, 30, 60, 60, 200]),
        suffix=r.choice([".csv"] * 7 + [".tsv", ".txt", ".csv.gz", ".parquet", ".feather"]),
        delimiter=r.choice([",", ",", ";", "|", "\t"]),
        end=r.choice(["\n", "\n", "\r\n"]),
    )
    for fault in r.choices(FAULTS, k=r.choice([0, 1, 1, 2, 2, 4])):
        _FAULTY[fault](r, table)
    return _file(r, table), table.suffix


def _kind(r, table):
    table.kinds[r.randrange(len(table.kinds))] = r.choice(sorted(KINDS))


def _dirt(r, table):
    some = ["missing", "missing", "odd number", "foreign number", "any word", "any date"]
    table.dirt[r.randrange(len(table.kinds))] = r.choice(some)


def _name(r, table):
    table.names[r.randrange(1, len(table.names))] = r.choice(NAMES)


def _target(r, table):
    table.kinds[0] = r.choice(sorted(KINDS))
    table.n_rows = r.choice([0, 1, 9, 12, 60])


def _ragged(r, table):
    table.ragged = True


def _damage(r, table):
    table.mutations = r.randrange(1, 4)


def _quotes(r, table):
    table.quoting, table.end = r.choice(["always", "never"]), r.choice(["\n", "\r", '"\n'])


def _encoding(r, table):
    table.encoding = r.choice(["utf-8-sig", "utf-8-sig", "utf-16", "latin-1", "cp1252"])


_FAULTY = {
    "kind": _kind,
    "dirt": _dirt,
    "name": _name,
    "target": _target,
    "ragged": _ragged,
    "bytes": _damage,
    "quotes": _quotes,
    "encoding": _encoding,
}


def _file(r, table):
    columns = list(zip(table.kinds, table.dirt, strict=True))
    rows = [[_cell(r, kind, dirt, i) for kind, dirt in columns] for i in range(table.n_rows)]
    data = _arrow(table, rows) if table.suffix in (".parquet", ".feather") else _text(r, table, rows)
    for _ in range(table.mutations):
        data = _mutated(r, data)
    return gzip.compress(data) if table.suffix.endswith(".gz") else data


def _cell(r, kind, dirt, i):
    return KINDS[dirt if dirt and r.random() < 0.05 else kind](r, i)


def _arrow(table, rows):
    """Columns of numbers, texts, dates or truths, as their cells say; no name twice."""
    columns = {}
    for number, name in enumerate(table.names):
        cells = pd.Series([row[number] for row in rows], dtype=object)
        kind = table.kinds[number]
        if kind == "date":
            zoned = any(str(cell).endswith("Z") for cell in cells)  # pandas has no column with and without zones
            cells = pd.to_datetime(cells, errors="coerce", format="mixed", utc=zoned)
        elif kind not in ("word", "any word", "unique text", "truth", "ordered date", "year-first date"):
            cells = pd.to_numeric(cells, errors="coerce")
        columns[name] = cells
    out = pa.BufferOutputStream()
    write = pa.parquet.write_table if table.suffix == ".parquet" else pa.feather.write_feather
    write(pa.Table.from_pandas(pd.DataFrame(columns)), out)
    return out.getvalue().to_pybytes()


def _text(r, table, rows):
    delimiter = "\t" if table.suffix == ".tsv" else table.delimiter
    if table.ragged and rows:
        place = r.randrange(len(rows))
        rows[place] = rows[place][:-1] if r.random() < 0.5 else [*rows[place], "1"]
    lines = [delimiter.join(_quoted(c, delimiter, table.quoting) for c in cells) for cells in (table.names, *rows)]
    return codecs.encode(table.end.join(lines) + table.end, table.encoding, "replace")


def _quoted(cell, delimiter, quoting):
    needs = any(c in cell for c in (delimiter, '"', "\n", "\r"))
    if quoting == "never" or (quoting == "needed" and not needs):
        return cell
    return '"' + cell.replace('"', '""') + '"'


def _mutated(r, data):
    """The same bytes with some changed, put in, doubled or cut off."""
    data, place = bytearray(data), r.randrange(len(data) + 1)
    kind = r.randrange(6)
    if kind < 2 and place < len(data):
        data[place] = r.randrange(256)
    elif kind == 2:
        data[place:place] = r.choice([b"\0", b"\xff", b'"', b",", b"\n", b"\r", b"\xef\xbb\xbf", b"\x1a"])
    elif kind == 3:
        data[place:place] = data[max(0, place - 50) : place]
    elif kind == 4:
        del data[place : place + r.randrange(1, 40)]
    else:
        del data[place:]
    return bytes(data)
