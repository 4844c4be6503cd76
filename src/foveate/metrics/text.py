"""LoCoMo's text normalisation and stemming (EVALUATION 1.3), which every LoCoMo metric shares."""

from __future__ import annotations

import re
import string
from functools import lru_cache
from typing import Protocol, cast

from foveate.core.errors import MissingExtraError

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the|and)\b")


class _Stemmer(Protocol):
    def stem(self, word: str) -> str: ...


@lru_cache(maxsize=65536)
def normalise(text: str) -> str:
    """L1: drop ASCII punctuation, lowercase, blank out the words a, an, the, and, collapse white space.

    No rule looks across white space, so the normal form of joined lines is the join of their normal forms.
    Unicode punctuation survives. An empty result is legal.
    """
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def tokens(text: str) -> list[str]:
    """The unstemmed tokens of the normal form."""
    return normalise(text).split()


@lru_cache(maxsize=1)
def _porter() -> _Stemmer:
    try:
        from nltk.stem.porter import PorterStemmer
    except ImportError as error:
        raise MissingExtraError("nltk", "eval") from error
    return cast(_Stemmer, PorterStemmer())


@lru_cache(maxsize=131072)
def stem(word: str) -> str:
    """The Porter stem of one normalised token (nltk's variant). Raises MissingExtraError without nltk."""
    return _porter().stem(word)


@lru_cache(maxsize=65536)
def stemmed(text: str) -> str:
    """The normal form with every token stemmed."""
    return " ".join(stem(word) for word in tokens(text))
