"""How far predicted probabilities are from observed rates: reliability table, ECE, Brier score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from foveate.core.errors import DataError

Binning = Literal["width", "mass"]


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """One bin: its edges, how many predictions fall in it, their mean, and the rate of positives among them."""

    low: float
    high: float
    count: int
    confidence: float
    rate: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Expected calibration error with the bins it was taken over, and the Brier score.

    `ece` is the sum over non-empty bins of count / n * |confidence - rate|.
    """

    ece: float
    brier: float
    n: int
    binning: Binning
    bins: tuple[ReliabilityBin, ...]


def calibration(
    probabilities: Sequence[float], labels: Sequence[bool | int], *, bins: int = 15, binning: Binning = "width"
) -> Calibration:
    """Reliability of probabilities against 0/1 labels.

    Args:
        probabilities: each in 0..1.
        labels: whether the event happened.
        bins: how many bins; empty ones are left out of the table.
        binning: `width` cuts 0..1 into equal intervals (closed above, the first closed below too), `mass` cuts the
            sorted predictions into groups of equal size.

    Raises DataError for no prediction, unequal lengths, fewer than one bin, or a value outside 0..1.
    """
    p, y = np.asarray(probabilities, float), np.asarray(labels, float)
    if p.shape != y.shape or p.ndim != 1 or not len(p):
        raise DataError(
            f"{p.size} probabilities for {y.size} labels: give one probability for each of one or more labels"
        )
    if bins < 1 or not bool(((p >= 0) & (p <= 1)).all()):
        raise DataError(
            f"calibration over {bins} bins of values {p.min():g}..{p.max():g}: give bins >= 1, values in 0..1"
        )
    if binning == "width":
        place = np.clip(np.ceil(p * bins).astype(int) - 1, 0, bins - 1)
        edges = [(b / bins, (b + 1) / bins) for b in range(bins)]
    else:
        order = np.argsort(p, kind="stable")
        place = np.empty(len(p), int)
        place[order] = np.arange(len(p)) * bins // len(p)
        edges = [
            (float(p[place == b].min()), float(p[place == b].max())) if (place == b).any() else (0.0, 0.0)
            for b in range(bins)
        ]
    table = tuple(
        ReliabilityBin(*edges[b], int((place == b).sum()), float(p[place == b].mean()), float(y[place == b].mean()))
        for b in range(bins)
        if (place == b).any()
    )
    ece = sum(row.count / len(p) * abs(row.confidence - row.rate) for row in table)
    return Calibration(float(ece), float(np.mean((p - y) ** 2)), len(p), binning, table)
