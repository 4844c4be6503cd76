"""The evidence stage: learn which turns a question needs, through the relaxed packer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from foveate.config.schema import TrainConfig
from foveate.core.context import ContextBuilder
from foveate.core.protocols import PolicyName, Scores
from foveate.core.render import TranscriptRenderer
from foveate.core.tiers import Tier, TierValues
from foveate.core.tokens import TokenCounter
from foveate.learned.model import FoveateModel, Fresh
from foveate.metrics.calibration import calibration
from foveate.rules.thresholds import Case, case_of, fit_thresholds
from foveate.rules.tier_values import evidence_forms, fit_tier_values
from foveate.signals.batches import Windows, length_batches, pad
from foveate.signals.features import SIGNAL_NAMES, standardise
from foveate.summarizers.heuristic import HeuristicCompressor
from foveate.training.examples import Encode, Example, beginning
from foveate.training.heads import Heads
from foveate.training.objective import Judged, Objective
from foveate.training.reader import ReaderPart
from foveate.training.stage import Batch, LossParts

BUDGETS = (256, 512, 1024, 2048)
BM25 = SIGNAL_NAMES.index("bm25")
LENGTHS = (64, 128, 256, 512)
"""Histories of so many turns, beside the whole one, teach the thresholds how to move with the length."""
THRESHOLD_TOKENS = 512
"""Mean tokens that the thresholds of Eq. 2 are fitted to."""
THRESHOLD_QUESTIONS = 400
"""About so many validation questions, shared out evenly over the conversations, teach the thresholds at each length."""
FRESH_TOKENS = 4096
"""Tokens the encoder takes at once where it trains."""


class EvidenceStage:
    """Batches, loss and validation of the scorer.

    Args:
        config: the run's configuration.
        model: the unwrapped model.
        windows: the encoder's tokenizer, for turns that are encoded with gradients.
        encode: texts to vectors with the model's current weights, without gradients.
        counter: of the rendered tokens that validation packs by.
        train, validation: see `Example`.
        heads: what else trains on the frozen encoder's vectors.
        reader: the reader part, where `objective.task` asks for it.
    """

    def __init__(
        self,
        config: TrainConfig,
        model: FoveateModel,
        windows: Windows,
        encode: Encode,
        counter: TokenCounter,
        train: Sequence[Example],
        validation: Sequence[Example],
        heads: Heads | None = None,
        reader: ReaderPart | None = None,
    ) -> None:
        self.config, self.model = config, model
        self._windows, self._encode, self._counter = windows, encode, counter
        self.train, self.validation = train, validation
        self.objective, self.heads = Objective(config), heads or Heads()
        self._reader = reader
        self._encoder_trains = config.model.encoder.tune != "frozen"
        self._builders: dict[str, ContextBuilder] = {}

    def batches(self, epoch: int) -> list[Batch]:
        """Questions shuffled inside their conversation, then the batches shuffled; conversations are not mixed."""
        rng = np.random.default_rng((self.config.seed, epoch))
        size = self.config.optim.questions
        out: list[Batch] = []
        for number, example in enumerate(self.train):
            order = rng.permutation(len(example.query_texts)).tolist()
            out += [Batch(number, tuple(order[a : a + size])) for a in range(0, len(order), size)]
        return [out[i] for i in rng.permutation(len(out))]

    def start_epoch(self, epoch: int) -> None:
        """Re-encodes every turn and question where the encoder trains; the first epoch starts from its own vectors."""
        if self._encoder_trains and epoch > 0:
            self.refresh(self.train)

    def refresh(self, examples: Iterable[Example]) -> None:
        """Vectors of the current weights."""
        self.model.eval()
        for example in examples:
            example.vectors, example.queries = self._encode(example.turn_texts), self._encode(example.query_texts)
        self.model.train()

    def loss(self, model: nn.Module, batch: Batch, step: int) -> LossParts:
        example, rows = self.train[batch.example], list(batch.questions)
        device = self.model.device
        arrays = (example.vectors, example.queries[rows], example.signals[rows], example.evidence[rows], example.cost)
        *inputs, evidence, cost = (torch.from_numpy(x).to(device) for x in arrays)
        texts = example.turn_texts
        fresh = self._fresh(example, rows, step) if self._encoder_trains else None
        extra, labels = self.heads.inputs(step, device)
        outputs = model(*inputs, fresh, **extra)
        logits = outputs.logits
        if fresh is not None and self.config.model.fusion == "cosine":
            # Vectors of an older encoder are no rivals: it would learn to leave their neighbourhood.
            logits, evidence, cost = logits[:, fresh.turns], evidence[:, fresh.turns], cost[fresh.turns]
            texts = [texts[i] for i in fresh.turns.tolist()]
        judged = self._judged(inputs[0], batch)
        beside = {name: len(rows) * loss for name, loss in self.heads.losses(outputs, labels).items()}
        if self._reader is not None:
            beside["reader"] = self._reader(example, rows, logits, cost, step)
        total, parts = self.objective.parts(logits, evidence, cost, texts, judged, beside, step)
        return LossParts(total, {name: part.detach() for name, part in parts.items()}, len(rows))

    def _judged(self, vectors: Tensor, batch: Batch) -> Judged | None:
        nli, head = self.heads.nli, self.model.nli
        if nli is None or head is None or not self.config.objective.eta1:
            return None
        return nli.judge(head, self.model.config.nli_temperature, vectors, batch.example, batch.questions)

    def after_step(self, means: Mapping[str, float]) -> None:
        self.objective.after_step(means)

    def _fresh(self, example: Example, rows: list[int], step: int) -> Fresh:
        """The questions, their evidence and turns like them, to be encoded with gradients."""
        rng = np.random.default_rng((self.config.seed, step, 1))
        chosen = fresh_turns(example, rows, self.config.model.encoder.fresh_turns, rng)
        texts = [example.turn_texts[i] for i in chosen] + [example.query_texts[r] for r in rows]
        tokens = [parts[0] for parts in self._windows.split(texts)]
        groups = length_batches([len(ids) for ids in tokens], FRESH_TOKENS)
        place = np.argsort(np.concatenate(groups), kind="stable")
        device = self.model.device
        padded = [pad([tokens[i] for i in group]) for group in groups]
        return Fresh(
            [(torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)) for ids, mask in padded],
            torch.from_numpy(place).to(device),
            torch.tensor(chosen, device=device),
        )

    def validate(self) -> dict[str, float]:
        """ERB at the standard budgets with score-greedy packing; "score" is their mean."""
        if self._encoder_trains:
            self.refresh(self.validation)
        rows = [self._recall(e, p, "score") for e in self.validation for p in [self.probabilities(e)]]
        recall = np.concatenate(rows).mean(0)
        return {f"erb_{b}": float(r) for b, r in zip(BUDGETS, recall, strict=True)} | {"score": float(recall.mean())}

    @torch.no_grad()
    def logits(self, example: Example) -> Tensor:
        """(Q, N) for all questions of a conversation, on the CPU."""
        self.model.eval()
        vectors = torch.from_numpy(example.vectors).to(self.model.device)
        mixed, out = self.model.mix(vectors), []
        for start in range(0, len(example.queries), 16):
            part = slice(start, start + 16)
            queries, signals = (
                torch.from_numpy(x[part]).to(self.model.device) for x in (example.queries, example.signals)
            )
            out.append(self.model.fuse(vectors, mixed, queries, signals).cpu())
        self.model.train()
        return torch.cat(out)

    def probabilities(self, example: Example) -> Tensor:
        """(Q, N) calibrated probabilities."""
        return self.model.probability(self.logits(example))

    def _recall(self, example: Example, probabilities: Tensor, policy: PolicyName) -> np.ndarray:
        """(Q, budgets) share of each question's evidence that is packed in full."""
        builder = self._builder(example)
        out = np.zeros((len(probabilities), len(BUDGETS)))
        for row, values in enumerate(probabilities.tolist()):
            needed = np.flatnonzero(example.evidence[row])
            for column, budget in enumerate(BUDGETS):
                packed = builder.build(Scores(values), budget, policy=policy)
                out[row, column] = np.mean([packed.tiers[i] == Tier.FULL for i in needed])
        return out

    def _builder(self, example: Example) -> ContextBuilder:
        name = example.conversation.id
        if name not in self._builders:
            self._builders[name] = ContextBuilder(counter=self._counter, renderer=TranscriptRenderer())
            self._builders[name].append(example.conversation.turns)
        return self._builders[name]

    def calibrate(self) -> dict[str, float]:
        """Fits scale and shift of the probability on validation data, chooses the policy (`policy_for`), and fits the
        thresholds of Eq. 2 and, where asked for, what a compressed form is worth.

        Platt scaling (1999) by Newton's method on the logits of all validation pairs.
        """
        logits = [self.logits(e) for e in self.validation]
        flat = torch.cat([z.flatten() for z in logits]).double()
        labels = torch.cat([torch.from_numpy(e.evidence).flatten() for e in self.validation]).double()
        scale, shift = fit_platt(flat, labels)
        self.model.config.calibration_scale, self.model.config.calibration_shift = scale, shift
        probabilities = torch.sigmoid(scale * flat + shift)
        found = calibration(probabilities.tolist(), labels.int().tolist(), bins=15, binning="mass")
        pairs = [(e, self.model.probability(z)) for e, z in zip(self.validation, logits, strict=True)]
        policies: tuple[PolicyName, ...] = ("score", "optimal")
        recall = {p: np.concatenate([self._recall(e, v, p) for e, v in pairs]).mean(axis=1) for p in policies}
        self.model.config.policy = policy_for(recall["score"], recall["optimal"])
        means = {f"erb_mean_{p}": float(recall[p].mean()) for p in policies}
        fitted = {"ece": found.ece, "scale": scale, "shift": shift} | means
        return fitted | self._calibrate_tiers() | self.heads.calibrate(self.model)

    def _calibrate_tiers(self) -> dict[str, float]:
        """Fits the model's `OrdinalThresholds` and, where asked for, `TierValues` (both of `core.tiers`)."""
        config, summarizer = self.model.config, HeuristicCompressor(self._counter)
        chats = [example.conversation for example in self.validation]
        values = TierValues()
        if self.config.model.tier_values == "fit":
            values = fit_tier_values(evidence_forms(chats, summarizer, self._counter, TranscriptRenderer()))
        config.compressed_slope, config.compressed_shift = values.slope, values.shift
        cases = [case for e in self.validation for case in self._cases(e, summarizer, values)]
        found = fit_thresholds(cases, THRESHOLD_TOKENS)
        tau = found.thresholds
        config.tau_level, config.tau_rate, config.tau_gap = tau.level, tau.rate, tau.gap
        learned = {"compressed_shift": values.shift, "tau_level": tau.level, "tau_rate": tau.rate, "tau_gap": tau.gap}
        slope = {} if values.slope is None else {"compressed_slope": values.slope}
        return learned | slope | {"tau_tokens": found.tokens, "tau_evidence": found.kept}

    def _cases(self, example: Example, summarizer: HeuristicCompressor, values: TierValues) -> list[Case]:
        """The questions over histories of several lengths, as Algorithm 1 sees them."""
        whole, cases = len(example.turn_texts), list[Case]()
        most = max(1, THRESHOLD_QUESTIONS // len(self.validation))
        for turns in (*(length for length in LENGTHS if length < whole), whole):
            part = beginning(example, turns, most)
            if part is None:
                continue
            builder = ContextBuilder(
                counter=self._counter, renderer=TranscriptRenderer(), summarizer=summarizer, tier_values=values
            )
            builder.append(part.conversation.turns)
            item_of = {turn: item for item, members in enumerate(builder.items) for turn in members}
            for row, probabilities in zip(part.evidence, self.probabilities(part).tolist(), strict=True):
                needed = {item_of[turn] for turn in np.flatnonzero(row).tolist()}
                cases.append(case_of(builder.problem(Scores(probabilities)), turns, needed))
        return cases

    def state_dict(self) -> dict[str, Any]:
        vectors = {e.conversation.id: (torch.from_numpy(e.vectors), torch.from_numpy(e.queries)) for e in self.train}
        return {"objective": self.objective.state_dict()} | ({"vectors": vectors} if self._encoder_trains else {})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.objective.load_state_dict(state["objective"])
        for example in self.train if self._encoder_trains else ():
            vectors, queries = state["vectors"][example.conversation.id]
            example.vectors, example.queries = vectors.numpy(), queries.numpy()


def policy_for(by_score: np.ndarray, optimal: np.ndarray) -> Literal["score", "optimal"]:
    """The knapsack, which is the best use of probabilities that hold, unless `score` is clearly better.

    Args:
        by_score, optimal: (Q,) recall of the validation questions under either policy. Clearly is by more than two
            standard errors of the paired difference; a smaller lead is mostly noise in which policy is chosen.
    """
    ahead = by_score - optimal
    error = float(ahead.std(ddof=1)) / math.sqrt(len(ahead)) if len(ahead) > 1 else math.inf
    return "score" if float(ahead.mean()) > 2 * error else "optimal"


def fresh_turns(example: Example, rows: list[int], most: int, rng: np.random.Generator) -> list[int]:
    """Turns worth encoding with gradients for the questions `rows`, in order, about `most` of them.

    Half is for evidence, shared out evenly, at least one turn a question. The rest are hard negatives: drawn from
    twice as many as are wanted, those that words and vectors together put first, since the very first are often
    answers that nobody labelled.
    """
    evidence = example.evidence[rows] > 0
    share = max(1, most // (2 * len(rows)))
    needed = {int(i) for row in evidence for i in rng.permutation(np.flatnonzero(row))[:share]}
    likeness = (standardise(example.queries[rows] @ example.vectors.T) + example.signals[rows, :, BM25]).max(0)
    others = np.flatnonzero(~evidence.any(0))
    wanted = max(0, most - len(needed))
    hardest = others[np.argsort(-likeness[others], kind="stable")][: 2 * wanted]
    return sorted(needed | {int(i) for i in rng.permutation(hardest)[:wanted]})


def fit_platt(logits: Tensor, labels: Tensor, iterations: int = 50) -> tuple[float, float]:
    """Scale and shift that minimise the cross-entropy of sigmoid(scale * z + shift), by damped Newton steps.

    Args:
        logits: (n,) float64.
        labels: (n,) 0/1 float64, both classes present.
    """
    weights = torch.tensor([1.0, 0.0], dtype=torch.float64)
    inputs = torch.stack([logits, torch.ones_like(logits)], dim=1)
    for _ in range(iterations):
        prob = torch.sigmoid(inputs @ weights)
        gradient = inputs.T @ (prob - labels)
        curvature = (inputs * (prob * (1 - prob)).clamp(min=1e-9)[:, None]).T @ inputs
        step = torch.linalg.solve(curvature + 1e-6 * torch.eye(2, dtype=torch.float64), gradient)
        weights = weights - step.clamp(-1, 1)
        if float(step.abs().max()) < 1e-9:
            break
    return float(weights[0]), float(weights[1])
