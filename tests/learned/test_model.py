"""The model as a Hugging Face model, and what of its encoder trains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tiny import DIM, SIGNALS, WIDTH, encoder, inputs, model, saved, tokenizer
from torch import Tensor
from transformers import AutoModel

from foveate.config.schema import EncoderConfig, ModelConfig
from foveate.core.errors import CheckpointError, ConfigError
from foveate.learned.encoder import load_encoder, load_tokenizer, merged, pool, prepare
from foveate.learned.heads import LinearFusion
from foveate.learned.model import FoveateConfig, FoveateModel, Fresh, build_model

IDS = torch.tensor([[1, 11, 12, 2, 0], [1, 13, 14, 15, 2], [1, 16, 2, 0, 0], [1, 17, 18, 2, 0]])
MASK = (IDS > 0).long()
FRESH = Fresh(
    [(IDS[[2]], MASK[[2]]), (IDS[[1, 3, 0]], MASK[[1, 3, 0]])], torch.tensor([3, 1, 0, 2]), torch.tensor([5, 1])
)


@pytest.mark.parametrize("fusion", ["mlp", "linear", "cosine"])
@pytest.mark.parametrize("load", [FoveateModel.from_pretrained, AutoModel.from_pretrained])
@torch.no_grad()
def test_saving_and_loading_keeps_every_bit(tmp_path: Path, fusion: str, load: Callable[[Path], object]) -> None:
    made = model(fusion, policy="optimal")
    made.config.calibration_scale, made.config.calibration_shift = 1.75, -0.5
    made.save_pretrained(tmp_path)
    loaded = load(tmp_path)
    assert isinstance(loaded, FoveateModel)
    assert not loaded.training
    assert loaded.config.policy == "optimal"
    kept, weights = made.state_dict(), loaded.state_dict()
    assert list(kept) == list(weights)
    assert all(torch.equal(kept[name], weights[name]) for name in kept)
    logits = made(*inputs()).logits
    torch.testing.assert_close(loaded(*inputs()).logits, logits)
    align(loaded)
    assert torch.equal(loaded.encode(IDS, MASK), made.encode(IDS, MASK))
    assert torch.equal(loaded(*inputs()).logits, logits)
    assert torch.equal(loaded.probability(logits), torch.sigmoid(1.75 * logits - 0.5))


def align(module: torch.nn.Module) -> None:
    """Copies the weights out of the mapped file, where their addresses may send sums through another kernel."""
    for parameter in module.parameters():
        parameter.data = parameter.data.clone()


@torch.no_grad()
def test_shapes() -> None:
    made = model()
    vectors, queries, signals = inputs(turns=9, questions=3)
    assert made.encode(IDS, MASK).shape == (4, DIM)
    assert made.mix(vectors).shape == (9, WIDTH)
    assert made(vectors, queries, signals).logits.shape == (3, 9)
    assert made.fuse(vectors, made.mix(vectors), queries, signals).equal(made(vectors, queries, signals).logits)
    assert signals.shape[-1] == SIGNALS


def test_an_unknown_fusion_is_refused() -> None:
    config = FoveateConfig(encoder=encoder().config.to_dict(), fusion="tree")
    with pytest.raises(ValueError, match="fusion='tree'"):
        FoveateModel(config)


def test_linear_fusion_is_linear() -> None:
    assert isinstance(model("linear").head, LinearFusion)


def test_turns_encoded_within_the_step_equal_those_encoded_before() -> None:
    made = model()
    vectors, _, signals = inputs(turns=9, questions=2)
    with torch.no_grad():
        encoded = made.encode(IDS, MASK)
        before = vectors.clone()
        before[[5, 1]] = encoded[:2]
        expected = made(before, encoded[2:], signals).logits
    stale = torch.zeros(2, DIM)
    found = made(vectors, stale, signals, FRESH).logits
    torch.testing.assert_close(found, expected)


def test_gradients_reach_the_encoder_only_through_fresh_turns() -> None:
    made = model()
    vectors, queries, signals = inputs(turns=9, questions=2)
    made(vectors, queries, signals).logits.sum().backward()
    assert all(p.grad is None for p in made.encoder.parameters())
    made(vectors, queries, signals, FRESH).logits.square().sum().backward()
    grads = [p.grad for n, p in made.encoder.named_parameters() if "attention" in n and n.endswith("query.weight")]
    assert len(grads) == 2
    assert all(g is not None and float(g.abs().sum()) > 0 for g in grads)


@torch.no_grad()
def test_pooling_is_the_normalised_mean_of_real_tokens() -> None:
    hidden = torch.tensor([[[3.0, 0.0], [0.0, 4.0], [90.0, 9.0]], [[0.0, 2.0], [7.0, 7.0], [7.0, 7.0]]])
    found = pool(hidden, torch.tensor([[1, 1, 0], [1, 0, 0]]))
    torch.testing.assert_close(found, torch.tensor([[0.6, 0.8], [0.0, 1.0]]))


@torch.no_grad()
def test_padding_does_not_change_a_vector() -> None:
    made = model()
    torch.testing.assert_close(made.encode(IDS, MASK)[2:3], made.encode(IDS[2:3, :3], MASK[2:3, :3]))


def trains(module: torch.nn.Module) -> set[str]:
    return {name for name, p in module.named_parameters() if p.requires_grad}


def test_frozen_trains_nothing_and_full_everything() -> None:
    every = {name for name, _ in encoder().named_parameters()}
    assert trains(prepare(encoder(), EncoderConfig(tune="frozen"))) == set()
    assert trains(prepare(encoder(), EncoderConfig(tune="full"))) == every


@pytest.mark.parametrize(("count", "layers"), [(1, ("1",)), (2, ("0", "1"))])
def test_top_trains_the_last_layers(count: int, layers: tuple[str, ...]) -> None:
    every = {name for name, _ in encoder().named_parameters()}
    expected = {n for n in every if any(n.startswith(f"encoder.layer.{k}.") for k in layers)}
    assert expected
    assert trains(prepare(encoder(), EncoderConfig(tune="top", top_layers=count))) == expected


def test_top_layers_the_encoder_does_not_have_are_refused() -> None:
    with pytest.raises(ConfigError, match="top_layers=3: this encoder has 2 layers"):
        prepare(encoder(), EncoderConfig(tune="top", top_layers=3))


def test_lora_trains_small_adapters_that_begin_as_nothing() -> None:
    adapted = prepare(encoder(), EncoderConfig(tune="lora", lora_rank=2, top_layers=2))
    names = trains(adapted)
    assert names
    assert all("lora_" in name for name in names)
    assert any("query" in name for name in names)
    torch.testing.assert_close(hidden(adapted.eval()), hidden(encoder().eval()))


def test_merged_adapters_give_the_same_vectors() -> None:
    adapted = prepare(encoder(), EncoderConfig(tune="lora", lora_rank=2, top_layers=2)).eval()
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_" in name:
                parameter.normal_(std=0.1)
    expected = hidden(adapted)
    assert not torch.allclose(expected, hidden(encoder().eval()))
    plain = merged(adapted)
    assert not any("lora_" in name for name, _ in plain.named_parameters())
    torch.testing.assert_close(hidden(plain), expected, atol=1e-5, rtol=1e-4)


def test_merging_leaves_a_plain_encoder_alone() -> None:
    plain = encoder()
    assert merged(plain) is plain


@torch.no_grad()
def hidden(module: torch.nn.Module) -> Tensor:
    return module(input_ids=IDS, attention_mask=MASK).last_hidden_state


def test_the_encoder_of_a_finished_run_is_taken(tmp_path: Path) -> None:
    trained = model("cosine", seed=3)
    saved(tmp_path / "model", trained)
    made = build_model(ModelConfig(encoder=EncoderConfig(name=str(tmp_path)), width=WIDTH))
    kept = made.encoder.state_dict()
    assert all(torch.equal(kept[name], weight) for name, weight in trained.encoder.state_dict().items())
    assert not any(p.requires_grad for p in made.encoder.parameters())
    assert load_tokenizer(str(tmp_path)).to_str() == tokenizer().to_str()


@pytest.mark.parametrize("load", [load_encoder, load_tokenizer])
def test_an_encoder_that_is_not_there_is_named_on_one_line(load: Callable[[str], object], tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="empty") as caught:
        load(str(tmp_path / "empty"))
    assert "\n" not in str(caught.value)
