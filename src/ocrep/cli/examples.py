"""Two examples of each command, as its help shows them."""

from __future__ import annotations

EXAMPLES = {
    "fit": """\
ocrep fit houses.csv --target price --out price.skops
ocrep fit sales.csv -t paid -o paid.skops --decimal , --class-weight balanced""",
    "predict": """\
ocrep predict price.skops new.csv --out prices.csv
ocrep predict price.skops new.csv --id house --std --digits 4""",
    "inspect": """\
ocrep inspect price.skops
ocrep inspect price.skops --json""",
    "export": """\
ocrep export price.skops price.onnx
ocrep export price.skops price.onnx --double""",
    "diagnose": """\
ocrep diagnose houses.csv --target price
ocrep diagnose houses.csv --target price --n-hidden 100 --report page.html""",
    "compare": """\
ocrep compare houses.csv --target price
ocrep compare houses.csv --target price --splits 20 --all""",
    "datasets": """\
ocrep datasets
ocrep datasets iris wine --export data --format parquet""",
    "study quick": """\
ocrep study quick --out study
ocrep study quick --out study --jobs 4 --json""",
    "study full": """\
ocrep study full --out study --jobs 8
ocrep study full --out study --for 3600""",
    "study report": """\
ocrep study report study
ocrep study report --from results.parquet --out report""",
}
