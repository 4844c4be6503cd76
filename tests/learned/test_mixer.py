"""The mixer sees its window and nothing else."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from foveate.learned.mixer import LocalAttention, Mixer, windows


def vectors(count: int, dim: int = 16, seed: int = 0) -> Tensor:
    return torch.randn(count, dim, generator=torch.Generator().manual_seed(seed))


def mixer(window: int, layers: int) -> Mixer:
    torch.manual_seed(3)
    return Mixer(16, 8, window, layers, dropout=0.3).eval()


def test_windows_by_hand() -> None:
    found = windows(torch.tensor([[1.0], [2.0], [3.0]]), 1)
    assert found[..., 0].tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 0]]
    assert windows(torch.tensor([5.0, 6.0]), 2).tolist() == [[0, 0, 5, 6, 0], [0, 5, 6, 0, 0]]
    assert windows(torch.tensor([5.0, 6.0]), 0).tolist() == [[5], [6]]


@pytest.mark.parametrize(("window", "layers"), [(3, 1), (2, 2), (1, 3), (0, 1), (4, 0)])
@torch.no_grad()
def test_a_turn_changes_its_reach_and_no_further(window: int, layers: int) -> None:
    model, x = mixer(window, layers), vectors(30)
    assert model.reach == window * layers
    changed = x.clone()
    changed[14] += 1.0
    moved = (model(x) != model(changed)).any(-1)
    assert torch.nonzero(moved).flatten().tolist() == list(range(14 - model.reach, 15 + model.reach))


@torch.no_grad()
def test_turns_beyond_the_ends_do_not_exist() -> None:
    model, x = mixer(3, 2), vectors(30)
    alone = model(x[10:20])
    torch.testing.assert_close(model(x)[16:], model(x[10:])[6:])
    assert not torch.allclose(alone[0], model(x)[10])
    assert model(x[:1]).shape == (1, 8)


@torch.no_grad()
def test_one_turn_attends_to_itself_alone() -> None:
    torch.manual_seed(0)
    layer = LocalAttention(8, 3, dropout=0.0)
    x = vectors(1, 8)
    value = layer.qkv(x)[:, 16:]
    torch.testing.assert_close(layer.attend(x), layer.out(value))


@torch.no_grad()
def test_attention_by_plain_softmax() -> None:
    torch.manual_seed(0)
    layer, x = LocalAttention(8, 2, dropout=0.0, heads=2), vectors(6, 8)
    layer.bias.normal_()
    query, key, value = layer.qkv(x).reshape(6, 3, 2, 4).unbind(1)
    rows: list[Tensor] = []
    for i in range(6):
        near = range(max(0, i - 2), min(6, i + 3))
        heads: list[Tensor] = []
        for h in range(2):
            logits = torch.stack([query[i, h] @ key[j, h] / 2 + layer.bias[h, j - i + 2] for j in near])
            heads.append(torch.softmax(logits, 0) @ value[list(near), h])
        rows.append(torch.cat(heads))
    torch.testing.assert_close(layer.attend(x), layer.out(torch.stack(rows)))
