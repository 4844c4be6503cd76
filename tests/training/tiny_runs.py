"""An encoder, conversations and configurations small enough to train in a second."""

from __future__ import annotations

import string
from dataclasses import replace
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from foveate.config.schema import (
    DataConfig,
    EncoderConfig,
    ModelConfig,
    ObjectiveConfig,
    OptimConfig,
    RunConfig,
    TrainConfig,
    Tune,
)
from foveate.corpora import synthetic

SHAPE = synthetic.Shape(sessions=(2, 2), turns=(6, 8), questions=(5, 6), helper_share=0.0)
_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
_WORDS = "the i you my we it is was to and of for what when where how new did have they that".split()


def write_encoder(folder: Path) -> Path:
    """A two-layer BERT of width 16 with random weights, and a WordPiece tokenizer of letters and a few words."""
    letters = string.ascii_lowercase + string.digits
    tokens = [*_SPECIAL, *_WORDS, *letters, *(f"##{c}" for c in letters), *".,:'?!-"]
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]")
    fast.save_pretrained(folder)
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    return folder


def write_conversations(path: Path, count: int, seed: int) -> Path:
    synthetic.write(path, synthetic.generate(count, seed, SHAPE))
    return path


def tiny_config(folder: Path, out: Path, tune: Tune = "frozen") -> TrainConfig:
    """A run of two epochs in `out`; encoder, conversations and cached vectors lie in `folder`, made where missing."""
    if not (folder / "encoder").is_dir():
        write_encoder(folder / "encoder")
        write_conversations(folder / "train.jsonl", 3, seed=5)
        write_conversations(folder / "validation.jsonl", 1, seed=6)
    encoder = EncoderConfig(name=str(folder / "encoder"), tune=tune, top_layers=1, max_length=32, fresh_turns=6)
    return TrainConfig(
        out=str(out),
        data=DataConfig(
            train=(f"synthetic:{folder / 'train.jsonl'}",), validation=(f"synthetic:{folder / 'validation.jsonl'}",)
        ),
        model=ModelConfig(encoder=encoder, width=16, context_layers=1, context_kernel=3),
        objective=ObjectiveConfig(budgets=(64, 128)),
        optim=OptimConfig(epochs=2, questions=3, warmup_steps=2),
        run=RunConfig(evaluate_every=1, cache=str(folder / "cache"), keep=2),
    )


def with_run(config: TrainConfig, **changes: object) -> TrainConfig:
    return replace(config, run=replace(config.run, **changes))


def silent(_: str) -> None:
    pass
