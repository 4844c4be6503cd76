"""A Llama and a word tokenizer small enough to be built, trained and differentiated in a test."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from foveate.core.schema import Turn
from foveate.learned.reader import PREAMBLE, FrozenReader

NAMES = "Ann Bob Cleo".split()
PLACES = "Rome Oslo Lima Cairo Paris Delhi Quito Accra".split()
WORDS = [
    *"[UNK] [PAD] : . ? [ ] Question Answer May June 2023 7 8 I we saw it rained was fine went to where did go".split(),
    *"yesterday today".split(),
    *NAMES,
    *PLACES,
    *PREAMBLE.removesuffix(".").split(),
]


def tokenizer() -> PreTrainedTokenizerFast:
    made = Tokenizer(WordLevel({word: k for k, word in enumerate(dict.fromkeys(WORDS))}, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]", pad_token="[PAD]")


def llama(seed: int = 0, layers: int = 2) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.2,
    )
    return LlamaForCausalLM(config).eval()


def reader(seed: int = 0) -> FrozenReader:
    return FrozenReader(llama(seed), tokenizer(), "tiny")


def exact(model: LlamaForCausalLM) -> LlamaForCausalLM:
    """The same model in float64 throughout; Llama's own norm computes in float32 whatever it is given."""
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child).__name__ == "LlamaRMSNorm":
                norm = nn.RMSNorm(model.config.hidden_size, eps=model.config.rms_norm_eps)
                norm.load_state_dict(child.state_dict())
                setattr(module, name, norm)
    return model.double()


def saved(folder: Path) -> Path:
    llama().save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def turns() -> list[Turn]:
    """Six turns in two dated sessions; the fourth says where Ann went."""
    said = ["it rained", "we saw it", "it was fine", "I went to Oslo", "it rained today", "we saw it yesterday"]
    return [
        Turn(f"t{k}", "user", text, NAMES[k % 3], f"s{k // 3}", f"{7 + k // 3} May 2023") for k, text in enumerate(said)
    ]
