"""How much memory is left, as Linux and its containers tell it."""

from ocrep._linalg import parallel


def test_the_lesser_of_what_is_free_and_what_is_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(parallel, "_CGROUP", tmp_path)
    assert parallel.available_memory() is None
    (tmp_path / "meminfo").write_text("MemTotal:  9000 kB\nMemAvailable:    3000 kB\n")
    assert parallel.available_memory() == 3000 * 1024
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert parallel.available_memory() == 3000 * 1024
    (tmp_path / "memory.max").write_text("51000\n")
    assert parallel.available_memory() == 50000
    (tmp_path / "memory.current").write_text("60000\n")
    assert parallel.available_memory() == 0
    (tmp_path / "meminfo").write_text("MemTotal:  9000 kB\n")
    assert parallel.available_memory() == 0


def test_this_machine_tells():
    assert parallel.available_memory() is None or parallel.available_memory() > 10**6
