"""BM25 over a growing conversation, exact and incremental.

Scoring is Okapi BM25 with the Lucene idf, log(1 + (N - df + 0.5) / (df + 0.5)), as in Robertson & Zaragoza (2009) and
the `bm25s` package's default; a test holds the two equal. A document is one turn with its speaker's name, optionally
widened by its neighbours and by its session's date, all at query time, so appending a turn costs the turn's own words
and nothing else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import Stemmer
from numpy.typing import NDArray

from foveate.core.schema import Turn

Floats = NDArray[np.float32]

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_STEMMER = Stemmer.Stemmer("porter")
STOPWORDS = frozenset(
    """
    a an and are as at be been but by can could did do does doing for from had has have having he her hers him
    his how i if in into is it its just me my no nor not of on or our ours out over she should so some such than
    that the their theirs them then there these they this those to too up us very was we were what when where
    which while who whom whose why will with would you your yours
    """.split()
)


def terms(text: str) -> list[str]:
    """Lowercased, Porter-stemmed words of a text, in order, stop words included."""
    return _STEMMER.stemWords([w.replace("’", "'").removesuffix("'s") for w in _WORD.findall(text.lower())])


def content_terms(text: str) -> list[str]:
    """`terms` without English function words: what a query is really about."""
    words = [w.replace("’", "'").removesuffix("'s") for w in _WORD.findall(text.lower())]
    return _STEMMER.stemWords([w for w in words if w not in STOPWORDS])


class Growing:
    """A float32 array that grows at its end in amortised constant time."""

    def __init__(self, width: int | None = None) -> None:
        self._shape = () if width is None else (width,)
        self._data = np.zeros((64, *self._shape), dtype=np.float32)
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def extend(self, rows: Floats | Sequence[float]) -> None:
        rows = np.asarray(rows, dtype=np.float32).reshape(-1, *self._shape)
        need = self._n + len(rows)
        if need > len(self._data):
            grown = np.zeros((max(need, 2 * len(self._data)), *self._shape), dtype=np.float32)
            grown[: self._n] = self._data[: self._n]
            self._data = grown
        self._data[self._n : need] = rows
        self._n = need

    def replace(self, start: int, rows: Floats) -> None:
        """Overwrite rows from `start` on; they must exist."""
        self._data[start : start + len(rows)] = rows

    @property
    def view(self) -> Floats:
        """The rows so far; a view, valid until the next `extend`."""
        return self._data[: self._n]


class Postings:
    """Term frequencies of a growing list of short documents."""

    def __init__(self) -> None:
        self._docs: dict[str, list[int]] = {}
        self._counts: dict[str, list[int]] = {}
        self._lengths = Growing()

    def __len__(self) -> int:
        return len(self._lengths)

    def append(self, words: Sequence[str]) -> None:
        doc = len(self._lengths)
        for word, count in Counter(words).items():
            self._docs.setdefault(word, []).append(doc)
            self._counts.setdefault(word, []).append(count)
        self._lengths.extend([float(len(words))])

    def frequency(self, word: str) -> Floats:
        """(n,) how often each document has the word."""
        out = np.zeros(len(self), dtype=np.float32)
        if word in self._docs:
            out[self._docs[word]] = self._counts[word]
        return out

    @property
    def lengths(self) -> Floats:
        """(n,) words a document."""
        return self._lengths.view


class LexicalIndex:
    """BM25 over turns, with the window and the header chosen at query time.

    Args:
        k1: term-frequency saturation.
        b: length normalisation, 0 to 1.
    """

    def __init__(self, k1: float = 1.5, b: float = 0.75) -> None:
        self.k1, self.b = k1, b
        self._turns = Postings()
        self._headers = Postings()
        self._header_of: list[int] = []
        self._last_header: tuple[str | None, str | None] | None = None

    def __len__(self) -> int:
        return len(self._turns)

    def append(self, turns: Sequence[Turn]) -> None:
        """Index further turns; earlier ones are not touched."""
        for turn in turns:
            self._turns.append(terms(f"{turn.speaker or ''} {turn.text}"))
            if (turn.session, turn.date) != self._last_header:
                self._headers.append(terms(turn.date or ""))
                self._last_header = (turn.session, turn.date)
            self._header_of.append(len(self._headers) - 1)

    def frequency(self, word: str, *, window: int = 0, header: bool = False) -> Floats:
        """(n,) occurrences of a stemmed word in each turn, its `window` neighbours on each side and its date header."""
        tf = _widen(self._turns.frequency(word), window)
        return tf + self._headers.frequency(word)[self._header_of] if header and len(self) else tf

    def lengths(self, *, window: int = 0, header: bool = False) -> Floats:
        """(n,) words of each document so widened."""
        out = _widen(self._turns.lengths, window)
        return out + self._headers.lengths[self._header_of] if header and len(self) else out

    def bm25(self, query_text: str, *, window: int = 0, header: bool = False, content: bool = False) -> Floats:
        """(n,) BM25 of each turn for the query; zeros where no word is shared.

        Args:
            query_text: the question.
            window: neighbours on each side that count as part of a turn.
            header: whether the session's date does.
            content: whether the question's function words are left out, which ranks better than their small idf does.
        """
        words = Counter(content_terms(query_text) if content else terms(query_text))
        tf = [self.frequency(word, window=window, header=header) for word in sorted(words)]
        weights = [float(words[word]) for word in sorted(words)]
        return self._score(tf, weights, self.lengths(window=window, header=header))

    def bm25_sessions(self, query_text: str) -> Floats:
        """(n,) BM25 of each turn's whole session for the question's content words: where the topic was talked about."""
        if not len(self):
            return np.zeros(0, dtype=np.float32)
        session = np.asarray(self._header_of)
        words = dict.fromkeys(content_terms(query_text))
        tf = [_sum_by(session, self._turns.frequency(word)) for word in words]
        return self._score(tf, [1.0] * len(tf), _sum_by(session, self._turns.lengths))[session]

    def _score(self, tf: Sequence[Floats], weights: Sequence[float], lengths: Floats) -> Floats:
        n = len(lengths)
        score = np.zeros(n, dtype=np.float32)
        if n == 0:
            return score
        norm = self.k1 * (1 - self.b + self.b * lengths / max(float(lengths.mean()), 1e-9))
        for frequency, weight in zip(tf, weights, strict=True):
            score += weight * idf(n, int(np.count_nonzero(frequency))) * frequency / (frequency + norm)
        return score


def idf(n: int, df: float) -> float:
    """Lucene's inverse document frequency, never negative."""
    return float(np.log(1 + (n - df + 0.5) / (df + 0.5)))


def _widen(values: Floats, window: int) -> Floats:
    out = values.copy()
    for k in range(1, window + 1):
        out[k:] += values[:-k]
        out[:-k] += values[k:]
    return out


def _sum_by(group: NDArray[np.int64], values: Floats) -> Floats:
    return np.bincount(group, weights=values).astype(np.float32)
