"""A slim export: no weights of the packaged encoder in it, and it says what the model says, with and without torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from foveate.config.schema import EncoderConfig, ModelConfig, NliConfig
from foveate.core.errors import CheckpointError, ConfigError
from foveate.core.tokens import minilm_folder
from foveate.export.folder import export
from foveate.learned.encoder import merged
from foveate.learned.model import FoveateModel, build_model
from foveate.learned.scorer import TorchVectorModel, load_model
from foveate.serving.onnx_scorer import OnnxVectorModel
from foveate.signals.deltas import DELTAS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        packaged = minilm_folder()
    except ConfigError as error:
        pytest.skip(str(error))
    torch.manual_seed(0)
    encoder = EncoderConfig(tune="lora", lora_rank=4, top_layers=2)
    model = build_model(ModelConfig(encoder=encoder, width=16), NliConfig(form="bi", width=8), importance=True)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.05)
    model.encoder = merged(model.encoder)
    folder = tmp_path_factory.mktemp("run")
    model.save_pretrained(folder)
    Tokenizer.from_file(str(packaged / "tokenizer.json")).save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(scope="module")
def slim(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("exports") / "slim"
    found = export(run, out, slim=True, say=lambda _: None)
    assert found["fp32"].max_abs < 1e-4
    return out


def test_it_is_small(slim: Path) -> None:
    assert sum(path.stat().st_size for path in slim.iterdir()) < 2_000_000
    assert not (slim / "tokenizer.json").exists()
    assert (slim / DELTAS).stat().st_size < 600_000


def test_torch_and_onnx_read_the_same_model(run: Path, slim: Path) -> None:
    texts = ["user: I cannot eat nuts.", "7 May 2023 Ann: We walked round the lake."]
    loaded, tokenizer = load_model(slim)
    whole = TorchVectorModel(*load_model(run), "whole")
    again, served = TorchVectorModel(loaded, tokenizer, "slim"), OnnxVectorModel(slim)
    expected = whole.encode(texts)
    np.testing.assert_allclose(again.encode(texts), expected, atol=1e-5)
    np.testing.assert_allclose(served.encode(texts), expected, atol=1e-4)
    reply = expected[0]
    np.testing.assert_allclose(served.contradiction(expected, reply), whole.contradiction(expected, reply), atol=1e-4)
    assert served.has_importance
    assert served.has_nli


def test_a_run_starts_from_its_encoder(slim: Path) -> None:
    model = build_model(ModelConfig(encoder=EncoderConfig(name=str(slim)), width=16))
    assert isinstance(model, FoveateModel)
    loaded, _ = load_model(slim)
    for name, tensor in loaded.encoder.state_dict().items():
        torch.testing.assert_close(model.encoder.state_dict()[name], tensor)


def test_an_encoder_of_another_shape_cannot_be_slim(tmp_path: Path) -> None:
    from transformers import BertConfig

    from foveate.learned.model import FoveateConfig
    from foveate.signals.features import SIGNAL_NAMES

    small = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=99)
    FoveateModel(FoveateConfig(encoder=small.to_dict(), signal_names=list(SIGNAL_NAMES), width=8)).save_pretrained(
        tmp_path / "run"
    )
    try:
        source = minilm_folder() / "tokenizer.json"
    except ConfigError as error:
        pytest.skip(str(error))
    (tmp_path / "run" / "tokenizer.json").write_bytes(source.read_bytes())
    with pytest.raises(CheckpointError, match="--slim needs an encoder that started from the packaged"):
        export(tmp_path / "run", tmp_path / "out", slim=True, say=lambda _: None)
    assert not (tmp_path / "out").exists()
