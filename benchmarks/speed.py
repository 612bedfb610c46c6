"""How close training and prediction come to their floor, and to every peer: ratios measured side by side in one run.

Run `make bench`, which installs the peers. The floor is the hidden layer, in place and by blocks, and one product HᵀH;
`benchmarks/RESULTS.md` keeps the last recorded run.
"""

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from side_by_side import machine, medians, row
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV
from twins import Twins

from ocrep import PinvRegressor, scan

ALPHAS = np.logspace(-8, 4, 50)


def rows(n_rows: int, n_inputs: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(n_rows, n_inputs))
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n_rows)


def floor_of(model: PinvRegressor, X: np.ndarray) -> Callable[[], None]:
    """The hidden layer by blocks, plain NumPy in place, and HᵀH of each block."""
    layer = model.layer_.map_
    n_units, block = layer.biases.shape[0], 4096
    half_weights, half_biases = 0.5 * layer.weights, 0.5 * layer.biases
    Z = np.empty((block, n_units))

    def run() -> None:
        total = np.zeros((n_units, n_units))
        for start in range(0, X.shape[0], block):
            x = (X[start : start + block] - layer.center) * layer.scale
            H = Z[: x.shape[0]]
            np.matmul(x, half_weights, out=H)
            H += half_biases
            np.tanh(H, out=H)
            H *= 0.5
            H += 0.5
            total += H.T @ H

    return run


def over_the_floor() -> None:
    X, y = rows(50_000, 10)

    def network(twins: bool = False) -> PinvRegressor:
        return PinvRegressor(500, input_scaling=(-1.0, 1.0), random_state=Twins(0, 1e-7) if twins else 0)

    def stream() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for start in range(0, len(X), 5000):
            yield X[start : start + 5000], y[start : start + 5000]

    plain, paired = network().fit(X, y), network(twins=True).fit(X, y)
    calls = {
        "plain": lambda: network().fit(X, y),
        "paired": lambda: network(twins=True).fit(X, y),
        "stream": lambda: network().fit(scan(stream())),
        "floor": floor_of(plain, X),
    }
    times = medians(calls)
    size = "N=50,000, L=10, M=500"
    row(f"fit, {size}, κ={plain.condition_number_:.0e}, over layer + HᵀH", times["plain"] / times["floor"], "≤ 1.3")
    row(
        f"fit, κ={paired.condition_number_:.0e}, refined once, over the same", times["paired"] / times["floor"], "≤ 3.3"
    )
    row("one-shot stream (reflections), over the same", times["stream"] / times["floor"], "≤ 5")


def against_selection() -> None:
    X, y = rows(20_000, 20)
    H = PinvRegressor(500, random_state=0).fit(X, y).layer_.transform(X)
    calls = {
        "ours": lambda: PinvRegressor(500, random_state=0).fit(X, y),
        "RidgeCV, leave-one-out": lambda: RidgeCV(ALPHAS, fit_intercept=False).fit(H, y),
    }
    times = medians(calls, 3)
    row(
        "RidgeCV(50 alphas) on the same H, N=20,000, M=500, over our fit",
        times["RidgeCV, leave-one-out"] / times["ours"],
        "≥ 15",
    )
    calls = {
        "ours": calls["ours"],
        "grid": lambda: GridSearchCV(Ridge(solver="svd", fit_intercept=False), {"alpha": ALPHAS}, cv=3).fit(H, y),
    }
    times = medians(calls, 1)
    row("GridSearchCV(Ridge(svd), 50 γ, cv=3) on the same H, over our fit", times["grid"] / times["ours"], "≥ 100")


def peers(X: np.ndarray, y: np.ndarray) -> dict[str, Callable[[], object]]:
    """Packages that train such networks with a fixed γ."""
    from hpelm import ELM
    from pyrcn.extreme_learning_machine import ELMRegressor as Pyrcn
    from redrvfl import RVFLRegressor
    from skelm import ELMRegressor as ScikitElm

    def hpelm() -> None:
        network = ELM(X.shape[1], 1)
        network.add_neurons(500, "sigm")
        network.train(X, y[:, None], "r")

    return {
        "scikit-elm": lambda: ScikitElm(n_neurons=500, ufunc="sigm", alpha=1e-3).fit(X, y),
        "redrvfl": lambda: RVFLRegressor(500, include_direct_link=False, random_state=0).fit(X, y),
        "pyrcn": lambda: Pyrcn(hidden_layer_size=500, input_activation="logistic", alpha=1e-3).fit(X, y),
        "hpelm": hpelm,
    }


