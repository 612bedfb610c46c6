"""Text from files made safe for a terminal."""

from __future__ import annotations

import re
import sys
from typing import Any
from unicodedata import category

# ASCII but for control characters, and line ends and tabs, which harm nothing.
_PLAIN = re.compile(r"[\n\t\x20-\x7e]*")
_SPACES, _HIDDEN = "Zs", "CZ"


def visible(text: str) -> str:
    """The text with control characters, marks of direction and bytes that are not UTF-8 as \\uXXXX.

    A column name may hold the escape sequences that recolour, rename or clear a terminal.
    """
    return text if _PLAIN.fullmatch(text) else "".join(map(_shown, text))


def _shown(character: str) -> str:
    kind = category(character)
    if character in "\n\t" or kind == _SPACES or kind[0] not in _HIDDEN:
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


class VisibleOutput:
    """Standard output, for a writer of text that does not know whether it writes to a terminal."""

    def write(self, text: str) -> int:
        return sys.stdout.write(visible(text) if sys.stdout.isatty() else text)

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stdout, name)
