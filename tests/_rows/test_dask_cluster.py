"""A real Dask cluster of processes on loopback: the same model, also when workers die, fail or come late."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from support.pages import blocks
from support.shell import steps, words_of
from support.tables import INPUTS, table_of_rows
from threadpoolctl import threadpool_info

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


def test_a_worker_with_one_thread_stays_on_one(monkeypatch):
    """Whatever the process that starts it was told of BLAS."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)

    def fit_and_count():
        X = np.random.default_rng(0).uniform(size=(60_000, 3))
        before, threads, of_blas = threading.active_count(), set(), set()

        def activation(Z):
            threads.add(threading.active_count() - before)
            of_blas.update(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
            return np.tanh(Z)

        PinvRegressor(100, activation=activation, gamma="kfold", random_state=0).fit(X, X[:, 0])
        return threads, of_blas

    with local_cluster(1) as cluster, Client(cluster, timeout=PATIENCE) as client:
        assert client.submit(fit_and_count).result(timeout=PATIENCE) == ({0}, {1})


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
    np.testing.assert_allclose(model.output_coef_, on_threads.output_coef_, rtol=1e-10)


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


class Elsewhere:
    """A cluster of processes in place of one that a batch system or Kubernetes would start."""

    def __init__(self, cluster):
        self._cluster = cluster

    def __getattr__(self, name):
        return getattr(self._cluster, name)


def stand_ins(cluster):
    """Modules with the classes that docs/scaling.md calls; dask-jobqueue 0.9 and dask-kubernetes 2026.3 have them."""

    class SLURMCluster(Elsewhere):
        def __init__(self, *, cores, processes, memory, walltime, job_script_prologue):
            super().__init__(cluster)

        def scale(self, n=None, jobs=0, memory=None, cores=None):
            assert jobs

    class KubeCluster(Elsewhere):
        def __init__(self, *, name, image, env):
            super().__init__(cluster)

        def scale(self, n, worker_group="default"):
            assert n

    jobqueue, kubernetes = SimpleNamespace(SLURMCluster=SLURMCluster), SimpleNamespace(KubeCluster=KubeCluster)
    return {"dask_jobqueue": jobqueue, "dask_kubernetes": kubernetes, "dask_kubernetes.operator": kubernetes}


@pytest.mark.parametrize("word", ["SLURMCluster", "KubeCluster"])
def test_the_client_of_a_recipe_fits(cluster, rows, word, monkeypatch):
    for name, module in stand_ins(cluster).items():
        monkeypatch.setitem(sys.modules, name, module)
    names = {}
    recipe(word).run(names)
    with names["client"]:
        assert names["client"].cluster.scheduler_address == cluster.scheduler_address
        table = from_parts(rows)
        check_same(network().fit(table[INPUTS], table["y"]), network().fit(rows[INPUTS], rows["y"]), rows)


def recipe(word):
    """The block of docs/scaling.md with this word."""
    (found,) = (block for block in blocks("docs/scaling.md", "python no-run") if word in block.code)
    return found


def started(command, folder):
    """A process of docs/scaling.md, with two workers instead of eight, and its files in a folder."""
    for there, here in {"/shared": folder, "/tmp/dask": folder / "dask", "--nworkers 8": "--nworkers 2"}.items():
        command = command.replace(there, str(here))
    program, *words = words_of(command)
    variables = dict(word.split("=") for word in command.partition(" dask ")[0].split() if "=" in word)
    loopback = ["--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
    port = ["--port", "0"] if words[0] == "scheduler" else []
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": {**os.environ, **variables}}
    return subprocess.Popen([sys.executable, "-m", program, *words, *loopback, *port], **quiet)


def test_scheduler_and_workers_started_by_hand(rows, tmp_path):
    """The recipe of docs/scaling.md, on one machine; in the end the scheduler dies in the middle of the work."""
    (tmp_path / "rows").mkdir()
    for number, part in enumerate((rows[:700], rows[700:])):
        part[[*INPUTS, "label"]].to_parquet(tmp_path / "rows" / f"{number}.parquet", index=False)
    running = [started(command, tmp_path) for command, _ in steps("docs/scaling.md")]
    try:
        smaller = [("n_hidden=2000", "n_hidden=30"), ("wait_for_workers(8)", "wait_for_workers(2)")]
        recipe("scheduler_file").run({}, [("/shared", str(tmp_path)), *smaller])
        predicted = pd.read_parquet(tmp_path / "out")["label"]
        here = network(PinvClassifier).fit(rows[INPUTS], rows["label"])
        np.testing.assert_array_equal(predicted, here.predict(rows[INPUTS]))
        with Client(scheduler_file=str(tmp_path / "scheduler.json"), timeout=PATIENCE) as client:
            client.wait_for_workers(2, timeout=PATIENCE)
            X, y = (da.from_array(rows[name].to_numpy(), chunks=HEIGHT) for name in (INPUTS, "y"))
            model, here = network().fit(X, y), network().fit(rows[INPUTS].to_numpy(), rows["y"])
            np.testing.assert_allclose(model.gamma_, here.gamma_, rtol=1e-8)
            np.testing.assert_allclose(model.predict(X).compute(), here.predict(rows[INPUTS].to_numpy()), atol=1e-6)
            scheduler = running[0].pid

            def cut_off(block):
                os.kill(scheduler, signal.SIGKILL)
                return block

            with pytest.raises(RuntimeError, match="The Dask cluster is closed"):
                network().fit(X.map_blocks(cut_off, meta=X._meta), y)
    finally:
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
