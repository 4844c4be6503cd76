"""Uncertainty for few clusters: cluster bootstrap, exact sign-flip test, Holm, Wilson (EVALUATION.md section 12); and
rank correlation.

Questions of one conversation are not independent, so conversations are what is resampled. With ten of them percentile
intervals cover somewhat less than they claim.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foveate.core.errors import DataError

RESAMPLES = 10_000
SEED = 12345
EXACT_LIMIT = 16
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """A point estimate and its percentile interval."""

    point: float
    low: float
    high: float


def _interval(point: float, draws: Floats, level: float) -> Interval:
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(draws, [tail, 100 - tail])
    return Interval(point, float(low), float(high))


def _clusters(sums: Sequence[float], counts: Sequence[float]) -> tuple[Floats, Floats]:
    total, size = np.asarray(sums, float), np.asarray(counts, float)
    if total.shape != size.shape or total.ndim != 1 or not len(size) or (size <= 0).any():
        raise DataError(f"clusters of sizes {list(counts)} cannot be resampled: give one positive size for each sum")
    return total, size


def _draw(clusters: int, resamples: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, clusters, (resamples, clusters))


def cluster_bootstrap(
    sums: Sequence[float],
    counts: Sequence[float],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    level: float = 0.95,
) -> Interval:
    """The interval of the ratio sum(S) / sum(n) when whole clusters are drawn with replacement.

    Args:
        sums: the sum of the question scores of each cluster.
        counts: the number of questions of each cluster.
        resamples: number of draws.
        seed: of `default_rng`.
        level: coverage aimed at.
    """
    total, size = _clusters(sums, counts)
    index = _draw(len(size), resamples, seed)
    draws = total[index].sum(axis=1) / size[index].sum(axis=1)
    return _interval(float(total.sum() / size.sum()), draws, level)


def paired_bootstrap(
    first: Sequence[float],
    second: Sequence[float],
    counts: Sequence[float],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    level: float = 0.95,
) -> Interval:
    """The interval of the difference first - second, both on the same drawn clusters."""
    difference = np.asarray(first, float) - np.asarray(second, float)
    return cluster_bootstrap(difference.tolist(), counts, resamples=resamples, seed=seed, level=level)


def two_stage_bootstrap(
    clusters: Sequence[Sequence[float]], *, resamples: int = 2_000, seed: int = SEED, level: float = 0.95
) -> Interval:
    """Clusters are drawn, then the questions inside each drawn cluster; the secondary interval."""
    values = [np.asarray(cluster, float) for cluster in clusters]
    _clusters([float(cluster.sum()) for cluster in values], [len(cluster) for cluster in values])
    rng = np.random.default_rng(seed)
    draws = np.empty(resamples)
    for b in range(resamples):
        chosen = [values[i] for i in rng.integers(0, len(values), len(values))]
        sample = [cluster[rng.integers(0, len(cluster), len(cluster))] for cluster in chosen]
        draws[b] = sum(part.sum() for part in sample) / sum(len(part) for part in sample)
    pooled = np.concatenate(values)
    return _interval(float(pooled.mean()), draws, level)


def sign_flip(deltas: Sequence[float]) -> float:
    """Exact two-sided p of the mean of paired differences: the share of the 2^n sign patterns whose mean is at least
    as far from 0. Raises DataError for none or more than `EXACT_LIMIT` differences.
    """
    values = np.asarray(deltas, float)
    if not 1 <= len(values) <= EXACT_LIMIT:
        raise DataError(f"a sign-flip test of {len(values)} differences is not exact here: give 1 to {EXACT_LIMIT}")
    patterns = np.arange(2 ** len(values))[:, None] >> np.arange(len(values))
    sums = np.where(patterns & 1, -1.0, 1.0) @ values
    slack = 1e-12 * max(1.0, float(np.abs(values).sum()))
    return float(np.mean(np.abs(sums) >= abs(float(values.sum())) - slack))


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's rank correlation, ties at their mean rank; None where one side does not vary.

    Raises:
        DataError: the lengths differ.
    """
    if len(first) != len(second):
        raise DataError(f"{len(first)} values against {len(second)}: a correlation needs pairs")
    a, b = (_ranks(np.asarray(values, float)) for values in (first, second))
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0.0 else None


def _ranks(values: Floats) -> Floats:
    """Mean ranks less their mean."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]
    return rank - (len(values) + 1) / 2


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the order given."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = running
    return adjusted


def wilson(successes: int, n: int, *, z: float = 1.959963984540054) -> Interval:
    """Wilson's interval of a share; (0, 1) around 0 for no trial. Raises DataError where successes are not in 0..n."""
    if not 0 <= successes <= n:
        raise DataError(f"{successes} successes of {n} trials: give 0 <= successes <= trials")
    if n == 0:
        return Interval(0.0, 0.0, 1.0)
    share = successes / n
    scale = 1 + z * z / n
    centre = (share + z * z / (2 * n)) / scale
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / scale
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return Interval(share, low, high)
