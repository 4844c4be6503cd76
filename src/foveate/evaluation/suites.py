"""The corpora that can be evaluated, each as conversations with what the metrics need to know about them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from foveate.core.errors import ConfigError
from foveate.core.schema import Conversation, Turn
from foveate.corpora import friendsqa, locomo, qmsum, synthetic
from foveate.corpora.root import KNOWN, data_root

SuiteName = Literal["locomo", "synthetic", "qmsum", "friendsqa"]
SplitName = Literal["P0", "P1"]


@dataclass(frozen=True, slots=True)
class Suite:
    """What is evaluated.

    Attributes:
        name: the corpus.
        data_sha: of the file, or of the generated conversations.
        conversations: in the corpus's order.
        spoken: the words of a turn that evidence recall must cover.
        apart: categories that are never pooled with the others (LoCoMo's adversarial questions).
        categories: category to readable name.
        folds: test conversations of fold 0, 1, ... of protocol P1; empty where the corpus has no folds.
    """

    name: SuiteName
    data_sha: str
    conversations: tuple[Conversation, ...]
    spoken: Callable[[Turn], str]
    apart: frozenset[str]
    categories: Mapping[str, str]
    folds: tuple[tuple[str, ...], ...] = ()

    def fold_of(self, conversation_id: str) -> int:
        """The fold that tests a conversation. Raises ConfigError where the corpus has no folds."""
        for number, tested in enumerate(self.folds):
            if conversation_id in tested:
                return number
        raise ConfigError(f"{self.name} has no fold that tests {conversation_id}: use --split P0")

    def validation_of(self, fold: int) -> tuple[str, ...]:
        """The conversations that fold k validates on: those that the next fold tests."""
        return self.folds[(fold + 1) % len(self.folds)]

    def only_fold(self, fold: int | None) -> Suite:
        """The suite cut to the test conversations of one fold; itself for None."""
        if fold is None:
            return self
        if not 0 <= fold < len(self.folds):
            have = f"0 to {len(self.folds) - 1}" if self.folds else "none"
            raise ConfigError(f"--fold {fold}: the folds of {self.name} are {have}")
        return replace(self, conversations=tuple(c for c in self.conversations if c.id in self.folds[fold]))

    def first(self, conversations: int | None) -> Suite:
        """The suite cut to its first conversations; itself for None."""
        if conversations is None:
            return self
        if conversations < 1:
            raise ConfigError(f"--limit-conversations {conversations} leaves nothing to evaluate: give 1 or more")
        return replace(self, conversations=self.conversations[:conversations])


def load_suite(name: SuiteName, *, data: Path | None = None, seed: int = 13) -> Suite:
    """The corpus of that name, from the data root; `synthetic` from a file, or generated from a seed.

    Raises:
        DataError: FOVEATE_DATA is not set, or a file is missing or changed.
    """
    match name:
        case "locomo":
            return _locomo(data_root())
        case "qmsum":
            sha = KNOWN["qmsum"].files["test.jsonl"]
            return _plain("qmsum", sha, qmsum.load(data_root(), "test"))
        case "friendsqa":
            sha = KNOWN["friendsqa"].files["friendsqa_tst.json"]
            return _plain("friendsqa", sha, friendsqa.load(data_root(), "test"))
        case "synthetic":
            made = synthetic.generate(8, seed) if data is None else synthetic.read(data)
            return _plain("synthetic", content_sha(made), made)


def _locomo(root: Path) -> Suite:
    return Suite(
        name="locomo",
        data_sha=KNOWN["locomo"].files["locomo10.json"],
        conversations=tuple(locomo.load(root)),
        spoken=locomo.raw_text,
        apart=frozenset({"5"}),
        categories=locomo.CATEGORY_NAMES,
        folds=tuple(fold.test for fold in locomo.folds()),
    )


def _plain(name: SuiteName, sha: str, conversations: list[Conversation]) -> Suite:
    found = sorted({question.evidence.category for c in conversations for question in c.questions})
    return Suite(
        name=name,
        data_sha=sha,
        conversations=tuple(conversations),
        spoken=lambda turn: turn.text,
        apart=frozenset(),
        categories={category: category or "all" for category in found},
    )


def content_sha(conversations: list[Conversation]) -> str:
    """A sha256 over everything the conversations hold, for corpora that are generated and not pinned."""
    text = json.dumps([asdict(c) for c in conversations], sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
