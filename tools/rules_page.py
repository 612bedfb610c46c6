"""Write docs/rules.md from the rules' own descriptions, so that page and code cannot differ."""

import inspect
import re
from pathlib import Path

from ocrep import rules

PAGE = Path(__file__).resolve().parent.parent / "docs" / "rules.md"
TEXT = Path(__file__).with_name("rules_page.md")
GROUPS = {
    "spectral": ("Without a search", ""),
    "cross_validation": ("Exact cross-validation", ""),
    "criteria": ("Estimates of the prediction error", ""),
    "inverse_problems": ("Inverse problems", ""),
    "ridge": (
        "Ridge regression",
        "These formulas are defined for one target. `ddof` sets the estimate of the noise variance,\n"
        "s² = rss/(n − p − `ddof`); it is 1 by default.\n\n",
    ),
    "muniz": (
        "The Muniz family of ridge formulas",
        "They are statistics of m_j = √(s²/α̂_j²) or of q_j = √(λ₁s²/((n − p)s² + λ₁α̂_j²)), j = 1, …, p, or of\n"
        "their inverses, for one target and columns of unit length.\n\n",
    ),
}
BY_NAME = {"spectral": ("none", "ocrep"), "inverse_problems": ("discrepancy", "lcurve", "quasi_optimality")}


def page() -> str:
    """The page's text."""
    head, _, references = TEXT.read_text(encoding="utf-8").partition("ALL RULES\n")
    return head + "\n".join(group(name) for name in GROUPS) + "\n" + references


def group(name: str) -> str:
    """The heading of a group, and its rules behind a fold."""
    title, lead = GROUPS[name]
    own = [rule for rule in map(rules.resolve, rules.names()) if group_of(rule) == name]
    shown = ", ".join(f"<code>{rule.name}</code>" for rule in own)
    entries = "\n".join(entry(rule) for rule in own)
    return f"### {title}\n\n{lead}<details>\n<summary>{shown}</summary>\n\n{entries}\n</details>\n"


def group_of(rule: rules.Rule) -> str:
    """The Muniz family and two small groups by name, any other rule by its module."""
    if rule.name.startswith("muniz"):
        return "muniz"
    found = next((name for name, own in BY_NAME.items() if rule.name in own), type(rule).__module__.rsplit(".", 1)[-1])
    if found not in GROUPS:
        raise ValueError(f"The rule {rule.name} has no group on the page: name it in BY_NAME.")
    return found


def entry(rule: rules.Rule) -> str:
    """Name, description, options and properties of one rule."""
    options = "".join(f"- `{name}` ({kind}): {text}\n" for name, kind, text in own_options(rule))
    call = repr(rule).replace("name=", "").replace("'", '"')
    return (
        f"**`{rule.name}`** {rule.description}\n\n{options and options + chr(10)}"
        f"`rules.{call}`; needs the {rule.reads}; degree {rule.degree}.\n"
    )


def own_options(rule: rules.Rule) -> list[tuple[str, str, str]]:
    """Name, type and meaning of the parameters that the docstring tells of, without those the head explains."""
    section = inspect.cleandoc(type(rule).__doc__ or "").partition("Parameters\n----------\n")[2]
    found = re.findall(r"^(\w+) : (.+)\n((?:    .+\n?)+)", section, flags=re.MULTILINE)
    return [(name, kind, " ".join(text.split())) for name, kind, text in found if name not in ("floor", "name", "ddof")]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
