"""R@k and MRR by hand, over a scorer whose order is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from foveate.cli.main import main
from foveate.core.protocols import PolicyName, Scores
from foveate.core.schema import Conversation, Evidence, Query, Question, Turn
from foveate.evaluation.ranking import rank_conversation


@dataclass
class Fixed:
    """Scores turns by their own number; a turn of the same number as another ties with it."""

    values: Sequence[float]
    name: str = "fixed"
    calibrated: bool = False
    policy: PolicyName = "score"

    def open(self) -> Fixed:
        return self

    def append(self, turns: Sequence[Turn]) -> None:
        assert len(turns) == len(self.values)

    def score(self, query: Query) -> Scores:
        return Scores(score=list(self.values))


def conversation(*evidence: tuple[str, ...]) -> Conversation:
    turns = tuple(Turn(id=str(i), role="user", content=f"turn {i}") for i in range(12))
    questions = tuple(
        Question(id=f"q{i}", query=Query(text="which?"), evidence=Evidence(turn_ids=ids, category="1"))
        for i, ids in enumerate(evidence)
    )
    return Conversation(id="c", turns=turns, questions=questions)


def test_ranks_by_hand() -> None:
    scorer = Fixed([12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 3, 3])
    found = [one.found for one in rank_conversation([scorer], conversation(("0", "11"), ("10",), (), ("2", "3")))]
    assert found == [
        {"r@1": 0.5, "r@5": 0.5, "r@10": 0.5, "r@20": 1.0, "mrr": 1.0},
        {"r@1": 0.0, "r@5": 0.0, "r@10": 0.0, "r@20": 1.0, "mrr": 1 / 11},
        {"r@1": 0.0, "r@5": 1.0, "r@10": 1.0, "r@20": 1.0, "mrr": 1 / 3},
    ]


def test_seeds_are_averaged() -> None:
    up, down = Fixed(list(range(12))), Fixed(list(range(12, 0, -1)))
    (found,) = rank_conversation([up, down], conversation(("0",)))
    assert found.found["mrr"] == pytest.approx((1 + 1 / 12) / 2)
    assert found.found["r@10"] == 0.5


def test_the_command_stores_rows_and_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, report = tmp_path / "rows.jsonl", tmp_path / "ranking.md"
    data = str(Path(__file__).parents[2] / "data" / "synthetic" / "validation.jsonl")
    words = ["evaluate", "ranking", "--corpus", "synthetic", "--data", data, "--limit-conversations", "1"]
    assert main([*words, "--method", "recency,bm25", "--out", str(rows), "--report", str(report)]) == 0
    shown = capsys.readouterr().out
    assert shown.strip() == report.read_text().strip()
    assert shown.index("| bm25") < shown.index("| recency")
    assert len(rows.read_text().splitlines()) == 2


@pytest.mark.parametrize(("name", "line"), [("oracle", "ranks no turns"), ("nothing", "no method 'nothing'")])
def test_what_cannot_rank_is_named(name: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "ranking", "--corpus", "synthetic", "--method", name]) == 2
    assert line in capsys.readouterr().err
