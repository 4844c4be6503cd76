"""Fidelity tiers, importance classes and the rule that turns a score into an intended tier (AFM section 3.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

from foveate.core.errors import ConfigError


class Tier(IntEnum):
    """How much of a turn is replayed; a higher value keeps more."""

    DROP = 0
    PLACEHOLDER = 1
    COMPRESSED = 2
    FULL = 3


class Importance(IntEnum):
    """AFM's three classes (section 3.2)."""

    TRIVIAL = 0
    RELEVANT = 1
    CRITICAL = 2


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Scores from which a turn is meant to be FULL (`high`) or COMPRESSED (`mid`); plain `>=`, no epsilon.

    The defaults are the values of AFM section 4.4. Algorithm 1 of the adaptive compression paper names them tau_s and
    tau_l.
    """

    high: float = 0.45
    mid: float = 0.25

    def __post_init__(self) -> None:
        if not self.mid <= self.high:
            raise ConfigError(f"thresholds.mid={self.mid} is above thresholds.high={self.high}: give mid <= high")

    def intended(self, score: float) -> Tier:
        """The tier a turn of this score is meant to get, before the budget is looked at."""
        if score >= self.high:
            return Tier.FULL
        if score >= self.mid:
            return Tier.COMPRESSED
        return Tier.PLACEHOLDER


REFERENCE_LENGTH = 64
"""The length in turns at which `level` of `OrdinalThresholds` holds."""


@dataclass(frozen=True, slots=True)
class OrdinalThresholds:
    """tau_s(n) and tau_l(n) of Eq. 2 for probabilities, by the length n of the history.

    logit tau_l(n) = level + rate * log(n / 64), and logit tau_s(n) = logit tau_l(n) + gap: two cuts of one scale, as in
    ordinal regression. `rules.thresholds` learns the three numbers.
    """

    level: float
    rate: float
    gap: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.level) and math.isfinite(self.rate) and 0.0 <= self.gap < math.inf):
            raise ConfigError(
                f"thresholds of level={self.level}, rate={self.rate}, gap={self.gap}: give finite numbers, gap >= 0"
            )

    def at(self, n: int) -> Thresholds:
        """The thresholds for n turns."""
        low = self.level + self.rate * math.log(max(1, n) / REFERENCE_LENGTH)
        return Thresholds(high=sigmoid(low + self.gap), mid=sigmoid(low))


RETENTION_POWER = 2


@dataclass(frozen=True, slots=True)
class TierValues:
    """What a compressed form is worth as a share of the full text: P(it carries what is needed), from its retention.

    By default retention ** 2, a prior, since half a text rarely answers half the questions; with a slope,
    sigmoid(slope * retention + shift), which `rules.tier_values` learns. A stub has no such number: it carries no words
    of the turn, so that no question can be answered from it, and what it is worth is the packer's `stub_value`.
    """

    slope: float | None = None
    shift: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.shift) and (self.slope is None or 0.0 <= self.slope < math.inf)):
            raise ConfigError(
                f"tier values of slope={self.slope}, shift={self.shift}: give a slope of at least 0 or None, and a "
                "finite shift"
            )

    def carried(self, retention: float) -> float:
        """The probability for a form of this retention; it never falls as the retention grows."""
        return retention**RETENTION_POWER if self.slope is None else sigmoid(self.slope * retention + self.shift)


def sigmoid(x: float) -> float:
    """1 / (1 + exp(-x)) without overflow."""
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0.0 else math.exp(x) / (1.0 + math.exp(x))
