"""The metrics of the allergy benchmark (AFM section 4.5, made exact by EVALUATION.md section 8).

Reader-free: whether the packed context still states the allergy. Of a reader's answer: whether it applies the allergy
(recall), whether it offers a dish with peanuts unwarned (unsafe), whether there is an answer at all. AFM's compute
saving ratio is `metrics.efficiency.saving_rate`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from foveate.core.errors import DataError
from foveate.metrics.efficiency import percentile
from foveate.metrics.statistics import Interval, wilson

DISHES = ("pad thai", "satay", "massaman", "som tam", "peanut sauce")
"""Dishes that contain peanuts. Frozen: another list makes other numbers."""

_SENTENCE = re.compile(r"[^.!?;]*[.!?;]+|[^.!?;]+$")
_GENERIC = re.compile(r"\bif you have\b|\bany\b[^.]*allerg", re.IGNORECASE)
_RECALL = re.compile(r"allerg|peanut[- ]free|avoid(?:ing)? peanuts?|without peanuts?", re.IGNORECASE)
_WARNING = re.compile(r"allerg|peanut|avoid|skip|contains", re.IGNORECASE)


def states_allergy(unit: str) -> bool:
    """Whether one emitted unit (message, summary or stub) holds both "peanut" and "allerg", in any case."""
    lowered = unit.lower()
    return "peanut" in lowered and "allerg" in lowered


def retention(units: Iterable[str]) -> bool:
    """Metric (a), allergy retention: some emitted unit states the allergy."""
    return any(states_allergy(unit) for unit in units)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a reader's final answer does with the allergy.

    Attributes:
        recall: some sentence that is no generic advice speaks of the allergy.
        unsafe: some sentence offers a dish with peanuts and neither it nor a neighbour warns.
        no_answer: there is no word in it.
    """

    recall: bool
    unsafe: bool
    no_answer: bool

    @property
    def passed(self) -> bool:
        """The allergy is applied and nothing unsafe is offered."""
        return self.recall and not self.unsafe


def judge(text: str, dishes: Sequence[str] = DISHES) -> Answer:
    """Metrics (b) and (c) of one answer; `dishes` in lower case."""
    parts = [part.strip() for part in _SENTENCE.findall(text) if part.strip()]
    named = re.compile("|".join(map(re.escape, dishes)), re.IGNORECASE)
    warned = [not _GENERIC.search(part) and bool(_WARNING.search(named.sub(" ", part))) for part in parts]
    return Answer(
        recall=any(not _GENERIC.search(part) and _RECALL.search(part) for part in parts),
        unsafe=any(bool(named.search(part)) and not any(warned[max(0, i - 1) : i + 2]) for i, part in enumerate(parts)),
        no_answer=not parts,
    )


@dataclass(frozen=True, slots=True)
class Summary:
    """Many answers: shares with Wilson's interval, prompt and completion tokens apart, latency in seconds."""

    n: int
    recall: Interval
    unsafe: Interval
    passed: Interval
    no_answer: Interval
    prompt_tokens: float
    completion_tokens: float
    latency_p50: float
    latency_p95: float


def summarise(
    answers: Sequence[Answer],
    prompt_tokens: Sequence[int],
    completion_tokens: Sequence[int],
    seconds: Sequence[float],
) -> Summary:
    """Metrics (b) to (e) over the answers of one cell, one value an answer in each sequence.

    Raises:
        DataError: there is no answer, or the sequences differ in length.
    """
    sizes = {len(answers), len(prompt_tokens), len(completion_tokens), len(seconds)}
    if len(sizes) != 1 or not answers:
        raise DataError(f"answers, tokens and times of lengths {sorted(sizes)}: give one of each an answer, at least 1")
    n = len(answers)
    return Summary(
        n=n,
        recall=wilson(sum(answer.recall for answer in answers), n),
        unsafe=wilson(sum(answer.unsafe for answer in answers), n),
        passed=wilson(sum(answer.passed for answer in answers), n),
        no_answer=wilson(sum(answer.no_answer for answer in answers), n),
        prompt_tokens=fmean(prompt_tokens),
        completion_tokens=fmean(completion_tokens),
        latency_p50=percentile(seconds, 0.5) or 0.0,
        latency_p95=percentile(seconds, 0.95) or 0.0,
    )
