"""Warnings that users may want to catch or to silence by name."""


class RuleEdgeWarning(UserWarning):
    """The γ that a rule chose says that another network, or other inputs, would do better; the message says which.

    Examples
    --------
    >>> import warnings
    >>> from ocrep.exceptions import RuleEdgeWarning
    >>> warnings.filterwarnings("ignore", category=RuleEdgeWarning)
    """
