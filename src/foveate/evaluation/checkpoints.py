"""Trained scorers from disk: the folder of a run, of a run's folds, or of an export."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from foveate.core.errors import CheckpointError, ConfigError, MissingExtraError
from foveate.core.protocols import Scorer

_WEIGHTS = (".safetensors", ".onnx", ".npz", ".json")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One scorer, or one for each fold.

    Attributes:
        name: the folder's.
        scorer: the scorer of a fold, loaded on first use; fold 0 where there are no folds.
        train_data: what it says it was trained on; None where it does not say.
        fingerprint: a sha256 over the files that make the scorer.
    """

    name: str
    scorer: Callable[[int], Scorer]
    train_data: str | None
    fingerprint: str


def load_checkpoint(folder: Path, corpus: str, *, folds: int | None = None, fold: int | None = None) -> Checkpoint:
    """The checkpoint in a folder; nothing is loaded yet.

    Args:
        folder: a run, a saved model or an export; with `folds` a folder that holds fold0, fold1, ..., with `fold`
            either. Its name is the checkpoint's.
        corpus: what it will be tested on; a run that says it trained on what it is tested on is refused.
        folds: how many folds there must be; None for a single scorer.
        fold: the fold a single scorer is tested on; None for all conversations.

    Raises:
        CheckpointError: the folder holds no scorer, or a fold is missing.
        ConfigError: the folder's runs do not fit the split.
    """
    if folds is not None:
        parts = [folder / f"fold{k}" for k in range(folds)]
    elif fold is not None and (folder / f"fold{fold}").is_dir():
        parts = [folder / f"fold{fold}"]
    elif (folder / "fold0").is_dir():
        raise ConfigError(f"{folder} holds a run for each fold: use --split P1, or name one of its folds")
    else:
        parts = [folder]
    for number, part in enumerate(parts):
        _check(part, corpus, fold if folds is None else number)
    loaders = [lru_cache(maxsize=1)(partial(_load, part, folder.name)) for part in parts]
    trained = sorted({_corpus(source) for part in parts for source in _seen(part, "trained_on")})
    return Checkpoint(
        name=folder.resolve().name,
        scorer=lambda fold: loaders[fold](),
        train_data=", ".join(trained) or None,
        fingerprint=hashlib.sha256("".join(map(_fingerprint, parts)).encode()).hexdigest(),
    )


def _seen(folder: Path, kind: str) -> list[str]:
    """The sources that the model's config.json names as "trained_on" or "chosen_on"; none where it does not say.

    Raises:
        CheckpointError: the file is damaged.
    """
    path = _place(folder) / "config.json"
    if not path.is_file():
        return []
    try:
        return [str(source) for source in json.loads(path.read_text(encoding="utf-8")).get(kind) or ()]
    except (OSError, ValueError, AttributeError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}): copy it again from the run") from error


def _corpus(source: str) -> str:
    return "locomo" if source.startswith("locomo:") else source


def _check(folder: Path, corpus: str, fold: int | None) -> None:
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is no folder: split P1 needs a run for each fold, fold0, fold1, ...")
    if not _is_export(folder) and not _is_run(folder):
        raise CheckpointError(f"{folder} is neither a run of `foveate train` nor a folder of `foveate export`")
    seen = {*_seen(folder, "trained_on"), *_seen(folder, "chosen_on")}
    other = sorted(name for name in seen if name.startswith("locomo:") and name != f"locomo:{fold}")
    if corpus == "locomo" and other:
        raise ConfigError(
            f"{folder} was trained or tuned on LoCoMo fold {other[0].partition(':')[2]}, which this split would test: "
            "use --split P1 with fold0 .. fold4 each trained on its own fold"
        )


def _is_run(folder: Path) -> bool:
    return any((place / "model.safetensors").is_file() for place in (folder, folder / "model"))


def _is_export(folder: Path) -> bool:
    from foveate.serving.onnx_scorer import MANIFEST

    return (folder / MANIFEST).is_file()


def _load(folder: Path, name: str) -> Scorer:
    if _is_export(folder):
        from foveate.serving.onnx_scorer import OnnxScorer

        return OnnxScorer(folder)
    try:
        from foveate.learned.scorer import load_scorer
    except ImportError as error:
        raise MissingExtraError("torch", "train") from error
    return load_scorer(folder, name)


def _place(folder: Path) -> Path:
    """Where the files of the scorer lie: in the model folder of a run, or in the folder itself."""
    return folder / "model" if (folder / "model").is_dir() else folder


def _fingerprint(folder: Path) -> str:
    """A sha256 over the names and bytes of the files that make a scorer, training state apart."""
    found = hashlib.sha256()
    for path in sorted(_place(folder).iterdir()):
        if path.suffix in _WEIGHTS:
            found.update(f"{path.name}\0".encode())
            with path.open("rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()
