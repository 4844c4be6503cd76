"""The golden rows of EVALUATION.md section 12, and properties of the tests and intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.core.errors import DataError
from foveate.metrics.calibration import calibration
from foveate.metrics.statistics import (
    Interval,
    cluster_bootstrap,
    holm,
    paired_bootstrap,
    sign_flip,
    spearman,
    two_stage_bootstrap,
    wilson,
)


def test_cluster_bootstrap_golden() -> None:
    found = cluster_bootstrap([3, 1, 4], [4, 3, 5])
    assert found.point == pytest.approx(0.666667, abs=1e-6)
    assert found.low == pytest.approx(0.333333, abs=1e-6)
    assert found.high == pytest.approx(0.8, abs=1e-6)


def test_bootstrap_is_the_same_every_time_and_seeded() -> None:
    sums, counts = [3, 1, 4, 1, 5], [4, 3, 5, 9, 6]
    assert cluster_bootstrap(sums, counts) == cluster_bootstrap(sums, counts)
    assert cluster_bootstrap(sums, counts) != cluster_bootstrap(sums, counts, seed=1)


def test_paired_bootstrap_cancels_what_the_conversations_share() -> None:
    rng = np.random.default_rng(0)
    base = rng.uniform(10, 90, 10)
    counts = [100.0] * 10
    better = base + 2
    alone = cluster_bootstrap(better.tolist(), counts)
    paired = paired_bootstrap(better.tolist(), base.tolist(), counts)
    assert paired.point == pytest.approx(0.02)
    assert paired.high - paired.low < 1e-9 < alone.high - alone.low


def test_two_stage_is_wider_than_nothing_and_centred() -> None:
    clusters = [[1, 0, 1, 1], [0, 0, 1], [1, 1, 1, 0, 1]]
    found = two_stage_bootstrap(clusters)
    assert found.point == pytest.approx(8 / 12)
    assert found.low < found.point < found.high
    assert two_stage_bootstrap([[1.0], [1.0]]) == Interval(1.0, 1.0, 1.0)


@pytest.mark.parametrize(("sums", "counts"), [([], []), ([1.0], [0.0]), ([1.0, 2.0], [3.0])])
def test_bootstrap_refuses_what_it_cannot_resample(sums: list[float], counts: list[float]) -> None:
    with pytest.raises(DataError, match="resampled"):
        cluster_bootstrap(sums, counts)


def test_sign_flip_golden() -> None:
    deltas = (0.03, 0.01, 0.02, -0.01, 0.04, 0.02, 0, 0.05, 0.01, 0.02)
    assert float(np.mean(deltas)) == pytest.approx(0.019)
    assert sign_flip(deltas) == 16 / 1024


def test_sign_flip_extremes() -> None:
    assert sign_flip([1.0] * 10) == pytest.approx(0.00195, abs=5e-6)
    assert sign_flip([0.0] * 10) == 1.0
    with pytest.raises(DataError, match="17 differences"):
        sign_flip([1.0] * 17)


@given(st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=8))
def test_sign_flip_does_not_depend_on_direction_or_order(deltas: list[float]) -> None:
    assert sign_flip(deltas) == sign_flip([-d for d in deltas]) == sign_flip(deltas[::-1])


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=6))
def test_holm_never_lowers_and_keeps_the_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= a <= 1 for p, a in zip(p_values, adjusted, strict=True))
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    assert [adjusted[i] for i in order] == sorted(adjusted)


def test_wilson() -> None:
    found = wilson(30, 30)
    assert found.point == 1.0
    assert found.low == pytest.approx(0.8865, abs=5e-5)
    assert found.high == 1.0
    half = wilson(5, 10)
    assert (half.low, half.high) == pytest.approx((0.2366, 0.7634), abs=5e-5)
    assert wilson(0, 0) == Interval(0.0, 0.0, 1.0)
    with pytest.raises(DataError, match="4 successes of 3"):
        wilson(4, 3)


def test_calibration_of_equal_widths() -> None:
    found = calibration([0.1, 0.1, 0.9, 0.9], [0, 1, 1, 1], bins=10)
    assert [(row.count, row.confidence, row.rate) for row in found.bins] == [
        (2, pytest.approx(0.1), 0.5),
        (2, pytest.approx(0.9), 1.0),
    ]
    assert (found.bins[0].low, found.bins[0].high) == (0.0, 0.1)
    assert found.ece == pytest.approx(0.5 * 0.4 + 0.5 * 0.1)
    assert found.brier == pytest.approx((0.01 + 0.81 + 0.01 + 0.01) / 4)


def test_calibration_of_equal_mass() -> None:
    found = calibration([0.0, 0.2, 0.6, 1.0], [0, 0, 1, 1], bins=2, binning="mass")
    assert [(row.low, row.high, row.count) for row in found.bins] == [(0.0, 0.2, 2), (0.6, 1.0, 2)]
    assert found.ece == pytest.approx(0.5 * 0.1 + 0.5 * 0.2)


def test_a_perfect_forecast_has_no_error() -> None:
    assert calibration([0.0, 1.0, 1.0], [0, 1, 1]).ece == 0.0


@pytest.mark.parametrize(("p", "y", "bins"), [([], [], 5), ([0.5], [1, 0], 5), ([1.5], [1], 5), ([0.5], [1], 0)])
def test_calibration_refuses_nonsense(p: list[float], y: list[int], bins: int) -> None:
    with pytest.raises(DataError):
        calibration(p, y, bins=bins)


def test_spearman_is_scipys_with_ties_and_nothing_without_variation() -> None:
    scipy = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 6, 50).tolist(), rng.integers(0, 9, 50).tolist()
    assert spearman(a, b) == pytest.approx(float(scipy.spearmanr(a, b).statistic))
    assert spearman([1, 2, 3], [30, 20, 10]) == pytest.approx(-1.0)
    assert spearman([1, 1, 1], [1, 2, 3]) is None
    with pytest.raises(DataError, match="pairs"):
        spearman([1.0], [1.0, 2.0])
