"""A configuration to a finished run folder: config, environment, metrics, checkpoints, and the best model ready
to use.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn

from foveate.config.load import dump_config
from foveate.config.schema import TrainConfig
from foveate.core.errors import ConfigError
from foveate.core.files import write_atomically
from foveate.core.schema import Conversation
from foveate.core.tokens import load_counter
from foveate.corpora import synthetic
from foveate.learned.encoder import MODEL_FOLDER, load_tokenizer, merged
from foveate.learned.model import FoveateModel, build_model
from foveate.learned.reader import load_reader
from foveate.learned.scorer import TorchVectorModel
from foveate.training.checkpoint import Checkpoint, CheckpointStore, restore
from foveate.training.evidence import EvidenceStage
from foveate.training.examples import Example, VectorCache, build_example, encoder_key
from foveate.training.heads import build_heads, sources
from foveate.training.nli import NliJob
from foveate.training.reader import ReaderPart, require_answers
from foveate.training.sources import load_sources, thin
from foveate.training.stage import Job, Stage
from foveate.training.tracking import Tracker, environment
from foveate.training.trainer import Trainer, seed_everything


def train(config: TrainConfig, say: Callable[[str], None] = print) -> dict[str, Any]:
    """Train as configured and return the summary that is also written to result.json.

    Raises:
        ConfigError: the run folder belongs to another configuration, or a folder cannot be written.
        DataError, CheckpointError: see the parts.
    """
    folder = Path(config.out)
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    main = accelerator.is_main_process
    speak = say if main else _silent
    job = _job(config)
    if main:
        _check_folders(folder, config)
    accelerator.wait_for_everyone()
    store = CheckpointStore(folder / "checkpoints", config.run.keep)
    found = _newest(store, speak) if config.run.resume else None
    seed_everything(config.seed)
    model, stage = job.build(accelerator, speak)
    tracker = None
    if main:
        _open_folder(folder, config, fresh=found is None)
        at = found.state["position"] if found is not None else {"step": None, "batch": 0}
        tracker = Tracker(folder, config.run.wandb, asdict(config), at["step"], validated=at["batch"] == 0)
    best = CheckpointStore(folder / "best", keep=1)
    trainer = Trainer(config, stage, model, accelerator, store, best, tracker, speak)
    if found is not None:
        trainer.resume(found)
    position = trainer.run()
    summary = {"steps": position.step, "best_step": position.best_step, "best_score": position.best_score}
    if main:
        summary |= _finish(folder, model, job, best)
        speak(f"finished: {folder / MODEL_FOLDER} holds the best model (step {position.best_step})")
    if tracker is not None:
        tracker.close()
    accelerator.wait_for_everyone()
    return summary


def _job(config: TrainConfig) -> Job:
    match config.stage:
        case "evidence":
            return EvidenceJob(config)
        case "nli":
            return NliJob(config)


class EvidenceJob:
    """A run of the evidence stage."""

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self._conversations = {role: load_sources(config.data, role) for role in ("train", "validation")}

    def build(self, accelerator: Accelerator, say: Callable[[str], None]) -> tuple[nn.Module, Stage]:
        nli = self.config.nli if self.config.with_nli else None
        self._model = build_model(self.config.model, nli, importance=self.config.importance.weight > 0)
        record_sources(self._model, self.config)
        self._tokenizer = load_tokenizer(self.config.model.encoder.name)
        self._stage = _stage(self.config, self._model, self._tokenizer, self._conversations, accelerator, say)
        return self._model, self._stage

    def finish(self, folder: Path) -> dict[str, Any]:
        model, stage = self._model, self._stage
        if self.config.model.encoder.tune != "frozen":
            stage.refresh(stage.validation)
        summary = stage.calibrate() | {"policy": model.config.policy}
        model.encoder = merged(model.encoder)
        model.save_pretrained(folder)
        self._tokenizer.save(str(folder / "tokenizer.json"))
        return summary


def record_sources(model: FoveateModel, config: TrainConfig) -> None:
    """Adds the run's data to what the model has seen; an encoder that saw other LoCoMo folds is refused.

    Raises:
        ConfigError: as said; its test conversations would reach this run's training.
    """
    seen = model.config
    for field, names in (("trained_on", config.data.train), ("chosen_on", config.data.validation)):
        now = [_seen_as(name, config.data.fold) for name in (*names, *sources(config))]
        setattr(seen, field, sorted({*(getattr(seen, field) or ()), *now}))
    folds = {name for name in (*seen.trained_on, *seen.chosen_on) if name.startswith("locomo:")}
    if len(folds) > 1:
        raise ConfigError(
            f"data.fold={config.data.fold}, and the encoder {config.model.encoder.name} saw another LoCoMo fold "
            f"({', '.join(sorted(folds))}): its test conversations would leak; start from the same fold's encoder"
        )


def _seen_as(source: str, fold: int | None) -> str:
    """A source as a model's config.json has it: of LoCoMo the fold, whatever was asked about its text."""
    return f"locomo:{fold}" if source.removeprefix("cloze:") == "locomo" else source


