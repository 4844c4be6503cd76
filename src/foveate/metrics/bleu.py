"""BLEU(D, D^) of Eq. 8: how much of a history a context repeats word for word, and how little that says.

sacrebleu's sentence BLEU (`nrefs:1|case:mixed|eff:yes|tok:13a|smooth:exp`), D^ the hypothesis and D the reference.
The brevity penalty of an extract of r times the length is exp(1 - 1/r), which no choice of turns can change, so that
BLEU/BP and BLEU over that ceiling stand beside it (EVALUATION.md section 7).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from foveate.core.errors import MissingExtraError


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """BLEU of a context against its history.

    Attributes:
        bleu: 0 to 100.
        penalty: the brevity penalty, 0 to 1.
        precision: BLEU/BP, 0 to 100; None where the penalty is 0.
        ratio: words of the context over words of the history (13a tokens).
        ceiling: 100 exp(1 - 1/ratio), the most that an extract of this length can reach; 100 from a ratio of 1.
        of_ceiling: BLEU over the ceiling, 0 to 1; None where the ceiling is 0.
    """

    bleu: float
    penalty: float
    precision: float | None
    ratio: float
    ceiling: float
    of_ceiling: float | None


class ReconstructionBleu:
    """BLEU against one history, whose n-grams are counted once.

    Args:
        history: D.

    Raises:
        MissingExtraError: sacrebleu is not installed.
    """

    def __init__(self, history: str) -> None:
        try:
            from sacrebleu.metrics.bleu import BLEU
        except ImportError as error:
            raise MissingExtraError("sacrebleu", "eval") from error
        self._metric = BLEU(smooth_method="exp", effective_order=True, references=[[history]])

    def __call__(self, context: str) -> Reconstruction:
        """The BLEU of D^; nothing in common is 0."""
        found = self._metric.corpus_score([context], None)
        ratio = found.sys_len / found.ref_len if found.ref_len else 1.0
        ceiling = 100.0 if ratio >= 1 else _ceiling(ratio)
        return Reconstruction(
            bleu=found.score,
            penalty=found.bp,
            precision=found.score / found.bp if found.bp else None,
            ratio=ratio,
            ceiling=ceiling,
            of_ceiling=found.score / ceiling if ceiling else None,
        )


def _ceiling(ratio: float) -> float:
    return 100 * math.exp(1 - 1 / ratio) if ratio else 0.0


def corpus_bleu(contexts: Sequence[str], histories: Sequence[str]) -> float:
    """BLEU of all contexts together (`eff:no`), 0 to 100: counts are summed first, so it is no mean of sentences.

    Raises:
        MissingExtraError: sacrebleu is not installed.
    """
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError as error:
        raise MissingExtraError("sacrebleu", "eval") from error
    return BLEU(smooth_method="exp").corpus_score(contexts, [histories]).score
