"""Documentation of parameters and attributes, written once and put together for every public class."""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc
from typing import TypeVar

Class = TypeVar("Class", bound=type)

PARAMETERS = {
    "n_hidden": """
        n_hidden : int or "auto", default=200
            Number of hidden units M; "auto" chooses it up to `max_hidden` by exact three-fold cross-validation.""",
    "activation": """
        activation : str or callable, default="sigmoid"
            "sigmoid", "tanh", "relu", "sin", "gaussian", "hardlimit", "identity", or a function of an array.""",
    "gamma": """
        gamma : str, Rule or float, default={gamma}
            A rule's name (`ocrep.rules.names()` lists them), a rule object such as `rules.OCReP(floor=0.0)`,
            or a number ≥ 0. "none" is the plain pseudoinverse.""",
    "input_scaling": """
        input_scaling : "minmax", (low, high) or None, default="minmax"
            Scaling of each input to [−1, 1] by its range in training or a given range; None leaves inputs alone.""",
    "weight_init": """
        weight_init : {{"uniform", "normal", "orthogonal"}}, default="uniform"
            Distribution of the input weights and biases: U(−1, 1), N(0, 1), or directions orthonormal in groups.""",
    "weight_scale": """
        weight_scale : float or "inverse_sqrt", default=1.0
            Factor on input weights and biases; "inverse_sqrt" is 1/√M.""",
    "direct_link": """
        direct_link : bool, default=False
            Whether the output also sees the scaled inputs.""",
    "fit_intercept": """
        fit_intercept : bool, default={intercept}
            Whether the output has a constant that is not penalised.""",
    "max_hidden": """
        max_hidden : int, default=300
            The largest size that `n_hidden="auto"` considers; above 300 it searches from coarse to fine.""",
    "store_folds": """
        store_folds : bool or int, default=False
            Whether to store one factor per fold (True: three folds), so that `with_gamma("kfold")` and
            `with_gamma("ocrep_cv")` work later.""",
    "solver": """
        solver : {{"auto", "gram", "qr"}}, default="auto"
            How `fit` computes the triangular factor when no folds are asked for. "auto": by HᵀH where that proves γ
            right to 10⁻⁶, else by one more pass over the rows, else by Householder reflections, which small data take
            at once. "gram": by HᵀH, or an error. "qr": by reflections, as `partial_fit` and folds always do.""",
    "random_state": """
        random_state : int, RandomState instance or None, default=None
            Seed of the hidden layer.""",
    "class_weight": """
        class_weight : dict, "balanced" or None, default=None
            Factor on the weight of each class's rows; "balanced" makes all classes weigh the same.""",
    "calibrate": """
        calibrate : "loo" or None, default=None
            "loo" fits a softmax (logistic for two classes) on the exact leave-one-out outputs, so that no data is held
            out and no model refitted; `predict_proba` exists then, and `predict` and `decision_function` follow it.""",
}

ATTRIBUTES = {
    "gamma_": """
        gamma_ : float
            The chosen γ.""",
    "choice_": """
        choice_ : rules.Choice
            The rule, γ, the searched curve if any, and whether the optimum sits at an edge of the search.""",
    "coef_": """
        coef_ : ndarray of shape (n_features_out,) or (n_targets, n_features_out)
            Output weights W, in scikit-learn's shape; with a direct link the inputs come first.""",
    "intercept_": """
        intercept_ : float or ndarray of shape (n_targets,)
            The constant, 0 without an intercept.""",
    "classes_": """
        classes_ : ndarray of shape (n_classes,)
            The labels.""",
    "calibrator_": """
        calibrator_ : Calibrator
            The map from outputs to probabilities, with `calibrate="loo"`.""",
    "n_hidden_": """
        n_hidden_ : int
            Number of hidden units.""",
    "layer_": """
        layer_ : RandomLayer
            The fitted hidden layer.""",
    "factor_": """
        factor_ : Factor
            The triangular factor of the rows; `partial_fit` goes on from it.""",
    "folds_": """
        folds_ : FoldFactors or None
            One factor per fold, if the rule or `n_hidden="auto"` reads them or `store_folds` asks for them.""",
    "spectrum_": """
        spectrum_ : Spectrum
            Singular values, and every quantity that depends on γ.""",
    "singular_values_": """
        singular_values_ : ndarray
            Singular values of H (of the centred H with an intercept).""",
    "rank_": """
        rank_ : int
            Numerical rank p of H.""",
    "condition_number_": """
        condition_number_ : float
            μ(H) = σ₁/σ_p.""",
    "regularized_condition_number_": """
        regularized_condition_number_ : float
            μ(H^reg) under the chosen γ.""",
    "n_features_in_": """
        n_features_in_ : int
            Number of inputs seen in `fit`.""",
    "feature_names_in_": """
        feature_names_in_ : ndarray of shape (n_features_in_,)
            Names of the inputs, if X was a data frame with text names.""",
}

REFERENCES = """
.. [1] Cancelliere, Gai, Gallinari, Rubini, "OCReP: An Optimally Conditioned Regularization for pseudoinversion
   based neural training", Neural Networks 71 (2015).
"""
_CLASSIFIER_ONLY = ("classes_", "calibrator_")
_NETWORK_ONLY = ("n_hidden_", "layer_")


def documented(parameters: tuple[str, ...], *, see_also: str, gamma: str, intercept: bool) -> Callable[[Class], Class]:
    """Put the sections of `Parameters`, `Attributes`, `See Also` and `References` into a class's docstring.

    The docstring itself has a summary, and its examples after a line "---".
    """

    def decorate(kind: Class) -> Class:
        summary, examples = cleandoc(kind.__doc__ or "").split("\n---\n")
        left_out = (() if "class_weight" in parameters else _CLASSIFIER_ONLY) + (
            () if "n_hidden" in parameters else _NETWORK_ONLY
        )
        told = [PARAMETERS[name].format(gamma=gamma, intercept=intercept) for name in parameters]
        attributes = [text for name, text in ATTRIBUTES.items() if name not in left_out]
        sections = {
            "Parameters": "\n".join(cleandoc(text) for text in told),
            "Attributes": "\n".join(cleandoc(text) for text in attributes),
            "See Also": cleandoc(see_also),
            "References": REFERENCES.strip(),
            "Examples": examples.strip(),
        }
        kind.__doc__ = summary.strip() + "".join(
            f"\n\n{title}\n{'-' * len(title)}\n{text}" for title, text in sections.items()
        )
        return kind

    return decorate
