"""Measure what each extra installs: `python3 tools/install_sizes.py [extra ...]` prints a table for docs/install.md.

Every extra goes into a folder of its own, with all that it needs, from the package index that pip is set up for. Sizes
are those of the installed files without compiled bytecode, and depend on the system and on the day.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Install and measure the extras that are named, or the core and all extras but torch."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    extras = sys.argv[1:] or ["", *(extra for extra in table if extra != "torch")]
    print("| install | packages | MB |\n|---|---|---|")
    for extra in extras:
        packages, megabytes = measure(extra)
        print(f"| `ocrep{f'[{extra}]' if extra else ''}` | {packages} | {megabytes:.0f} |", flush=True)


def measure(extra: str) -> tuple[int, float]:
    """The number of installed packages and their size in megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = f"{ROOT}[{extra}]" if extra else str(ROOT)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", folder, wanted]
        subprocess.run(pip, check=True)
        packages = sum(1 for path in Path(folder).iterdir() if path.suffix == ".dist-info")
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return packages, size / 1e6


if __name__ == "__main__":
    main()
