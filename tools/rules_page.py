"""Write docs/rules.md from the rules' own descriptions, so that page and code cannot differ."""

import inspect
import re
from pathlib import Path

from ocrep import rules

PAGE = Path(__file__).resolve().parent.parent / "docs" / "rules.md"
GROUPS = {
    "spectral": "Without a search",
    "cross_validation": "Exact cross-validation",
    "criteria": "Estimates of the prediction error",
    "inverse_problems": "Inverse problems",
    "ridge": "Ridge regression\n\nThese formulas are defined for one target. `ddof` sets the estimate of the noise "
    "variance, s² = rss/(n − p − `ddof`); it is 1 by default.",
    "muniz": "The Muniz family of ridge formulas",
}
HEAD = """# Rules for γ

`gamma=` takes any of these names, a rule object such as `rules.KFold(n_folds=5)`, or a number ≥ 0. All rules read one
factorisation; `compare_rules(X, y)` compares them all. Each entry ends with the rule object and two properties:

- *needs*: the spectrum alone, one factor per fold (`store_folds=True` stores them for `with_gamma`), or the rows, which
  are available only in `fit`;
- *degree* d: γ is multiplied by c^d when H is scaled by c.

With `gamma_per_target=True` a rule chooses γ for each target as if it were the only one. Rules that do not read the
targets, `ocrep` and `none`, give all of them the same γ. `KFold(scoring="error")` cannot: all targets together decide
which class a row gets.

Every rule except `none` takes `floor`: γ is at least `floor`·σ₁². "precision" stands for √ε. It damps every direction
with σ < ε^¼·σ₁, and it is the default of the rules that look only at the spectrum or at the training error: where H is
singular, σ_p is rounding noise and the training error sees no harm in it. Rules that judge γ by held-out rows (`kfold`,
`loo`, `ocrep_cv`) see the harm themselves; their default is "rounding", ε. 0.0 turns the floor off.

Median test error over ten splits (two for Segment), RMSE or percent misclassified (`python benchmarks/floor.py`):

| case | kfold √ε | kfold ε | loo √ε | loo ε | ocrep_cv √ε | ocrep_cv ε |
|---|---|---|---|---|---|---|
| machine_cpu, 146 units | 65 | 65 | 50.7 | 50.7 | 71 | 71 |
| housing, 300 units | 3.53 | 3.53 | 3.5 | 3.5 | 3.64 | 3.64 |
| abalone, 300 units | 2.13 | 2.13 | 2.16 | 2.16 | 2.14 | 2.14 |
| iris, 200 units | 3.33 | 3.33 | 4.44 | 4.44 | 4.44 | 4.44 |
| wine, 300 units | 0 | 0 | 0 | 0 | 0 | 0 |
| segment, 1500 units | 4.33 | 4.33 | 4.33 | 4.33 | 4.33 | 4.33 |
| swiss roll, noise 0.0, 300 units | 0.0168 | 3.21e-05 | 0.0168 | 3.21e-05 | 0.0168 | 3.21e-05 |
| swiss roll, noise 0.05, 300 units | 0.018 | 0.00457 | 0.018 | 0.00455 | 0.018 | 0.00457 |
| sin(8x), 200 units | 0.0489 | 6.25e-06 | 0.0489 | 6.25e-06 | 0.0489 | 6.25e-06 |

No singular case needs the larger floor, and smooth functions of few inputs lose by it.

Symbols: σ₁ and σ_p are the largest and the smallest singular value of H, p is its rank, α̂ = UᵀT/σ, λ = σ²,
s² = rss/(n − p − 1), and GM is the geometric mean.

This page is made by `python tools/rules_page.py`.
"""


def page() -> str:
    """The page's text."""
    parts = [HEAD]
    for group, title in GROUPS.items():
        parts.append(f"\n## {title}\n")
        parts += [entry(rule) for rule in map(rules.resolve, rules.names()) if group_of(rule) == group]
    return "\n".join(parts)


def group_of(rule: rules.Rule) -> str:
    """The Muniz family by name, any other rule by its module."""
    return "muniz" if rule.name.startswith("muniz") else type(rule).__module__.rsplit(".", 1)[-1]


def entry(rule: rules.Rule) -> str:
    """Name, description, options and properties of one rule."""
    options = "".join(f"- `{name}` ({kind}): {text}\n" for name, kind, text in own_options(rule))
    call = repr(rule).replace("name=", "").replace("'", '"')
    return (
        f"### `{rule.name}`\n\n{rule.description}\n\n{options and options + chr(10)}"
        f"`rules.{call}`; needs the {rule.needs}; degree {rule.degree}.\n"
    )


def own_options(rule: rules.Rule) -> list[tuple[str, str, str]]:
    """Name, type and meaning of the parameters that the docstring tells of, without those the head explains."""
    section = inspect.cleandoc(type(rule).__doc__ or "").partition("Parameters\n----------\n")[2]
    found = re.findall(r"^(\w+) : (.+)\n((?:    .+\n?)+)", section, flags=re.MULTILINE)
    return [(name, kind, " ".join(text.split())) for name, kind, text in found if name not in ("floor", "name", "ddof")]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
