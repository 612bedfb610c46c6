"""Which jobs a protocol consists of, in stages: what later stages run depends on the results of earlier ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import fmean

from ocrep.study.decision import decide
from ocrep.study.experiments import PATH_METHODS, Job
from ocrep.study.protocol import BIASES, PEAK_SETS, REFERENCE_SPLIT, REGRESSION, Protocol, Variant
from ocrep.study.results import Results

# The jobs that take longest come first within a stage, so that none runs alone at its end.
SLOWEST_FIRST = ("segment", "delta_ailerons", "abalone", "diabetes", "housing", "wine", "machine_cpu", "iris")
PEAK_DRAWS = 3


def stages(protocol: Protocol, data_sets: Iterable[str], results: Results) -> Iterator[list[Job]]:
    """Yield the jobs of one stage after the other, the most important first; `results` grows meanwhile.

    The first two stages decide how the paper is to be read. All paths and sizes follow that reading.
    """
    sets = sorted(data_sets, key=lambda name: SLOWEST_FIRST.index(name) if name in SLOWEST_FIRST else -1)
    others = [name for name in sets if name != "segment"]
    yield [job for name in others for biases in BIASES for job in _reference(protocol, name, biases)]
    chosen = decide(results).variant.biases
    yield [job for name in ("delta_ailerons", "housing") if name in sets for job in _further(protocol, name, chosen)]
    variant = decide(results).variant
    segment = [name for name in sets if name == "segment"]
    first = [job for name in segment for job in _reference(protocol, name, chosen)]
    first += [job for name in sets for job in _paths(protocol, name, variant, [REFERENCE_SPLIT])]
    yield first + [job for name in sets for job in _further(protocol, name, chosen)]
    yield _chosen(protocol, sets, variant, results)
    further = range(1, 1 + protocol.path_splits)
    yield [job for name in others for job in (*_paths(protocol, name, variant, further), *_extras(protocol, name))]
    yield _chosen(protocol, sets, variant, results)
    yield [job for name in segment for job in _extras(protocol, name)]
    rest = [biases for biases in BIASES if biases != chosen]
    yield [job for name in others for biases in rest for job in _further(protocol, name, biases)]
    yield [job for name in segment for biases in rest for job in _reference(protocol, name, biases)]
    yield [job for name in segment for job in _paths(protocol, name, variant, further)]
    yield _chosen(protocol, sets, variant, results)
    yield [job for name in segment for biases in rest for job in _further(protocol, name, biases)]


def _reference(protocol: Protocol, data: str, biases: str) -> list[Job]:
    return [Job("fixed", data, REFERENCE_SPLIT, draw, biases) for draw in range(protocol.reference_draws)]


def _further(protocol: Protocol, data: str, biases: str) -> list[Job]:
    counts = protocol.splits_of(data)
    splits = range(1, 1 + counts.splits)
    return [Job("fixed", data, split, draw, biases) for split in splits for draw in range(counts.draws)]


def _paths(protocol: Protocol, data: str, variant: Variant, splits: Iterable[int]) -> list[Job]:
    """All parts of the paths on some splits."""
    segment = data == "segment"
    n_parts, n_draws = (protocol.segment_parts, protocol.segment_draws) if segment else (1, protocol.path_draws)
    return [
        Job("path", data, split, draw, variant.biases, scale_of(data, variant), part)
        for split in splits
        for draw in range(n_draws if split == REFERENCE_SPLIT else 1)
        for part in range(n_parts)
    ]


def scale_of(data: str, variant: Variant) -> str:
    """Return the scale of the targets: classes have only one."""
    return variant.targets if data in REGRESSION else "raw"


def _chosen(protocol: Protocol, data_sets: Iterable[str], variant: Variant, results: Results) -> list[Job]:
    """Draws at the sizes that the paths chose, on each split whose paths are complete."""
    work = []
    for data in data_sets:
        scale = scale_of(data, variant)
        for split in range(1 + protocol.path_splits):
            n_draws = protocol.path_draws if data != "segment" else protocol.segment_draws
            n_draws = n_draws if split == REFERENCE_SPLIT else 1
            sizes = chosen_sizes(results, data, variant, split, n_draws * len(protocol.path_sizes(data)))
            draws = range(protocol.chosen_draws if split == REFERENCE_SPLIT else protocol.path_draws)
            if sizes:
                work += [Job("chosen", data, split, draw, variant.biases, scale, 0, sizes) for draw in draws]
    return work


def chosen_sizes(results: Results, data: str, variant: Variant, split: int, n_rows: int) -> tuple[tuple[str, int], ...]:
    """Return each method's size of least cross-validation error, in the mean over draws; none before all is run.

    Of sizes with the same error the smallest is chosen.
    """
    sizes = []
    for method in PATH_METHODS:
        along: dict[int, list[float]] = {}
        rows = [row for (s, _), row in results.of("path", data, variant, 0, method) if s == split]
        if len(rows) < n_rows:
            return ()
        for row in rows:
            assert row.cv_error is not None
            along.setdefault(row.n_hidden, []).append(row.cv_error)
        sizes.append((method, min(along, key=lambda size: (fmean(along[size]), size))))
    return tuple(sizes)


def _extras(protocol: Protocol, data: str) -> list[Job]:
    """The experiments that are not the paper's own, with the library's own biases."""
    work = []
    for split in range(1 + protocol.beyond_splits):
        draws = range(protocol.beyond_draws if split == REFERENCE_SPLIT else 1)
        kinds = ["beyond", "literature"] if protocol.literature else ["beyond"]
        work += [Job(kind, data, split, draw) for kind in kinds for draw in draws]
        if data in PEAK_SETS:
            work += [Job("peak", data, split, draw) for draw in range(min(len(draws), PEAK_DRAWS))]
    return work + [Job("stability", data, REFERENCE_SPLIT, draw) for draw in range(protocol.stability_draws)]
