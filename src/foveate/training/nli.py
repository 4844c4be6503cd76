"""The NLI stage: learn whether one sentence contradicts another, on sentence vectors or on both sentences at once.

Half of the sentences (`nli.turn_share`) are read as the encoder reads turns, "date speaker: text", because that is what
Eq. 5 compares with the last reply.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Protocol, cast

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast

from foveate.config.schema import NliConfig, TrainConfig
from foveate.core.schema import Turn
from foveate.corpora import nli
from foveate.corpora.root import data_root
from foveate.learned.contradiction import CONTRADICTION, PairTokens
from foveate.learned.encoder import load_encoder, load_tokenizer, resolve
from foveate.learned.heads import CosineHead
from foveate.learned.model import FoveateModel, build_model, with_nli_head
from foveate.learned.nli import NLI_LABELS, build_cross_encoder, fit_temperature, has_segments
from foveate.learned.objective.coherence import nli_loss
from foveate.learned.scorer import TorchVectorModel
from foveate.metrics.calibration import calibration
from foveate.metrics.nli import accuracy, auroc, prf
from foveate.signals.vectors import turn_text
from foveate.training.examples import Encode, VectorCache, encoder_key
from foveate.training.sources import thin
from foveate.training.stage import Batch, LossParts

ENCODE_TEXTS = 4096
"""Texts that go to the encoder, and into one file of the vector cache, at once."""
BLOCK = 32
"""Batches whose pairs are sorted by length together, so that little of them is padding."""
SCORE_PAIRS = 256
"""Pairs scored at once in validation."""
NAMES = (
    "Ann Ben Carla Dmitri Elena Femi Grace Hiro Ines Jamal Kofi Lena Mateo Nadia Omar Priya Quinn Rosa Sam Tara".split()
)
MONTHS = "January February March April May June July August September October November December".split()

Texts = tuple[str, str]


def load_pairs(config: NliConfig) -> tuple[list[nli.Pair], list[nli.Pair]]:
    """Training and validation pairs of the configured sets, split by sentence group over all sets.

    Raises:
        DataError: a file is missing or changed.
    """
    parts = nli.split(nli.load_all(data_root()))
    train = [pair for name in config.sources for pair in thin(nli.of_source(parts.train, name), config.max_pairs)]
    validation = [pair for name in config.sources for pair in nli.of_source(parts.validation, name)]
    return train, list(thin(validation, config.validation_pairs))


def as_turn(text: str, rng: Random) -> str:
    """A sentence in the form of a turn, with a date and a speaker drawn from `rng`; one in four has no date."""
    date = f"{rng.randint(1, 28)} {rng.choice(MONTHS)} {rng.randint(2019, 2026)}" if rng.random() < 0.75 else None
    speaker = rng.choice((*NAMES, None))
    role = rng.choice(("user", "assistant"))
    return turn_text(Turn(id="", role=role, content=text, speaker=speaker, date=date))


def texts_of(pair: nli.Pair | nli.BinaryPair, turn_share: float) -> Texts:
    """What is read of a pair: each sentence plain or, with that probability, as a turn; the same at every call."""
    rng = Random(hashlib.sha256(f"{pair.premise}\0{pair.hypothesis}".encode()).digest())
    premise, hypothesis = (
        as_turn(text, rng) if rng.random() < turn_share else text for text in (pair.premise, pair.hypothesis)
    )
    return premise, hypothesis


def readings(
    pairs: Sequence[nli.Pair], turn_share: float, unrelated: float, seed: int
) -> tuple[list[Texts], list[nli.Label]]:
    """What is read of the pairs, with their labels, and after them that share more of unrelated ones.

    An unrelated pair joins the premise of one pair with the hypothesis of another and is neutral. NLI sets hold pairs
    about one scene, so a model trained on them alone takes a change of topic for a contradiction, and most turns of a
    chat are on another topic than the last reply.
    """
    texts: list[Texts] = [texts_of(pair, turn_share) for pair in pairs]
    labels: list[nli.Label] = [pair.label for pair in pairs]
    rng, known = np.random.default_rng((seed, 3)), set(texts)
    for first, second in rng.integers(0, len(pairs), (round(unrelated * len(pairs)), 2)).tolist():
        joined = texts[first][0], texts[second][1]
        same = nli.normalised(pairs[first].premise) == nli.normalised(pairs[second].premise)
        if not same and joined not in known:
            texts.append(joined)
            labels.append("neutral")
    return texts, labels


class PairInputs(Protocol):
    """Labelled pairs as a network takes them.

    Attributes:
        lengths: (n,) tokens of each pair, for batches of similar length; equal where that does not matter.
        labels: (n,) class numbers.
    """

    lengths: list[int]
    labels: Tensor

    def inputs(self, rows: Sequence[int]) -> tuple[Tensor, ...]:
        """What the network is called with for these pairs."""
        ...


class NliBatches:
    """Pairs as sentence vectors, encoded once.

    Args:
        pairs: with their labels.
        encode: texts to unit vectors (a `VectorCache` keeps them between runs); each text is encoded once.
        size: pairs a batch.
        seed: of the order of the batches.
        turn_share, unrelated: see `NliConfig`.
        say: told of the progress.
    """

    def __init__(
        self,
        pairs: Sequence[nli.Pair],
        encode: Encode,
        size: int,
        seed: int,
        turn_share: float = 0.5,
        unrelated: float = 0.0,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        texts, labels = readings(pairs, turn_share, unrelated, seed)
        place = {text: n for n, text in enumerate(dict.fromkeys(text for both in texts for text in both))}
        self._vectors = torch.from_numpy(_encoded(list(place), encode, say))
        self._premise = torch.tensor([place[premise] for premise, _ in texts], dtype=torch.long)
        self._hypothesis = torch.tensor([place[hypothesis] for _, hypothesis in texts], dtype=torch.long)
        self.labels = _numbers(labels)
        self.lengths = [0] * len(labels)
        self._size, self._seed = size, seed

    def __len__(self) -> int:
        return len(self.labels)

    def inputs(self, rows: Sequence[int]) -> tuple[Tensor, Tensor]:
        """(B, dim) premise and (B, dim) hypothesis vectors."""
        chosen = torch.tensor(rows, dtype=torch.long)
        return self._vectors[self._premise[chosen]], self._vectors[self._hypothesis[chosen]]

    def batch(self, step: int) -> tuple[Tensor, Tensor, Tensor]:
        """Premise vectors, hypothesis vectors and class numbers of the batch of a step: a pure function of the seed and
        the step; every pair comes once in `ceil(n / size)` steps.
        """
        epoch, place = divmod(step, -(-len(self) // self._size))
        order = np.random.default_rng((self._seed, 2, epoch)).permutation(len(self))
        rows = order[place * self._size : (place + 1) * self._size].tolist()
        return (*self.inputs(rows), self.labels[rows])


class TokenPairs:
    """Pairs as the tokens of one sequence, for a cross-encoder; arguments as of `NliBatches`."""

    def __init__(
        self,
        pairs: Sequence[nli.Pair],
        tokens: PairTokens,
        seed: int,
        turn_share: float = 0.5,
        unrelated: float = 0.0,
    ) -> None:
        texts, labels = readings(pairs, turn_share, unrelated, seed)
        self._rows = tokens.rows([premise for premise, _ in texts], [hypothesis for _, hypothesis in texts])
        self.labels = _numbers(labels)
        self.lengths = [len(ids) for ids in self._rows.ids]
        self.truncated = int(self._rows.truncated.sum())

    def inputs(self, rows: Sequence[int]) -> tuple[Tensor, ...]:
        """(B, T) ids, mask and, where there are any, segment numbers."""
        return tuple(torch.from_numpy(x) for x in self._rows.batch(rows))


class NliStage:
    """Batches, loss and validation of an NLI network.

    Args:
        config: the run's configuration.
        model: the unwrapped network, (inputs) -> (B, 3) logits.
        train, validation: labelled pairs.
    """

    def __init__(self, config: TrainConfig, model: nn.Module, train: PairInputs, validation: PairInputs) -> None:
        self.config, self.model, self.train, self.validation = config, model, train, validation

    def batches(self, epoch: int) -> list[Batch]:
        """All pairs in random order, those of `BLOCK` batches sorted by length, then the batches in random order."""
        rng = np.random.default_rng((self.config.seed, epoch))
        order, size = rng.permutation(len(self.train.labels)).tolist(), self.config.nli.pairs
        for start in range(0, len(order), size * BLOCK):
            part = slice(start, start + size * BLOCK)
            order[part] = sorted(order[part], key=lambda i: self.train.lengths[i])
        batches = [Batch(0, tuple(order[a : a + size])) for a in range(0, len(order), size)]
        return [batches[i] for i in rng.permutation(len(batches))]

    def start_epoch(self, epoch: int) -> None:
        """Nothing depends on the weights."""

    def loss(self, model: nn.Module, batch: Batch, step: int) -> LossParts:
        rows = list(batch.questions)
        device = self._device()
        logits = model(*(x.to(device) for x in self.train.inputs(rows)))
        loss = nli_loss(logits, self.train.labels[rows].to(device)).sum()
        return LossParts(loss, {"nli": loss.detach()}, len(rows))

    def validate(self) -> dict[str, float]:
        """Accuracy (the "score"), and AUROC, F1 and ECE of contradiction at temperature 1."""
        return measured(self.logits(self.validation), self.validation.labels)

    @torch.no_grad()
    def logits(self, pairs: PairInputs) -> Tensor:
        """(n, 3) for all pairs, on the CPU."""
        self.model.eval()
        order = sorted(range(len(pairs.labels)), key=lambda i: (pairs.lengths[i], i))
        out = torch.zeros(len(order), len(NLI_LABELS))
        for start in range(0, len(order), SCORE_PAIRS):
            rows = order[start : start + SCORE_PAIRS]
            out[rows] = self.model(*(x.to(self._device()) for x in pairs.inputs(rows))).float().cpu()
        self.model.train()
        return out

    def calibrate(self) -> tuple[float, dict[str, float]]:
        """The temperature fitted on validation data, and the metrics with it."""
        logits = self.logits(self.validation)
        temperature = fit_temperature(logits, self.validation.labels)
        return temperature, measured(logits / temperature, self.validation.labels)

    def state_dict(self) -> dict[str, Any]:
        return {}

    def after_step(self, means: Mapping[str, float]) -> None:
        """Nothing is moved but by gradients."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """There is no state beside the weights."""

    def _device(self) -> torch.device:
        return next(self.model.parameters()).device


def measured(logits: Tensor, labels: Tensor) -> dict[str, float]:
    """(n, 3) logits and (n,) class numbers -> accuracy ("score"), and contradiction's AUROC, F1 and ECE."""
    predicted = logits.argmax(1)
    probabilities = torch.softmax(logits, 1)[:, CONTRADICTION].tolist()
    gold = (labels == CONTRADICTION).tolist()
    found = {
        "score": accuracy(predicted.tolist(), labels.tolist()),
        "f1": prf((predicted == CONTRADICTION).tolist(), gold).f1,
        "ece": calibration(probabilities, gold).ece,
    }
    area = auroc(probabilities, gold)
    return found if area is None else found | {"auroc": area}


