"""metrics.jsonl is the record of a run; wandb mirrors it where it is asked for."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from foveate.core.errors import MissingExtraError
from foveate.core.files import write_atomically

_PACKAGES = ("foveate", "torch", "transformers", "accelerate", "peft", "numpy", "tokenizers", "safetensors")


class Tracker:
    """Appends one JSON object a line, each with its step.

    Args:
        folder: the run folder.
        wandb: "off", "offline" or "online".
        config: shown by wandb beside the curves.
        resume_from: lines of later steps are removed, so a resumed run leaves the record of a straight one.
        validated: whether the validation after step `resume_from` is done; if not, its line is removed too.
    """

    def __init__(
        self,
        folder: Path,
        wandb: Literal["off", "offline", "online"],
        config: Mapping[str, Any],
        resume_from: int | None,
        validated: bool = True,
    ) -> None:
        self._path = folder / "metrics.jsonl"
        kept = self._lines_until(resume_from, validated) if resume_from is not None else []
        write_atomically(self._path, "".join(kept))
        self._run = None if wandb == "off" else _start_wandb(folder, wandb, config)

    def _lines_until(self, step: int, validated: bool) -> list[str]:
        if not self._path.is_file():
            return []
        lines = [line for line in self._path.read_text().splitlines(keepends=True) if line.endswith("\n")]
        found = [(line, json.loads(line)) for line in lines]
        return [
            line
            for line, values in found
            if values["step"] < step or (values["step"] == step and (validated or "validation/score" not in values))
        ]

    def log(self, step: int, values: Mapping[str, Any]) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps({"step": step, **values}) + "\n")
        if self._run is not None:
            self._run.log(dict(values), step=step)

    def close(self) -> None:
        if self._run is not None:
            self._run.finish()


def _start_wandb(folder: Path, mode: Literal["offline", "online"], config: Mapping[str, Any]) -> Any:
    try:
        import wandb
    except ImportError as error:
        raise MissingExtraError("wandb", "train") from error
    return wandb.init(project="foveate", name=folder.name, dir=str(folder), mode=mode, config=dict(config))


def environment() -> dict[str, Any]:
    """What a reader of a run needs to know of the machine and the code."""
    return {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
        "commit": _git("rev-parse", "HEAD"),
        "uncommitted_changes": bool(_git("status", "--porcelain")),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git(*words: str) -> str | None:
    here = Path(__file__).resolve().parent
    try:
        done = subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
