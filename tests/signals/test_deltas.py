"""An encoder as differences from the packaged one: low-rank where that is smaller, exact within float32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from foveate.core.errors import CheckpointError, ConfigError
from foveate.core.tokens import minilm_folder
from foveate.signals import deltas as module
from foveate.signals.deltas import DELTAS, differences, factors, initializers, patched, read_tensors, restored
from foveate.signals.lexical import Floats

safetensors = pytest.importorskip("safetensors.numpy")


def matrix(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_a_low_rank_difference_becomes_two_thin_matrices() -> None:
    down, up = matrix(3, 40), matrix(30, 3, seed=1)
    found = factors(up @ down)
    assert found is not None
    a, b = found
    assert a.shape == (3, 40)
    assert b.shape == (30, 3)
    np.testing.assert_allclose(b @ a, up @ down, atol=1e-4)


def test_a_full_rank_difference_is_not_factored() -> None:
    assert factors(matrix(30, 40)) is None


def test_patching_restores_what_was_taken_apart() -> None:
    base = {"w": matrix(30, 40), "full": matrix(8, 8, seed=2), "bias": matrix(30, seed=3), "same": matrix(5, seed=4)}
    tuned = {
        "w": base["w"] + matrix(30, 2, seed=5) @ matrix(2, 40, seed=6),
        "full": matrix(8, 8, seed=7),
        "bias": base["bias"] + 1,
        "same": base["same"],
    }
    found = differences(base, tuned)
    assert found.keys() == {"w.a", "w.b", "full", "bias"}
    again = patched(base, found)
    assert again.keys() == base.keys()
    for name, tensor in tuned.items():
        np.testing.assert_allclose(again[name], tensor, atol=1e-5)
        assert again[name].dtype == np.float32
    assert again["same"] is base["same"]


def test_an_equal_encoder_has_no_difference() -> None:
    base = {"w": matrix(4, 4)}
    assert differences(base, {"w": base["w"].copy()}) == {}


def test_graph_weights_are_found_by_name_and_turned_where_the_graph_has_them_turned() -> None:
    tensors = {"w": matrix(3, 4)}
    found = initializers({"val_1": ["w", True], "w": ["w", False]}, tensors)
    np.testing.assert_array_equal(found["val_1"], tensors["w"].T)
    np.testing.assert_array_equal(found["w"], tensors["w"])
    assert found["val_1"].flags.c_contiguous


@pytest.fixture
def packaged() -> Path:
    try:
        return minilm_folder()
    except ConfigError as error:
        pytest.skip(str(error))


def test_the_base_must_be_the_one_the_differences_were_taken_from(packaged: Path, tmp_path: Path) -> None:
    safetensors.save_file({}, tmp_path / DELTAS, metadata={"base": "0" * 64})
    with pytest.raises(CheckpointError, match="sha256 differs"):
        restored(tmp_path)
    right = module.sha256(module.base_file())
    safetensors.save_file({"pooler.dense.bias": np.ones(384, np.float32)}, tmp_path / DELTAS, metadata={"base": right})
    found = restored(tmp_path)
    assert float(found["pooler.dense.bias"].sum()) == 384
    base, _ = read_tensors(module.base_file())
    np.testing.assert_array_equal(found["embeddings.LayerNorm.bias"], base["embeddings.LayerNorm.bias"])


def test_a_damaged_file_is_named(packaged: Path, tmp_path: Path) -> None:
    (tmp_path / DELTAS).write_bytes(b"not safetensors")
    with pytest.raises(CheckpointError, match=r"encoder\.deltas\.safetensors cannot be read"):
        restored(tmp_path)