class NliJob:
    """A run of the stage: the data, the network, and the finished model.

    Raises:
        DataError: a file is missing or changed.
    """

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self._pairs = load_pairs(config.nli)

    def build(self, accelerator: Accelerator, say: Callable[[str], None]) -> tuple[nn.Module, NliStage]:
        """The network that trains, and its stage."""
        say("nli: {} training pairs, {} validation pairs".format(*map(len, self._pairs)))
        bi = self.config.nli.form == "bi"
        self._save, self._stage = self._bi(accelerator, say) if bi else self._cross(say)
        return self._stage.model, self._stage

    def finish(self, folder: Path) -> dict[str, Any]:
        """Fits the temperature on validation data and saves the model."""
        temperature, found = self._stage.calibrate()
        self._save(folder, temperature)
        return {"temperature": temperature, **{f"calibrated_{name}": value for name, value in found.items()}}

    def _bi(
        self, accelerator: Accelerator, say: Callable[[str], None]
    ) -> tuple[Callable[[Path, float], None], NliStage]:
        config = self.config
        model = _with_head(config)
        _note_sources(model.config, config.nli.sources)
        tokenizer = load_tokenizer(config.model.encoder.name)
        model.requires_grad_(False).to(accelerator.device)
        backend = TorchVectorModel(model, tokenizer, "training")
        key = encoder_key(model, tokenizer, model.config.max_length)
        cache = VectorCache(Path(config.run.cache), key, backend.encode)
        size, shares = config.nli.pairs, (config.nli.turn_share, config.nli.unrelated)
        made = [NliBatches(pairs, cache, size, config.seed, *shares, say) for pairs in self._pairs]
        head = cast(nn.Module, model.nli).requires_grad_(True)

        def save(folder: Path, temperature: float) -> None:
            model.config.nli_temperature = temperature
            model.save_pretrained(folder)
            tokenizer.save(str(folder / "tokenizer.json"))

        return save, NliStage(config, head, *made)

    def _cross(self, say: Callable[[str], None]) -> tuple[Callable[[Path, float], None], NliStage]:
        config = self.config
        network = build_cross_encoder(config.model.encoder)
        name = config.model.encoder.name
        tokens = PairTokens(load_tokenizer(name), config.nli.max_length, has_segments(network.classifier))
        shares = config.nli.turn_share, config.nli.unrelated
        made = [TokenPairs(pairs, tokens, config.seed, *shares) for pairs in self._pairs]
        say(f"nli: {made[0].truncated} training pairs are longer than {config.nli.max_length} tokens and cut")

        def save(folder: Path, temperature: float) -> None:
            finished: PreTrainedModel = network.finished()
            finished.config.nli_temperature = temperature
            finished.config.nli_max_length = config.nli.max_length
            _note_sources(finished.config, config.nli.sources)
            finished.save_pretrained(folder)
            _portable_tokenizer(name).save_pretrained(folder)

        return save, NliStage(config, network, *made)


