"""Cheap per-turn signals of how a turn relates to a question: numpy only, the same code at training and at serving.

One row a turn, one column a name of `SIGNAL_NAMES`. Unbounded signals are standardised inside the conversation (zero
mean, unit deviation over its turns for this question), so that a score of 9.1 means the same in a short chat and in a
long one. No signal depends on a question's category or labels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

import numpy as np
from numpy.typing import NDArray

from foveate.core.schema import Query, Turn
from foveate.signals.dates import When, days_apart, find_dates, has_number, has_temporal_words, parse_date
from foveate.signals.lexical import Floats, Growing, LexicalIndex, content_terms, idf, terms

STANDARDISED = (
    "bm25",
    "bm25_near",
    "bm25_near_dated",
    "bm25_wide_dated",
    "bm25_session",
    "covered",
    "covered_near",
    "rarest",
    "rarest_near",
)
PLAIN = (
    "speaker_named",
    "speaker_not_named",
    "date_near",
    "recency",
    "position",
    "length",
    "asks",
    "answers",
    "says_when",
    "says_when_asked",
    "has_number",
    "has_number_asked",
    "has_media",
)
SIGNAL_NAMES = STANDARDISED + PLAIN
HALF_LIFE = 12.0
"""Turns, of the recency signal (AFM section 3.2); a trained scorer reads the signal with a half-life of its own."""

_ASKS_WHEN = re.compile(r"\b(?:when|what (?:date|day|month|year|time)|how long|since)\b", re.IGNORECASE)
_ASKS_NUMBER = re.compile(r"\bhow (?:many|much|often|old|long|far)\b", re.IGNORECASE)


class SignalIndex:
    """The signals of one growing conversation.

    Args:
        half_life: turns after which the recency signal halves (AFM section 3.2 uses 12).
        date_scale: days after which the date signal halves.
    """

    def __init__(self, half_life: float = HALF_LIFE, date_scale: float = 30.0) -> None:
        self.half_life, self.date_scale = half_life, date_scale
        self.lexical = LexicalIndex()
        self._fixed = Growing(6)
        self._speaker_of: list[int] = []
        self._speakers: dict[str, int] = {}
        self._day_of: list[int] = []
        self._place_of: dict[str | None, int] = {}
        self._days: list[date | None] = []
        self._asked_before = False

    def __len__(self) -> int:
        return len(self._speaker_of)

    def append(self, turns: Sequence[Turn]) -> None:
        """Take further turns; the work is proportional to their words."""
        self.lexical.append(turns)
        for turn in turns:
            speaker = turn.speaker or turn.role
            self._speaker_of.append(self._speakers.setdefault(speaker, len(self._speakers)))
            if turn.date not in self._place_of:
                self._place_of[turn.date] = len(self._days)
                self._days.append(parse_date(turn.date))
            self._day_of.append(self._place_of[turn.date])
            text, asks = turn.text, "?" in turn.text
            row = (np.log1p(len(text)) / 6.0, asks, self._asked_before, has_temporal_words(text), has_number(text))
            self._fixed.extend(np.array([*row, not isinstance(turn.content, str | None)], dtype=np.float32))
            self._asked_before = asks

    def signals(self, query: Query) -> Floats:
        """(n_turns, n_signals) float32, columns as `SIGNAL_NAMES`."""
        n = len(self)
        if n == 0:
            return np.zeros((0, len(SIGNAL_NAMES)), dtype=np.float32)
        standardised = [standardise(column) for column in self._lexical_columns(query.text)]
        return np.stack(standardised + self._plain_columns(query.text), axis=1).astype(np.float32)

    def _lexical_columns(self, text: str) -> list[Floats]:
        lexical = self.lexical
        covered, rarest = self._coverage(text, window=0)
        covered_near, rarest_near = self._coverage(text, window=1)
        return [
            lexical.bm25(text, content=True),
            lexical.bm25(text, window=1, content=True),
            lexical.bm25(text, window=1, header=True, content=True),
            lexical.bm25(text, window=2, header=True, content=True),
            lexical.bm25_sessions(text),
            covered,
            covered_near,
            rarest,
            rarest_near,
        ]

    def _coverage(self, text: str, window: int) -> tuple[Floats, Floats]:
        """Idf mass of the query's content words that a turn has, and the idf of the rarest of them."""
        n = len(self)
        covered, rarest = np.zeros(n, dtype=np.float32), np.zeros(n, dtype=np.float32)
        for word in dict.fromkeys(content_terms(text)):
            present = self.lexical.frequency(word, window=window) > 0
            weight = idf(n, int(np.count_nonzero(present)))
            covered += weight * present
            np.maximum(rarest, weight * present, out=rarest)
        return covered, rarest

    def _plain_columns(self, text: str) -> list[Floats]:
        n = len(self)
        asked = set(terms(text))
        named = np.array([bool(asked & set(terms(s))) for s in self._speakers], dtype=np.float32)
        by_speaker = named[self._speaker_of]
        not_named = (1.0 - by_speaker) * float(named.any())
        fixed = self._fixed.view
        length, asks, answers, says_when, number, media = (fixed[:, k] for k in range(6))
        age = np.arange(n - 1, -1, -1, dtype=np.float32)
        return [
            by_speaker,
            not_named,
            self._date_column(find_dates(text)),
            0.5 ** (age / self.half_life),
            1.0 - age / n,
            length,
            asks,
            answers,
            says_when,
            says_when * bool(_ASKS_WHEN.search(text)),
            number,
            number * bool(_ASKS_NUMBER.search(text)),
            media,
        ]

    def _date_column(self, wanted: list[When]) -> Floats:
        near = np.array([self._nearness(wanted, day) for day in self._days], dtype=np.float32)
        return near[self._day_of]

    def _nearness(self, wanted: list[When], day: date | None) -> float:
        if day is None or not wanted:
            return 0.0
        return 0.5 ** (min(days_apart(when, day) for when in wanted) / self.date_scale)


def standardise(values: NDArray[np.float32]) -> Floats:
    """Zero mean and unit deviation along the last axis, the turns of one conversation."""
    deviation = np.maximum(values.std(-1, keepdims=True), 1e-6)
    return ((values - values.mean(-1, keepdims=True)) / deviation).astype(np.float32)
