"""Fidelity tiers, importance classes and the rule that turns a score into an intended tier (AFM section 3.3)."""

from __future__ import annotations

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
