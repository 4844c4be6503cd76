"""A checkpoint is complete or absent."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from foveate.core.errors import CheckpointError
from foveate.training import checkpoint
from foveate.training.checkpoint import CheckpointStore, restore


def filled(folder: Path, steps: int, keep: int = 3) -> CheckpointStore:
    store = CheckpointStore(folder, keep)
    for step in range(1, steps + 1):
        store.save(step, {"w": torch.full((3,), float(step))}, {"position": {"step": step}})
    return store


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    found, damaged = filled(tmp_path, 2).newest()
    assert damaged == []
    assert found is not None
    assert torch.equal(found.weights["w"], torch.full((3,), 2.0))
    assert found.state == {"position": {"step": 2}}


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    assert filled(tmp_path, 5, keep=2).steps() == [4, 5]


def test_nothing_saved_is_nothing_found(tmp_path: Path) -> None:
    assert CheckpointStore(tmp_path / "none", 1).newest() == (None, [])


def test_a_kill_while_writing_leaves_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(tmp_path, 1)

    def killed(_: Path) -> None:
        raise OSError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "_flush", killed)
        with pytest.raises(OSError, match="killed"):
            store.save(2, {"w": torch.zeros(3)}, {})
    assert (tmp_path / ".building-00000002").is_dir()
    assert store.steps() == [1]
    store.save(2, {"w": torch.zeros(3)}, {})
    assert store.steps() == [1, 2]
    assert not (tmp_path / ".building-00000002").exists()


@pytest.mark.parametrize("name", ["weights.safetensors", "state.pt"])
@pytest.mark.parametrize("place", [0, -1])
def test_one_flipped_bit_is_named_and_passed_over(tmp_path: Path, name: str, place: int) -> None:
    store = filled(tmp_path, 3)
    path = tmp_path / "step-00000003" / name
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    found, damaged = store.newest()
    assert found is not None
    assert found.state["position"]["step"] == 2
    assert len(damaged) == 1
    assert str(path) in damaged[0]
    assert "\n" not in damaged[0]


@pytest.mark.parametrize("name", ["manifest.json", "weights.safetensors", "state.pt"])
def test_a_missing_file_is_named_and_passed_over(tmp_path: Path, name: str) -> None:
    store = filled(tmp_path, 2)
    (tmp_path / "step-00000002" / name).unlink()
    found, damaged = store.newest()
    assert found is not None
    assert found.state["position"]["step"] == 1
    assert name in damaged[0]


@pytest.mark.parametrize(
    ("weights", "named"),
    [
        ({"weight": torch.zeros(1, 2)}, "bias"),
        ({"weight": torch.zeros(1, 2), "bias": torch.zeros(1), "odd": torch.zeros(1)}, "odd"),
        ({"weight": torch.zeros(1, 3), "bias": torch.zeros(1)}, "weight has another shape"),
    ],
)
def test_weights_of_another_model_are_refused(weights: dict[str, torch.Tensor], named: str) -> None:
    with pytest.raises(CheckpointError, match=named):
        restore(nn.Linear(2, 1), weights)
