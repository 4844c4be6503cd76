"""What must survive letter for letter: code, addresses, identifiers; and names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from foveate.core.tiers import Importance
from foveate.rules.importance import classify_text
from foveate.summarizers.facts.base import CJK, TAKEN, Fact, FactKind, Word
from foveate.summarizers.facts.lexicon import CODES
from foveate.summarizers.segments import FENCE

_CODE = re.compile(r"^(?: {4,}|\t+)\S[^\n]*|`[^`\n]+`", re.MULTILINE)
_END = r"[^\s<>\"“”`、。，；：！？「」（）]"
_DOMAINS = "com|org|net|io|dev|edu|gov|ai|app|de|fr|uk|jp|cn|ru|info"
_FILES = "py|txt|md|json|ya?ml|toml|csv|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|zip|tar|gz|js|ts|html|css|sh|sql|log|exe"
_URL = re.compile(
    rf"(?<![A-Za-z0-9])(?:[A-Za-z][A-Za-z0-9+.-]{{0,30}}://|www\.){_END}+"
    r"|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    rf"|(?<![\w.@/-])(?:[A-Za-z0-9](?:[A-Za-z0-9-]{{0,61}}[A-Za-z0-9])?\.)+(?:{_DOMAINS})\b(?:/{_END}*)?"
)
_PATH = (
    rf"[A-Za-z]:\\{_END}+|(?<![^\s(\"'])(?:~|\.{{1,2}})?/[\w.~-]{_END}*"
    rf"|\b[\w-]{{1,60}}(?:/[\w.-]{{1,60}}){{1,20}}\.[A-Za-z]\w{{0,4}}\b|\b[\w-]{{1,60}}\.(?:{_FILES})\b"
)
_PHONE = (
    r"(?<!\w)(?:\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d[\d .-]{5,}\d|\(\d{2,5}\) ?\d{2,4}[ -]?\d{3,5}"
    r"|\d{3}[-. ]\d{3}[-. ]\d{4}|\d{3}-\d{4}|0\d{2,4}[ /-]\d[\d -]{4,}\d|\d{4}(?:[ -]\d{4}){2,})(?!\w)"
)
_IDENTIFIER = re.compile(
    rf"\b[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}\b|{_PATH}|(?P<phone>{_PHONE})"
    r"|(?<![\w&])[#@][A-Za-z0-9_][\w-]*|(?<![\d.])\d+(?:\.\d+){3,}(?!\d)"
    r"|(?<![\w.])(?!\d{1,3}(?:\.\d{3}){2})\d+(?:\.\d{1,3}){2}(?![\w/])"
    rf"|(?<![A-Za-z0-9_])(?:[A-Z]{{1,3}}-[A-Z]{{1,3}} ?\d{{1,4}}\b"
    rf"|(?!(?:{'|'.join(sorted(CODES))})\d)[A-Za-z]{{1,20}}(?:(?<=[A-Z])-)?\d(?:[\w.:/-]*\w)?)"
    r"|\b[A-Za-z0-9]+(?:_+[A-Za-z0-9]+)+\b|\b[A-Za-z]{0,30}[a-z][A-Z][A-Za-z0-9]*",
    re.ASCII,
)
_HAS_LITERAL = re.compile(r"[\d`@#\\_/]|[a-z][A-Z]|\w\.\w|^(?: {4}|\t)", re.MULTILINE)

_UPPER = "".join(c for c in map(chr, range(0x41, 0x590)) if c.isupper())
_CASED = r"A-Za-z\u00c0-\u024f\u0300-\u036f\u0370-\u052f\u0531-\u0587"
_NAME = re.compile(rf"(?<![{_CASED}\d_'-])[{_UPPER}][{_CASED}]*(?:['-][{_CASED}]+)*")
_OPENING = " \t\"'“”«»()[]*_"
_TITLE = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|[A-Z]))\.$")
_SENTENCE = re.compile(r"[^.!?;\n]+[.!?;\n]*")

_NO_NAMES = frozenset("i i'm i'll i've i'd ok okay mr mrs ms dr prof oh yes no".split())


def codes(source: str) -> Iterator[Fact]:
    """Fenced, indented and backticked code, white space at the ends of lines apart."""
    if "`" not in source and "~~~" not in source and "    " not in source and "\t" not in source:
        return
    position = 0
    for fence in FENCE.finditer(source):
        yield from (_code(source, *m.span()) for m in _CODE.finditer(source, position, fence.start()))
        yield _code(source, *fence.span())
        position = fence.end()
    yield from (_code(source, *m.span()) for m in _CODE.finditer(source, position))


def _code(source: str, start: int, end: int) -> Fact:
    text = source[start:end]
    start, end = start + len(text) - len(text.lstrip()), start + len(text.rstrip())
    return Fact(FactKind.CODE, source[start:end], re.sub(r"[ \t]*\n", "\n", source[start:end]), start, end)


def urls(text: str, source: str) -> Iterator[Fact]:
    """Addresses of pages and mailboxes, without the punctuation after them."""
    if "." not in text and "://" not in text:
        return
    for m in _URL.finditer(text):
        found = m[0].rstrip(".,;:!?'\"*")
        found = found.rstrip(")]}") if "(" not in found else found
        end = m.start() + len(found)
        yield Fact(FactKind.URL, source[m.start() : end], found, m.start(), end)


def identifiers(text: str, source: str) -> Iterator[Fact]:
    """Paths, phone numbers, plates, order ids, UUIDs, versions, CamelCase and snake_case."""
    if not _HAS_LITERAL.search(text):
        return
    for m in _IDENTIFIER.finditer(text):
        found = m[0].rstrip(".,:;!?/-'\")")
        key = re.sub(r"[^\d+]", "", found) if m["phone"] else found
        end = m.start() + len(found)
        yield Fact(FactKind.IDENTIFIER, source[m.start() : end], key, m.start(), end)


def capitalised(text: str) -> Iterator[Word]:
    """Every capitalised word of a plain text, the possessive "'s" left out, `low` as a name is compared."""
    for m in _NAME.finditer(text):
        word = m[0].removesuffix("'s")
        yield Word(word, word.casefold(), m.start(), m.start() + len(word))


def names(text: str, source: str) -> Iterator[Fact]:
    """Capitalised words that do not open a sentence, or that are elsewhere written so inside one.

    A pleasantry ("Thanks, Mel!") names no one worth keeping.
    """
    found = [word for word in capitalised(text) if word.low not in _NO_NAMES]
    inside = {word.low for word in found if not _opens(text, word)}
    if not inside:
        return
    end, idle = 0, False
    for word in found:
        if word.start >= end:
            sentence = _sentence(text, word.start)
            end, idle = sentence.end(), _is_idle(sentence[0])
        if word.low in inside and not idle:
            yield Fact(FactKind.NAME, source[word.start : word.end], word.low, word.start, word.end)


def _opens(text: str, word: Word) -> bool:
    """Whether the word may owe its capital to its place: nothing before it, or no word and no comma."""
    before = text[max(0, word.start - 12) : word.start].rstrip(_OPENING)
    if not before:
        return word.start <= 12
    if re.match(f"[{CJK}]", text[word.end : word.end + 1]):
        return False
    if before[-1] in "-–—":
        before = before[:-1].rstrip(" \t") or "."
    return not (before[-1].isalnum() or before[-1] in f",;:&/'{TAKEN}" or _TITLE.search(before))


def _sentence(text: str, position: int) -> re.Match[str]:
    """The sentence around a word."""
    start = max(text.rfind(mark, 0, position) for mark in ".!?;\n") + 1
    found = _SENTENCE.match(text, start)
    assert found is not None, "a word is no stop"
    return found


def _is_idle(sentence: str) -> bool:
    return TAKEN not in sentence and classify_text(sentence) is Importance.TRIVIAL
