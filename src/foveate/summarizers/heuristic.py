"""The extractive compressor: AFM's HeuristicCompressor (section 3.4) with what an extract must not lose made a rule.

Sentences are ranked by the words they share with the hint, with a mild penalty on length, a bias to the start, and
pleasantries last; the best that fit are kept, in the order of the source. The result is counted again as written.
Nothing is ever cut below a clause.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from foveate.core.protocols import Compressed
from foveate.core.tiers import Importance
from foveate.core.tokens import TokenCounter
from foveate.rules.importance import classify_text
from foveate.signals.lexical import content_terms
from foveate.summarizers.facts import Fact, FactKind, facts
from foveate.summarizers.retention import retained
from foveate.summarizers.segments import Span, clauses, sentences, touched, words, written


@dataclass(frozen=True, slots=True)
class HeuristicCompressor:
    """Extracts whole sentences, or clauses of sentences that are too long, within a token limit.

    With `strict`, an extract that would lose a fact (a number, date, name, negation, allergy, identifier, code: see
    `facts`) is not offered: the spans that hold them are kept first, and where those alone do not fit the answer is
    None. Without it, as in AFM, only rank decides, and spans are still never cut.

    Attributes:
        counter: the counter `max_tokens` is meant in.
        strict: whether what must survive decides before rank does.
    """

    counter: TokenCounter
    strict: bool = True

    @property
    def name(self) -> str:
        return "heuristic" if self.strict else "heuristic-loose"

    def compress(self, text: str, max_tokens: int, hint: str = "") -> Compressed | None:
        """An extract of at most `max_tokens`; the text itself where it fits, None where no span with a word does."""
        if max_tokens <= 0 or not words(text):
            return None
        if self.counter.count(text) <= max_tokens:
            return Compressed(text, 1.0)
        units = self._units(text, max_tokens)
        order = _ranked(text, units, hint)
        kept = self._fitting(text, units, order, max_tokens)
        if not kept:
            return None
        extract = written(text, [units[i] for i in kept])
        return Compressed(extract, retained(text, extract))

    def _units(self, text: str, max_tokens: int) -> list[Span]:
        """Sentences; those above half the limit in clauses."""
        units: list[Span] = []
        for span in sentences(text):
            long = self.counter.count(text[span.start : span.end]) * 2 > max_tokens
            units.extend(clauses(text, span) if long else [span])
        return units

    def _fitting(self, text: str, units: Sequence[Span], order: Sequence[int], max_tokens: int) -> list[int]:
        """The units kept, ascending. Costs are added up first and the extract as written is counted last."""
        cost = [max(1, self.counter.count(text[unit.start : unit.end])) for unit in units]
        required = _required(text, units, order) if self.strict else []
        left = max_tokens - sum(cost[i] for i in required)
        if required and left < 0 and not self._fits(text, units, required, max_tokens):
            return []
        chosen, must = list(required), set(required)
        for i in order:
            if i not in must and cost[i] <= left:
                chosen.append(i)
                left -= cost[i]
        while chosen and not self._fits(text, units, chosen, max_tokens):
            if chosen.pop() in must:
                return []
        return sorted(chosen)

    def _fits(self, text: str, units: Sequence[Span], kept: Sequence[int], max_tokens: int) -> bool:
        return self.counter.count(written(text, [units[i] for i in sorted(kept)])) <= max_tokens


def _ranked(text: str, units: Sequence[Span], hint: str) -> list[int]:
    """Units from best to worst; ties to the earlier."""
    wanted = frozenset(content_terms(hint))
    score = [_score(text[unit.start : unit.end], wanted, i) for i, unit in enumerate(units)]
    return sorted(range(len(units)), key=lambda i: -score[i])


def _score(unit: str, wanted: frozenset[str], position: int) -> float:
    """Share of the hint's words found, plus 0.2 for standing first and 0.1 for content, less penalties."""
    found = content_terms(unit)
    overlap = len(wanted.intersection(found)) / len(wanted) if wanted else 0.0
    content = 1.0 - 1.0 / (1 + len(set(found)))
    length = math.log1p(max(0, len(words(unit)) - 12) / 12)
    pleasantry = 0.3 if classify_text(unit) is Importance.TRIVIAL else 0.0
    return overlap + 0.2 / (1 + position) + 0.1 * content - 0.05 * length - pleasantry


def _required(text: str, units: Sequence[Span], order: Sequence[int]) -> list[int]:
    """The units that hold what must survive, in order of rank; a name is held by the best unit that says it."""
    held: list[list[Fact]] = [[] for _ in units]
    for fact in facts(text):
        for i in touched(units, fact.start, fact.end):
            held[i].append(fact)
    required = [i for i in order if units[i].code or any(fact.kind is not FactKind.NAME for fact in held[i])]
    said = {fact.key for i in required for fact in held[i]}
    for i in order:
        new = {fact.key for fact in held[i]} - said
        if new:
            required.append(i)
            said |= new
    return required
