"""Warnings that users may want to catch or to silence by name."""


class RuleEdgeWarning(UserWarning):
    """The γ lies at an end of its range, or the error on held-out rows is no better than the mean's: see the message.

    See Also
    --------
    ocrep.rules.Choice : Its `edge` says at which end γ lies.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from ocrep import TikhonovRegressor
    >>> from ocrep.exceptions import RuleEdgeWarning
    >>> X, noise = np.random.default_rng(0).normal(size=(2, 60, 1))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", RuleEdgeWarning)
    ...     model = TikhonovRegressor().fit(X, noise[:, 0])
    >>> model.choice_.advice[:40]
    'On rows held out the error is 1.05 times'
    """
