from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from foveate.cli.main import main
from foveate.corpora import root, synthetic
from foveate.corpora.root import Source


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A data root with one known corpus of two files, of which the first is there."""
    files = {"a.json": hashlib.sha256(b"[]").hexdigest(), "b.json": hashlib.sha256(b"{}").hexdigest()}
    source = Source("tiny", "two files", "MIT", "yes", "someone/tiny", "abc123", files, made="b.json is a with braces")
    monkeypatch.setattr("foveate.cli.data.KNOWN", {"tiny": source})
    monkeypatch.setenv("FOVEATE_DATA", str(tmp_path))
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "a.json").write_bytes(b"[]")
    return tmp_path


def test_list_shows_terms_and_presence(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "list"]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("tiny"))
    assert row.split() == "tiny MIT yes 1 of 2 two files".split()


def test_list_works_without_a_data_root(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FOVEATE_DATA")
    assert main(["data", "list"]) == 0
    captured = capsys.readouterr()
    assert "tiny" in captured.out
    assert "FOVEATE_DATA is not set" in captured.err


def test_verify_tells_ok_and_missing(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "verify"]) == 0
    assert capsys.readouterr().out.splitlines() == ["ok       tiny/a.json", "missing  tiny/b.json"]


def test_verify_exits_2_on_a_change(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tiny / "tiny" / "b.json").write_bytes(b"{1}")
    assert main(["data", "verify"]) == 2
    captured = capsys.readouterr()
    assert "CHANGED  tiny/b.json" in captured.out
    assert hashlib.sha256(b"{1}").hexdigest() in captured.out
    assert captured.err.startswith("foveate: error: changed: tiny/b.json;")
    assert captured.err.count("\n") == 1


def test_verify_without_a_data_root_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FOVEATE_DATA", raising=False)
    assert main(["data", "verify"]) == 2
    assert capsys.readouterr().err.startswith("foveate: error: FOVEATE_DATA is not set")


def test_where_names_upstream_commit_licence_and_hash(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "where"]) == 0
    out = capsys.readouterr().out
    for text in ("someone/tiny", "abc123", "MIT", "b.json is a with braces", hashlib.sha256(b"[]").hexdigest()):
        assert text in out


def test_where_can_be_asked_for_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "where", "qmsum"]) == 0
    out = capsys.readouterr().out
    assert root.KNOWN["qmsum"].commit in out
    assert "locomo" not in out


def test_generate_writes_what_the_library_makes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "new" / "s.jsonl"
    assert main(["data", "generate", "--conversations", "2", "--seed", "4", "--out", str(file)]) == 0
    assert synthetic.read(file) == synthetic.generate(2, 4)
    assert "2 conversations" in capsys.readouterr().out


def test_generate_refuses_no_conversations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "generate", "--conversations", "0", "--seed", "4", "--out", str(tmp_path / "s")]) == 2
    assert "give at least 1" in capsys.readouterr().err


def test_generate_refuses_a_file_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "s.jsonl"
    assert main(["data", "generate", "--conversations", "1", "--seed", "4", "--out", str(out)]) == 2
    assert "cannot be written" in capsys.readouterr().err
