"""Dependency(u_i) of Eq. 1: how much later turns lean on a turn.

The paper names the signal and does not define it. Here: turn j leans on an earlier turn i by

    lean(j, i) = share of the content words of u_j that u_i was the first turn to say,
                 plus one half where i = j - 1 and u_j opens with an anaphor ("it", "that one", "they", ...), at most 1

and dependency(u_i) is the noisy-or of those, each halved every `half_life` turns of distance:

    dependency(u_i) = 1 - product over j > i of (1 - 0.5^((j - i - 1) / half_life) lean(j, i))

It lies in [0, 1], never falls as the conversation grows, and a new turn touches only the turns whose words it uses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from foveate.signals.lexical import Growing, content_terms

_ANAPHOR = re.compile(
    r"^(?:(?:and|but|so|yes|yeah|no|oh|wow|ok|okay|well|thanks)[,!.]?\s+)*"
    r"(?:it|its|that|this|those|these|they|them|he|him|his|she|her|hers|there|then|such|same|both|neither|which one)\b",
    re.IGNORECASE,
)
ANAPHOR_LEAN = 0.5


class DependencyRule:
    """The rule above over a growing list of texts.

    Args:
        half_life: turns of distance after which a lean counts half.
    """

    def __init__(self, half_life: float = 12.0) -> None:
        self._half_life = half_life
        self._first: dict[str, int] = {}
        self._free = Growing()

    def append(self, texts: Sequence[str]) -> None:
        """Add further turns; costs their own words."""
        for text in texts:
            self._add(text)

    def values(self) -> NDArray[np.float64]:
        """(n,) dependency of every turn so far, in [0, 1]."""
        return 1.0 - self._free.view.astype(np.float64)

    def _add(self, text: str) -> None:
        j = len(self._free)
        self._free.extend([1.0])
        words = Counter(content_terms(text))
        for i, lean in sorted(self._leans(text, words, j).items()):
            decayed = 0.5 ** ((j - i - 1) / self._half_life) * min(1.0, lean)
            self._free.view[i] *= 1.0 - decayed
        for word in words:
            self._first.setdefault(word, j)

    def _leans(self, text: str, words: Counter[str], j: int) -> dict[int, float]:
        total = sum(words.values())
        leans: dict[int, float] = {}
        for word, count in words.items():
            i = self._first.get(word)
            if i is not None:
                leans[i] = leans.get(i, 0.0) + count / total
        if j > 0 and opens_with_anaphor(text):
            leans[j - 1] = leans.get(j - 1, 0.0) + ANAPHOR_LEAN
        return leans


def opens_with_anaphor(text: str) -> bool:
    """Whether a text starts by pointing back, after interjections."""
    return bool(_ANAPHOR.match(text.lstrip()))
