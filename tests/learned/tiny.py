"""A scorer small enough to be built in a test: its encoder, tokenizer and configuration."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertModel

from foveate.learned.model import FoveateConfig, FoveateModel
from foveate.signals.features import SIGNAL_NAMES

DIM, WIDTH, SIGNALS = 16, 8, len(SIGNAL_NAMES)
WORDS = "[PAD] [CLS] [SEP] [UNK] : . ? user assistant Ann Bob hi how are you fine the lake is cold a dog barks".split()


def bert_config() -> BertConfig:
    return BertConfig(
        vocab_size=50,
        hidden_size=DIM,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=40,
    )


def encoder() -> BertModel:
    torch.manual_seed(1)
    return BertModel(bert_config())


def model(fusion: str = "mlp", policy: str = "score", seed: int = 0, importance: bool = False) -> FoveateModel:
    torch.manual_seed(seed)
    config = FoveateConfig(
        encoder=bert_config().to_dict(),
        signal_names=list(SIGNAL_NAMES),
        fusion=fusion,
        width=WIDTH,
        mixer_window=2,
        context_layers=1,
        context_kernel=3,
        max_length=8,
        policy=policy,
        importance=importance,
    )
    return FoveateModel(config).eval()


def tokenizer() -> Tokenizer:
    made = Tokenizer(WordLevel({word: k for k, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    made.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    return made


def saved(folder: Path, scorer: FoveateModel) -> Path:
    scorer.save_pretrained(folder)
    tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def inputs(turns: int = 9, questions: int = 3, seed: int = 2) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Unit turn vectors (N, dim), unit question vectors (Q, dim), signals (Q, N, S)."""
    make = torch.Generator().manual_seed(seed)
    vectors, queries = (torch.randn(n, DIM, generator=make) for n in (turns, questions))
    signals = torch.randn(questions, turns, SIGNALS, generator=make)
    return torch.nn.functional.normalize(vectors, dim=-1), torch.nn.functional.normalize(queries, dim=-1), signals
