"""ROUGE of a summary against one or more references: ROUGE-1, -2 and -L (Lin, 2004).

The scores are those of the package rouge-score, with its tokenizer (lowercased ASCII letters and digits, so that text
in other scripts scores 0) and the Porter stemmer. Of several references the one that gives the best F counts, measure
by measure.
LongBench's official ROUGE is another package's (EVALUATION.md section 2) and is not this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from foveate.core.errors import DataError, MissingExtraError

SIGNATURE = "rouge-score:0.1.2|stem:porter|refs:best-f"
_TYPES = ("rouge1", "rouge2", "rougeL")


@dataclass(frozen=True, slots=True)
class Rouge:
    """F measures, 0 to 100.

    Attributes:
        r1, r2: of unigrams and bigrams.
        rl: of the longest common subsequence of the whole texts.
    """

    r1: float
    r2: float
    rl: float


def rouge(summary: str, references: Sequence[str]) -> Rouge:
    """ROUGE F of a summary.

    Raises:
        DataError: there is no reference.
        MissingExtraError: rouge-score is not installed.
    """
    if not references:
        raise DataError("ROUGE without a reference: give at least one")
    found = _scorer().score_multi(list(references), summary)
    return Rouge(*(100 * float(found[name].fmeasure) for name in _TYPES))


@lru_cache(maxsize=1)
def _scorer() -> Any:
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise MissingExtraError("rouge-score", "eval") from error
    return RougeScorer(list(_TYPES), use_stemmer=True)
