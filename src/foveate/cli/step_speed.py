"""What a training step costs with and without a reader: seconds and peak memory. Needs torch. No printing here."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from foveate.cli.speed import StepSpeed, repeated
from foveate.config.schema import ObjectiveConfig, ReaderConfig, RunConfig, TrainConfig
from foveate.core.tokens import load_counter
from foveate.corpora import synthetic
from foveate.learned.encoder import load_tokenizer
from foveate.learned.model import FoveateModel, build_model
from foveate.learned.reader import FrozenReader, load_reader, resolve_reader
from foveate.signals.batches import Windows
from foveate.signals.lexical import Floats
from foveate.training.evidence import EvidenceStage
from foveate.training.examples import Example, build_example
from foveate.training.reader import ReaderPart
from foveate.training.stage import Batch

_SEED = 20
_CACHE = Path(RunConfig().cache) / "readers"


def check_reader(name: str) -> None:
    """Raises what `load_reader` would raise for a name that stands for nothing."""
    resolve_reader(name, _CACHE)


def step_speeds(name: str, sizes: Sequence[int], seconds: float) -> list[StepSpeed]:
    """Without a reader, then with one for each size in turn, on one synthetic conversation.

    Raises:
        CheckpointError, MissingExtraError: see `load_reader`.
    """
    config = TrainConfig(out="unused", objective=ObjectiveConfig(task="both"))
    conversation = synthetic.generate(1, _SEED)[0]
    example = build_example(conversation, _random_vectors, load_counter("minilm"))
    model = build_model(config.model).train()
    speeds = [_step_speed(config, model, example, None, seconds)]
    reader = load_reader(name, _CACHE)
    for tokens in sizes:
        shown = replace(config, reader=ReaderConfig(name=name, max_tokens=tokens))
        speeds.append(_step_speed(shown, model, example, reader, seconds))
    return speeds


def _step_speed(
    config: TrainConfig, model: FoveateModel, example: Example, reader: FrozenReader | None, seconds: float
) -> StepSpeed:
    part = None
    if reader is not None:
        part = ReaderPart(reader, config.reader, config.objective.temperature, config.seed)
    counter = load_counter("minilm")
    windows = Windows(load_tokenizer(config.model.encoder.name), config.model.encoder.max_length)
    stage = EvidenceStage(config, model, windows, _random_vectors, counter, [example], [], reader=part)
    batches = stage.batches(0)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-6)

    def step(number: int) -> None:
        batch: Batch = batches[number % len(batches)]
        stage.loss(model, batch, number).total.backward()
        optimizer.step()
        optimizer.zero_grad()

    times = repeated(step, seconds)
    read = 0 if part is None else config.reader.questions
    return StepSpeed(0 if part is None else config.reader.max_tokens, config.optim.questions, read, times, _peak_mib())


def _random_vectors(texts: Sequence[str]) -> Floats:
    """Unit vectors: a step over cached vectors takes the same time whatever they are."""
    drawn = np.random.default_rng(_SEED).standard_normal((len(texts), 384)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def _peak_mib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
