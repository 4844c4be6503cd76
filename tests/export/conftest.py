"""One tiny trained run and its export, made once a session."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from foveate.export.folder import export
from foveate.export.parity import Parity
from foveate.training.run import train

sys.path.append(str(Path(__file__).resolve().parents[1] / "training"))

from tiny_runs import silent, tiny_config  # pyright: ignore[reportMissingImports]


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    config = tiny_config(folder, folder / "run")
    train(replace(config, model=replace(config.model, tier_values="fit")), silent)
    return folder / "run"


@pytest.fixture(scope="session")
def exported(run_folder: Path) -> tuple[Path, dict[str, Parity], list[str]]:
    """The export folder, the parities and what was said; int8 is kept whatever its agreement."""
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("foveate.export.folder.INT8_AGREEMENT", -1.0)
        found = export(run_folder, run_folder.parent / "exported", say=said.append)
    return run_folder.parent / "exported", found, said