def against_peers() -> None:
    X, y = rows(20_000, 20)
    times = medians({"ours": lambda: PinvRegressor(500, random_state=0).fit(X, y), **peers(X, y)})
    ours = times.pop("ours")
    fastest = min(times, key=times.__getitem__)
    listed = ", ".join(f"{name} {ours / seconds:.2f}" for name, seconds in times.items())
    row(
        f"our fit, N=20,000, L=20, M=500, over the fastest peer, {fastest} (over each: {listed})",
        ours / times[fastest],
        "≤ 1.3",
    )


def many_rows() -> None:
    X, y = rows(1_000_000, 10)
    calls = {
        "1e6": lambda: PinvRegressor(300, random_state=0).fit(X, y),
        "1e5": lambda: PinvRegressor(300, random_state=0).fit(X[:100_000], y[:100_000]),
    }
    times = medians(calls, 3)
    row("rows/s at N=10⁶ over rows/s at 10⁵, M=300", 10.0 * times["1e5"] / times["1e6"], "≥ 0.9")


def peak_memory() -> None:
    # Linux forgets the peak so far when told to: making the rows takes more than training on them.
    script = (
        "import pathlib, re; from speed import rows; from ocrep import PinvRegressor\n"
        "def status(name):\n"
        "    return int(re.search(name + r':\\s+(\\d+)', pathlib.Path('/proc/self/status').read_text())[1])\n"
        "X, y = rows(2_000_000, 10)\n"
        "PinvRegressor(300, random_state=0).fit(X[:1000], y[:1000])\n"
        "pathlib.Path('/proc/self/clear_refs').write_text('5')\n"
        "before = status('VmRSS')\n"
        "PinvRegressor(300, random_state=0).fit(X, y)\n"
        "print((status('VmHWM') - before) / 1000)"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    row("peak memory above the input, MB, N=2,000,000, L=10, M=300", float(found.stdout), "≤ 400")


def as_graph(model: PinvRegressor, dtype: type) -> bytes:
    """The same network as a plain graph of that precision: two products, a sum and a sigmoid."""
    from onnx import TensorProto, helper, numpy_helper

    layer = model.layer_.map_
    kind = {np.float64: TensorProto.DOUBLE, np.float32: TensorProto.FLOAT}[dtype]
    constants = {
        "center": layer.center,
        "scale": layer.scale,
        "weights": layer.weights,
        "biases": layer.biases,
        "out": model.output_coef_[:, None],
    }
    steps = [("Sub", "X center", "a"), ("Mul", "a scale", "b"), ("MatMul", "b weights", "c"), ("Add", "c biases", "d")]
    steps += [("Sigmoid", "d", "e"), ("MatMul", "e out", "y")]
    graph = helper.make_graph(
        [helper.make_node(kind_, inputs.split(), [output]) for kind_, inputs, output in steps],
        "network",
        [helper.make_tensor_value_info("X", kind, [None, layer.center.shape[0]])],
        [helper.make_tensor_value_info("y", kind, [None, 1])],
        [numpy_helper.from_array(value.astype(dtype), name) for name, value in constants.items()],
    )
    onnx_model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return onnx_model.SerializeToString()


def prediction() -> None:
    import onnxruntime

    X, y = rows(200_000, 10)
    model = PinvRegressor(500, input_scaling=(-1.0, 1.0), random_state=0).fit(X[:20_000], y[:20_000])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    for dtype, ours, goal in ((np.float64, model, "≥ 1.8"), (np.float32, model.as_float32(), "≥ 1")):
        session = onnxruntime.InferenceSession(as_graph(model, dtype), options, providers=["CPUExecutionProvider"])
        inputs = X.astype(dtype)
        graph = partial(session.run, None, {"X": inputs})
        difference = np.abs(graph()[0][:, 0] - model.predict(X)).max()
        assert difference < (1e-9 if dtype is np.float64 else 1e-3), difference
        times = medians({"ours": partial(ours.predict, inputs), "graph": graph})
        what = f"predict rows/s over onnxruntime's, {dtype.__name__}, N=200,000, L=10, M=500"
        row(what, times["graph"] / times["ours"], goal)


def main() -> None:
    warnings.simplefilter("ignore")  # peers warn of things that are no concern here
    print(machine() + "\n\n| what | ratio | goal |\n|---|---|---|")
    parts = (over_the_floor, against_selection, against_peers, many_rows, peak_memory, prediction)
    chosen = sys.argv[1:]
    for part in parts:
        if not chosen or part.__name__ in chosen:
            part()


if __name__ == "__main__":
    main()
