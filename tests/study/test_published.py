"""The paper's numbers: all of them, under the right table, with their notes."""

from collections import Counter

import pytest
from support.studies import cell, rivalry

from study.published import MISPRINTS, cells, rivalries


def test_all_336_printed_numbers_are_there():
    assert Counter(c.experiment for c in cells()) == {
        "ocrep_vs_cv": 48,
        "hidden_size": 24,
        "condition_ratio": 16,
        "gcv": 24,
        "kibria": 14,
        "hoerl_kennard": 14,
        "elm": 8,
        "relm": 4,
        "trop_elm": 8,
    }
    assert len({(c.experiment, c.data, c.n_hidden, c.method) for c in cells()}) == len(cells())
    sizes = [c for c in cells() if c.experiment in ("hidden_size", "relm", "trop_elm")]
    assert len(cells()) + sum(c.std is not None for c in cells()) + len(sizes) == 336


def test_cells_stand_under_the_papers_tables():
    assert Counter(c.table for c in cells()) == {
        2: 12, 3: 4, 4: 32, 5: 12, 6: 12, 7: 8, 8: 8, 9: 6, 10: 2, 11: 16, 12: 14, 13: 14, 14: 8, 15: 4, 16: 8,
    }  # fmt: skip
    assert cell("elm", "iris", 1000, "elm").table == 14
    assert cell("condition_ratio", "wine", 100, "ocrep/cv").table == 8


def test_every_rival_meets_ocrep_once():
    assert Counter(r.rival.experiment for r in rivalries()) == {
        "ocrep_vs_cv": 24,
        "hidden_size": 16,
        "gcv": 24,
        "kibria": 14,
        "hoerl_kennard": 14,
        "elm": 4,
        "relm": 2,
        "trop_elm": 4,
    }
    assert all(r.ocrep.method == "ocrep" and r.ocrep.data == r.rival.data for r in rivalries())


@pytest.mark.parametrize(
    ("case", "verdict"),
    [
        (("ocrep_vs_cv", "iris", "cv", 50), "ocrep"),
        (("ocrep_vs_cv", "iris", "cv", 100), "rival"),
        (("ocrep_vs_cv", "wine", "cv", 50), "tie"),
        (("hidden_size", "housing", "cv"), "tie"),
        (("hidden_size", "housing", "unregularized"), "ocrep"),  # in words
        (("gcv", "diabetes", "gcv", 50), "rival"),
        (("gcv", "diabetes", "gcv", 100), "tie"),  # in words
        (("gcv", "delta_ailerons", "gcv", 100), "ocrep"),  # in words
        (("hoerl_kennard", "abalone", "hoerl_kennard", 100), "not rival"),
        (("relm", "diabetes", "relm"), "rival"),
        (("relm", "segment", "relm"), "ocrep"),
    ],
)
def test_verdicts_of_the_paper(case, verdict):
    assert rivalry(*case).verdict == verdict


def test_the_papers_counts_of_wins_over_gcv():
    # Section 6.1: GCV wins four cells, three are comparable, OCReP wins "all other cases".
    found = Counter(r.verdict for r in rivalries() if r.rival.experiment == "gcv")
    assert found == {"rival": 4, "tie": 3, "ocrep": 17}


@pytest.mark.parametrize(
    ("case", "half_unit"),
    [
        (("elm", "iris", 1000, "ocrep"), 0.005),  # 2.22
        (("ocrep_vs_cv", "abalone", 300, "ocrep"), 0.0005),  # 2.113
        (("relm", "segment", 760, "ocrep"), 0.005),  # 2.50
        (("ocrep_vs_cv", "delta_ailerons", 300, "cv"), 0.5e-6),  # 1.60e-4
        (("condition_ratio", "abalone", 300, "ocrep/unregularized"), 0.5e-4),  # 2e-4
    ],
)
def test_half_a_unit_of_the_last_printed_digit(case, half_unit):
    assert cell(*case).rounding == pytest.approx(half_unit)


def test_suspected_misprints_are_noted_where_they_are():
    assert {note for c in cells() for note in c.notes} == set(MISPRINTS)
    assert cell("ocrep_vs_cv", "segment", 1000, "cv").misprint
    assert not cell("ocrep_vs_cv", "segment", 1500, "cv").misprint
    assert cell("trop_elm", "housing", 59, "trop_elm").misprint
    assert not cell("trop_elm", "housing", 255, "ocrep").misprint
    tenfold = cell("ocrep_vs_cv", "abalone", 50, "ocrep")
    assert (tenfold.misprint, tenfold.std_misprint) == (False, True)
    kibria = cell("kibria", "machine_cpu", 50, "kibria")
    assert kibria.notes == ("mark", "same_error")
    assert kibria.error == cell("hoerl_kennard", "machine_cpu", 50, "hoerl_kennard").error == 34.28
    repeated = [c for c in cells() if "repeated" in c.notes]
    assert [(c.error, c.std) for c in repeated] == [(2.53, 0.77), (2.17, 0.31)]


def test_quoted_and_repeated_cells():
    assert Counter(c.method for c in cells() if c.quoted) == {"elm": 4, "relm": 2, "trop_elm": 4}
    assert sum(c.repeated for c in cells()) == 6
    for one in (c for c in cells() if c.repeated):
        assert one.error == cell("hidden_size", one.data, one.n_hidden, "ocrep").error
