"""`foveate evaluate budget` from the outside, over a scorer made in process."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from foveate.cli import evaluate_budget
from foveate.cli.main import guarded
from foveate.core.errors import ConfigError
from foveate.corpora import synthetic
from foveate.evaluation import checkpoints
from foveate.rules.ranking import FunctionScorer
from foveate.signals.lexical import LexicalIndex


def by_words(turns, query) -> list[float]:
    index = LexicalIndex()
    index.append(turns)
    return [float(score) / (4.0 + float(score)) for score in index.bm25(query.text)]


@pytest.fixture
def evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    model = tmp_path / "runs" / "tiny" / "model"
    model.mkdir(parents=True)
    (model / "model.safetensors").write_bytes(b"weights")
    monkeypatch.setattr(checkpoints, "_load", lambda folder, name: FunctionScorer(name, by_words, calibrated=True))
    shape = synthetic.Shape(sessions=(2, 2), turns=(8, 10), questions=(5, 5))
    synthetic.write(tmp_path / "test.jsonl", synthetic.generate(3, 7, shape))
    synthetic.write(tmp_path / "validation.jsonl", synthetic.generate(2, 8, shape))

    def call(*words: str, run: str = "runs/tiny") -> int:
        parser = argparse.ArgumentParser()
        evaluate_budget.configure(parser)
        given = ["--corpus", "synthetic", "--data", "test.jsonl", "--fit", "validation.jsonl", "--counter", "chapter"]
        size = ["--targets", "60,90", "--b-max", "200", "--b-min", "30"]
        return guarded(evaluate_budget.run, parser.parse_args([run, *given, *size, *words]))

    return call


def test_it_prints_tables_and_stores_rows_and_pictures(evaluate, tmp_path: Path, capsys) -> None:
    assert evaluate("--out", "rows.jsonl", "--report", "r.md", "--plot", "p.svg") == 0
    printed = capsys.readouterr()
    assert "# synthetic: budget rules against fixed budgets of equal mean cost" in printed.out
    assert "Contexts over their budget: 0." in printed.out
    assert (tmp_path / "r.md").read_text() == printed.out.removesuffix("\n")
    assert (tmp_path / "p.svg").read_text().startswith("<?xml")
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert {row["method"] for row in rows} >= {"tiny + share", "tiny + fixed", "tiny + ceiling"}
    assert rows[0]["command"] == (
        "foveate evaluate budget runs/tiny --split P0 --targets 60,90 --corpus synthetic --b-max 200 --b-min 30 "
        "--counter chapter --data test.jsonl --fit validation.jsonl"
    )
    assert rows[0]["fit"]["on"] == "validation.jsonl"
    assert evaluate("--out", "rows.jsonl") == 0
    assert capsys.readouterr().out == printed.out
    again = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [{**row, "test_eval_count": 1} for row in again] == rows


def test_a_part_is_measured_on_request(evaluate, tmp_path: Path, capsys) -> None:
    assert evaluate("--rules", "share", "--limit-conversations", "1", "--out", "rows.jsonl") == 0
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert {row["rule"] for row in rows} == {"share", "fixed", "ceiling"}
    assert {row["conversations"] for row in rows} == {1}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rules", "magic"], "--rules 'magic'"),
        (["--targets", "12,x"], "--targets '12,x'"),
        (["--targets", "20"], "target means 20"),
        (["--plot", "x.txt"], ".png"),
        (["--split", "P1"], "synthetic has no folds"),
        (["--fit", "absent.jsonl"], "absent.jsonl"),
        (["--limit-conversations", "0"], "--limit-conversations 0"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(evaluate, capsys, words: list[str], message: str) -> None:
    assert evaluate(*words) == 2
    error = [line for line in capsys.readouterr().err.splitlines() if line.startswith("foveate: error:")]
    assert len(error) == 1
    assert message in error[0]


def test_a_folder_without_a_scorer_is_refused(evaluate, tmp_path: Path, capsys) -> None:
    (tmp_path / "empty").mkdir()
    assert evaluate(run="empty") == 2
    assert "neither a run" in capsys.readouterr().err


def test_targets_are_read_in_order() -> None:
    assert evaluate_budget._targets("512, 256,512") == (256, 512)
    with pytest.raises(ConfigError, match="--targets ''"):
        evaluate_budget._targets("")
