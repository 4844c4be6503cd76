"""ROUGE against values worked out by hand."""

from __future__ import annotations

import pytest

from foveate.core.errors import DataError
from foveate.metrics.rouge import Rouge, rouge


@pytest.mark.parametrize(
    ("summary", "reference", "found"),
    [
        # 3 of 3 and 3 of 6 words, 2 of 2 and 2 of 5 pairs.
        ("the cat sat", "the cat sat on the mat", (200 / 3, 400 / 7, 200 / 3)),
        # All words, none of the pairs; the longest common subsequence is a b d or a c d.
        ("a b c d", "a c b d", (100, 0, 75)),
        ("The cats, sitting!", "the cat sits", (100, 100, 100)),
        ("nothing alike", "wholly different", (0, 0, 0)),
        ("", "x", (0, 0, 0)),
    ],
)
def test_golden(summary: str, reference: str, found: tuple[float, float, float]) -> None:
    got = rouge(summary, [reference])
    assert (got.r1, got.r2, got.rl) == pytest.approx(found)


def test_the_best_reference_counts_measure_by_measure() -> None:
    # Words: "b a" has both (100), pairs: "a b c" has the pair "a b" (2 x 1 / (1 + 2)).
    assert rouge("a b", ["b a", "a b c"]) == Rouge(100.0, pytest.approx(200 / 3), pytest.approx(80.0))  # type: ignore[arg-type]


def test_no_reference_is_named() -> None:
    with pytest.raises(DataError, match="without a reference"):
        rouge("a", [])
