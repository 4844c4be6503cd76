"""The golden rows of EVALUATION.md section 10 and the savings of section 8."""

from __future__ import annotations

import pytest

from foveate.core.errors import DataError
from foveate.metrics.efficiency import (
    compression_factor,
    percentile,
    ratio,
    saving_rate,
    summarise_ratios,
    token_reduction,
)


def test_ratio_of_one_context() -> None:
    assert ratio(512, 2048) == 0.25
    assert token_reduction(512, 2048) == 0.75
    assert compression_factor(512, 2048) == 4.0
    assert compression_factor(0, 10) == float("inf")


def test_an_empty_history_is_not_compressed() -> None:
    assert ratio(0, 0) == 1.0
    assert token_reduction(0, 0) == 0.0
    assert compression_factor(0, 0) == 1.0


def test_mean_of_ratios_is_not_ratio_of_sums() -> None:
    found = summarise_ratios([512, 100], [2048, 100])
    assert found is not None
    assert found.mean == 0.625
    assert found.pooled == pytest.approx(0.2849, abs=5e-5)
    assert summarise_ratios([], []) is None


@pytest.mark.parametrize(("base", "expected"), [(1493, 0.6624), (2479, 0.7967), (1888, 0.7331)])
def test_saving_rate(base: int, expected: float) -> None:
    assert saving_rate(base, 504) == pytest.approx(expected, abs=5e-5)


def test_saving_rate_needs_a_base() -> None:
    with pytest.raises(DataError, match="0 tokens"):
        saving_rate(0, 3)


def test_percentile() -> None:
    assert percentile([], 0.5) is None
    assert percentile([3.0], 0.95) == 3.0
    assert percentile([4, 1, 3, 2], 0.5) == 2.5
    assert percentile(list(range(101)), 0.95) == 95
