"""Training on one GPU, over one product HᵀH of the whole hidden layer: ratios measured side by side in one run.

Run `PYTHONPATH=src python benchmarks/gpu.py` where torch sees a GPU with 80 GB or more. Each figure is the median of
repeats after a warm-up; `benchmarks/RESULTS.md` keeps the recorded run.
"""

import platform
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import scipy
import sklearn
import torch
from twins import Twins

import ocrep
from ocrep import PinvRegressor

N_ROWS, N_INPUTS, N_HIDDEN = 1_000_000, 20, 4096
TWIN_DISTANCE = 1e-8


def seconds(call: Callable[[], object], repeats: int = 5) -> float:
    call()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def one_product(model: PinvRegressor, X: torch.Tensor) -> float:
    """Seconds for HᵀH of the whole hidden layer, held in memory for once."""
    H = torch.empty(N_ROWS, N_HIDDEN, dtype=torch.float64, device="cuda")
    for start in range(0, N_ROWS, 50_000):
        H[start : start + 50_000] = model.layer_.map_(X[start : start + 50_000])
    return seconds(lambda: H.T @ H)


def main() -> None:
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}, Python "
        f"{platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, ocrep {ocrep.__version__}"
    )
    generator = torch.Generator(device="cuda").manual_seed(0)
    options = {"dtype": torch.float64, "device": "cuda", "generator": generator}
    X = 2.0 * torch.rand(N_ROWS, N_INPUTS, **options) - 1.0
    y = torch.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * torch.randn(N_ROWS, **options)

    def network(weights: str, **more: object) -> PinvRegressor:
        return PinvRegressor(
            N_HIDDEN,
            activation="tanh",
            weight_scale=1.0,
            input_scaling=(-1.0, 1.0),
            random_state=Twins(0, TWIN_DISTANCE) if weights == "twins" else 0,
            **more,
        )

    cases = {name: network(name).fit(X, y) for name in ("uniform", "twins")}
    product = one_product(cases["uniform"], X)
    print(f"one product HᵀH: {2e-12 * N_ROWS * N_HIDDEN**2 / product:.0f} TFLOP/s")
    for name, goal in (("uniform", 1.4), ("twins", 3.5)):
        model = cases[name]
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        fit = seconds(lambda name=name: network(name).fit(X, y))
        peak = torch.cuda.max_memory_allocated() - before
        print(
            f"fit, weights {name}, κ = {model.condition_number_:.1e}: {fit / product:.2f} products (goal {goal}), "
            f"{peak / 2**30:.1f} GiB beside the rows"
        )
    predict = seconds(lambda: cases["uniform"].predict(X))
    print(f"predict: {predict / product:.2f} products")
    compare_routes(X, y, network)


def compare_routes(X: torch.Tensor, y: torch.Tensor, network: Callable[..., PinvRegressor]) -> None:
    """γ of the fast routes against reflections, on fewer rows."""
    X, y = X[:100_000], y[:100_000]
    for name in ("uniform", "twins"):
        auto, qr = (network(name, solver=route).fit(X, y) for route in ("auto", "qr"))
        sigma = [model.singular_values_[-1].item() for model in (auto, qr)]
        print(
            f"100,000 rows, weights {name}, κ = {qr.condition_number_:.1e}: γ differs from that of reflections by "
            f"{abs(auto.gamma_ / qr.gamma_ - 1):.1e}, σ_p by {abs(sigma[0] / sigma[1] - 1):.1e}, predictions by "
            f"{(auto.predict(X) - qr.predict(X)).abs().max().item():.1e}"
        )


if __name__ == "__main__":
    sys.exit("torch sees no GPU") if not torch.cuda.is_available() else main()
