"""`foveate evaluate` from the outside: what it prints, stores, reprints and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foveate.cli.main import main
from foveate.corpora import synthetic


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chats") / "chats.jsonl"
    shape = synthetic.Shape(sessions=(2, 2), turns=(8, 10), questions=(4, 4))
    synthetic.write(path, synthetic.generate(2, 7, shape))
    return path


@pytest.fixture
def evaluate(chats: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> int:
        return main(["evaluate", "synthetic", "--data", str(chats), "--budgets", "64,128", *words])

    return call


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_it_prints_tables_and_stores_rows_and_pictures(evaluate, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    code = evaluate("--method", "bm25,recency,oracle", "--against", "bm25", "--plot", "p.svg", "--report", "r.md")
    printed = capsys.readouterr()
    assert code == 0
    assert "# synthetic: evidence kept under a token budget" in printed.out
    assert "Contexts over their budget: 0." in printed.out
    assert "minus bm25" in printed.out
    assert (tmp_path / "r.md").read_text() == printed.out.removesuffix("\n")
    assert (tmp_path / "p.svg").read_text().startswith("<?xml")
    stored = rows(tmp_path / "docs/results/synthetic.jsonl")
    assert [(row["method"], row["budget"]) for row in stored] == [
        (method, budget) for method in ("bm25", "recency", "oracle") for budget in (64, 128)
    ]
    assert stored[0]["command"] == (
        "foveate evaluate synthetic --split P0 --budgets 64,128 --data chats.jsonl --method bm25"
    )
    assert [row["label_leak"] for row in stored] == [False] * 4 + [True] * 2
    assert all(row["metrics"]["budget_violations"] == 0 for row in stored)


def test_complete_rows_are_printed_again_without_measuring(
    evaluate, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    evaluate("--method", "bm25")
    first = capsys.readouterr().out
    before = (tmp_path / "docs/results/synthetic.jsonl").read_bytes()
    evaluate("--method", "bm25", "--work", "unused")
    again = capsys.readouterr()
    assert again.out == first
    assert "rows stored in" in again.err
    assert not (tmp_path / "unused").exists()
    assert (tmp_path / "docs/results/synthetic.jsonl").read_bytes() == before
    evaluate("--method", "bm25", "--fresh", "--work", "used")
    assert (tmp_path / "used").exists()
    assert rows(tmp_path / "docs/results/synthetic.jsonl")[0]["test_eval_count"] == 2


def test_rows_of_a_folder_that_is_gone_still_print(evaluate, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    evaluate("--method", "bm25")
    path = tmp_path / "docs/results/synthetic.jsonl"
    stored = [{**row, "method": "my-run"} for row in rows(path)]
    path.write_text("".join(json.dumps(row) + "\n" for row in stored))
    assert evaluate("--method", "runs/my-run") == 0
    assert "my-run" in capsys.readouterr().out


def test_a_part_of_the_corpus_is_stored_only_on_request(evaluate, tmp_path: Path) -> None:
    evaluate("--method", "recency", "--limit-conversations", "1")
    assert not (tmp_path / "docs").exists()
    evaluate("--method", "recency", "--limit-conversations", "1", "--out", "part.jsonl")
    assert rows(tmp_path / "part.jsonl")[0]["conversations"] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--method", "bm26"], "no method 'bm26'"),
        (["--method", "."], "neither a run"),
        (["--method", "bm25", "--budgets", "12,x"], "--budgets '12,x'"),
        (["--method", "bm25", "--budgets", "0"], "--budgets '0'"),
        (["--method", "bm25", "--limit-conversations", "0"], "--limit-conversations 0"),
        (["--method", "bm25", "--plot", "x.txt"], ".png"),
        (["--method", "bm25", "--fold", "0"], "--split P1"),
        (["--method", "bm25", "--split", "P1", "--fold", "0"], "are none"),
        (["--method", "bm25", "--against", "dense"], "--against dense"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    evaluate, capsys: pytest.CaptureFixture, words: list[str], message: str
) -> None:
    assert evaluate(*words) == 2
    error = [line for line in capsys.readouterr().err.splitlines() if line.startswith("foveate: error:")]
    assert len(error) == 1
    assert message in error[0]


def test_a_missing_data_root_names_the_variable(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.delenv("FOVEATE_DATA", raising=False)
    assert main(["evaluate", "locomo", "--method", "bm25"]) == 2
    assert "FOVEATE_DATA is not set" in capsys.readouterr().err


def test_help_shows_methods_and_examples(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["evaluate", "--help"])
    assert exit_.value.code == 0
    text = capsys.readouterr().out
    assert "best-sum" in text
    assert "examples:" in text


@pytest.mark.parametrize("option", ["--out", "--report", "--plot"])
def test_what_cannot_be_written_is_refused_before_measuring(
    evaluate, tmp_path: Path, capsys: pytest.CaptureFixture, option: str
) -> None:
    (tmp_path / "afile").touch()
    assert evaluate("--method", "bm25", "--work", "work", option, "afile/o.svg") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = [line for line in printed.err.splitlines() if line.startswith("foveate: error:")]
    assert "afile/o.svg cannot be written" in line
    assert not (tmp_path / "work").exists()
