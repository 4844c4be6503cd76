"""What the importance head learns from: labelled turns, their batches, and training the head alone.

Labels are weak. CRITICAL: template turns of that class; turns of patients that name a drug, allergen or condition which
the note of an ALLERGY, MEDICATIONS or medical-history section names too, unless they deny it; what the keyword rule
calls CRITICAL in patients' turns and generated chats. TRIVIAL: what the keyword rule calls so. RELEVANT: the rest.
Turns that could be either (a clinician restating a condition, a symptom) are left out. LoCoMo is not used.

Shapes:  N turns, dim encoder width.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from foveate.core.errors import DataError
from foveate.core.schema import Conversation, Turn
from foveate.core.tiers import Importance
from foveate.corpora import medical, qmsum, safety
from foveate.corpora.medical import Consultation
from foveate.corpora.safety import LabelledTurn
from foveate.learned.importance import ImportanceHead
from foveate.learned.objective.importance import class_weights, importance_loss
from foveate.rules.importance import classify_text
from foveate.signals.lexical import STOPWORDS
from foveate.signals.vectors import turn_text
from foveate.training.examples import Encode

SOURCES = ("safety-templates", "synthetic", "mts_dialog", "aci_bench", "qmsum")
"""What `labelled_turns` reads, for a model's `trained_on`."""

MOST = (500, 250, 250)
"""Turns of each class but CRITICAL that one corpus gives training, validation and test."""

MEETINGS = 20
"""Meetings of each QMSum split that are read."""

MTS_SPLITS: tuple[tuple[medical.MtsSplit, ...], ...] = (("train",), ("validation",), ("test1", "test2"))
ACI_SPLITS: tuple[tuple[medical.AciSplit, ...], ...] = (("train",), ("valid",), ("test1", "test2", "test3"))
QMSUM_SPLITS: tuple[qmsum.Split, ...] = ("train", "val", "test")
"""The files of each corpus that training, validation and test read."""

SPURIOUS = 0.005
"""Share of the validation turns that are not CRITICAL which the threshold may let through. Templates are left out: they
are written to be mistaken, and nobody talks like that all day."""

_NAMED = frozenset({"ALLERGY", "MEDICATIONS", "PASTMEDICALHX"})
_WORD = re.compile(r"[a-z][a-z'-]+")
_DENIAL = re.compile(
    r"^\W*(?:um|uh|ah|oh|well|okay|correct)?\W*(?:no|nope|none|not|never|nothing)\b"
    r"|\b(?:not|never|stopped|used to)\b|n['’]t\b",
    re.IGNORECASE,
)
_MEDICAL_STOP = frozenset(
    "allergies allergy allergic medication medications medicine medicines daily drug drugs known none take takes "
    "taking taken patient times reports history right left years year months weeks days past multiple other some "
    "normal only denies last none also because about after every previous problems problem pain noncontributory "
    "significant positive negative doctor surgery hospital first high over back time little never been were with "
    "have that this from".split()
)


@dataclass(frozen=True, slots=True)
class LabelledSplits:
    """Labelled turns; no dialogue and no template is in two of the three."""

    train: tuple[LabelledTurn, ...]
    validation: tuple[LabelledTurn, ...]
    test: tuple[LabelledTurn, ...]


def labelled_turns(root: Path, chats: Sequence[Conversation], seed: int = 13) -> LabelledSplits:
    """The labelled turns of all sources.

    Corpora keep their own splits; templates and generated chats are shared out eight, one and one in ten.

    Args:
        root: the data root, for mts_dialog, aci_bench and qmsum.
        chats: generated conversations (`foveate data synthetic`).
        seed: of the templates' words and of what is left out where a corpus has more than `MOST`.

    Raises:
        DataError: a file is missing or changed.
    """
    carriers = [turn.text for chat in chats for turn in chat.turns if _is_carrier(turn.text)]
    made = _shared_out(safety.generate(seed, carriers=carriers), seed)
    spoken = _shared_out([turn for chat in chats for turn in label_chat(chat, "synthetic", teach=True)], seed)
    mts = [
        [t for split in splits for c in medical.load_mts(root, split) for t in label_consultation(c, "mts_dialog")]
        for splits in MTS_SPLITS
    ]
    aci = [
        [t for split in splits for c in medical.load_aci(root, split) for t in label_consultation(c, "aci_bench")]
        for splits in ACI_SPLITS
    ]
    meetings = [
        [
            turn
            for meeting in qmsum.load(root, split, without_longbench=True)[:MEETINGS]
            for turn in label_chat(meeting, "qmsum", teach=False)
        ]
        for split in QMSUM_SPLITS
    ]
    parts = [
        tuple(
            t for source in (made, spoken, mts, aci, meetings) for t in _some(_distinct(source[k]), MOST[k], seed + k)
        )
        for k in range(3)
    ]
    return LabelledSplits(*parts)


