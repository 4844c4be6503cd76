"""How well CRITICAL turns are found: by a trained head, by the keyword rule, by either.

Three test sets, none of which trains or tunes anything: the weakly labelled test split of `training.importance`; the
patients' turns of the ALLERGY and MEDICATIONS dialogues of MTS-Dialog's two test files, labelled by hand; and all
LoCoMo turns, ordinary chat, where hardly any turn should be CRITICAL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from foveate.config.schema import EncoderConfig, ModelConfig
from foveate.core.schema import Conversation, Turn
from foveate.core.tiers import Importance
from foveate.corpora import locomo, medical
from foveate.corpora.safety import LabelledTurn
from foveate.evaluation.allergy_script import HELD_OUT, PARAPHRASES
from foveate.evaluation.report import percent, table
from foveate.learned.encoder import load_encoder, load_tokenizer
from foveate.learned.importance import ImportanceHead
from foveate.learned.model import FoveateModel, build_model
from foveate.learned.scorer import TorchVectorModel, load_model
from foveate.metrics.statistics import wilson
from foveate.rules.importance import KeywordImportance
from foveate.signals.vectors import turn_text
from foveate.training.examples import Encode, VectorCache, encoder_key
from foveate.training.importance import ImportanceBatches, LabelledSplits, labelled_turns, train_head

Flags = Sequence[bool]
Classify = Callable[[Sequence[Turn]], Sequence[Importance]]

STATED: dict[str, str] = {
    "mts-test1-23": "t3",
    "mts-test1-35": "t1 t5",
    "mts-test1-61": "t1",
    "mts-test1-101": "t1",
    "mts-test1-112": "t4",
    "mts-test1-147": "t1",
    "mts-test1-169": "t1 t3 t5",
    "mts-test1-175": "t2",
    "mts-test1-189": "t1",
    "mts-test2-74": "t1",
    "mts-test2-130": "t1",
    "mts-test2-146": "t1",
    "mts-test2-154": "t1",
    "mts-test2-157": "t1",
}
"""Turns of patients and family that name, in their own words, an allergy, a drug that is taken, or a condition."""

UNCLEAR: dict[str, str] = {
    "mts-test1-35": "t3",
    "mts-test1-113": "t3",
    "mts-test2-146": "t3",
    "mts-test2-163": "t1",
}
"""Turns that state one only with the question before them, or one that is over; they are not counted."""


@dataclass(frozen=True, slots=True)
class Detection:
    """Counts of one detector on one set."""

    turns: int
    critical: int
    flagged: int
    found: int

    @property
    def precision(self) -> float | None:
        """Share of the flagged turns that are CRITICAL; None where none is flagged."""
        return self.found / self.flagged if self.flagged else None

    @property
    def recall(self) -> float | None:
        """Share of the CRITICAL turns that are flagged; None where there are none."""
        return self.found / self.critical if self.critical else None


def detection(flags: Flags, truth: Flags) -> Detection:
    """The counts of a detector's flags against the labels."""
    both = sum(f and t for f, t in zip(flags, truth, strict=True))
    return Detection(len(truth), sum(truth), sum(flags), both)


def hand_labelled(root: Path) -> tuple[list[Turn], list[bool]]:
    """The patients' turns of the ALLERGY and MEDICATIONS test dialogues, and whether each is CRITICAL."""
    turns: list[Turn] = []
    truth: list[bool] = []
    for consultation in (c for split in ("test1", "test2") for c in medical.load_mts(root, split)):
        name = consultation.conversation.id
        if consultation.section in ("ALLERGY", "MEDICATIONS"):
            stated, unclear = STATED.get(name, "").split(), UNCLEAR.get(name, "").split()
            kept = [t for t in consultation.conversation.turns if t.role == "user" and t.id not in unclear]
            turns += kept
            truth += [turn.id in stated for turn in kept]
    return turns, truth


def critical(classify: Classify, turns: Sequence[Turn]) -> list[bool]:
    """Which turns a classifier calls CRITICAL."""
    return [level is Importance.CRITICAL for level in classify(turns)]


