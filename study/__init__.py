"""The paper's experiments run again and compared with its published numbers.

`python -m study quick --out FOLDER`, from the root of the repository, runs them in small and writes a report;
`python -m study --help` names the other commands. In Python: `run` a `Protocol`, then write the `report`. A study reads
from top to bottom in this order:

- `protocol`: what the paper ran, as data;
- `experiments`: one job, one hidden layer on one split;
- `results`: rows as one table, and how numbers vary over draws and splits;
- `published`: the paper's own numbers;
- `judgement`: how the paper is to be read, and how its numbers compare with ours;
- `running`: jobs in stages, folders of results, published files;
- `claims`, `tables`, `figures`, `page`: the report.
"""

from study.judgement import Study
from study.page import report
from study.protocol import FULL, PROTOCOLS, QUICK, Protocol
from study.running import load_study, publish, run

__all__ = ["FULL", "PROTOCOLS", "QUICK", "Protocol", "Study", "load_study", "publish", "report", "run"]