def label_consultation(consultation: Consultation, origin: str) -> Iterator[LabelledTurn]:
    """The turns of a doctor-patient dialogue that have a clear class."""
    named = _terms(consultation.note)
    states = consultation.section in _NAMED
    group = consultation.conversation.id
    for turn in consultation.conversation.turns:
        label = _patient_label(turn.text, named, states) if turn.role == "user" else _clinician_label(turn.text, named)
        if label is not None and turn.text.strip():
            yield LabelledTurn(turn, label, origin, group)


def label_chat(chat: Conversation, origin: str, *, teach: bool) -> Iterator[LabelledTurn]:
    """The turns of an ordinary conversation by the keyword rule; CRITICAL ones only where it may `teach` them."""
    for turn in chat.turns:
        label = classify_text(turn.text)
        asks = turn.text.rstrip().endswith("?")
        if turn.text.strip() and (label is not Importance.CRITICAL or (teach and not asks)):
            yield LabelledTurn(turn, label, origin, chat.id)


def _patient_label(text: str, named: frozenset[str], states: bool) -> Importance | None:
    by_rule, shared, denied = classify_text(text), bool(_terms(text) & named), bool(_DENIAL.search(text))
    if by_rule is Importance.TRIVIAL:
        return by_rule
    if denied:
        return None if by_rule is Importance.CRITICAL or shared else Importance.RELEVANT
    if text.rstrip().endswith("?"):
        return None if by_rule is Importance.CRITICAL or shared else Importance.RELEVANT
    if by_rule is Importance.CRITICAL or (states and shared):
        return Importance.CRITICAL
    return None if shared else Importance.RELEVANT


def _clinician_label(text: str, named: frozenset[str]) -> Importance | None:
    by_rule = classify_text(text)
    if by_rule is Importance.CRITICAL:
        return None
    if by_rule is Importance.RELEVANT and not text.rstrip().endswith("?") and _terms(text) & named:
        return None
    return by_rule


def _terms(text: str) -> frozenset[str]:
    """Words that may name a drug, an allergen or a condition."""
    words = _WORD.findall(text.lower())
    return frozenset(w for w in words if len(w) > 3 and w not in STOPWORDS and w not in _MEDICAL_STOP)


def _is_carrier(text: str) -> bool:
    return 4 <= len(text.split()) <= 20 and classify_text(text) is Importance.RELEVANT


def _distinct(turns: Iterable[LabelledTurn]) -> list[LabelledTurn]:
    """The first turn of each text."""
    return list({turn.turn.text.lower(): turn for turn in reversed(list(turns))}.values())[::-1]


def _some(turns: Sequence[LabelledTurn], most: int, seed: int) -> list[LabelledTurn]:
    """All CRITICAL turns and at most `most` of each other class, in their order."""
    rng = np.random.default_rng(seed)
    kept: set[int] = set()
    for label in Importance:
        places = [i for i, turn in enumerate(turns) if turn.label is label]
        kept.update(rng.permutation(places)[: None if label is Importance.CRITICAL else most].tolist())
    return [turns[i] for i in sorted(kept)]


def _shared_out(turns: Sequence[LabelledTurn], seed: int) -> list[list[LabelledTurn]]:
    """Groups shuffled, then eight, one and one of ten to training, validation and test."""
    groups = sorted({turn.group for turn in turns})
    order = np.random.default_rng((seed, len(groups))).permutation(len(groups))
    part = {groups[i]: 0 if place % 10 < 8 else place % 10 - 7 for place, i in enumerate(order.tolist())}
    return [[turn for turn in turns if part[turn.group] == k] for k in range(3)]


