"""A configuration to a finished run folder: config, environment, metrics, checkpoints, and the best model ready
to use.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

from foveate.config.load import dump_config
from foveate.config.schema import TrainConfig
from foveate.core.errors import ConfigError
from foveate.core.files import write_atomically
from foveate.core.schema import Conversation
from foveate.core.tokens import load_counter
from foveate.learned.encoder import MODEL_FOLDER, load_tokenizer, merged
from foveate.learned.model import FoveateModel, build_model
from foveate.learned.scorer import TorchVectorModel
from foveate.training.checkpoint import Checkpoint, CheckpointStore, restore
from foveate.training.evidence import EvidenceStage
from foveate.training.examples import Example, VectorCache, build_example
from foveate.training.sources import load_sources, thin
from foveate.training.tracking import Tracker, environment
from foveate.training.trainer import Trainer, seed_everything


def train(config: TrainConfig, say: Callable[[str], None] = print) -> dict[str, Any]:
    """Train as configured and return the summary that is also written to result.json.

    Raises:
        ConfigError: the run folder belongs to another configuration.
        DataError, CheckpointError: see the parts.
    """
    folder = Path(config.out)
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    main = accelerator.is_main_process
    speak = say if main else _silent
    conversations = {role: load_sources(config.data, role) for role in ("train", "validation")}
    if main:
        _prepare_folder(folder, config)
    accelerator.wait_for_everyone()
    store = CheckpointStore(folder / "checkpoints", config.run.keep)
    found = _newest(store, speak) if config.run.resume else None
    seed_everything(config.seed)
    model = build_model(config.model)
    record_sources(model, config)
    tokenizer = load_tokenizer(config.model.encoder.name)
    stage = _stage(config, model, tokenizer, conversations, accelerator, speak)
    resume_from = None if found is None else int(found.state["position"]["step"])
    tracker = Tracker(folder, config.run.wandb, asdict(config), resume_from) if main else None
    best = CheckpointStore(folder / "best", keep=1)
    trainer = Trainer(config, stage, model, accelerator, store, best, tracker, speak)
    if found is not None:
        trainer.resume(found)
    position = trainer.run()
    summary = {"steps": position.step, "best_step": position.best_step, "best_score": position.best_score}
    if main:
        summary |= _finish(folder, model, tokenizer, stage, best)
        speak(f"finished: {folder / MODEL_FOLDER} holds the best model (step {position.best_step})")
    if tracker is not None:
        tracker.close()
    accelerator.wait_for_everyone()
    return summary


def record_sources(model: FoveateModel, config: TrainConfig) -> None:
    """Adds the run's data to what the model has seen; an encoder that saw other LoCoMo folds is refused.

    Raises:
        ConfigError: as said; its test conversations would reach this run's training.
    """
    seen = model.config
    for field, names in (("trained_on", config.data.train), ("chosen_on", config.data.validation)):
        now = [f"locomo:{config.data.fold}" if name == "locomo" else name for name in names]
        setattr(seen, field, sorted({*(getattr(seen, field) or ()), *now}))
    folds = {name for name in (*seen.trained_on, *seen.chosen_on) if name.startswith("locomo:")}
    if len(folds) > 1:
        raise ConfigError(
            f"data.fold={config.data.fold}, and the encoder {config.model.encoder.name} saw another LoCoMo fold "
            f"({', '.join(sorted(folds))}): its test conversations would leak; start from the same fold's encoder"
        )


def _silent(_: str) -> None:
    pass


def _newest(store: CheckpointStore, say: Callable[[str], None]) -> Checkpoint | None:
    """The newest whole checkpoint, if any; damaged ones are named."""
    found, damaged = store.newest()
    for line in damaged:
        say(f"warning: {line}")
    return found


def _prepare_folder(folder: Path, config: TrainConfig) -> None:
    """Make the run folder, or check that it is this run's; what is not to be resumed is removed."""
    folder.mkdir(parents=True, exist_ok=True)
    path, text = folder / "config.yaml", dump_config(config)
    if path.is_file() and path.read_text() != text:
        changed = next(
            (new for old, new in zip(path.read_text().splitlines(), text.splitlines(), strict=False) if old != new), ""
        )
        raise ConfigError(
            f"{folder} holds a run of another configuration (first change: {changed.strip()}): give another out"
        )
    write_atomically(path, text)
    write_atomically(folder / "environment.json", json.dumps(environment(), indent=1) + "\n")
    if not config.run.resume:
        for stale in ("checkpoints", "best", MODEL_FOLDER):
            shutil.rmtree(folder / stale, ignore_errors=True)


def _stage(
    config: TrainConfig,
    model: FoveateModel,
    tokenizer: Any,
    conversations: Mapping[str, Sequence[Conversation]],
    accelerator: Accelerator,
    say: Callable[[str], None],
) -> EvidenceStage:
    model.to(accelerator.device)
    backend = TorchVectorModel(model, tokenizer, "training")
    cache = VectorCache(Path(config.run.cache), _encoder_key(model, tokenizer, config), backend.encode)
    counter = load_counter("minilm")

    def build(role: str, chosen: Sequence[Conversation]) -> list[Example]:
        turns, questions = sum(len(c.turns) for c in chosen), sum(len(c.questions) for c in chosen)
        say(f"{role}: {len(chosen)} conversations, {turns} turns, {questions} questions with evidence; encoding")
        return [build_example(conversation, cache, counter) for conversation in chosen]

    most = config.data.validation_questions
    checked = [_with_questions(c, most) for c in conversations["validation"]]
    examples = build("train", conversations["train"]), build("validation", checked)
    model.train()
    return EvidenceStage(config, model, backend.windows, backend.encode, counter, *examples)


def _with_questions(conversation: Conversation, most: int) -> Conversation:
    return Conversation(conversation.id, conversation.turns, thin(conversation.questions, most))


def _encoder_key(model: FoveateModel, tokenizer: Any, config: TrainConfig) -> str:
    """Digest of what determines a text's vector: encoder weights, tokenizer, window length."""
    digest = hashlib.sha256(f"{config.model.encoder.max_length}|{tokenizer.to_str()}".encode())
    for name, tensor in sorted(model.encoder.state_dict().items()):
        if tensor.is_floating_point():
            digest.update(name.encode() + tensor.cpu().numpy().tobytes())
    return digest.hexdigest()


def _finish(
    folder: Path, model: FoveateModel, tokenizer: Any, stage: EvidenceStage, best: CheckpointStore
) -> dict[str, Any]:
    """Load the best weights, calibrate them, save the model in Hugging Face form."""
    found, _ = best.newest()
    if found is not None:
        restore(model, found.weights)
    if stage.config.model.encoder.tune != "frozen":
        stage.refresh(stage.validation)
    summary = stage.calibrate() | {"policy": model.config.policy}
    model.encoder = merged(model.encoder)
    building = folder / f".{MODEL_FOLDER}"
    shutil.rmtree(building, ignore_errors=True)
    model.save_pretrained(building)
    tokenizer.save(str(building / "tokenizer.json"))
    shutil.rmtree(folder / MODEL_FOLDER, ignore_errors=True)
    building.rename(folder / MODEL_FOLDER)
    write_atomically(folder / "result.json", json.dumps(summary | (found.state if found else {}), indent=1) + "\n")
    return summary
