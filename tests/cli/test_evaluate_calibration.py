"""`foveate evaluate calibration` from the outside, over a scorer made in process."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from foveate.cli import evaluate_calibration
from foveate.cli.evaluate import PARTS
from foveate.cli.main import guarded
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
    monkeypatch.setattr(
        checkpoints, "_load", lambda folder, name: FunctionScorer(name, by_words, "optimal", calibrated=True)
    )
    shape = synthetic.Shape(sessions=(2, 2), turns=(8, 10), questions=(5, 5))
    synthetic.write(tmp_path / "test.jsonl", synthetic.generate(3, 7, shape))
    synthetic.write(tmp_path / "validation.jsonl", synthetic.generate(2, 8, shape))

    def call(*words: str, run: str = "runs/tiny") -> int:
        parser = argparse.ArgumentParser()
        evaluate_calibration.configure(parser)
        given = ["--corpus", "synthetic", "--data", "test.jsonl", "--counter", "chapter", "--budgets", "60,120"]
        return guarded(evaluate_calibration.run, parser.parse_args([run, *given, *words]))

    return call


def test_it_prints_tables_and_stores_rows_and_pictures(evaluate, tmp_path: Path, capsys) -> None:
    assert evaluate("--out", "rows.jsonl", "--report", "r.md", "--plot", "p.svg") == 0
    printed = capsys.readouterr()
    assert "# synthetic: what the packer believed against what it was worth, tier by tier" in printed.out
    assert (tmp_path / "r.md").read_text() == printed.out.removesuffix("\n")
    assert (tmp_path / "p.svg").read_text().startswith("<?xml")
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert {row["tier"] for row in rows} >= {"all", "full", "drop"}
    assert rows[0]["method"] == "tiny: all"
    assert rows[0]["command"] == (
        "foveate evaluate calibration runs/tiny --split P0 --budgets 60,120 --corpus synthetic --counter chapter "
        "--data test.jsonl"
    )
    assert evaluate("--out", "rows.jsonl") == 0
    assert capsys.readouterr().out == printed.out
    again = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [{**row, "test_eval_count": 1} for row in again] == rows


def test_fitted_values_and_another_policy_are_rows_of_their_own(evaluate, tmp_path: Path) -> None:
    for words in ((), ("--values", "fit", "--fit", "validation.jsonl", "--policy", "score")):
        assert evaluate("--limit-conversations", "1", "--out", "rows.jsonl", *words) == 0
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert {row["method"].partition(":")[0] for row in rows} == {"tiny", "tiny (score, fit values)"}
    assert rows[-1]["command"].endswith(
        "--policy score --values fit --counter chapter --limit-conversations 1 --data test.jsonl --fit validation.jsonl"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--budgets", "12,x"], "--budgets '12,x'"),
        (["--plot", "x.txt"], ".png"),
        (["--split", "P1"], "synthetic has no folds"),
        (["--fold", "1"], "give --split P1"),
        (["--values", "fit", "--fit", "absent.jsonl"], "absent.jsonl"),
        (["--values", "fit", "--fit", "validation.jsonl", "--shorten", "no"], "without a summarizer"),
        (["--stub-value", "2"], "stub_value=2"),
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


def test_the_verb_lists_it() -> None:
    assert "calibration" in PARTS
