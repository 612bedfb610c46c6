"""Write docs/rules.md from the rules' own docstrings, so that the page cannot say anything else than the code."""

import inspect
from pathlib import Path

from ocrep import rules

PAGE = Path(__file__).resolve().parent.parent / "docs" / "rules.md"
GROUPS = {
    "spectral": "Without a search",
    "cross_validation": "Exact cross-validation",
    "criteria": "Estimates of the prediction error",
    "inverse_problems": "Inverse problems",
    "ridge": "Ridge regression",
    "muniz": "The Muniz family",
}
HEAD = """# Rules for γ

`gamma=` takes any of these names, a rule object such as `rules.KFold(n_folds=5)`, or a number ≥ 0. All of them read
one factorisation; `compare_rules(X, y)` tries them all. *Needs* says what a rule reads: the spectrum alone, one
factor per fold (`store_folds=True` keeps them for `with_gamma`), or the rows once more (only in `fit`). *Degree* d: γ
goes with c^d when H is scaled by c. Every rule but `none` takes `floor="precision"` (γ ≥ √ε·σ₁²), a number relative to
σ₁², or 0.0, which is right for data known to more than eight digits.

With α̂ = UᵀT/σ, λ = σ², p the rank, s² = rss/(n − p − 1).

This page is made by `python tools/rules_page.py`.
"""


def page() -> str:
    """The page's text."""
    parts = [HEAD]
    for module, title in GROUPS.items():
        parts.append(f"\n## {title}\n")
        for name in rules.names():
            rule = rules.resolve(name)
            if type(rule).__module__.rsplit(".", 1)[-1] != module:
                continue
            text = inspect.cleandoc(type(rule).__doc__ or "")
            first, _, rest = text.partition("\n\n")
            parts.append(f"### `{name}`\n\n{first}\n{rest and chr(10) + rest + chr(10)}")
            parts.append(f"`rules.{type(rule).__name__}`; needs the {rule.needs}; degree {rule.degree}.\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
