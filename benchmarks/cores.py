"""Fits on 1, 2, 4, 8 and 16 pinned cores, plain and cross-validated, as ratios within one run.

`python benchmarks/cores.py` runs itself once per number of cores, with one BLAS limit and one CPU set each;
`python benchmarks/cores.py --plain` fits only at κ = 5·10² (two minutes on 16 cores);
`python benchmarks/cores.py --gpu` compares a cross-validated with a plain fit on a GPU (needs torch).
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from statistics import median
from time import perf_counter

import numpy as np

N, L, M = int(os.environ.get("ROWS", 400_000)), 20, 500
REPEATS = int(os.environ.get("REPEATS", 3))
CORES = (1, 2, 4, 8, 16)
# Units nearly linear in their inputs are nearly dependent: κ ≈ 10¹⁰.
ILL = {"weight_scale": 0.003}


def rows(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(n_rows, L))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2 + 0.1 * rng.standard_normal(n_rows)
    return X, y


def timed(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """The median of the seconds of several runs after one more, or of the only one."""
    if repeats > 1:
        work()
    times = []
    for _ in range(repeats):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return median(times)


def floor(X: np.ndarray, y: np.ndarray, cores: int) -> None:
    """The hidden layer and HᵀH on threads that map and accumulate their own chunks; BLAS has one thread each."""
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(0)
    C = 0.5 * rng.uniform(-1, 1, size=(L + 1, M))
    edges = np.linspace(0, len(X), cores + 1).astype(int)

    def share(number: int) -> np.ndarray:
        G = np.zeros((M + 1, M + 1))
        for start in range(edges[number], edges[number + 1], 1024):
            stop = min(start + 1024, edges[number + 1])
            A = np.empty((stop - start, M + 1))
            Z = A[:, :M]
            np.matmul(np.hstack([X[start:stop], np.ones((stop - start, 1))]), C, out=Z)
            np.tanh(Z, out=Z)
            Z *= 0.5
            Z += 0.5
            A[:, M] = y[start:stop]
            G += A.T @ A
        return G

    with threadpool_limits(1), ThreadPoolExecutor(cores) as pool:
        np.linalg.eigh(sum(pool.map(share, range(cores))))


@contextmanager
def phases() -> Iterator[dict[str, float]]:
    """Seconds in the parts of a fit, as they are entered."""
    from ocrep._linalg import solve
    from ocrep._rows.memory import MemoryRows
    from ocrep.rules import Rule

    spent: dict[str, float] = {}
    places = {"survey": (MemoryRows, "survey"), "first rows": (solve, "_start"), "reading": (solve, "summarize")}
    places |= {"proof": (solve, "_factored"), "rule": (Rule, "choose")}
    before = {name: getattr(*place) for name, place in places.items()}

    def timing(name: str) -> Callable[..., object]:
        def call(*args: object, **options: object) -> object:
            start = perf_counter()
            try:
                return before[name](*args, **options)
            finally:
                spent[name] = spent.get(name, 0.0) + perf_counter() - start

        return call

    for name, place in places.items():
        setattr(*place, timing(name))
    try:
        yield spent
    finally:
        for name, place in places.items():
            setattr(*place, before[name])


def on_cores(cores: int, *, plain: bool) -> dict[str, float]:
    """Seconds of every fit on the cores that this process may use."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    from ocrep import PinvRegressor

    X, y = rows(N)

    def fit(gamma: str, **options: object) -> PinvRegressor:
        return PinvRegressor(M, gamma=gamma, direct_link=False, fit_intercept=False, random_state=0, **options).fit(
            X, y
        )

    found = {"floor": timed(lambda: floor(X, y, cores))}
    found |= {gamma: timed(lambda gamma=gamma: fit(gamma)) for gamma in ("ocrep", "kfold", "ocrep_cv")}
    with phases() as spent:
        found["κ"] = fit("ocrep").condition_number_
    found |= {f"in {name}": seconds for name, seconds in spent.items()}
    if plain:
        return found
    repeats = REPEATS if cores > 4 else 1  # a run takes half a minute on one core
    found |= {
        f"ill {gamma}": timed(lambda gamma=gamma: fit(gamma, **ILL), repeats)
        for gamma in ("ocrep", "kfold", "ocrep_cv")
    }
    found["qr"] = timed(lambda: fit("ocrep", solver="qr"), repeats)
    found["boosting"] = timed(lambda: HistGradientBoostingRegressor().fit(X, y), 1)
    return found


