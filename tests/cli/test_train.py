"""foveate train: what it refuses, and how it says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from foveate.cli.main import main
from foveate.config.load import load_config


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.yaml"
    path.write_text(f"out: {tmp_path / 'run'}\n")
    return path


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["train", *words]) == 2
    caught = capsys.readouterr()
    lines = caught.err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("foveate: error: ")
    assert "Traceback" not in caught.err
    return lines[0]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--optim.lr", "much"], "much"),
        (["--optim.learn", "1"], "learn"),
        (["--data.fold", "9"], "data.fold=9"),
        (["--data.train", "[wikipedia]"], "wikipedia"),
        (["--data.train", "['synthetic:none.jsonl']"], "none.jsonl"),
    ],
)
def test_a_bad_value_is_one_line_and_exit_code_two(
    plain: Path, words: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert named in refused([str(plain), *words], capsys)
    assert not (plain.parent / "run").exists()


def test_a_missing_file_is_one_line_and_exit_code_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "none.yaml" in refused([str(tmp_path / "none.yaml")], capsys)


def test_the_resolved_configuration_can_be_used_again(plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(plain), "--optim.lr", "0.25", "--print_config"]) == 0
    again = plain.with_name("again.yaml")
    again.write_text(capsys.readouterr().out)
    assert load_config(again) == load_config(plain, ["--optim.lr", "0.25"])
    assert not (plain.parent / "run").exists()
