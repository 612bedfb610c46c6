"""`Reading`: how a text file is written, that is its encoding, its delimiter, its numbers and its missing values."""

from __future__ import annotations

import codecs
import re
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow
import pyarrow.compute as pc
from pyarrow import types

from ocrep._files.convert import MISSING_WORDS

_PLAIN = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
# What spreadsheets and other countries write in place of a space between thousands.
_SPACES = "[\u00a0\u202f\u2009]"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file's suffix does not tell; texts of Parquet and Arrow files are read so too."""

    decimal: str = "."
    """The decimal mark."""
    thousands: str = ""
    """What stands between thousands; "" for nothing."""
    strip: str = ""
    """Signs before or after numbers, such as $ or %, that are left out."""
    na: tuple[str, ...] = ()
    """Words that stand for a missing value, besides those that always do."""
    encoding: str = "utf-8"
    delimiter: str = ""
    """Between the values of a line; "" guesses."""

    def __post_init__(self) -> None:
        if len(self.decimal) != 1 or self.decimal.isalnum() or not self.decimal.isascii():
            raise ValueError(f"decimal={self.decimal!r} must be one mark of ASCII, such as a comma.")
        if len(self.thousands) > 1 or self.thousands.isalnum() or self.thousands == self.decimal:
            raise ValueError(f"thousands={self.thousands!r} must be one mark, and not the decimal mark {self.decimal}.")
        if any(sign.isdigit() or sign in "+-" or sign in self.decimal + self.thousands for sign in self.strip):
            raise ValueError(f"strip={self.strip!r} must hold signs that are no part of a number, such as $ or %.")
        if len(self.delimiter) > 1 or self.delimiter in ('"', "\n", "\r", "\0") or not self.delimiter.isascii():
            raise ValueError(f"delimiter={self.delimiter!r} must be one character of ASCII, or tab.")
        try:
            "".encode(self.encoding)
        except (LookupError, ValueError):
            raise ValueError(f"encoding={self.encoding!r} is not known: examples are latin-1 and utf-16.") from None

    @property
    def is_utf8(self) -> bool:
        """Whether the bytes are UTF-8, perhaps with a byte-order mark."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig")

    @property
    def arrow_encoding(self) -> str:
        """The encoding by the name that Arrow knows; it passes over the byte-order mark of UTF-8 itself."""
        return "utf8" if self.is_utf8 else self.encoding

    @property
    def missing_words(self) -> list[str]:
        """The words that stand for a missing value."""
        return [*MISSING_WORDS, *self.na]

    def column(self, column: Any) -> Any:
        """An Arrow column whose texts are written as usual: 1234.5, and nothing for a missing value."""
        if not (self.na or self.thousands or self.strip or self.decimal != "."):
            return column
        if types.is_dictionary(column.type):
            if not types.is_string(column.type.value_type) and not types.is_large_string(column.type.value_type):
                return column
            return pyarrow.DictionaryArray.from_arrays(column.indices, self._plain(column.dictionary))
        is_text = types.is_string(column.type) or types.is_large_string(column.type)
        return self._plain(column) if is_text else column

    def _plain(self, words: Any) -> Any:
        trimmed = pc.utf8_trim_whitespace(words)
        bare = trimmed
        if self.strip:
            signs = re.escape(self.strip).replace("]", r"\]")
            bare = pc.utf8_trim_whitespace(pc.replace_substring_regex(bare, f"[{signs}]", ""))
            bare = pc.replace_substring_regex(bare, r"^([+-])\s+", r"\1")
        if self.thousands == " ":
            bare = pc.replace_substring_regex(bare, _SPACES, " ")
        is_number = pc.match_substring_regex(bare, self._numeral())
        plain = pc.replace_substring(bare, self.thousands, "") if self.thousands else bare
        # With a decimal comma 1.5 is not a number: the quotes make sure that it stays a text.
        quoted = pc.binary_join_element_wise("'", trimmed, "'", "")
        other = pc.if_else(pc.match_substring_regex(trimmed, _PLAIN), quoted, words)
        found = pc.if_else(is_number, pc.replace_substring(plain, self.decimal, "."), other)
        missing = pc.is_in(trimmed, pyarrow.array(self.na, type=words.type))
        return pc.if_else(missing, pyarrow.scalar("", type=words.type), found)

    def _numeral(self) -> str:
        point, mark = re.escape(self.decimal), re.escape(self.thousands)
        whole = rf"[1-9]\d{{0,2}}(?:{mark}\d{{3}})+|\d+" if self.thousands else r"\d+"
        return rf"^[+-]?(?:(?:{whole})(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?$"

    def differences(self, other: Reading) -> dict[str, Any]:
        """The fields that are not those of another reading."""
        return {name: value for name, value in asdict(self).items() if value != getattr(other, name)}

    def to_json(self) -> dict[str, Any]:
        """As plain data, for a model file."""
        return {**asdict(self), "na": list(self.na)}

    @classmethod
    def from_json(cls, stored: dict[str, Any], **given: Any) -> Reading:
        """From plain data; what is given goes first."""
        together = {**stored, **given}
        return cls(**{**together, "na": tuple(together.get("na", ()))})