def _silent(_: str) -> None:
    pass


def _newest(store: CheckpointStore, say: Callable[[str], None]) -> Checkpoint | None:
    """The newest whole checkpoint, if any; damaged ones are named."""
    found, damaged = store.newest()
    for line in damaged:
        say(f"warning: {line}")
    return found


def _check_folders(folder: Path, config: TrainConfig) -> None:
    """Make the folders that are written to; refuse to go on from what another configuration left."""
    _make(folder, "out")
    _make(Path(config.run.cache), "run.cache")
    path = folder / "config.yaml"
    begun = bool(CheckpointStore(folder / "checkpoints", config.run.keep).steps()) or (folder / MODEL_FOLDER).is_dir()
    if not (config.run.resume and begun and path.is_file()):
        return
    old, new = _lines(path.read_text()), _lines(dump_config(config))
    if old != new:
        changed = next((line for before, line in zip(old, new, strict=False) if before != line), "")
        raise ConfigError(
            f"{folder} holds a run of another configuration (first change: {changed.strip()}): give another out, "
            "or --run.resume false to replace it"
        )


def _make(path: Path, name: str) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise ConfigError(f"{name}={path} cannot be written ({error.strerror}): give another folder") from error


def _lines(dumped: str) -> list[str]:
    """A configuration's lines without `run.resume`, which says how to go on and not what is run."""
    return [line for line in dumped.splitlines() if not line.startswith("  resume:")]


def _open_folder(folder: Path, config: TrainConfig, *, fresh: bool) -> None:
    """Say what runs here. Only now, with everything loaded, goes what a fresh run must not find."""
    stale = ("checkpoints", "best", MODEL_FOLDER) if not config.run.resume else ("best",) if fresh else ()
    for name in stale:
        shutil.rmtree(folder / name, ignore_errors=True)
    if not config.run.resume:
        (folder / "result.json").unlink(missing_ok=True)
    write_atomically(folder / "config.yaml", dump_config(config))
    write_atomically(folder / "environment.json", json.dumps(environment(), indent=1) + "\n")


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
    cache = VectorCache(
        Path(config.run.cache), encoder_key(model, tokenizer, config.model.encoder.max_length), backend.encode
    )
    counter = load_counter("minilm")

    def build(role: str, chosen: Sequence[Conversation]) -> list[Example]:
        turns, questions = sum(len(c.turns) for c in chosen), sum(len(c.questions) for c in chosen)
        say(f"{role}: {len(chosen)} conversations, {turns} turns, {questions} questions with evidence; encoding")
        return [build_example(conversation, cache, counter) for conversation in chosen]

    most = config.data.validation_questions
    checked = [_with_questions(c, most) for c in conversations["validation"]]
    examples = build("train", conversations["train"]), build("validation", checked)
    chats = [c for c in conversations["train"] if c.id.startswith(synthetic.PREFIX)]
    heads = build_heads(config, cache, examples[0], chats, say)
    reader = _reader(config, examples[0], accelerator) if config.objective.task != "evidence" else None
    model.train()
    return EvidenceStage(config, model, backend.windows, backend.encode, counter, *examples, heads, reader)


def _reader(config: TrainConfig, examples: Sequence[Example], accelerator: Accelerator) -> ReaderPart:
    require_answers(examples, config.objective.task)
    with accelerator.main_process_first():
        reader = load_reader(config.reader.name, Path(config.run.cache) / "readers")
    return ReaderPart(reader.to(accelerator.device), config.reader, config.objective.temperature, config.seed)


def _with_questions(conversation: Conversation, most: int) -> Conversation:
    return Conversation(conversation.id, conversation.turns, thin(conversation.questions, most))


def _finish(folder: Path, model: nn.Module, job: Job, best: CheckpointStore) -> dict[str, Any]:
    """Load the best weights, let the job calibrate and save them, and write the result beside them."""
    found, _ = best.newest()
    if found is not None:
        restore(model, found.weights)
    building = folder / f".{MODEL_FOLDER}"
    shutil.rmtree(building, ignore_errors=True)
    summary = job.finish(building)
    shutil.rmtree(folder / MODEL_FOLDER, ignore_errors=True)
    building.rename(folder / MODEL_FOLDER)
    write_atomically(folder / "result.json", json.dumps(summary | (found.state if found else {}), indent=1) + "\n")
    return summary
