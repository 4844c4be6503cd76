"""BLEU of packed contexts, and that it is blind to the evidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foveate.cli.main import main

DATA = str(Path(__file__).parents[2] / "data" / "synthetic" / "validation.jsonl")
WORDS = ["evaluate", "reconstruction", "--corpus", "synthetic", "--data", DATA, "--limit-conversations", "1"]


def test_bleu_rises_with_length_and_not_with_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, report = tmp_path / "rows.jsonl", tmp_path / "bleu.md"
    words = ["--questions", "5", "--budgets", "256,2048", "--method", "recency,bm25,full"]
    assert main([*WORDS, *words, "--out", str(rows), "--report", str(report)]) == 0
    assert capsys.readouterr().out.strip() == report.read_text().strip()
    found = {(r["method"], r["budget"]): r for r in map(json.loads, rows.read_text().splitlines())}
    assert found["full", "full"]["metrics"]["bleu"] == pytest.approx(100)
    for budget in (256, 2048):
        recency, bm25 = (found[name, budget]["metrics"] for name in ("recency", "bm25"))
        assert bm25["erb"] > recency["erb"]
        assert bm25["of_ceiling"] < recency["of_ceiling"]
        assert bm25["of_ceiling"] == pytest.approx(bm25["precision"] / 100, abs=0.02)
    assert found["bm25", 2048]["metrics"]["bleu"] > found["bm25", 256]["metrics"]["bleu"]
    assert all(row["n"] == 5 for row in found.values())
    assert "--questions 5 --split P0" in found["bm25", 256]["command"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--method", "oracle"], "is a ceiling and no method"),
        (["--method", "bm25", "--questions", "0"], "--questions 0"),
        (["--method", "bm25", "--fold", "1"], "--fold 1 without folds"),
    ],
)
def test_bad_input_is_one_line(words: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, *words]) == 2
    assert line in capsys.readouterr().err
