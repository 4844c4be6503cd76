"""The facts of a text that a shorter form must still say, found by rule in many languages.

Limits. Spelled-out numbers are read in English and, before a counter, in Chinese numerals; months, weekdays and units
in the languages of `lexicon`. Names are capitalised words, so scripts without capitals have none, every German noun is
one, and a sentence's first word is one only where it is capitalised inside a sentence too. A negation is tied to the
next content word, or the last before it, in its clause: two denials of the same word are one, and what follows that
word ("not the red one, the blue") is not compared. Negating prefixes and suffixes ("unsafe", Turkish -me) are not seen.
Roles are not read either: who did what to whom may be swapped without a fact lost.
"""

from __future__ import annotations

from functools import lru_cache

from foveate.summarizers.facts.base import TAKEN, Fact, FactKind, plain, without, words
from foveate.summarizers.facts.figures import figures, worded
from foveate.summarizers.facts.literals import codes, identifiers, names, urls
from foveate.summarizers.facts.negation import medical, negations

__all__ = ["Fact", "FactKind", "facts"]


@lru_cache(maxsize=1024)
def facts(text: str) -> tuple[Fact, ...]:
    """The facts of a text in its order.

    Numbers, dates, money, quantities, names, identifiers, addresses and code do not overlap: what is part of a date is
    no number. Negations and medical facts say how such words belong together and may cover them.
    """
    found = list(codes(text))
    free = without(plain(text), found)
    for literal in (urls, identifiers):
        new = list(literal(free, text))
        found, free = found + new, without(free, new)
    tokens = words(free)
    prose = free
    new = list(figures(free, text))
    found, free = found + new, without(free, new)
    new = list(worded(free, text, [word for word in tokens if free[word.start] != TAKEN]))
    found, free = found + new, without(free, new)
    found += names(free, text)
    found += negations(prose, text, tokens)
    found += medical(prose, text, tokens, found)
    return tuple(sorted(found, key=lambda fact: (fact.start, fact.end, fact.kind)))
