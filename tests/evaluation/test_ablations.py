"""The ablation table from rows: pooled over folds, averaged over seeds, paired over conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from foveate.core.errors import DataError
from foveate.evaluation.ablations import category_mean, cells, difference, markdown, save_plot, split_name, unfinished
from foveate.evaluation.results import Row

COUNTS = {"a": 10, "b": 30, "c": 20}


def row(method: str, shares: dict[str, float], budget: int = 256) -> Row:
    clusters: dict[str, Any] = {name: [COUNTS[name], share * COUNTS[name]] for name, share in shares.items()}
    return {
        "method": method,
        "budget": budget,
        "clusters": clusters,
        "metrics": {"erb_by_category": {"1": min(shares.values())}},
    }


ROWS = [
    row("full.s1", {"a": 0.5, "b": 0.6}),
    row("full.s1", {"c": 0.9}),
    row("full.s2", {"a": 0.7, "b": 0.6}),
    row("full.s2", {"c": 0.7}),
    row("no-token.s1", {"a": 0.4, "b": 0.5, "c": 0.7}),
]


def test_names_are_a_variant_and_a_seed() -> None:
    assert split_name("no.listwise.s13") == ("no.listwise", 13)
    for name in ("full", "full.13", "full.sx"):
        with pytest.raises(DataError, match=r"VARIANT\.sSEED"):
            split_name(name)


def test_folds_are_pooled_and_seeds_averaged() -> None:
    found = cells(ROWS)["full"][256]
    first, second = (5 + 18 + 18) / 60, (7 + 18 + 14) / 60
    assert list(found.runs) == [1, 2]
    assert found.mean == pytest.approx((first + second) / 2)
    assert found.deviation == pytest.approx(abs(first - second) / 2**0.5)
    assert found.sums()["c"] == (20, pytest.approx(16))
    assert found.sums([1])["c"] == (20, pytest.approx(18))
    assert cells(ROWS)["no-token"][256].deviation is None


def test_a_difference_is_paired_over_conversations() -> None:
    found = cells(ROWS)
    delta = difference(found["no-token"][256], found["full"][256])
    assert delta.point == pytest.approx((4 + 15 + 14 - 5 - 18 - 18) / 60)  # seed 1 alone: the other has no seed 2
    assert delta.low <= delta.point <= delta.high < 0
    assert difference(found["full"][256], found["full"][256]).high == 0


def test_what_was_measured_on_other_conversations_is_refused() -> None:
    with pytest.raises(DataError, match="no-token: its seeds"):
        cells([*ROWS, row("no-token.s2", {"a": 0.5})])
    found = cells([*ROWS, row("short.s1", {"a": 0.5})])
    with pytest.raises(DataError, match="different conversations"):
        difference(found["short"][256], found["full"][256])
    other = cells([row("full.s3", {"a": 0.5, "b": 0.6, "c": 0.7})])
    with pytest.raises(DataError, match="no seed in common"):
        difference(other["full"][256], found["full"][256])


def test_a_run_without_all_folds_is_left_out_and_named(tmp_path: Path) -> None:
    rows = [*ROWS, row("no-mixer.s1", {"a": 0.5}), row("no-token.s2", {"c": 0.5})]
    assert unfinished(rows) == ["no-mixer.s1", "no-token.s2"]
    text = markdown(rows, {"no-token": "eta2 0", "no-mixer": "none"})
    assert "left out: no-mixer.s1, no-token.s2." in text
    assert text.replace("\nNot complete, left out: no-mixer.s1, no-token.s2.\n", "") == markdown(
        ROWS, {"no-token": "eta2 0"}
    )
    save_plot(rows, tmp_path / "ablations.png")


def test_the_report_marks_what_leaves_zero_out() -> None:
    text = markdown(ROWS, {"no-token": "eta2 0"})
    assert "**-13.3 [-" in text
    assert "| no-token |          eta2 0 |" in text
    assert "66.7 ± 2.4" in text
    with pytest.raises(DataError, match="no row of the variant 'full'"):
        markdown(ROWS[-1:], {})


def test_the_mean_of_a_category_is_over_seeds_and_folds() -> None:
    assert category_mean(ROWS, "full", 256, "1") == pytest.approx((0.5 + 0.9 + 0.6 + 0.7) / 4)
    assert category_mean(ROWS, "full", 512, "1") is None


def test_the_plot_is_a_picture(tmp_path: Path) -> None:
    save_plot(ROWS, tmp_path / "ablations.png")
    assert (tmp_path / "ablations.png").read_bytes().startswith(b"\x89PNG")
