"""Build the source archive and the wheel, check what is in them, and use the wheel in a clean environment.

Run by `make test-wheel`; `make test-wheel DIST=dist` keeps the archives in that folder. The clean environment gets the
core dependencies only: `import ocrep`, fit, predict and partial_fit must work there, and what needs an extra must say
which.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
USE = """
import numpy as np, ocrep
X, y = ocrep.datasets.load("iris", return_X_y=True)
model = ocrep.PinvClassifier(20, random_state=0).fit(X, y)
assert model.score(X, y) > 0.9, model.score(X, y)
first = ocrep.PinvRegressor(5, gamma="gcv", random_state=0, input_scaling=(0, 10)).partial_fit(X, X[:, 0])
assert first.partial_fit(X, X[:, 0]).predict(X).shape == (150,)
for use, extra in (
    (lambda: ocrep.save_model(model, "m.skops"), "models"),
    (lambda: ocrep.scan("rows.csv", target="y"), "files"),
    (lambda: ocrep.SpectrumDisplay.from_estimator(model), "plot"),
    (lambda: ocrep.compare_rules(X, X[:, 0]), "data"),
    (lambda: ocrep.onnx.to_onnx(model), "onnx"),
):
    try:
        use()
    except ImportError as error:
        assert f"ocrep[{extra}]" in str(error), error
    else:
        raise AssertionError(f"{extra} was not needed")
ocrep.show_versions()
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        dist = Path(*sys.argv[1:] or [folder, "dist"]).absolute()
        run(sys.executable, "-m", "build", "--outdir", dist, ROOT)
        run(sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir())
        (wheel,) = dist.glob("*.whl")
        check_contents(wheel)
        clean = Path(folder, "clean")
        venv.create(clean, with_pip=True)
        python = clean / "bin" / "python"
        run(python, "-m", "pip", "install", "--quiet", wheel)
        run(python, "-c", USE, cwd=folder)
    print("The wheel works with the core dependencies alone.")


def check_contents(wheel: Path) -> None:
    """All modules and data files, and nothing else."""
    found = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    package = ROOT / "src"
    files = (path for path in (package / "ocrep").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    expected = {path.relative_to(package).as_posix() for path in files}
    if found != expected:
        sys.exit(f"The wheel differs from src/ocrep: {sorted(found ^ expected)}")


def run(*command: object, cwd: str | Path = ROOT) -> None:
    subprocess.run([str(word) for word in command], check=True, cwd=cwd)


if __name__ == "__main__":
    main()
