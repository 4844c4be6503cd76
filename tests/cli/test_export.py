"""foveate export: what it passes on, what it prints, what it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from foveate.cli.main import main
from foveate.export import folder
from foveate.export.parity import Parity


@pytest.mark.parametrize(("words", "int8"), [([], True), (["--no-int8"], False)])
def test_it_prints_the_parity_of_each_precision(
    words: list[str], int8: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Any] = []

    def export(run: Path, out: Path, *, int8: bool, slim: bool, rows: Sequence[object]) -> dict[str, Parity]:
        assert not slim
        assert not rows
        asked.append((run, out, int8))
        return {"fp32": Parity(3e-6, 1.0, 12)}

    monkeypatch.setattr(folder, "export", export)
    assert main(["export", "some/run", "some/out", *words]) == 0
    assert asked == [(Path("some/run"), Path("some/out"), int8)]
    assert "fp32: max abs 3.0e-06, top-20 agreement 1.000 over 12 questions" in capsys.readouterr().out


def test_a_folder_without_a_model_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(tmp_path / "none"), str(tmp_path / "out")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("foveate: error: ")
    assert "holds no finished model" in line
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_something_else_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    assert main(["export", str(tmp_path / "none"), str(tmp_path / "out")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "exists and is no export" in line
    assert (tmp_path / "out" / "thesis.txt").read_text() == "mine"
