"""A step means the same however its questions are cut into batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from tiny_runs import silent, tiny_config
from torch import nn

from foveate.training.checkpoint import CheckpointStore
from foveate.training.stage import Batch, LossParts
from foveate.training.trainer import Trainer, seed_everything


class ToyStage:
    """The summed squared error of a line through eight points; each is a question."""

    def __init__(self, cuts: Sequence[tuple[int, ...]]) -> None:
        generator = torch.Generator().manual_seed(3)
        self.inputs = torch.randn(8, 5, generator=generator)
        self.targets = torch.randn(8, 1, generator=generator)
        self.cuts = cuts

    def batches(self, epoch: int) -> list[Batch]:
        return [Batch(0, cut) for cut in self.cuts]

    def loss(self, model: nn.Module, batch: Batch, step: int) -> LossParts:
        rows = list(batch.questions)
        total = (model(self.inputs[rows]) - self.targets[rows]).square().sum()
        return LossParts(total, {"squared": total.detach()}, len(rows))

    def start_epoch(self, epoch: int) -> None: ...

    def after_step(self, means: Mapping[str, float]) -> None: ...

    def validate(self) -> dict[str, float]:
        return {"score": 0.0}

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class Record:
    """A tracker in memory."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def log(self, step: int, values: dict[str, Any]) -> None:
        self.lines.append({"step": step, **values})


def trained(shared: Path, folder: Path, cuts: Sequence[tuple[int, ...]], accumulate: int) -> tuple[nn.Module, Record]:
    config = tiny_config(shared, folder)
    config = replace(config, optim=replace(config.optim, epochs=1, accumulate=accumulate, lr=0.1, clip=1e6))
    seed_everything(1)
    model, record = nn.Linear(5, 1), Record()
    stores = CheckpointStore(folder / "checkpoints", 1), CheckpointStore(folder / "best", 1)
    trainer = Trainer(config, ToyStage(cuts), model, Accelerator(cpu=True), *stores, record, silent)  # pyright: ignore[reportArgumentType]
    trainer.run()
    return model, record


@pytest.mark.parametrize(
    ("cuts", "accumulate"),
    [
        ([(0, 1), (2, 3), (4, 5), (6, 7)], 2),
        ([(0,), (1, 2, 3), (4, 5, 6), (7,)], 2),
        ([(0,), (1,), (2,), (3,), (4,), (5,), (6,), (7,)], 4),
    ],
)
def test_accumulation_does_not_change_a_step(
    shared: Path, tmp_path: Path, cuts: list[tuple[int, ...]], accumulate: int
) -> None:
    whole, record = trained(shared, tmp_path / "whole", [(0, 1, 2, 3), (4, 5, 6, 7)], 1)
    cut, other = trained(shared, tmp_path / "cut", cuts, accumulate)
    for one, two in zip(whole.parameters(), cut.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)
    assert len(record.lines) == len(other.lines) == 3
    for one, two in zip(record.lines[:2], other.lines[:2], strict=True):
        assert one == pytest.approx(two, rel=1e-5)


def test_the_logged_gradient_is_that_of_the_mean_loss(shared: Path, tmp_path: Path) -> None:
    stage = ToyStage([])
    seed_everything(1)
    model = nn.Linear(5, 1)
    (model(stage.inputs[:4]) - stage.targets[:4]).square().mean().backward()
    expected = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).norm()
    _, record = trained(shared, tmp_path, [(0, 1), (2, 3)], 2)
    assert record.lines[0]["gradient_norm"] == pytest.approx(float(expected), rel=1e-5)


def test_a_last_window_of_fewer_batches_is_a_step_of_its_own(shared: Path, tmp_path: Path) -> None:
    _, record = trained(shared, tmp_path, [(0, 1), (2, 3), (4,)], 2)
    assert [line["step"] for line in record.lines if "loss" in line] == [1, 2]
