"""Named sources to conversations with questions that have evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeVar

from foveate.config.schema import DataConfig
from foveate.core.errors import ConfigError
from foveate.core.schema import Conversation
from foveate.corpora import friendsqa, locomo, qmsum, store
from foveate.corpora.cloze import inverse_cloze
from foveate.corpora.root import data_root

Role = Literal["train", "validation"]
T = TypeVar("T")


def load_sources(config: DataConfig, role: Role) -> list[Conversation]:
    """The conversations of one role, each cut to `max_turns`, with only the questions whose evidence it holds.

    Raises:
        ConfigError: a source has no such form.
        DataError: a file is missing or changed.
    """
    names = config.train if role == "train" else config.validation
    pieces = [piece for name in names for whole in _load(name, config, role) for piece in _cut(whole, config.max_turns)]
    kept = [piece for piece in pieces if piece.questions]
    if not kept:
        raise ConfigError(f"data.{role}={list(names)} holds no question with evidence: name another source")
    return kept[: config.max_conversations or None] if role == "train" else kept


def _load(name: str, config: DataConfig, role: Role) -> list[Conversation]:
    kind, _, rest = name.partition(":")
    match kind:
        case "cloze":
            pieces = [piece for whole in _load(rest, config, role) for piece in _pieces(whole, config.cloze_turns)]
            return [inverse_cloze(piece, config.cloze_questions) for piece in thin(pieces, config.cloze_conversations)]
        case "synthetic":
            return store.read(Path(rest))
        case "locomo":
            return _locomo(config, role)
        case "qmsum":
            match rest:
                case "train" | "val" | "test":
                    return qmsum.load(data_root(), rest, without_longbench=True)
        case "friendsqa":
            match rest:
                case "dev" | "test":
                    return friendsqa.load(data_root(), rest)
    known = "synthetic:FILE, locomo, qmsum:train|val|test, friendsqa:dev|test, or cloze: and one of these"
    raise ConfigError(f"data source {name!r}: give {known}")


def _locomo(config: DataConfig, role: Role) -> list[Conversation]:
    if config.fold is None:
        raise ConfigError("data names locomo: give data.fold, 0 to 4")
    fold = locomo.folds()[config.fold]
    wanted = fold.train if role == "train" else fold.validation
    return [conversation for conversation in locomo.load(data_root()) if conversation.id in wanted]


def _cut(conversation: Conversation, max_turns: int) -> Iterator[Conversation]:
    """Pieces of at most `max_turns` turns; a question goes with the piece that holds all its evidence, or is left
    out.
    """
    for piece in _pieces(conversation, max_turns):
        here = {turn.id for turn in piece.turns}
        questions = tuple(
            q for q in conversation.questions if q.evidence.turn_ids and here.issuperset(q.evidence.turn_ids)
        )
        yield replace(piece, questions=questions)


def _pieces(conversation: Conversation, max_turns: int) -> Iterator[Conversation]:
    """Pieces of at most `max_turns` turns, without questions."""
    for start in range(0, len(conversation.turns), max_turns):
        suffix = f"@{start}" if len(conversation.turns) > max_turns else ""
        turns = conversation.turns[start : start + max_turns]
        yield replace(conversation, id=conversation.id + suffix, turns=turns, questions=())


def thin(items: Sequence[T], most: int) -> tuple[T, ...]:
    """At most `most` items, evenly spaced; 0 keeps all."""
    if not most or len(items) <= most:
        return tuple(items)
    return tuple(items[i * len(items) // most] for i in range(most))