def on_gpu() -> None:
    import torch

    from ocrep import PinvRegressor

    for n_hidden in (1024, 4096):
        X, y = (torch.as_tensor(values, device="cuda") for values in rows(1_000_000))

        def fit(gamma: str, X: object = X, y: object = y, n_hidden: int = n_hidden) -> PinvRegressor:
            model = PinvRegressor(
                n_hidden, gamma=gamma, activation="tanh", direct_link=False, fit_intercept=False, random_state=0
            ).fit(X, y)
            torch.cuda.synchronize()
            return model

        plain, *others = (timed(lambda gamma=gamma: fit(gamma)) for gamma in ("ocrep", "kfold", "ocrep_cv"))
        kappa = fit("ocrep").condition_number_
        told = ", ".join(f"{name} {t / plain:.2f}" for name, t in zip(("kfold", "ocrep_cv"), others, strict=True))
        print(f"GPU, N = 1e6, M = {n_hidden}, κ = {kappa:.1e}: over a plain fit ({plain:.3f} s): {told}", flush=True)


def told_plain(cores: int, first: int, one: dict[str, float], found: dict[str, float]) -> str:
    plain = found["ocrep"]
    shares = {name.removeprefix("in "): s for name, s in found.items() if name.startswith("in ")}
    return (
        f"{cores:2d} cores, speed-up over {first}: plain {one['ocrep'] / plain:.2f}, kfold "
        f"{one['kfold'] / found['kfold']:.2f}, floor {one['floor'] / found['floor']:.2f}; over a plain fit: kfold "
        f"{found['kfold'] / plain:.2f}, ocrep_cv {found['ocrep_cv'] / plain:.2f}; plain over the floor "
        f"{plain / found['floor']:.2f}; κ {found['κ']:.1e}; plain fit {plain:.3f} s, of that "
        + ", ".join(f"{name} {100 * s / sum(shares.values()):.0f} %" for name, s in shares.items())
    )


def told_all(cores: int, first: int, one: dict[str, float], found: dict[str, float]) -> str:
    plain, ill = found["ocrep"], found["ill ocrep"]
    return (
        f"{told_plain(cores, first, one, found)}; speed-up: ill {one['ill ocrep'] / ill:.2f}, "
        f"qr {one['qr'] / found['qr']:.2f}, boosting {one['boosting'] / found['boosting']:.2f}; "
        f"over an ill fit: kfold {found['ill kfold'] / ill:.2f}, ocrep_cv {found['ill ocrep_cv'] / ill:.2f}; "
        f"plain over boosting {plain / found['boosting']:.2f}"
    )


def main() -> None:
    if "--gpu" in sys.argv:
        on_gpu()
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", type=int, help="run here, on the cores of this process")
    parser.add_argument("--cores", type=int, nargs="+", default=[n for n in CORES if n <= (os.cpu_count() or 1)])
    parser.add_argument("--plain", action="store_true", help="only well-conditioned fits")
    options = parser.parse_args()
    if options.on:
        print(json.dumps(on_cores(options.on, plain=options.plain)))
        return
    one: dict[str, float] = {}
    for cores in options.cores:
        limits = {f"{blas}_NUM_THREADS": str(cores) for blas in ("OPENBLAS", "OMP", "MKL", "BLIS")}
        command = ["taskset", "-c", f"0-{cores - 1}", sys.executable, __file__, "--on", str(cores)]
        command += ["--plain"] if options.plain else []
        told = subprocess.run(command, env={**os.environ, **limits}, capture_output=True, text=True, check=True)
        found = json.loads(told.stdout)
        one = one or found
        print((told_plain if options.plain else told_all)(cores, options.cores[0], one, found), flush=True)


if __name__ == "__main__":
    main()
