"""Token ratios and savings (Eq. 7; EVALUATION.md section 10). Counts are tokens of the rendered strings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from foveate.core.errors import DataError


def ratio(context: float, history: float) -> float:
    """Eq. 7, r_t = |C| / |D|; 1 where the history is empty."""
    return context / history if history else 1.0


def token_reduction(context: float, history: float) -> float:
    """1 - r_t."""
    return 1.0 - ratio(context, history)


def compression_factor(context: float, history: float) -> float:
    """1 / r_t; infinite for an empty context of a history that has tokens."""
    share = ratio(context, history)
    return 1.0 / share if share else float("inf")


@dataclass(frozen=True, slots=True)
class RatioSummary:
    """The mean of the ratios and the ratio of the sums, which differ where histories differ in length."""

    mean: float
    pooled: float


def summarise_ratios(contexts: Sequence[float], histories: Sequence[float]) -> RatioSummary | None:
    """Both averages of r_t over questions; None for no question."""
    pairs = list(zip(contexts, histories, strict=True))
    if not pairs:
        return None
    return RatioSummary(
        mean=fmean(ratio(context, history) for context, history in pairs),
        pooled=ratio(sum(contexts), sum(histories)),
    )


def saving_rate(base: float, tokens: float) -> float:
    """AFM's CSR: (T_base - T) / T_base. Raises DataError for a base without tokens."""
    if base <= 0:
        raise DataError(f"the base of a saving rate has {base} tokens: give a base run that used tokens")
    return (base - tokens) / base


def percentile(values: Sequence[float], share: float) -> float | None:
    """The value below which `share` (0 to 1) of the values lie, linear between neighbours; None for no value."""
    if not values:
        return None
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
