"""Checkpoints that are complete or absent.

A checkpoint is a folder `step-00001234`: weights that train, optimizer, schedule, random state, position, the stage's
own state, and a manifest with the sha256 of each file, written last. It is built under a temporary name, flushed to
disk and renamed, so a kill at any moment leaves the one before. A damaged one is named and passed over.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from foveate.core.errors import CheckpointError
from foveate.core.files import sha256

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a saved step holds.

    Attributes:
        weights: the parameters that train, by name.
        state: everything else: optimizer, schedule, random state, position, stage.
    """

    weights: dict[str, Tensor]
    state: dict[str, Any]


class CheckpointStore:
    """The checkpoints of one run.

    Args:
        folder: where they lie.
        keep: how many of the newest are kept.
    """

    def __init__(self, folder: Path, keep: int) -> None:
        self.folder, self.keep = folder, keep

    def save(self, step: int, weights: Mapping[str, Tensor], state: Mapping[str, Any]) -> Path:
        """Write a checkpoint and remove the oldest beyond `keep`."""
        final = self.folder / f"step-{step:08d}"
        building = self.folder / f".building-{step:08d}"
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True)
        save_file(
            {name: t.detach().cpu().contiguous() for name, t in weights.items()}, building / "weights.safetensors"
        )
        torch.save(dict(state), building / "state.pt")
        names = sorted(path.name for path in building.iterdir())
        manifest = {name: sha256(building / name) for name in names}
        (building / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
        for path in building.iterdir():
            _flush(path)
        shutil.rmtree(final, ignore_errors=True)
        building.rename(final)
        _flush(self.folder)
        for old in self.steps()[: -self.keep]:
            shutil.rmtree(self.folder / f"step-{old:08d}", ignore_errors=True)
        return final

    def steps(self) -> list[int]:
        """Steps with a finished folder, oldest first."""
        return sorted(int(p.name.removeprefix("step-")) for p in self.folder.glob("step-*") if p.is_dir())

    def newest(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest whole checkpoint, and one line about each damaged one that was passed over."""
        damaged: list[str] = []
        for step in reversed(self.steps()):
            folder = self.folder / f"step-{step:08d}"
            try:
                return read_checkpoint(folder), damaged
            except CheckpointError as error:
                damaged.append(str(error))
        return None, damaged


def read_checkpoint(folder: Path) -> Checkpoint:
    """A checkpoint whose files are as they were written.

    Raises:
        CheckpointError: a file is missing or its sha256 differs; names the file.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{folder} is not a whole checkpoint: {MANIFEST} cannot be read") from error
    for name, expected in manifest.items():
        path = folder / name
        if not path.is_file() or sha256(path) != expected:
            raise CheckpointError(f"{path} is missing or damaged (sha256 differs): using the checkpoint before it")
    state = torch.load(folder / "state.pt", map_location="cpu", weights_only=False)
    return Checkpoint(load_file(folder / "weights.safetensors"), state)


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that train, by name; what is frozen is the pretrained encoder's own."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def restore(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy saved weights into the model.

    Raises:
        CheckpointError: the names or shapes are not the model's.
    """
    own = trainable(model)
    if own.keys() != weights.keys():
        odd = sorted(own.keys() ^ weights.keys())[0]
        raise CheckpointError(f"the checkpoint is of another model: {odd} is on one side only; use a fresh run folder")
    with torch.no_grad():
        for name, parameter in own.items():
            if parameter.shape != weights[name].shape:
                raise CheckpointError(
                    f"the checkpoint is of another model: {name} has another shape; use a fresh run folder"
                )
            parameter.copy_(weights[name])


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
