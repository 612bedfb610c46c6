"""The page of rules: made from the rules, every symbol defined, every source cited in full."""

import re

import pytest
from support.pages import load_tool

from ocrep import rules

tool = load_tool("rules_page")
PAGE = tool.page()
REFERENCES = PAGE.partition("## References")[2].replace("\n  ", " ").splitlines()


def test_the_page_is_up_to_date_and_has_all_rules():
    assert tool.PAGE.read_text(encoding="utf-8") == PAGE
    assert all(f"**`{name}`**" in PAGE for name in rules.names())
    assert f"## All {len(rules.names())} rules" in PAGE


def test_eight_rules_come_first():
    first = re.findall(r'^\| `"(\w+)"` \|', PAGE.partition("## Symbols")[0], flags=re.MULTILINE)
    assert len(first) == 8
    assert set(first) <= set(rules.names())


@pytest.mark.parametrize("name", rules.names())
def test_the_sources_of_a_rule_are_cited_in_full(name):
    text = rules.resolve(name).description
    cited = re.findall(r"([A-Z][\w'’]+)(?:, [^();]*?)? \(?((?:19|20)\d\d)\b", text.partition("eference")[2])
    assert cited or name in ("none", "ocrep_cv", "ocrep")
    for author, year in cited:
        assert any(author in line and f"({year})" in line for line in REFERENCES), (author, year)


@pytest.mark.parametrize(
    "symbol", ["m_j", "q_j", "α̂", "λ", "s²", "GM", "dof", "rss", "A(γ)", "h_i", "β̂", "ε", "σ₁", "σ_p"]
)
def test_a_symbol_of_the_formulas_is_defined(symbol):
    symbols = PAGE.partition("## Symbols")[2].partition("## All")[0]
    families = [line for line in PAGE.splitlines() if line.startswith("They are statistics of m_j =")]
    assert symbol in symbols or symbol in families[0]
