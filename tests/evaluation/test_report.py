"""Tables and the plot, from rows alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_results import FACTS, RECORDS, record

from foveate.core.errors import ConfigError
from foveate.evaluation.plot import save_plot
from foveate.evaluation.records import Budget
from foveate.evaluation.report import category_table, compare, markdown, paired_table, plot_points, split_tables, table
from foveate.evaluation.results import Row, make_row

NAMES = {"1": "multi-hop", "3": "open-domain", "4": "single-hop", "5": "adversarial"}


def make(method: str, budget: Budget, gain: float = 0.0, *, aware: bool = True, leak: bool = False) -> Row:
    records = [
        record(r.question, r.category, None if r.erb is None else min(1.0, r.erb + gain), budget) for r in RECORDS
    ]
    return make_row(
        FACTS,
        records,
        method=method,
        q_aware=aware,
        label_leak=leak,
        train_data="none",
        method_digest=method,
        code_digest="code",
    )


ROWS = [
    make("weak", 256),
    make("weak", 512, 0.1),
    make("strong", 256, 0.3),
    make("strong", 512, 0.4),
    make("recency", 256, aware=False),
    make("recency", 512, aware=False),
    make("full", "full", 1.0, aware=False),
    make("oracle", 256, 1.0, leak=True),
    make("oracle", 512, 1.0, leak=True),
]


def test_table_is_markdown_with_aligned_columns() -> None:
    assert table(["method", "256"], [["a", "1.0"], ["longer", "12.5"]]).splitlines() == [
        "| method |  256 |",
        "|--------|-----:|",
        "| a      |  1.0 |",
        "| longer | 12.5 |",
    ]


def test_query_aware_and_agnostic_methods_are_never_in_one_table() -> None:
    text = split_tables(ROWS, lambda row: "x")
    aware, agnostic = text.split("**Query-agnostic**")
    assert aware.startswith("**Query-aware**")
    assert "strong" in aware
    assert "recency" not in aware
    assert "full" in agnostic
    assert "weak" not in agnostic


def test_methods_are_ranked_best_first_and_leaks_are_marked() -> None:
    text = markdown(ROWS, names=NAMES)
    recall = text.split("## ")[1]
    assert recall.index("oracle *") < recall.index("strong") < recall.index("weak")
    assert "sees the gold evidence" in text
    assert "badge `ours`" in text


def test_full_context_stands_at_every_budget() -> None:
    line = next(line for line in split_tables(ROWS, lambda row: str(row["budget"])).splitlines() if "full" in line)
    assert [cell.strip() for cell in line.strip("|").split("|")] == ["full", "full", "full"]


def test_category_table_names_categories() -> None:
    text = category_table(ROWS, 512, NAMES)
    assert "1 multi-hop" in text
    assert "5 adversarial" in text
    assert len(text.splitlines()) == 2 + 5


def test_difference_is_paired_and_tested() -> None:
    point, low, high, p = compare(ROWS[2], ROWS[0])
    assert point == pytest.approx((0.0 + 0.3 + 0.3) / 3)
    assert low == pytest.approx(0.15)
    assert high == pytest.approx(0.3)
    assert p == 0.5
    text = paired_table(ROWS, "weak")
    assert "+20.0 [+15.0, +30.0] p=1.000" in text
    assert "minus weak" in text


def test_difference_needs_the_same_questions() -> None:
    fewer = {**ROWS[0], "clusters": {"a": [1, 0.5]}}
    with pytest.raises(ConfigError, match="same questions"):
        compare(ROWS[2], fewer)


def test_unknown_baseline_and_no_rows_are_refused() -> None:
    with pytest.raises(ConfigError, match="weak, strong"):
        markdown(ROWS, names=NAMES, against="nothing")
    with pytest.raises(ConfigError, match="no result row"):
        markdown([], names=NAMES)


def test_plot_points_are_percentages_by_budget() -> None:
    points = plot_points(ROWS)
    assert "full" not in points
    assert [budget for budget, *_ in points["strong"]] == [256, 512]
    assert points["strong"][0][1] == pytest.approx(70.0)
    assert points["strong"][0][2] <= 70.0 <= points["strong"][0][3]


@pytest.mark.parametrize(("name", "magic"), [("plot.png", b"\x89PNG"), ("plot.svg", b"<?xml")])
def test_plot_is_saved_as_what_it_is_called(tmp_path: Path, name: str, magic: bytes) -> None:
    save_plot(ROWS, tmp_path / "new" / name)
    assert (tmp_path / "new" / name).read_bytes().startswith(magic)


def test_plot_refuses_other_files_and_rows_without_budgets(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\.png"):
        save_plot(ROWS, tmp_path / "plot.txt")
    with pytest.raises(ConfigError, match="token budget"):
        save_plot([ROWS[6]], tmp_path / "plot.png")
