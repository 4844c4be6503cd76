"""ContradictionProb(u_i, r_{t-1}) of Eq. 5 without a model: a lexical rule, and the seam a trained head fits.

The rule compares the sentences of a turn with those of the reply and takes the largest of

    (1 - 0.5^shared) * strength,   shared = number of content words the two sentences share,

where strength is that of the strongest mismatch found: one sentence negates or avoids what the other affirms (0.8),
they hold a known pair of opposites (0.8), or they give different numbers for the same words (0.6, at least two words
shared). It is 0 without a shared word or an opposite. It knows nothing of meaning: a probability in range only, not a
calibrated one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from foveate.signals.lexical import content_terms, terms

_SENTENCE = re.compile(r"[^.!?;\n]+")
_NUMBER = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)*(?![\w])")

_NEGATORS = (
    "not no never nothing none nobody neither nor cannot without avoid avoids avoiding avoided allergic allergy "
    "allergies intolerant intolerance quit stopped stop refuse refused dislike hate free lacks lack unable"
).split()
_OPPOSITES = (
    "married single; married divorced; alive dead; vegetarian meat; vegan meat; vegan dairy; vegan cheese; hot "
    "cold; open closed; buy sell; bought sold; win lose; won lost; early late; morning evening; left right; true "
    "false; safe dangerous; safe unsafe; healthy sick; employed unemployed; yes no; accept reject; accepted "
    "rejected; pass fail; passed failed; arrive leave; increase decrease; older younger; before after; mother "
    "father; sister brother; son daughter; husband wife; summer winter; monday tuesday; saturday sunday"
)
_MISMATCH, _NUMBERS = 0.8, 0.6
MOST_SENTENCES = 200
"""Of each text, so that two very long ones are not compared sentence by sentence."""


class ContradictionProb(Protocol):
    """Eq. 5's probability that each premise contradicts one hypothesis."""

    def probabilities(self, premises: Sequence[str], hypothesis: str) -> Sequence[float]:
        """One value in [0, 1] a premise; `hypothesis` is the last reply."""
        ...


def _stem(word: str) -> str:
    return terms(word)[0]


_NEGATOR_STEMS = frozenset(_stem(w) for w in _NEGATORS)
_PAIRS = [(_stem(a), _stem(b)) for a, b in (pair.split() for pair in _OPPOSITES.split(";"))]
_OPPOSITE_STEMS = frozenset(_PAIRS + [(b, a) for a, b in _PAIRS])


@dataclass(frozen=True, slots=True)
class _Sentence:
    words: frozenset[str]
    numbers: frozenset[str]
    negated: bool


@lru_cache(maxsize=1 << 16)
def _sentences(text: str) -> tuple[_Sentence, ...]:
    return tuple(_read(part) for part in _sentence_texts(text)[:MOST_SENTENCES])


def _sentence_texts(text: str) -> list[str]:
    guarded = re.sub(r"(?<=\d)\.(?=\d)", "\x1f", text.replace("’", "'"))
    return [part.replace("\x1f", ".") for part in _SENTENCE.findall(guarded)]


def _read(sentence: str) -> _Sentence:
    every = frozenset(terms(sentence))
    negated = bool(every & _NEGATOR_STEMS) or "n't" in sentence.lower()
    numbers = frozenset(_NUMBER.findall(sentence))
    words = frozenset(content_terms(sentence)) - _NEGATOR_STEMS - numbers
    return _Sentence(words, numbers, negated)


@dataclass(frozen=True, slots=True)
class LexicalContradiction:
    """The rule of this module."""

    def probabilities(self, premises: Sequence[str], hypothesis: str) -> list[float]:
        """One value in [0, 0.8] a premise."""
        reply = _sentences(hypothesis)
        return [max((_clash(u, r) for u in _sentences(p) for r in reply), default=0.0) for p in premises]


def _clash(u: _Sentence, r: _Sentence) -> float:
    shared = len(u.words & r.words)
    opposite = any((a, b) in _OPPOSITE_STEMS for a in u.words - r.words for b in r.words - u.words)
    if not shared and not opposite:
        return 0.0
    strength = 0.0
    if shared and u.numbers and r.numbers and not u.numbers & r.numbers and shared >= 2:
        strength = _NUMBERS
    if opposite != (u.negated != r.negated):
        strength = _MISMATCH
    return (1.0 - 0.5 ** (shared + opposite)) * strength
