"""What a stage of training must offer the loop. The loop steps, saves and logs; it does not know the loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from accelerate import Accelerator
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Batch:
    """One unit of work: questions of one conversation.

    Attributes:
        example: index of the conversation.
        questions: indices of its questions.
    """

    example: int
    questions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LossParts:
    """The loss of a batch.

    Attributes:
        total: scalar, summed over units.
        parts: each part's own sum, without its weight, for the log.
        units: how many questions the sums run over.
    """

    total: Tensor
    parts: dict[str, Tensor]
    units: int


class Stage(Protocol):
    def batches(self, epoch: int) -> Sequence[Batch]:
        """The batches of an epoch in order: a pure function of the seed and the epoch."""
        ...

    def loss(self, model: nn.Module, batch: Batch, step: int) -> LossParts:
        """`model` may be wrapped for data parallelism; `step` seeds what is drawn for the batch."""
        ...

    def after_step(self, means: Mapping[str, float]) -> None:
        """Moves what is not moved by gradients; `means` are the parts of the step over all processes, a unit each."""
        ...

    def start_epoch(self, epoch: int) -> None:
        """Refreshes what depends on the weights at the start of an epoch."""
        ...

    def validate(self) -> dict[str, float]:
        """Metrics on validation data; "score" is the one the best checkpoint is chosen by, higher is better."""
        ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class Job(Protocol):
    """What a kind of run does before and after the loop; its data are loaded when it is made."""

    def build(self, accelerator: Accelerator, say: Callable[[str], None]) -> tuple[nn.Module, Stage]:
        """The module that trains, with fresh weights, and its stage."""
        ...

    def finish(self, folder: Path) -> dict[str, Any]:
        """Calibrates the module, which has its best weights, and saves the whole model in Hugging Face form; what the
        run's summary says of it.
        """
        ...
