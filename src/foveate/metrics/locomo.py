"""LoCoMo's answer metrics: token F1 per category, the adversarial track, aggregation, upstream recall, containment.

Sources: EVALUATION.md section 1 (L2 to L5 and L7), which pins the behaviour of the published scorer. Scores are 0 to 1.
Categories are the corpus's integers: 1 multi-hop, 2 temporal, 3 open-domain, 4 single-hop, 5 adversarial.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from foveate.core.errors import DataError
from foveate.metrics.text import normalise, stemmed

ADVERSARIAL = 5
REFUSALS = ("no information available", "not mentioned")
EXTENDED_REFUSALS = (
    *REFUSALS,
    "no information",
    "not specified",
    "not stated",
    "not provided",
    "not discussed",
    "unanswerable",
    "cannot be determined",
    "does not mention",
    "doesn't mention",
    "did not mention",
    "didn't mention",
    "i don't know",
    "i do not know",
)
_CHOICE = re.compile(r"^\(?([ab])\)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AnswerSummary:
    """Mean answer scores over questions, 0 to 1; None where no question is in the class.

    Attributes:
        overall_5: micro mean over all categories (the paper's overall).
        overall_1to4: micro mean without the adversarial category.
        macro_5: mean of the five category means; None unless every category is there.
        clean_1to4: overall_1to4 without the disputed questions; None where no list of them was given.
        by_category: category to mean.
        false_refusal: the share of predictions in categories 1-4 that satisfy the refusal rule; None if not given.
        n: the number of questions.
    """

    overall_5: float | None
    overall_1to4: float | None
    macro_5: float | None
    clean_1to4: float | None
    by_category: dict[int, float]
    false_refusal: float | None
    n: int


def gold_text(category: int, gold: str | int | None) -> str:
    """The gold answer as it is scored: text, and in category 3 only what stands before the first semicolon."""
    text = "" if gold is None else str(gold)
    return text.split(";")[0].strip() if category == 3 else text


def f1(prediction: str, gold: str) -> float:
    """L2: harmonic mean of precision and recall of the multiset of stemmed tokens; 0 where either side is empty."""
    predicted, wanted = stemmed(prediction).split(), stemmed(gold).split()
    overlap = sum((Counter(predicted) & Counter(wanted)).values())
    if overlap == 0:
        return 0.0
    precision, recall = overlap / len(predicted), overlap / len(wanted)
    return 2 * precision * recall / (precision + recall)


def multi_f1(prediction: str, gold: str) -> float:
    """L3: mean over the comma parts of the gold of the best `f1` with any comma part of the prediction.

    Parts are not matched one to one, spare predicted parts cost nothing, and an empty gold part scores 0.
    """
    parts = [part.strip() for part in prediction.split(",")]
    return fmean(max(f1(part, wanted.strip()) for part in parts) for wanted in gold.split(","))


def refuses(prediction: str, phrases: Sequence[str] = REFUSALS) -> bool:
    """L4: whether the lowercased prediction contains one of the phrases."""
    lowered = prediction.lower()
    return any(phrase in lowered for phrase in phrases)


def score_answer(category: int, prediction: str, gold: str | int | None) -> float:
    """The score of one answer by its category: L3 for 1, L2 for 2 to 4, the refusal rule for 5 (the gold is unused)."""
    match category:
        case 1:
            return multi_f1(prediction, gold_text(category, gold))
        case 2 | 3 | 4:
            return f1(prediction, gold_text(category, gold))
        case 5:
            return float(refuses(prediction))
        case _:
            raise DataError(f"LoCoMo category {category} is unknown: use 1 to 5")


def adversarial_options(sample_id: str, index: int, trap: str, refusal: str) -> dict[str, str]:
    """The two options of track adv-MC by letter: the refusal is (a) where the first byte of
    sha256("sample_id|index") is even, else (b).
    """
    even = hashlib.sha256(f"{sample_id}|{index}".encode()).digest()[0] % 2 == 0
    return {"a": refusal, "b": trap} if even else {"a": trap, "b": refusal}


def choose(prediction: str, options: dict[str, str]) -> str:
    """Track adv-MC: the option of a leading letter, else the prediction as it is."""
    found = _CHOICE.match(prediction)
    return options[found.group(1).lower()] if found else prediction


def choose_upstream(prediction: str, options: dict[str, str]) -> str:
    """The published letter mapping: one or three characters mean (a) only if they say so, and (b) otherwise."""
    text = prediction.strip().lower()
    if len(text) == 1:
        return options["a"] if text == "a" else options["b"]
    if len(text) == 3:
        return options["a"] if text == "(a)" else options["b"]
    return text


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def aggregate(
    scores: Sequence[float],
    categories: Sequence[int],
    *,
    disputed: Sequence[bool] | None = None,
    predictions: Sequence[str] | None = None,
) -> AnswerSummary:
    """Averages of question scores, each first rounded to three decimals as the published scorer does.

    Args:
        scores: one score a question, 0 for a missing prediction (questions are never dropped).
        categories: the category of each question.
        disputed: whether the question is one that the audit calls score-corrupting; gives `clean_1to4`.
        predictions: the answers, for the false-refusal rate.
    """
    rounded = [round(score, 3) for score in scores]
    rows = list(zip(rounded, categories, strict=True))
    grouped: dict[int, list[float]] = {}
    for score, category in rows:
        grouped.setdefault(category, []).append(score)
    by_category = {category: fmean(grouped[category]) for category in sorted(grouped)}
    clean = None
    if disputed is not None:
        kept = zip(rows, disputed, strict=True)
        clean = _mean([score for (score, category), bad in kept if category != ADVERSARIAL and not bad])
    refusal = None
    if predictions is not None:
        pairs = zip(predictions, categories, strict=True)
        refusal = _mean([float(refuses(text)) for text, category in pairs if category != ADVERSARIAL])
    return AnswerSummary(
        overall_5=_mean(rounded),
        overall_1to4=_mean([score for score, category in rows if category != ADVERSARIAL]),
        macro_5=fmean(by_category.values()) if set(by_category) == {1, 2, 3, 4, 5} else None,
        clean_1to4=clean,
        by_category=by_category,
        false_refusal=refusal,
        n=len(rows),
    )


def upstream_recall(evidence: Sequence[str], retrieved: Sequence[str]) -> float:
    """L5: the share of the raw evidence strings among the retrieved ids, duplicates counted, malformed ids missed.

    A first id that starts with S means sessions: each evidence is then reduced to its session. No evidence gives 1;
    an empty list of ids gives 0 (the published code fails there).
    """
    if not evidence:
        return 1.0
    if not retrieved:
        return 0.0
    sessions = retrieved[0].startswith("S")
    wanted = [f"S{item.split(':')[0][1:]}" if sessions else item for item in evidence]
    ids = set(retrieved)
    return sum(item in ids for item in wanted) / len(wanted)


def contains(gold: str, context: str, *, stem: bool = False) -> float:
    """L7 for one answer part: 1 if the normalised gold stands in the normalised context as whole tokens, else 0."""
    form = stemmed if stem else normalise
    wanted = form(gold)
    return float(bool(wanted) and f" {wanted} " in f" {normal_context(context, stem=stem)} ")


def normal_context(context: str, *, stem: bool = False) -> str:
    """The normal form of a context, line by line, so that lines seen before are not normalised again."""
    form = stemmed if stem else normalise
    return " ".join(filter(None, (form(line) for line in context.split("\n"))))


def answer_parts(category: int, gold: str | int | None) -> list[str]:
    """What L7 looks for: the comma parts of category 1 (empty ones dropped), else the scored gold as one part."""
    text = gold_text(category, gold)
    parts = text.split(",") if category == 1 else [text]
    return [part for part in parts if normalise(part)]


def containment(category: int, gold: str | int | None, context: str, *, stem: bool = False) -> float:
    """L7 (ASC): the mean of `contains` over the parts of the answer; 0 where the gold has no word."""
    parts = answer_parts(category, gold)
    return fmean(contains(part, context, stem=stem) for part in parts) if parts else 0.0
