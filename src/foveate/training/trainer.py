"""The one training loop. It knows batches, steps and checkpoints; what a loss is, the stage knows.

Runs under `accelerate launch` with any number of processes: each takes every world-size-th batch, the loss of a step is
summed over all batches of the step and divided by their units, so neither accumulation nor the number of processes
changes what a step means.
"""

from __future__ import annotations

import math
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

from foveate.config.schema import TrainConfig
from foveate.core.errors import FoveateError
from foveate.training.checkpoint import Checkpoint, CheckpointStore, restore, trainable
from foveate.training.stage import Batch, LossParts, Stage
from foveate.training.tracking import Tracker


class NotFiniteError(FoveateError):
    """The loss is not a number; names the step and the batch."""


@dataclass
class Position:
    """Where a run stands. `batch` counts the steps done in `epoch`; where it has them all, the validation is due."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    best_score: float = -math.inf
    best_step: int = -1
    since_best: int = 0


def seed_everything(seed: int) -> None:
    """Python, numpy and torch."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Trainer:
    """Steps through a stage's batches.

    Args:
        config: the run's configuration.
        stage: batches, loss and validation.
        model: the unwrapped model.
        accelerator: device and processes.
        store: where checkpoints go.
        best: where the best weights go.
        tracker: the record; None on all but the main process.
        say: prints a line of progress.
    """

    def __init__(
        self,
        config: TrainConfig,
        stage: Stage,
        model: nn.Module,
        accelerator: Accelerator,
        store: CheckpointStore,
        best: CheckpointStore,
        tracker: Tracker | None,
        say: Callable[[str], None],
    ) -> None:
        self.config, self.stage, self.bare = config, stage, model
        self.accelerator, self.store, self.best, self.tracker, self.say = accelerator, store, best, tracker, say
        self.position = Position()
        self.steps_per_epoch = math.ceil(len(stage.batches(0)) / self._batches_per_step)
        self.total_steps = self.steps_per_epoch * config.optim.epochs
        optimizer = AdamW(_parameter_groups(model, config), lr=config.optim.lr)
        self.schedule = LambdaLR(optimizer, self._rate)
        self.model, self.optimizer = accelerator.prepare(model, optimizer)
        self._started, self._steps_at_start = time.monotonic(), 0
        self._boundary = _random_state()

    @property
    def _batches_per_step(self) -> int:
        return self.config.optim.accumulate * self.accelerator.num_processes

    def _rate(self, step: int) -> float:
        warm = self.config.optim.warmup_steps
        rise = min(1.0, (step + 1) / (warm + 1))
        return rise * 0.5 * (1 + math.cos(math.pi * min(1.0, step / max(1, self.total_steps))))

    def resume(self, found: Checkpoint) -> None:
        """Continue from a checkpoint of this run, and say so."""
        restore(self.bare, found.weights)
        state = found.state
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.stage.load_state_dict(state["stage"])
        self.position = Position(**state["position"])
        self._boundary = state["random"][self.accelerator.process_index]
        _set_random_state(self._boundary)
        self._steps_at_start = self.position.step
        self.say(f"resumed at step {self.position.step} of {self.total_steps}")

    def run(self) -> Position:
        """Train to the end; on an interrupt a checkpoint is saved first."""
        try:
            while self.position.epoch < self.config.optim.epochs and not self._out_of_patience():
                self._epoch()
        except KeyboardInterrupt:
            self._save()
            again = "the same command" if self.config.run.resume else "the same command without --run.resume false"
            self.say(f"interrupted at step {self.position.step}; {again} resumes there")
            raise
        return self.position

    def _out_of_patience(self) -> bool:
        return 0 < self.config.run.patience <= self.position.since_best

    def _epoch(self) -> None:
        at, every = self.position, self._batches_per_step
        if at.batch == 0:
            self.stage.start_epoch(at.epoch)
        batches = list(self.stage.batches(at.epoch))
        while at.batch < self.steps_per_epoch:
            self._step(batches[at.batch * every : (at.batch + 1) * every])
            between = self.config.run.save_every and at.step % self.config.run.save_every == 0
            if between and at.batch < self.steps_per_epoch:
                self._save()
        done = at.epoch + 1
        due = done % self.config.run.evaluate_every == 0 or done == self.config.optim.epochs
        found = self.stage.validate() if due else None
        with _uninterrupted():
            at.epoch, at.batch = done, 0
            if found is not None:
                self._judge(found)
            self._boundary = _random_state()
        self._save()

    def _step(self, window: Sequence[Batch]) -> None:
        at, world = self.position, self.accelerator.num_processes
        units = sum(len(batch.questions) for batch in window)
        mine = window[self.accelerator.process_index :: world]
        self.model.train()
        totals: dict[str, float] = {}
        for batch in mine or window[:1]:
            parts = self.stage.loss(self.model, batch, at.step)
            share = parts.total * (world / units) if mine else parts.total * 0.0
            self._check(parts, batch)
            self.accelerator.backward(share)
            for name, part in ({"loss": parts.total.detach()} | parts.parts if mine else {}).items():
                totals[name] = totals.get(name, 0.0) + float(part)
        norm = self.accelerator.clip_grad_norm_(trainable(self.bare).values(), self.config.optim.clip)
        means = {name: total / units for name, total in self._summed(totals).items()}
        with _uninterrupted():
            self.optimizer.step()
            self.schedule.step()
            self.optimizer.zero_grad(set_to_none=True)
            self.stage.after_step(means)
            at.step, at.batch = at.step + 1, at.batch + 1
            self._boundary = _random_state()
            self._log(means, float(norm or 0.0))

    def _summed(self, totals: dict[str, float]) -> dict[str, float]:
        if self.accelerator.num_processes == 1:
            return totals
        values = torch.tensor(list(totals.values()), device=self.accelerator.device)
        torch.distributed.all_reduce(values)
        return dict(zip(totals, values.tolist(), strict=True))

    def _check(self, parts: LossParts, batch: Batch) -> None:
        if not bool(torch.isfinite(parts.total)):
            where = f"step {self.position.step + 1}, conversation {batch.example}, questions {list(batch.questions)}"
            raise NotFiniteError(
                f"the loss is {float(parts.total.detach())} at {where}: lower optim.lr or look at that batch"
            )

    def _log(self, means: dict[str, float], norm: float) -> None:
        at = self.position
        rate = self.schedule.get_last_lr()[0]
        if self.tracker is not None:
            self.tracker.log(at.step, {"epoch": at.epoch, **means, "gradient_norm": norm, "lr": rate})
        if at.step % 50 == 0 or at.batch == self.steps_per_epoch:
            done = at.step - self._steps_at_start
            left = (time.monotonic() - self._started) / max(1, done) * (self.total_steps - at.step)
            shown = "  ".join(f"{name} {value:.3f}" for name, value in means.items())
            epoch = f"epoch {at.epoch + 1}/{self.config.optim.epochs}"
            self.say(f"{epoch}  step {at.step}/{self.total_steps}  {shown}  {_clock(left)} left")

    def _judge(self, found: dict[str, float]) -> None:
        """Record a validation, and keep the weights if they are the best so far."""
        at = self.position
        better = found["score"] > at.best_score
        if better:
            at.best_score, at.best_step, at.since_best = found["score"], at.step, 0
            if self.accelerator.is_main_process:
                self.best.save(at.step, trainable(self.bare), {"metrics": found})
        else:
            at.since_best += 1
        if self.tracker is not None:
            self.tracker.log(at.step, {f"validation/{name}": value for name, value in found.items()})
        shown = "  ".join(f"{name} {value:.4f}" for name, value in found.items())
        self.say(f"validation after epoch {at.epoch}: {shown}{'  (best so far)' if better else ''}")

    def _save(self) -> None:
        random_states = _gathered_random_states(self.accelerator, self._boundary)
        if self.accelerator.is_main_process:
            state: dict[str, Any] = {
                "optimizer": self.optimizer.state_dict(),
                "schedule": self.schedule.state_dict(),
                "stage": self.stage.state_dict(),
                "position": asdict(self.position),
                "random": random_states,
            }
            self.store.save(self.position.step, trainable(self.bare), state)
        self.accelerator.wait_for_everyone()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Holds a Ctrl-C back until the block is done: what is saved on an interrupt is never half a step."""
    previous = signal.getsignal(signal.SIGINT)
    if not callable(previous) or threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[tuple[Any, ...]] = []
    signal.signal(signal.SIGINT, lambda *received: held.append(received))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if held:
        previous(*held[0])


def _parameter_groups(model: nn.Module, config: TrainConfig) -> list[dict[str, Any]]:
    """Four groups: encoder or own layers, with or without weight decay (none on vectors: biases, norms)."""
    groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for name, parameter in trainable(model).items():
        key = (name.startswith("encoder."), parameter.ndim > 1)
        groups.setdefault(key, []).append(parameter)
    optim = config.optim
    return [
        {
            "params": parameters,
            "lr": optim.encoder_lr if in_encoder else optim.lr,
            "weight_decay": optim.weight_decay if decays else 0.0,
        }
        for (in_encoder, decays), parameters in sorted(groups.items())
    ]


def _random_state() -> dict[str, Any]:
    state = {"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.get_rng_state()}
    return state | ({"cuda": torch.cuda.get_rng_state_all()} if torch.cuda.is_available() else {})


def _set_random_state(state: dict[str, Any]) -> None:
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])


def _gathered_random_states(accelerator: Accelerator, state: dict[str, Any]) -> list[dict[str, Any]]:
    """The state of each process as of its last whole step: an interrupted step has already drawn from it."""
    if accelerator.num_processes == 1:
        return [state]
    from accelerate.utils import gather_object

    return gather_object([state])


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"
