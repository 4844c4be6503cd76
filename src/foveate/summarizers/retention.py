"""What a shorter form lost or made up, and a summarizer that gives nothing which did either."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from foveate.core.protocols import Compressed, Summarizer
from foveate.core.tokens import TokenCounter
from foveate.summarizers.facts import Fact, FactKind, facts
from foveate.summarizers.facts.base import plain
from foveate.summarizers.facts.literals import capitalised
from foveate.summarizers.segments import Span, clauses, sentences, touched, words, written

__all__ = ["Audit", "Fact", "FactKind", "GuardedSummarizer", "audit", "facts", "retained"]

_ARTICLES = frozenset({"a", "an", "the", "and"})
_FIGURES = frozenset({FactKind.NUMBER, FactKind.DATE, FactKind.MONEY, FactKind.QUANTITY, FactKind.IDENTIFIER})
_DATE = re.compile(r"(\d{4})?(?:-(\d\d))?(?:-(\d\d))?")

Keys = Collection[tuple[FactKind, str]]


@dataclass(frozen=True, slots=True)
class Audit:
    """A text and a shorter form of it, compared fact by fact.

    Attributes:
        facts: the source's facts, in its order.
        lost: those of them that the shorter form does not say; one mention is enough, a flipped negation is none.
        added: facts of the shorter form that the source does not hold, code apart; offsets are into the shorter form.
    """

    facts: tuple[Fact, ...]
    lost: tuple[Fact, ...]
    added: tuple[Fact, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing was lost and nothing made up."""
        return not self.lost and not self.added

    @property
    def kept_share(self) -> float | None:
        """The share of the source's facts that is kept, mentions counted; None where it has none."""
        return 1.0 - len(self.lost) / len(self.facts) if self.facts else None

    @property
    def kept_by_kind(self) -> Mapping[FactKind, float]:
        """The same for each kind that the source has."""
        lost = Counter(fact.kind for fact in self.lost)
        return {kind: 1.0 - lost[kind] / n for kind, n in Counter(fact.kind for fact in self.facts).items()}

    def report(self) -> str:
        """A line with the share, and one for each lost or added fact with its kind and place."""
        lines = [f"kept {len(self.facts) - len(self.lost)} of {len(self.facts)} facts, added {len(self.added)}"]
        for what, found in (("lost", self.lost), ("added", self.added)):
            lines += [f"{what} {f.kind} {' '.join(f.text.split())!r} at {f.start}-{f.end}" for f in found]
        return "\n".join(lines)


def audit(source: str, compressed: str) -> Audit:
    """What `compressed` lost of the facts of `source`, and which it made up.

    Facts are compared by kind and key (`facts` says what they are and what it cannot see), whatever their number and
    order. A fuller date says a part of it, and a number is not made up where it stands in the source with a unit or in
    a date. A capitalised word says a name wherever it stands; a made-up name is not seen where it opens a sentence.
    """
    mine, theirs = facts(source), facts(compressed)
    keys, said = {(f.kind, f.key) for f in mine}, {(f.kind, f.key) for f in theirs}
    names = {word.low for word in capitalised(plain(compressed))}
    lost = [f for f in mine if not (_is_said(f, said) or (f.kind is FactKind.NAME and f.key in names))]
    figures = {number for f in mine if f.kind in _FIGURES for number in re.findall(r"\d+(?:\.\d+)?", f.key)}
    known = set(words(plain(source).replace("'s", " ").casefold()))
    added = [
        f
        for f in theirs
        if not (
            f.kind is FactKind.CODE
            or _is_said(f, keys)
            or (f.kind is FactKind.NAME and known.issuperset(words(f.key)))
            or (f.kind is FactKind.NUMBER and f.key in figures)
        )
    ]
    return Audit(mine, tuple(lost), tuple(added))


def retained(source: str, shorter: str) -> float:
    """Share of the source's words, articles and "and" apart, that a shorter form still has, 0 to 1."""
    whole = [w for w in words(source) if w not in _ARTICLES]
    rest = [w for w in words(shorter) if w not in _ARTICLES]
    return min(1.0, len(rest) / len(whole)) if whole else 1.0


