"""Cuts a text into spans that can be left out whole: code blocks, list items, table rows, sentences, and clauses.

The spans cover the text without gap or overlap, each with the white space that follows it, so any subset written in
order is made of the source's own words, joined as the source joins them. No span ends inside a word, number,
address or code.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sentencex.sentencex import segment

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_SURROGATE = re.compile("[\ud800-\udfff]")

FENCE = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n.*?(?:^[ \t]*\1[ \t]*(?:\n|\Z)|\Z)", re.MULTILINE | re.DOTALL)
_WHOLE_LINE = re.compile(r"^(?:[ \t]*(?:[-*+•–]|\(?(?:\d{1,3}|[A-Za-z])[.)])[ \t]+\S|[ \t]*\|| {4,}\S|\t+\S)")
_CLAUSE_END = re.compile(
    rf"[;；，]\s*|:\s+|[ \t]+[—–][ \t]+|,\s+(?=(?:and|but|so|because|which|while|although|though|since|when|where|if"
    rf"|then|yet|or else|who|as)\b)|(?<=[{CJK}])[、,]\s*",
)
_QUOTING = re.compile(r"`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|「[^」\n]*」|\([^()\n]*\)|(?<!\S)\S*\w(?:://|@)\S+")

_WORD = re.compile(rf"[{CJK}]|[^\W{CJK}]+(?:['’][^\W{CJK}]+)*")


@dataclass(frozen=True, slots=True)
class Span:
    """text[start:end] of the source; `code` marks what must never be read as prose."""

    start: int
    end: int
    code: bool = False


def words(text: str) -> list[str]:
    """The words of a text, lowercased; each CJK character is a word of its own."""
    return _WORD.findall(text.lower())


def sentences(text: str) -> list[Span]:
    """Code blocks, list items and table rows whole, and the sentences of the rest, in order."""
    spans: list[Span] = []
    position = 0
    for fence in FENCE.finditer(text):
        spans.extend(_prose(text, position, fence.start()))
        spans.append(Span(fence.start(), fence.end(), code=True))
        position = fence.end()
    spans.extend(_prose(text, position, len(text)))
    return _joined_blanks(text, spans)


def clauses(text: str, span: Span) -> list[Span]:
    """The clauses of a sentence: cut at semicolons, colons, dashes, and commas before a conjunction, not in quotations.

    An enumeration is not cut: its items share the verb, and the negation, that stand before them.
    """
    if span.code:
        return [span]
    sentence = text[span.start : span.end]
    shut = [quoted.span() for quoted in _QUOTING.finditer(sentence)]
    ends = [m.end() for m in _CLAUSE_END.finditer(sentence) if not any(a < m.start() < b for a, b in shut)]
    cuts = [0, *(end for end in ends if end < len(sentence)), len(sentence)]
    parts = [Span(span.start + a, span.start + b) for a, b in pairwise(cuts) if a < b]
    return _joined_blanks(text, parts)


def written(text: str, spans: Sequence[Span]) -> str:
    """Some spans of a text in its order as one text, each that begins a line on a line of its own."""
    pieces: list[str] = []
    for span in spans:
        if pieces and text[span.start - 1 : span.start] == "\n" and not pieces[-1].endswith("\n"):
            pieces.append("\n")
        pieces.append(text[span.start : span.end])
    return "".join(pieces).strip()


def touched(spans: Sequence[Span], start: int, end: int) -> range:
    """The indices of the spans that text[start:end] lies in; `spans` cover the text in order."""
    first = bisect_right(spans, start, key=lambda span: span.start) - 1
    return range(max(first, 0), bisect_left(spans, end, key=lambda span: span.start))


def _prose(text: str, start: int, end: int) -> Iterator[Span]:
    """Whole lines where the line is an item or a row, sentences elsewhere."""
    position = paragraph = start
    for line in text[start:end].splitlines(keepends=True):
        if _WHOLE_LINE.match(line):
            yield from _sentences(text, paragraph, position)
            yield Span(position, position + len(line), code=line.startswith(("    ", "\t")))
            paragraph = position + len(line)
        position += len(line)
    yield from _sentences(text, paragraph, end)


def _sentences(text: str, start: int, end: int) -> Iterator[Span]:
    if start == end:
        return
    position = start
    for piece in segment("en", _SURROGATE.sub("\ufffd", text[start:end])):
        yield Span(position, position + len(piece))
        position += len(piece)
    if position != end:
        yield Span(position, end)


def _joined_blanks(text: str, spans: list[Span]) -> list[Span]:
    """Spans without a word are added to the span before them, or to the next where there is none."""
    out: list[Span] = []
    for span in spans:
        if out and (not words(text[span.start : span.end]) or not words(text[out[-1].start : out[-1].end])):
            out[-1] = Span(out[-1].start, span.end, out[-1].code or span.code)
        else:
            out.append(span)
    return out
