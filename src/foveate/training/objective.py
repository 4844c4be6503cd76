"""L of Eq. 9 for one batch: task + eta1 coherence + eta2 token + eta3 reconstruction, all through one packing.

What a part is stands in `learned.objective`; here are the weights, what each part is given, and the multiplier of the
dynamic budget. A part whose weight is 0 is not computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from foveate.config.schema import TrainConfig
from foveate.learned.budget import allowance
from foveate.learned.objective.coherence import contradiction_loss, support_loss
from foveate.learned.objective.reconstruction import BleuInstance, self_critical_loss
from foveate.learned.objective.task import binary_loss, listwise_loss, packing_loss
from foveate.learned.objective.token import DualMultiplier, ratio_loss
from foveate.learned.selection import Packed, packed_turns


class Judged(NamedTuple):
    """What the NLI head says of turns and the response to each question, as constants.

    Attributes:
        rows: (R,) the questions that have a response.
        contradiction, entailment: (R, N) probabilities.
    """

    rows: Tensor
    contradiction: Tensor
    entailment: Tensor


class Objective:
    """The weighted sum of the parts, and the multiplier that dual ascent moves.

    Args:
        config: the run's configuration; `objective`, `budget` and `seed` are read.
    """

    def __init__(self, config: TrainConfig) -> None:
        self.config, self.budget, self.seed = config.objective, config.budget, config.seed
        self.importance, self.reader = config.importance.weight, config.reader.weight
        self.evidence = 0.0 if config.objective.task == "reader" else 1.0
        self.dual = DualMultiplier(rate=config.budget.rate)

    def parts(
        self,
        logits: Tensor,
        evidence: Tensor,
        cost: Tensor,
        texts: Sequence[str],
        judged: Judged | None,
        beside: Mapping[str, Tensor],
        step: int,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The total and each part without its weight, summed over the questions.

        Args:
            logits: (Q, N).
            evidence: (Q, N) 0/1.
            cost: (N,) tokens of the turns.
            texts: of the turns, for L_rec.
            judged: for L_coh; None leaves its terms over turns out.
            beside: losses taken elsewhere: "nli", a term of L_coh, "importance", and "reader", a term of L_task.
            step: seeds what is drawn.
        """
        weights = self.config
        parts = {"listwise": listwise_loss(logits, evidence).sum(), "binary": binary_loss(logits, evidence).sum()}
        total = self.evidence * (weights.listwise * parts["listwise"] + weights.binary * parts["binary"])
        own = {"nli": weights.eta1, "importance": self.importance, "reader": self.reader}
        total = total + sum(own[name] * loss for name, loss in beside.items())
        parts |= beside
        if not weights.packs:
            return total, parts
        rng = np.random.default_rng((self.seed, step))
        most = weights.budgets[int(rng.integers(len(weights.budgets)))]
        packed = self.pack(logits, cost, most)
        shared = {"packing": self.evidence * weights.packing, "contradiction": weights.eta1, "support": weights.eta1}
        shared |= {"token": weights.eta2, "reconstruction": weights.eta3}
        found = {"packing": packing_loss(packed.retained, evidence).sum()}
        if weights.eta1 and judged is not None:
            kept = packed.retained[judged.rows]
            found["contradiction"] = contradiction_loss(kept, judged.contradiction).sum()
            found["support"] = support_loss(kept, judged.entailment).sum()
        if weights.eta2:
            found["token"] = ratio_loss(packed.cost, float(cost.sum())).sum()
        if weights.eta3:
            found["reconstruction"] = len(logits) * self._reconstruction(packed, logits, evidence, texts, rng)
        spent = {"spent": (packed.cost / most).sum()}
        return total + sum(shared[name] * part for name, part in found.items()), parts | found | spent

    def pack(self, logits: Tensor, cost: Tensor, most: float) -> Packed:
        """The relaxed packing of (Q, N) logits under the budget form and the multiplier."""
        temperature = self.config.temperature
        given = allowance(self.budget.form, self.dual.value, logits, cost, most, self.budget.least, temperature)
        return packed_turns(logits, cost, given.budget, temperature, price=given.price)

    def _reconstruction(
        self, packed: Packed, logits: Tensor, evidence: Tensor, texts: Sequence[str], rng: np.random.Generator
    ) -> Tensor:
        row = int(rng.integers(len(logits)))
        best = logits[row].detach() + 1e3 * evidence[row]
        turns = best.topk(min(self.config.candidates, len(best))).indices.sort().values
        chosen: list[int] = turns.tolist()
        instance = BleuInstance([[texts[i]] for i in chosen])
        prob = packed.prob[row, turns].double()
        if self.config.reconstruction == "self_critical":
            drawn = torch.from_numpy(rng.random(len(chosen))).to(prob.device)
            return self_critical_loss(instance, prob, drawn).to(logits.dtype)
        found = instance.expected(prob)
        return (1 - (found.bleu if self.config.reconstruction == "bleu" else found.precision)).to(logits.dtype)

    def after_step(self, means: Mapping[str, float]) -> None:
        """One step of dual ascent on the mean share of the budget that was spent."""
        if self.budget.form != "fixed" and "spent" in means:
            self.dual.ascend(means["spent"], self.budget.target)

    def state_dict(self) -> dict[str, Any]:
        return {"multiplier": self.dual.value}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.dual.value = float(state["multiplier"])