def _with_head(config: TrainConfig) -> FoveateModel:
    """A finished run's whole model, or a plain encoder as a scorer by cosine, with a fresh NLI head."""
    loaded = load_encoder(config.model.encoder.name)
    if isinstance(loaded, FoveateModel):
        return with_nli_head(loaded, config.nli)
    model = build_model(config.model, config.nli)
    model.config.fusion, model.head = "cosine", CosineHead()
    return model


def _note_sources(settings: Any, sources: Sequence[str]) -> None:
    """Adds the sets to what a model's configuration says it has seen."""
    now = {f"nli:{name}" for name in sources}
    for field in ("trained_on", "chosen_on"):
        setattr(settings, field, sorted({*(settings.to_dict().get(field) or ()), *now}))


def _portable_tokenizer(name: str) -> Any:
    """The encoder's tokenizer with what transformers wants to know of it; a run folder keeps the bare one."""
    place = Path(resolve(name))
    if place.is_dir() and not (place / "tokenizer_config.json").is_file():
        return PreTrainedTokenizerFast(tokenizer_object=load_tokenizer(name), pad_token="[PAD]", unk_token="[UNK]")
    return AutoTokenizer.from_pretrained(str(place))


def _numbers(labels: Sequence[nli.Label]) -> Tensor:
    return torch.tensor([NLI_LABELS.index(label) for label in labels], dtype=torch.long)


def _encoded(texts: list[str], encode: Encode, say: Callable[[str], None]) -> np.ndarray:
    parts: list[np.ndarray] = []
    for start in range(0, len(texts), ENCODE_TEXTS):
        parts.append(encode(texts[start : start + ENCODE_TEXTS]))
        say(f"nli: {min(start + ENCODE_TEXTS, len(texts))} of {len(texts)} texts encoded")
    return np.concatenate(parts)