def by_rule(turns: Sequence[Turn]) -> list[Importance]:
    """The keyword rule on many turns."""
    rule = KeywordImportance()
    return [rule.classify(turn) for turn in turns]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Head, rule and either on all sets.

    Attributes:
        sets: name of a set -> name of a detector -> its counts.
        flagged: the LoCoMo turns that the head or the rule flags, each with who flagged it.
    """

    sets: dict[str, dict[str, Detection]]
    flagged: list[tuple[str, Turn]]


@dataclass(frozen=True, slots=True)
class Setup:
    """What a head is measured with.

    Attributes:
        model: a run folder, an encoder by name, or minilm.
        chats: generated conversations, for labels.
        root: the data root.
        cache: where vectors are kept.
        seed: of templates, splits and training.
        epochs: of training, where the model has no head.
    """

    model: str
    chats: Sequence[Conversation]
    root: Path
    cache: Path
    seed: int = 13
    epochs: int = 8


def measure(setup: Setup, say: Callable[[str], None]) -> Comparison:
    """The head of a model, or where it has none one that is trained here on its vectors, compared on all sets."""
    scorer = load_encoder(setup.model)
    if isinstance(scorer, FoveateModel):
        model, tokenizer = load_model(Path(setup.model))
    else:
        model = build_model(ModelConfig(encoder=EncoderConfig(name=setup.model)))
        tokenizer = load_tokenizer(setup.model)
    backend = TorchVectorModel(model, tokenizer, setup.model)
    encode = VectorCache(setup.cache, encoder_key(model, tokenizer, model.config.max_length), backend.encode)
    splits = labelled_turns(setup.root, setup.chats, setup.seed)
    say(f"{len(splits.train)}, {len(splits.validation)} and {len(splits.test)} labelled turns")
    head = model.importance or _trained(model.dim, splits, encode, setup, say)
    head.eval()

    @torch.inference_mode()
    def classify(turns: Sequence[Turn]) -> list[Importance]:
        return head.decide(torch.from_numpy(encode([turn_text(turn) for turn in turns])))

    return compare(classify, splits.test, setup.root, {"paraphrases": PARAPHRASES, "paraphrases, held out": HELD_OUT})


def _trained(
    dim: int, splits: LabelledSplits, encode: Encode, setup: Setup, say: Callable[[str], None]
) -> ImportanceHead:
    torch.manual_seed(setup.seed)
    head = ImportanceHead(dim)
    train, validation = (ImportanceBatches(part, encode, seed=setup.seed) for part in (splits.train, splits.validation))
    say(f"{2 * len(splits.train)} vectors; training a head")
    threshold = train_head(head, train, validation, epochs=setup.epochs)
    say(f"CRITICAL from a probability of {threshold:.3f} on")
    return head


def compare(
    head: Classify, test: Sequence[LabelledTurn], root: Path, stated: Mapping[str, Sequence[str]]
) -> Comparison:
    """The head (alone), the keyword rule, and either, on every set.

    Args:
        head: classifies turns without the rule.
        test: weakly labelled turns, see `training.importance.labelled_turns`.
        root: the data root.
        stated: name of a set -> texts that are all CRITICAL (the allergy benchmark's paraphrases).
    """
    ordinary = [turn for conversation in locomo.load(root) for turn in conversation.turns]
    labelled: dict[str, tuple[Sequence[Turn], Flags]] = {
        "weak labels, templates": _part([turn for turn in test if "safety" in turn.origin]),
        "weak labels, dialogue": _part([turn for turn in test if "safety" not in turn.origin]),
        "patients, by hand": hand_labelled(root),
        "LoCoMo": (ordinary, [False] * len(ordinary)),
    }
    for name, texts in stated.items():
        labelled[name] = [Turn(f"p{i}", "user", text) for i, text in enumerate(texts)], [True] * len(texts)
    sets: dict[str, dict[str, Detection]] = {}
    flagged: list[tuple[str, Turn]] = []
    for name, (turns, truth) in labelled.items():
        flags = {"head": critical(head, turns), "rule": critical(by_rule, turns)}
        flags["either"] = [a or b for a, b in zip(flags["head"], flags["rule"], strict=True)]
        sets[name] = {who: detection(given, truth) for who, given in flags.items()}
        if name == "LoCoMo":
            for turn, a, b in zip(turns, flags["head"], flags["rule"], strict=True):
                flagged += [("head and rule" if a and b else "head" if a else "rule", turn)] if a or b else []
    return Comparison(sets, flagged)


def _part(test: Sequence[LabelledTurn]) -> tuple[list[Turn], list[bool]]:
    return [turn.turn for turn in test], [turn.label is Importance.CRITICAL for turn in test]


def markdown(comparison: Comparison) -> str:
    """One table: precision and recall in %, and the share flagged, with Wilson's interval."""
    body = [
        [f"{name}: {who}", str(d.turns), str(d.critical), percent(d.precision), percent(d.recall), _flagged(d)]
        for name, detectors in comparison.sets.items()
        for who, d in detectors.items()
    ]
    return table(["set: detector", "turns", "critical", "precision", "recall", "flagged"], body) + "\n"


def _flagged(found: Detection) -> str:
    share = wilson(found.flagged, found.turns)
    return f"{found.flagged}: {100 * share.point:.2f} [{100 * share.low:.2f}, {100 * share.high:.2f}]"