class ImportanceBatches:
    """Seeded batches of turn vectors with their classes; every turn is there with date and speaker and without.

    Args:
        turns: labelled turns.
        encode: texts to (n, dim) vectors; called once, for all of them.
        size: turns a batch.
        seed: of the order.

    Attributes:
        vectors: (N, dim) of all forms of all turns.
        labels: (N,) class numbers.
        ordinary: (N,) whether a turn comes from a dialogue, not from a template.
        weights: (3,) class weights of the whole set, for `importance_loss`.
    """

    def __init__(self, turns: Sequence[LabelledTurn], encode: Encode, *, size: int = 64, seed: int = 13) -> None:
        if not turns:
            raise DataError("no labelled turn to train importance on: give the data root and generated chats")
        self._texts = [text for turn in turns for text in forms(turn.turn)]
        self.labels = torch.tensor([int(turn.label) for turn in turns]).repeat_interleave(2)
        self.ordinary = torch.tensor(["safety" not in turn.origin for turn in turns]).repeat_interleave(2)
        self.weights = class_weights(self.labels)
        self._size, self._seed = size, seed
        self._drawn: tuple[int, Tensor] | None = None
        self.refresh(encode)

    def __len__(self) -> int:
        """Batches an epoch."""
        return -(-len(self.labels) // self._size)

    def refresh(self, encode: Encode) -> None:
        """Encodes all turns again, for an encoder that trains."""
        self.vectors = torch.from_numpy(np.asarray(encode(self._texts), dtype=np.float32))

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """The (size, dim) vectors and (size,) classes of a step, a pure function of seed and step; the last batch of an
        epoch may be smaller.
        """
        epoch, place = divmod(step, len(self))
        if self._drawn is None or self._drawn[0] != epoch:
            order = np.random.default_rng((self._seed, epoch)).permutation(len(self.labels))
            self._drawn = (epoch, torch.from_numpy(order))
        rows = self._drawn[1][place * self._size : (place + 1) * self._size]
        return self.vectors[rows], self.labels[rows]


def forms(turn: Turn) -> tuple[str, str]:
    """What an encoder may be given of a turn: with date and speaker, and the words alone."""
    return turn_text(turn), turn.text


def train_head(
    head: ImportanceHead,
    train: ImportanceBatches,
    validation: ImportanceBatches,
    *,
    epochs: int = 8,
    lr: float = 1e-3,
    weight_decay: float = 0.05,
) -> float:
    """Trains the head alone on cached vectors, sets its threshold on the validation turns, and returns it."""
    optimizer = torch.optim.AdamW(head.parameters(), lr=lr, weight_decay=weight_decay)
    steps = epochs * len(train)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps)
    head.train()
    for step in range(steps):
        vectors, labels = train.batch(step)
        optimizer.zero_grad()
        importance_loss(head(vectors), labels, train.weights).mean().backward()
        optimizer.step()
        schedule.step()
    head.eval()
    with torch.no_grad():
        critical = head.probabilities(validation.vectors)[:, Importance.CRITICAL]
    counted = validation.ordinary if bool(validation.ordinary.any()) else torch.ones_like(validation.ordinary)
    threshold = choose_threshold(critical[counted], validation.labels[counted])
    head.threshold.fill_(threshold)
    return threshold


def choose_threshold(critical: Tensor, labels: Tensor, spurious: float = SPURIOUS) -> float:
    """The lowest threshold, at least 1/2, from which at most a share `spurious` of the turns that are not CRITICAL are
    taken for it.

    Args:
        critical: (N,) probability of CRITICAL.
        labels: (N,) class numbers.
        spurious: share allowed, 0 to 1.

    Raises:
        DataError: no turn is of another class.
    """
    others = critical[labels != int(Importance.CRITICAL)].sort(descending=True).values
    if not len(others):
        raise DataError("the threshold of CRITICAL needs validation turns of other classes: there are none")
    allowed = int(spurious * len(others))
    if allowed >= len(others):
        return 0.5
    return max(0.5, float(torch.nextafter(others[allowed], torch.tensor(2.0))))