@dataclass(frozen=True, slots=True)
class GuardedSummarizer:
    """Another summarizer's forms, as long as `audit` finds nothing lost and nothing added.

    Attributes:
        inner: whose forms are checked; with the same counter.
        counter: the counter `max_tokens` is meant in.
        repair: whether the clauses of the source that hold what was lost are put back first: on a line after the form;
            or in their order, where it is made of the source's clauses, and those without a fact give way from the end.
    """

    inner: Summarizer
    counter: TokenCounter
    repair: bool = True

    @property
    def name(self) -> str:
        return f"{self.inner.name}+guard"

    def compress(self, text: str, max_tokens: int, hint: str = "") -> Compressed | None:
        """The inner form, repaired where it must be; None where it cannot be, does not fit or has no word.

        A form that is no shorter than the text is not given: the text is where it fits.
        """
        found = self.inner.compress(text, max_tokens, hint)
        if found is None or not words(found.text):
            return None
        seen = audit(text, found.text)
        if seen.lost and self.repair and not seen.added:
            whole = self._repaired(text, found.text, seen, max_tokens)
            found, seen = Compressed(whole, retained(text, whole)), audit(text, whole)
        return self._bounded(text, found, max_tokens) if seen.holds else None

    def _repaired(self, text: str, form: str, seen: Audit, max_tokens: int) -> str:
        """The form with the clauses of the text that hold what was lost."""
        units = [clause for sentence in sentences(text) for clause in clauses(text, sentence)]
        missing = _holders(units, seen.lost)
        kept = _kept(text, units, form)
        if kept is None:
            return f"{form.rstrip()}\n{_joined(text, units, missing)}"
        telling = {i for fact in seen.facts for i in touched(units, fact.start, fact.end)}
        cost = {i: max(1, self.counter.count(text[units[i].start : units[i].end])) for i in missing.union(kept)}
        spare = [i for i in kept if i not in telling]
        over = sum(cost.values()) - max_tokens
        while spare and over > 0:
            over -= cost.pop(spare.pop())
        while spare and self.counter.count(_joined(text, units, cost)) > max_tokens:
            del cost[spare.pop()]
        return _joined(text, units, cost)

    def _bounded(self, text: str, found: Compressed, max_tokens: int) -> Compressed | None:
        tokens, whole = self.counter.count(found.text), self.counter.count(text)
        if tokens < whole and len(found.text) <= len(text):
            return found if tokens <= max_tokens else None
        return Compressed(text, 1.0) if whole <= max_tokens else None


def _is_said(fact: Fact, said: Keys) -> bool:
    """Whether the keys hold the fact, or a date that it is a part of."""
    if (fact.kind, fact.key) in said:
        return True
    parts = _DATE.fullmatch(fact.key) if fact.kind is FactKind.DATE else None
    return parts is not None and any(_is_part(parts, key) for kind, key in said if kind is FactKind.DATE)


def _is_part(parts: re.Match[str], key: str) -> bool:
    whole = _DATE.fullmatch(key)
    return whole is not None and all(
        part in {None, other} for part, other in zip(parts.groups(), whole.groups(), strict=True)
    )


def _holders(units: Sequence[Span], lost: Sequence[Fact]) -> set[int]:
    """The units that hold one mention of each lost fact: of several the one that adds least."""
    mentions: dict[tuple[FactKind, str], list[range]] = {}
    for fact in lost:
        mentions.setdefault((fact.kind, fact.key), []).append(touched(units, fact.start, fact.end))
    chosen: set[int] = set()
    for options in mentions.values():
        chosen.update(
            min(options, key=lambda span: sum(units[i].end - units[i].start for i in span if i not in chosen))
        )
    return chosen


def _kept(text: str, units: Sequence[Span], form: str) -> list[int] | None:
    """The units the form is made of, None where it is made of anything else."""
    kept, position = [], 0
    for i, unit in enumerate(units):
        while form[position : position + 1].isspace():
            position += 1
        piece = text[unit.start : unit.end].strip()
        if piece and form.startswith(piece, position):
            kept.append(i)
            position += len(piece)
    return kept if not form[position:].strip() else None


def _joined(text: str, units: Sequence[Span], kept: Collection[int]) -> str:
    return written(text, [units[i] for i in sorted(kept)])
