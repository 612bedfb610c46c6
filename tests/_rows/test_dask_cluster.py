"""A real Dask cluster of processes on loopback: the same model, also when workers die, fail or come late."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pytest
from distributed import Client, LocalCluster
from support.tables import INPUTS, table_of_rows

from ocrep import PinvClassifier, PinvRegressor

HEIGHT, PARTITIONS = 150, 10
# Generous: it only ends tests that hang.
PATIENCE = 120


def local_cluster(n_workers):
    """Processes on loopback, any free port, and no dashboard."""
    off = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    return LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, host="127.0.0.1", scheduler_kwargs=off
    )


@pytest.fixture(autouse=True)
def _end_what_hangs():
    """A fit has no time limit of its own: end the test, so that its fixtures close their processes."""

    def give_up(signum, frame):
        raise TimeoutError(f"The test took more than {2 * PATIENCE} s.")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(2 * PATIENCE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def cluster():
    with local_cluster(2) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster, timeout=PATIENCE) as client:
        client.wait_for_workers(2, timeout=PATIENCE)
        yield client


@pytest.fixture(scope="module")
def rows():
    return table_of_rows(HEIGHT * PARTITIONS)


def network(task=PinvRegressor, **options):
    return task(**{"n_hidden": 30, "random_state": 0, **options})


def from_parts(rows, load=lambda part, number: part):
    """A Dask dataframe whose partitions pass through `load` on a worker each time they are read."""
    parts = [rows.iloc[HEIGHT * i : HEIGHT * (i + 1)] for i in range(PARTITIONS)]
    return dd.from_map(load, parts, range(PARTITIONS), meta=rows.iloc[:0])


def check_same(model, here, rows):
    np.testing.assert_allclose(model.gamma_, here.gamma_, rtol=1e-8)
    np.testing.assert_allclose(model.predict(rows[INPUTS]), here.predict(rows[INPUTS]), atol=1e-6)


# --- the same model --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["minmax", (-1.0, 1.0)], ids=str)
@pytest.mark.parametrize("gamma", ["ocrep", "kfold"])
def test_the_same_network_as_in_memory_and_as_on_threads(client, rows, scale, gamma):
    here = network(input_scaling=scale, gamma=gamma).fit(rows[INPUTS].to_numpy(), rows["y"])
    X, y = (da.from_array(rows[name].to_numpy(), chunks=HEIGHT) for name in (INPUTS, "y"))
    model = network(input_scaling=scale, gamma=gamma).fit(X, y)
    np.testing.assert_allclose(model.gamma_, here.gamma_, rtol=1e-8 if gamma == "ocrep" else 1e-6)
    np.testing.assert_allclose(model.predict(X).compute(), here.predict(rows[INPUTS].to_numpy()), atol=1e-6)
    np.testing.assert_allclose(model.score(X, y), here.score(rows[INPUTS].to_numpy(), rows["y"]), rtol=1e-8)
    with dask.config.set(scheduler="threads"):
        on_threads = network(input_scaling=scale, gamma=gamma).fit(X, y)
    np.testing.assert_allclose(model.coef_, on_threads.coef_, rtol=1e-10)


def test_a_classifier_of_a_dataframe_kept_on_the_cluster(client, rows):
    table = from_parts(rows).persist()
    model = network(PinvClassifier, class_weight="balanced").fit(table[INPUTS], table["label"])
    here = network(PinvClassifier, class_weight="balanced").fit(rows[INPUTS], rows["label"])
    np.testing.assert_allclose(model.gamma_, here.gamma_, rtol=1e-8)
    np.testing.assert_array_equal(model.predict(table[INPUTS]).compute(), here.predict(rows[INPUTS]))


@pytest.mark.parametrize("kept", ["X", "y", "Xy"])
def test_arrays_of_which_some_are_kept_on_the_cluster(client, rows, kept):
    X, y = (da.from_array(rows[name].to_numpy(), chunks=HEIGHT) for name in (INPUTS, "y"))
    X, y = (client.persist(part) if name in kept else part for name, part in (("X", X), ("y", y)))
    model, here = network().fit(X, y), network().fit(rows[INPUTS].to_numpy(), rows["y"])
    np.testing.assert_allclose(model.gamma_, here.gamma_, rtol=1e-8)
    np.testing.assert_allclose(model.predict(X).compute(), here.predict(rows[INPUTS].to_numpy()), atol=1e-6)


def test_a_function_of_the_users_own_reaches_the_workers(client, rows):
    table = from_parts(rows)
    model = network(activation=lambda Z: np.tanh(Z) ** 3).fit(table[INPUTS], table["y"])
    check_same(model, network(activation=lambda Z: np.tanh(Z) ** 3).fit(rows[INPUTS], rows["y"]), rows)


# --- faults ----------------------------------------------------------------------------------------------------


def reading(part, number, *, fault, folder, failing):
    """Give the part; partition 5 counts its readings in files, and fails in reading number `failing`."""
    if number == 5:
        n = sum(1 for _ in Path(folder).iterdir()) + 1
        Path(folder, f"reading-{n}").touch()
        if n == failing:
            fault()
    return part


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def fail():
    raise OSError("the disk did not answer")


@pytest.mark.parametrize("failing", [1, 2], ids=["survey", "factor"])
@pytest.mark.parametrize("fault", [die, fail])
def test_a_worker_that_is_killed_and_a_partition_that_fails_once(client, rows, tmp_path, fault, failing):
    table = from_parts(rows, lambda part, number: reading(part, number, fault=fault, folder=tmp_path, failing=failing))
    for path in tmp_path.iterdir():
        path.unlink()  # Dask may look at a partition for its types
    model = network().fit(table[INPUTS], table["y"])
    assert len(list(tmp_path.iterdir())) == 3  # two readings, and the repeated one
    check_same(model, network().fit(rows[INPUTS], rows["y"]), rows)


def test_a_partition_that_always_fails_ends_the_fit_with_its_own_error(client, rows):
    def load(part, number):
        if number == 5:
            fail()
        return part

    table = from_parts(rows, load)
    with pytest.raises(OSError, match="the disk did not answer") as raised:
        network().fit(table[INPUTS], table["y"])
    assert raised.value.__notes__ == ["This was raised while the rows of partition 5 were made."]


def test_a_bad_partition_is_named(client, rows):
    table = from_parts(rows, lambda part, number: part.assign(a=np.nan) if number == 5 else part)
    with pytest.raises(ValueError, match="Partition 5, row 1: column 'a' holds NaN"):
        network().fit(table[INPUTS], table["y"])


def test_a_worker_that_comes_late(rows, tmp_path):
    begun, joined = tmp_path / "begun", tmp_path / "joined"

    def load(part, number):
        begun.touch()
        wait_for(joined.exists)
        return part

    with (
        local_cluster(1) as cluster,
        Client(cluster, timeout=PATIENCE) as client,
    ):
        table = from_parts(rows, load)
        model = network()
        fitting = threading.Thread(target=model.fit, args=(table[INPUTS], table["y"]), daemon=True)
        fitting.start()
        wait_for(begun.exists)
        cluster.scale(2)
        client.wait_for_workers(2, timeout=PATIENCE)
        joined.touch()
        fitting.join(PATIENCE)
        assert not fitting.is_alive()
    check_same(model, network().fit(rows[INPUTS], rows["y"]), rows)


def wait_for(happened):
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


# --- clusters that are gone, and clusters started by hand -------------------------------------------------------


def test_a_closed_cluster_says_so(rows):
    with (
        local_cluster(1) as cluster,
        Client(cluster, timeout=PATIENCE) as client,
    ):
        X, y = (da.from_array(rows[name].to_numpy(), chunks=HEIGHT) for name in (INPUTS, "y"))
        kept, target = client.persist([X, y])
        cluster.close()
        with pytest.raises(RuntimeError, match="X were persisted on a Dask cluster that is closed"):
            network().fit(kept, target)
        with dask.config.set(scheduler=client), pytest.raises(RuntimeError, match="The Dask cluster is closed"):
            network().fit(X, y)


def test_scheduler_and_workers_started_by_hand(rows, tmp_path):
    """The recipe of docs/scaling.md, on one machine; in the end the scheduler dies in the middle of the work."""
    file = tmp_path / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    common = [
        "--scheduler-file",
        str(file),
        "--host",
        "127.0.0.1",
        "--no-dashboard",
        "--dashboard-address",
        "127.0.0.1:0",
    ]
    program = [sys.executable, "-m", "dask"]
    started = [subprocess.Popen([*program, "scheduler", "--port", "0", *common], **quiet)]
    try:
        for i in range(2):
            place = ["--nthreads", "1", "--local-directory", str(tmp_path / str(i))]
            started.append(subprocess.Popen([*program, "worker", *common, *place], **quiet))
        with Client(scheduler_file=str(file), timeout=PATIENCE) as client:
            client.wait_for_workers(2, timeout=PATIENCE)
            X, y = (da.from_array(rows[name].to_numpy(), chunks=HEIGHT) for name in (INPUTS, "y"))
            model = network().fit(X, y)
            here = network().fit(rows[INPUTS].to_numpy(), rows["y"])
            np.testing.assert_allclose(model.gamma_, here.gamma_, rtol=1e-8)
            np.testing.assert_allclose(model.predict(X).compute(), here.predict(rows[INPUTS].to_numpy()), atol=1e-6)
            scheduler = started[0].pid

            def cut_off(block):
                os.kill(scheduler, signal.SIGKILL)
                return block

            with pytest.raises(RuntimeError, match="The Dask cluster is closed"):
                network().fit(X.map_blocks(cut_off, meta=X._meta), y)
    finally:
        for process in started:
            process.terminate()
        for process in started:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
