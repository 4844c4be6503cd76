"""What a fact is, and the plain form of a text that all finders read: same length, so offsets are the source's."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import NamedTuple


class FactKind(StrEnum):
    NUMBER = "number"
    DATE = "date"
    MONEY = "money"
    QUANTITY = "quantity"
    NAME = "name"
    IDENTIFIER = "identifier"
    URL = "url"
    CODE = "code"
    NEGATION = "negation"
    MEDICAL = "medical"


@dataclass(frozen=True, slots=True)
class Fact:
    """Something a shorter form must still say.

    Attributes:
        kind: what it is.
        text: source[start:end].
        key: the normal form it is compared by, together with its kind.
        start, end: offsets into the source, in code points.
    """

    kind: FactKind
    text: str
    key: str
    start: int
    end: int


class Word(NamedTuple):
    """A word of the plain text, without digits; `low` is lower case with straight apostrophes."""

    text: str
    low: str
    start: int
    end: int


CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
TAKEN = "\ue000"
"""Stands in the plain text for what a finder has claimed; neither a word nor a space."""

STOP = re.compile(r"[.!?;:,\n\r…()。！？；：，、؟،؛।|]|[ \t][—–-]+[ \t]")
"""Where a clause ends: a superset of where `segments` cuts."""

# Letters, with the vowel signs that Python does not count as word characters.
_MARKS = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u0900-\u0903\u093a-\u094f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
)
LETTER = rf"(?:[^\W\d_]|[{_MARKS}])"
_WORD = re.compile(rf"{LETTER}+(?:'{LETTER}+)*")


@cache
def _plain_table() -> dict[int, str]:
    table = {0xFF01 + k: chr(0x21 + k) for k in range(94) if chr(0x21 + k).isalnum()}
    for code in range(0x20000):
        if chr(code).isdecimal():
            table[code] = str(unicodedata.decimal(chr(code)))
    table |= dict.fromkeys((0xA0, 0x2007, 0x2009, 0x202F), " ") | {0x3000: " "}
    table |= dict.fromkeys((0x2018, 0x2019, 0x02BC), "'") | dict.fromkeys((0x2010, 0x2011, 0x2212), "-")
    return (
        table
        | {0x066B: ".", 0x066C: ",", 0x066A: "%"}
        | {ord(full): half for full, half in zip("．％＄／－＠＿＋＃￥", ".%$/-@_+#¥", strict=True)}
    )


def plain(text: str) -> str:
    """The text with ASCII digits, plain spaces, hyphens and apostrophes, one character for each of the source's."""
    return text if text.isascii() else text.translate(_plain_table())


def lower(text: str) -> str:
    """Lower case of the same length: the few characters that grow are cut to their first."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(c.lower()[0] for c in text)


def words(text: str) -> list[Word]:
    """The words of a plain text, in order."""
    low = lower(text)
    return [Word(m[0], low[m.start() : m.end()], m.start(), m.end()) for m in _WORD.finditer(text)]


def without(text: str, facts: Sequence[Fact]) -> str:
    """The plain text with every fact's place taken."""
    if not facts:
        return text
    out, position = [], 0
    for fact in sorted(facts, key=lambda fact: fact.start):
        out += (text[position : fact.start], TAKEN * (fact.end - fact.start))
        position = fact.end
    return "".join((*out, text[position:]))
