"""A fit that was interrupted goes on to the same bits, and only the same fit on the same rows does."""

import errno
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from support.problems import PAPER
from support.rows_on_disk import NAMES, as_blocks, as_glob, smooth_frame, write
from support.weights import weights_of

from ocrep import PinvClassifier, PinvRegressor, TikhonovRegressor, scan


class CrashError(Exception):
    """A crash at a place of our choice."""


@pytest.fixture(autouse=True)
def _small_blocks(small_blocks, monkeypatch):
    small_blocks(2**12)
    # One worker, so that a plain fit adds up blocks in the order of a checkpointed one.
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")


def test_on_several_threads_it_goes_on_to_the_bits_of_a_fit_that_was_never_interrupted(frame, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    paths = write(frame, tmp_path, "parquet", n_files=5)
    model = PinvRegressor(30, random_state=0)
    options = {"target": "y", "checkpoint": tmp_path / "fit.ckpt", "checkpoint_every": 0}
    expected = weights_of(model.fit(scan(paths, **options)))
    with pytest.raises(CrashError):
        model.fit(scan(paths, **options, progress=killing(1500)))
    np.testing.assert_array_equal(weights_of(model.fit(scan(paths, **options))), expected)
    plain = weights_of(model.fit(scan(paths, target="y")))
    np.testing.assert_allclose(plain, expected, rtol=1e-7, atol=1e-9)


@pytest.fixture
def frame():
    return smooth_frame(3000)


def killing(after):
    """A progress hook that fails when that many rows are read."""

    def progress(done, total):
        if done >= after:
            raise CrashError

    return progress


MODELS = {
    "gram": PinvRegressor(30, random_state=0),
    "preconditioned by the first block": PinvRegressor(80, random_state=0, weight_scale=0.3),
    "beyond products": PinvRegressor(100, random_state=0, weight_scale=1e-3),
    "reflections": PinvRegressor(30, random_state=0, solver="qr"),
    "folds": PinvRegressor(30, random_state=0, gamma="kfold"),
    "intercept": PinvRegressor(30, random_state=0, fit_intercept=True, gamma="loo"),
    "own features": TikhonovRegressor(),
    "hidden size": PinvRegressor("auto", max_hidden=8, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("source", ["files", "blocks"])
@pytest.mark.parametrize("after", [1000, 2500])
def test_an_interrupted_fit_goes_on_to_the_same_bits(frame, tmp_path, name, source, after):
    from sklearn.base import clone

    paths, checkpoint = write(frame, tmp_path, "parquet", n_files=5), tmp_path / "fit.ckpt"

    def rows(**options):
        if source == "files":
            return scan(paths, target="y", **options)
        return scan(as_blocks(frame, 100), **options)

    model = clone(MODELS[name]).set_params(**({} if name == "own features" else {"input_scaling": (-1.0, 1.0)}))
    expected = clone(model).fit(rows())
    with pytest.raises(CrashError):
        clone(model).fit(rows(checkpoint=checkpoint, checkpoint_every=0, progress=killing(after)))
    assert checkpoint.exists()
    read = []
    resumed = clone(model).fit(rows(checkpoint=checkpoint, progress=lambda done, total: read.append(done)))
    np.testing.assert_array_equal(weights_of(resumed), weights_of(expected))
    assert resumed.gamma_ == expected.gamma_
    assert not checkpoint.exists()
    if source == "files":
        # Files that were read already are not read again; at 2500 all may have been.
        assert min(read, default=after) > 100


def test_a_single_block_needs_no_second_route(frame, tmp_path):
    rows = as_blocks(frame.iloc[:60])
    expected = TikhonovRegressor().fit(scan(rows))
    model = TikhonovRegressor().fit(scan(rows, checkpoint=tmp_path / "fit.ckpt"))
    np.testing.assert_array_equal(weights_of(model), weights_of(expected))


def test_a_text_file_of_unknown_length_is_read_up_to_the_place(frame, tmp_path):
    paths, checkpoint = write(frame, tmp_path, "csv"), tmp_path / "fit.ckpt"
    model = PinvRegressor(30, random_state=0)
    expected = weights_of(model.fit(scan(paths, target="y")))
    rows_done = []

    def progress(done, total):
        rows_done.append(done)
        if rows_done.count(3000) == 1 and 1500 < done < 3000:
            raise CrashError

    with pytest.raises(CrashError):
        model.fit(scan(paths, target="y", checkpoint=checkpoint, checkpoint_every=0, progress=progress))
    np.testing.assert_array_equal(weights_of(model.fit(scan(paths, target="y", checkpoint=checkpoint))), expected)


def test_a_generator_goes_on_after_the_rows_that_were_read(frame, tmp_path):
    checkpoint = tmp_path / "fit.ckpt"
    model = PinvClassifier(20, random_state=0, input_scaling=(-1.0, 1.0))
    labels = frame.assign(y=frame["y"] > 0, w=2.0)

    def rows(**options):
        return scan(iter(as_blocks(labels)), classes=[False, True], checkpoint_every=0, **options)

    expected = weights_of(model.fit(rows()))
    with pytest.raises(CrashError):
        model.fit(rows(checkpoint=checkpoint, progress=killing(1500)))
    np.testing.assert_array_equal(weights_of(model.fit(rows(checkpoint=checkpoint))), expected)


def test_a_crash_in_the_second_pass_does_not_cost_the_first(frame, tmp_path):
    checkpoint = tmp_path / "fit.ckpt"
    # No noise: the products cannot tell so small a residual, and the rows are read again.
    frame = frame.assign(y=frame[NAMES].to_numpy() @ np.arange(1.0, 6.0))
    files = write(frame, tmp_path, "parquet")
    model = TikhonovRegressor()
    expected = weights_of(model.fit(scan(files, target="y")))
    rows_done = []

    def progress(done, total):
        rows_done.append(done)
        if rows_done.count(3000) == 1 and rows_done[-1] != 3000:
            raise CrashError

    with pytest.raises(CrashError):
        model.fit(scan(files, target="y", checkpoint=checkpoint, progress=progress))
    seen = []
    model.fit(scan(files, target="y", checkpoint=checkpoint, progress=lambda done, total: seen.append(done)))
    np.testing.assert_array_equal(weights_of(model), expected)
    assert seen.count(3000) == 1


def test_a_killed_process_leaves_a_checkpoint_that_another_takes_up(frame, tmp_path):
    write(frame, tmp_path, "parquet", n_files=5)
    script = textwrap.dedent(
        """
        import os, signal, sys
        import numpy as np
        from ocrep import PinvRegressor, scan

        folder, end = sys.argv[1], int(sys.argv[2])
        sys.path.insert(0, sys.argv[3])
        from support.small_blocks import use_small_blocks

        use_small_blocks(2**12)

        def progress(done, total):
            if done >= end:
                os.kill(os.getpid(), signal.SIGKILL)

        rows = scan(f"{folder}/*.parquet", target="y", checkpoint=f"{folder}/fit.ckpt", checkpoint_every=0,
                    progress=progress)
        np.save(f"{folder}/coef.npy", PinvRegressor(30, random_state=0).fit(rows).output_coef_)
        """
    )
    for end, status in ((1200, -signal.SIGKILL), (9999, 0)):
        command = [sys.executable, "-c", script, str(tmp_path), str(end), str(Path(__file__).parents[1])]
        done = subprocess.run(command, check=False, timeout=120)
        assert done.returncode == status
        assert (tmp_path / "fit.ckpt").exists() == (status != 0)
    expected = PinvRegressor(30, random_state=0).fit(scan(tmp_path, target="y"))
    np.testing.assert_array_equal(np.load(tmp_path / "coef.npy"), weights_of(expected))


@pytest.mark.parametrize("place", [0.1, 0.6])
def test_a_corrupt_file_is_named_and_once_mended_the_fit_goes_on(frame, tmp_path, place):
    checkpoint = tmp_path / "fit.ckpt"
    paths = write(frame, tmp_path, "parquet", n_files=5)
    expected = PinvRegressor(30, random_state=0).fit(scan(paths, target="y"))
    good = paths[3].read_bytes()
    at = int(place * len(good))
    paths[3].write_bytes(good[:at] + bytes(64) + good[at + 64 :])
    source = scan(paths, target="y", checkpoint=checkpoint)
    with pytest.raises(ValueError, match=r"part3\.parquet"):
        PinvRegressor(30, random_state=0).fit(source)
    assert checkpoint.exists()
    paths[3].write_bytes(good)
    resumed = PinvRegressor(30, random_state=0).fit(source)
    np.testing.assert_array_equal(weights_of(resumed), weights_of(expected))


@pytest.fixture
def interrupted(frame, tmp_path):
    """A checkpoint, and a function that fits with it."""
    checkpoint = tmp_path / "fit.ckpt"
    model = PinvRegressor(30, random_state=0, **PAPER)
    source = {"checkpoint": checkpoint, "checkpoint_every": 0}
    with pytest.raises(CrashError):
        model.fit(as_glob(frame, tmp_path, **source, progress=killing(2000)))
    return lambda model, **options: model.fit(scan(str(tmp_path / "*.parquet"), target="y", **source, **options))


@pytest.mark.parametrize(
    "options",
    [
        {"random_state": 1},
        {"n_hidden": 31},
        {"activation": "tanh"},
        {"fit_intercept": True},
        {"direct_link": True},
        {"gamma": "kfold"},
        {"solver": "qr"},
        {"input_scaling": (-2, 2)},
    ],
)
def test_another_model_raises(interrupted, options):
    with pytest.raises(ValueError, match=r"fit\.ckpt is the checkpoint of a fit with other parameters"):
        interrupted(PinvRegressor(30, random_state=0, **PAPER).set_params(**options))


def test_other_columns_raise(interrupted):
    with pytest.raises(ValueError, match="other parameters, columns"):
        interrupted(PinvRegressor(30, random_state=0, **PAPER), columns=NAMES[::-1])


def test_other_rows_raise(interrupted, frame, tmp_path):
    write(frame.assign(y=frame["y"] + 1.0), tmp_path, "parquet")
    with pytest.raises(ValueError, match="checkpoint of a fit on other rows"):
        interrupted(PinvRegressor(30, random_state=0, **PAPER))
    write(frame.iloc[:500], tmp_path, "parquet")
    with pytest.raises(ValueError, match=r"other rows|other parameters"):
        interrupted(PinvRegressor(30, random_state=0, **PAPER))
    write(frame, tmp_path, "parquet")  # the same rows in files that were written anew
    interrupted(PinvRegressor(30, random_state=0, **PAPER))


@pytest.mark.parametrize("roles", [{"target": "z"}, {"target": "y", "sample_weight": "z"}])
def test_another_target_or_weight_of_the_same_files_raises(frame, tmp_path, roles):
    paths = write(frame.assign(z=frame["y"] ** 2), tmp_path, "parquet", n_files=5)
    options = {"columns": NAMES, "checkpoint": tmp_path / "fit.ckpt", "checkpoint_every": 0}
    model = PinvRegressor(30, random_state=0, input_scaling=(-1.0, 1.0))
    with pytest.raises(CrashError):
        model.fit(scan(paths, target="y", **options, progress=killing(2000)))
    with pytest.raises(ValueError, match="checkpoint of a fit on other rows"):
        model.fit(scan(paths, **roles, **options))


def test_fewer_rows_in_a_stream_raise(frame, tmp_path):
    checkpoint = tmp_path / "fit.ckpt"
    model = TikhonovRegressor()
    with pytest.raises(CrashError):
        model.fit(scan(as_blocks(frame), checkpoint=checkpoint, checkpoint_every=0, progress=killing(2900)))
    for n_rows in (300, 2000):
        with pytest.raises(ValueError, match="on other rows"):
            model.fit(scan(as_blocks(frame.iloc[:n_rows]), checkpoint=checkpoint))
    assert checkpoint.exists()


def test_a_file_that_is_not_a_checkpoint_raises_and_is_not_overwritten(interrupted, tmp_path):
    checkpoint = tmp_path / "fit.ckpt"
    whole = checkpoint.read_bytes()
    for damaged in (b"my thesis", whole[: len(whole) // 2]):
        checkpoint.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"fit\.ckpt is not a checkpoint of ocrep, or a damaged one"):
            interrupted(PinvRegressor(30, random_state=0, **PAPER))
        assert checkpoint.read_bytes() == damaged
    with checkpoint.open("wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(ValueError, match=r"not a checkpoint .*it is a single array"):
        interrupted(PinvRegressor(30, random_state=0, **PAPER))
    with checkpoint.open("wb") as file:
        np.savez(file, format=np.array("ocrep checkpoint 3"), fit=np.array("x"))
    with pytest.raises(ValueError, match=r"not a checkpoint .*it lacks digest, fingerprints, n_rows, stage"):
        interrupted(PinvRegressor(30, random_state=0, **PAPER))
    with checkpoint.open("wb") as file:
        np.savez(file, format=np.array("ocrep checkpoint 99"))
    with pytest.raises(ValueError, match="another version"):
        interrupted(PinvRegressor(30, random_state=0, **PAPER))
    checkpoint.write_bytes(whole)
    with np.load(checkpoint) as held:
        other = {**held, "stage": np.array("ASummaryOfTheFuture")}
    with checkpoint.open("wb") as file:
        np.savez(file, **other)
    with pytest.raises(ValueError, match="another version"):
        interrupted(PinvRegressor(30, random_state=0, **PAPER))


def test_a_checkpoint_that_cannot_be_written_raises_before_a_row_is_read(frame, tmp_path):
    read = []
    source = scan(as_blocks(frame), checkpoint=tmp_path / "none" / "fit.ckpt", progress=lambda *rows: read.append(rows))
    with pytest.raises(ValueError, match=r"fit\.ckpt' cannot be written \(No such file or directory\): name a file"):
        PinvRegressor(30, random_state=0).fit(source)
    assert not read


def test_a_checkpoint_needs_a_seed(frame):
    with pytest.raises(ValueError, match="random_state=0"):
        PinvRegressor(30).fit(scan(as_blocks(frame), checkpoint="fit.ckpt"))


def test_a_checkpoint_holds_no_code(interrupted, tmp_path):
    with np.load(tmp_path / "fit.ckpt", allow_pickle=False) as held:
        assert all(held[name].dtype.kind in "fiuU" for name in held.files)


def bent(Z):
    return np.arctan(Z)


def test_an_activation_of_ones_own_is_told_apart_by_name(frame, tmp_path):
    rows = {"checkpoint": tmp_path / "fit.ckpt", "checkpoint_every": 0}
    options = {"n_hidden": 30, "random_state": 0, "input_scaling": (-1.0, 1.0)}
    with pytest.raises(CrashError):
        PinvRegressor(activation=bent, **options).fit(scan(as_blocks(frame), **rows, progress=killing(2000)))
    for other in (np.cos, "tanh"):
        with pytest.raises(ValueError, match="other parameters"):
            PinvRegressor(activation=other, **options).fit(scan(as_blocks(frame), **rows))
    PinvRegressor(activation=bent, **options).fit(scan(as_blocks(frame), **rows))


def test_a_full_disk_is_a_warning_and_the_fit_goes_on(frame, tmp_path, monkeypatch):
    paths, model = write(frame, tmp_path, "parquet", n_files=5), MODELS["gram"]
    expected = weights_of(clone(model).fit(scan(paths, target="y")))

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.warns(
        RuntimeWarning, match=r"fit\.ckpt could not be written \(No space left on device\): the fit goes on"
    ):
        fitted = clone(model).fit(scan(paths, target="y", checkpoint=tmp_path / "fit.ckpt", checkpoint_every=0))
    np.testing.assert_array_equal(weights_of(fitted), expected)
    assert not list(tmp_path.glob(".*.part"))


def test_what_a_killed_fit_left_is_swept_and_nothing_else(frame, tmp_path):
    paths = write(frame, tmp_path, "parquet", n_files=2)
    ours, others = tmp_path / ".fit.ckpt.0123abcd.part", [tmp_path / ".fit.ckpt.x.part", tmp_path / ".a.0123abcd.part"]
    for path in (ours, *others):
        path.write_text("half")
    PinvRegressor(5, random_state=0).fit(scan(paths, target="y", checkpoint=tmp_path / "fit.ckpt"))
    assert not ours.exists()
    assert all(path.exists() for path in others)


def test_a_folder_is_not_called_a_checkpoint_to_delete(frame, tmp_path):
    paths = write(frame, tmp_path, "parquet", n_files=2)
    with pytest.raises(ValueError, match="is not a file: name a file, which need not exist"):
        PinvRegressor(5, random_state=0).fit(scan(paths, target="y", checkpoint=tmp_path))
