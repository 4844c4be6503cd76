"""What one question at one budget measured, and how such records become a method's metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Literal

from foveate.core.errors import DataError
from foveate.metrics.efficiency import percentile, ratio, summarise_ratios
from foveate.metrics.statistics import Interval, cluster_bootstrap

Budget = int | Literal["full"]


@dataclass(frozen=True, slots=True)
class Record:
    """One question under one budget. What could not be measured is None, never a score.

    Attributes:
        question, conversation, category: which one.
        budget: tokens allowed; "full" for the whole history.
        tokens: tokens of the rendered context (a mean where a method is an average over seeds).
        history: tokens of the whole history rendered in full.
        erb, all, any, session, coverage: evidence recall (metrics.retrieval); None without evidence.
        asc, asc_stem: answer-string containment of the context, strict and stemmed; of the trap in category 5.
        asc_full: the strict containment of the whole history, the ceiling of `asc`.
        kept: ids of the turns of which anything was emitted (of the first seed).
        seconds: scoring and packing, without building the index.
        violation: whether the context was over its budget.
    """

    question: str
    conversation: str
    category: str
    budget: Budget
    tokens: float
    history: int
    erb: float | None
    all: float | None
    any: float | None
    session: float | None
    coverage: float | None
    asc: float | None
    asc_stem: float | None
    asc_full: float | None
    kept: tuple[str, ...]
    seconds: float
    violation: bool


def to_json(record: Record) -> dict[str, Any]:
    """The record as plain JSON values."""
    return {**asdict(record), "kept": list(record.kept)}


def from_json(value: Mapping[str, Any]) -> Record:
    """The record of `to_json`. Raises DataError where a key is missing or unknown."""
    try:
        return Record(**{**value, "kept": tuple(value["kept"])})
    except (KeyError, TypeError) as error:
        raise DataError(f"a stored evaluation record cannot be read ({error}): delete it and evaluate again") from error


def average(records: Sequence[Record]) -> Record:
    """One record for several runs of a question (seeds): means of what is measured, kept turns of the first."""
    first = records[0]
    if len(records) == 1:
        return first

    def mean(value: Callable[[Record], float | None]) -> float | None:
        return mean_of(value(record) for record in records)

    return Record(
        question=first.question,
        conversation=first.conversation,
        category=first.category,
        budget=first.budget,
        tokens=fmean(record.tokens for record in records),
        history=first.history,
        erb=mean(lambda r: r.erb),
        all=mean(lambda r: r.all),
        any=mean(lambda r: r.any),
        session=mean(lambda r: r.session),
        coverage=mean(lambda r: r.coverage),
        asc=mean(lambda r: r.asc),
        asc_stem=mean(lambda r: r.asc_stem),
        asc_full=first.asc_full,
        kept=first.kept,
        seconds=fmean(record.seconds for record in records),
        violation=any(record.violation for record in records),
    )


def mean_of(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are there; None for none."""
    present = [value for value in values if value is not None]
    return fmean(present) if present else None


def _relative(records: Sequence[Record]) -> float | None:
    found, whole = mean_of(r.asc for r in records), mean_of(r.asc_full for r in records)
    return found / whole if found is not None and whole else None


def clusters(records: Sequence[Record]) -> dict[str, tuple[int, float]]:
    """Per conversation: how many questions have evidence, and the sum of their ERB; in the order of the records."""
    found: dict[str, tuple[int, float]] = {}
    for record in records:
        if record.erb is not None:
            n, total = found.get(record.conversation, (0, 0.0))
            found[record.conversation] = (n + 1, total + record.erb)
    return found


def interval(records: Sequence[Record]) -> Interval | None:
    """The cluster bootstrap of ERB over conversations; None where no question has evidence."""
    found = clusters(records)
    if not found:
        return None
    return cluster_bootstrap([total for _, total in found.values()], [n for n, _ in found.values()])


def metrics(records: Sequence[Record], apart: frozenset[str]) -> dict[str, Any]:
    """The `metrics` object of a result row, for the records of one method at one budget.

    `erb`, `erb_all`, `erb_any`, `coverage` and `asc` are over the categories that are pooled; `erb_5` and
    `trap_containment` over those kept apart. Answer scores need a reader and are None here.
    """
    pooled = [record for record in records if record.category not in apart]
    other = [record for record in records if record.category in apart]
    tokens = [record.tokens for record in records]
    ratios = summarise_ratios(tokens, [record.history for record in records])
    seconds = [record.seconds for record in records]
    return {
        **dict.fromkeys(("overall_5", "overall_1to4", "macro_5", "clean_1to4", "c1", "c2", "c3", "c4", "c5")),
        "false_refusal": None,
        "erb": mean_of(r.erb for r in pooled),
        "erb_all": mean_of(r.all for r in pooled),
        "erb_any": mean_of(r.any for r in pooled),
        "erb_session": mean_of(r.session for r in pooled),
        "coverage": mean_of(r.coverage for r in pooled),
        "erb_5": mean_of(r.erb for r in other),
        "erb_by_category": {
            category: mean_of(r.erb for r in records if r.category == category)
            for category in sorted({record.category for record in records})
        },
        "asc": mean_of(r.asc for r in pooled),
        "asc_stem": mean_of(r.asc_stem for r in pooled),
        "asc_rel": _relative(pooled),
        "trap_containment": mean_of(r.asc for r in other),
        "tokens": mean_of(r.tokens for r in records),
        "r_mean": ratios.mean if ratios else None,
        "r_pooled": ratios.pooled if ratios else None,
        "token_reduction": mean_of(1 - ratio(r.tokens, r.history) for r in records),
        "lat_p50": percentile(seconds, 0.5),
        "lat_p95": percentile(seconds, 0.95),
        "budget_violations": sum(record.violation for record in records),
    }
