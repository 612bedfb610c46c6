"""Published cells and comparisons by name."""

from ocrep.study.published import cells, rivalries


def cell(experiment, data, n_hidden, method):
    where = experiment, data, n_hidden, method
    return next(c for c in cells() if (c.experiment, c.data, c.n_hidden, c.method) == where)


def rivalry(experiment, data, method, n_hidden=None):
    found = (r for r in rivalries() if (r.rival.experiment, r.rival.data, r.rival.method) == (experiment, data, method))
    return next(r for r in found if n_hidden in (None, r.rival.n_hidden))
