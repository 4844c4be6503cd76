"""The text encoder: any Hugging Face encoder by hub id or folder, mean-pooled to unit vectors; LoRA, full, top layers
or frozen.

Source: sentence embeddings by mean pooling, Reimers & Gurevych (2019); LoRA, Hu et al. (2022), through peft.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from huggingface_hub import get_hf_file_metadata, hf_hub_url, try_to_load_from_cache
from huggingface_hub.utils import HFValidationError, validate_repo_id
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer, PreTrainedModel

from foveate.config.schema import EncoderConfig
from foveate.core.errors import CheckpointError, ConfigError
from foveate.core.tokens import minilm_folder
from foveate.signals.deltas import DELTAS, tokenizer_file

MODEL_FOLDER = "model"
"""Where in a run folder the finished model lies."""


def resolve(name: str) -> str:
    """The folder or hub id behind a configured encoder name; "minilm" is the packaged all-MiniLM-L6-v2, and a run
    folder stands for its model.

    Raises:
        CheckpointError: no such folder, and nothing by that name on the hub or in its cache.
    """
    if name == "minilm":
        return str(minilm_folder())
    finished = Path(name) / MODEL_FOLDER
    if finished.is_dir():
        return str(finished)
    return name if Path(name).is_dir() else on_hub(name, "encoder", "minilm")


def on_hub(name: str, what: str, packaged: str) -> str:
    """The hub id if the hub answers, else the folder in its local cache.

    Asked here because a download retries for a minute and cannot be told not to; this question is put once.

    Args:
        name: of a model.
        what: what the model is to be, for messages.
        packaged: the name of the packaged one, for messages.

    Raises:
        CheckpointError: the hub has nothing by that name, nor its cache.
    """
    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise CheckpointError(
            f"{what} {name!r} is neither a folder nor a hub id: give one of them or {packaged}"
        ) from error
    try:
        get_hf_file_metadata(hf_hub_url(name, "config.json"))
    except Exception as error:  # of requests or of httpx, as the version of huggingface_hub has it
        cached = try_to_load_from_cache(name, "config.json")
        if isinstance(cached, str):
            return str(Path(cached).parent)
        raise CheckpointError(
            f"{what} {name!r} is no folder, and the hub gives nothing by that name ({first_line(error)}): "
            f"give {packaged}, a folder or a hub id"
        ) from error
    return name


def load_encoder(name: str) -> PreTrainedModel:
    """The pretrained encoder, in float32; where a trained scorer lies, the scorer.

    Raises:
        CheckpointError: nothing loadable by that name.
    """
    place = resolve(name)
    if (Path(place) / DELTAS).is_file():
        from foveate.learned.scorer import load_model  # which imports the model, which imports this module

        return load_model(Path(place))[0]
    try:
        return AutoModel.from_pretrained(place, dtype=torch.float32)
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"encoder {name!r} cannot be loaded ({first_line(error)}): give a folder or hub id"
        ) from error


def load_tokenizer(name: str) -> Any:
    """The encoder's tokenizer as a `tokenizers.Tokenizer`.

    Raises:
        CheckpointError: no fast tokenizer by that name.
    """
    place = resolve(name)
    alone = tokenizer_file(Path(place))
    if alone.is_file() and not alone.with_name("tokenizer_config.json").is_file():
        return Tokenizer.from_file(str(alone))
    try:
        return AutoTokenizer.from_pretrained(str(alone.parent) if alone.is_file() else place).backend_tokenizer
    except (OSError, ValueError, AttributeError) as error:
        raise CheckpointError(f"no fast tokenizer in {name!r} ({first_line(error)})") from error


def pool(hidden: Tensor, mask: Tensor) -> Tensor:
    """(b, t, d) hidden states and (b, t) mask -> (b, d) unit vectors: the mean over real tokens, normalised."""
    weights = mask.to(hidden.dtype)[..., None]
    return functional.normalize((hidden * weights).sum(1) / weights.sum(1).clamp(min=1e-9), dim=-1)


def prepare(encoder: PreTrainedModel, config: EncoderConfig) -> nn.Module:
    """Choose what trains: nothing, LoRA adapters, the top layers, or all of it."""
    match config.tune:
        case "frozen":
            return encoder.requires_grad_(False)
        case "full":
            return encoder
        case "top":
            return _thaw_top(encoder, config.top_layers)
        case "lora":
            return _with_lora(encoder, config)


def merged(encoder: nn.Module) -> nn.Module:
    """The encoder with LoRA adapters folded into its weights; others unchanged."""
    from peft import PeftModel

    return encoder.merge_and_unload() if isinstance(encoder, PeftModel) else encoder


def _thaw_top(encoder: PreTrainedModel, count: int) -> nn.Module:
    encoder.requires_grad_(False)
    for layer in _top_layers(encoder, count):
        layer.requires_grad_(True)
    return encoder


def _top_layers(encoder: PreTrainedModel, count: int) -> list[nn.Module]:
    lists = [m for m in encoder.modules() if isinstance(m, nn.ModuleList)]
    if not lists:
        raise ConfigError(f"model.encoder.tune: {type(encoder).__name__} has no list of layers; use full")
    layers = list(max(lists, key=len))
    if count > len(layers):
        raise ConfigError(f"model.encoder.top_layers={count}: this encoder has {len(layers)} layers")
    return layers[-count:]


def _with_lora(encoder: PreTrainedModel, config: EncoderConfig) -> nn.Module:
    from peft import LoraConfig, get_peft_model

    inside = {id(module) for layer in _top_layers(encoder, config.top_layers) for module in layer.modules()}
    linear = [name for name, m in encoder.named_modules() if isinstance(m, nn.Linear) and id(m) in inside]
    lora = LoraConfig(
        r=config.lora_rank, lora_alpha=2 * config.lora_rank, lora_dropout=config.lora_dropout, target_modules=linear
    )
    return get_peft_model(encoder, lora)


def first_line(error: Exception) -> str:
    """What an error says first, short enough to stand inside another message."""
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
