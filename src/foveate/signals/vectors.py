"""The learned scorer as serving sees it: cached turn vectors, cheap signals, one small network a question.

A backend (torch in `learned.scorer`, ONNX in `serving.onnx_scorer`) offers three functions; everything around them, the
caching, the windows, the order, is here and is therefore the same in evaluation and in production. No torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, overload

from foveate.core.protocols import PolicyName, Scores
from foveate.core.schema import Query, Turn
from foveate.core.tiers import Importance, OrdinalThresholds, Thresholds, TierValues
from foveate.signals.features import SIGNAL_NAMES, SignalIndex
from foveate.signals.lexical import Floats, Growing


class VectorModel(Protocol):
    """What a backend offers.

    Attributes:
        name: for traces and result rows.
        dim: length of a turn's vector.
        width: length of a mixed vector.
        reach: turns on each side that a mixed vector depends on.
        policy: the packing policy that did best on the model's validation data.
        tier_values: what a compressed form is worth, as fitted on that data.
        thresholds: tau(t) of Eq. 2, as fitted on that data; None where they were not.
    """

    name: str
    dim: int
    width: int
    reach: int
    policy: PolicyName
    tier_values: TierValues
    thresholds: OrdinalThresholds | None

    def encode(self, texts: Sequence[str]) -> Floats:
        """(n, dim) unit vectors."""
        ...

    def mix(self, vectors: Floats) -> Floats:
        """(n, dim) -> (n, width): each turn in the light of its neighbours, whatever the question."""
        ...

    def head(self, vectors: Floats, mixed: Floats, query: Floats, signals: Floats) -> Floats:
        """(n, dim), (n, width), (dim,), (n, s) -> (n,) probability that each turn is needed."""
        ...


class VectorImportance(Protocol):
    """What classifies turns whose vectors are at hand."""

    def __call__(self, vectors: Floats, turns: Sequence[Turn]) -> Sequence[Importance]:
        """(n, dim) vectors of n turns, and the turns -> their n classes."""
        ...


class VectorContradiction(Protocol):
    """P(contradiction) of Eq. 5 where the vectors are at hand."""

    def __call__(self, vectors: Floats, reply: Floats) -> Floats:
        """(n, dim) vectors of n turns and (dim,) of the last reply -> (n,) probabilities."""
        ...


def turn_text(turn: Turn) -> str:
    """What the encoder reads of a turn: its date, who speaks, and the words."""
    return " ".join(filter(None, (turn.date, f"{turn.speaker or turn.role}:", turn.text)))


class Column(Sequence[float]):
    """One signal of all turns, read as plain numbers without being copied."""

    def __init__(self, values: Floats) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, index: int) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> Column: ...
    def __getitem__(self, index: int | slice) -> float | Column:
        return Column(self._values[index]) if isinstance(index, slice) else float(self._values[index])


class VectorScorer:
    """A calibrated scorer over cached turn vectors. Source: foveate's own model (docs/architecture.md).

    Args:
        model: the backend.
        importance: AFM's class of each turn, asked for once; None leaves it to whoever packs.
        contradiction: whether each turn contradicts the last reply, given as the signal of that name; None gives none.
    """

    calibrated = True

    def __init__(
        self,
        model: VectorModel,
        importance: VectorImportance | None = None,
        contradiction: VectorContradiction | None = None,
    ) -> None:
        self.model = model
        self.importance, self.contradiction = importance, contradiction

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def policy(self) -> PolicyName:
        return self.model.policy

    @property
    def tier_values(self) -> TierValues:
        return self.model.tier_values

    def thresholds_at(self, n: int) -> Thresholds:
        """tau_s and tau_l for a history of n turns (Eq. 2); AFM's where none were learned."""
        return Thresholds() if self.model.thresholds is None else self.model.thresholds.at(n)

    def open(self) -> VectorIndex:
        """A fresh index for one conversation."""
        return VectorIndex(self.model, self.importance, self.contradiction)


class VectorIndex:
    """Vectors and signals of one growing conversation. Each turn is encoded once; a new one re-mixes its
    neighbours only.
    """

    def __init__(
        self,
        model: VectorModel,
        importance: VectorImportance | None = None,
        contradiction: VectorContradiction | None = None,
    ) -> None:
        self._model = model
        self._importance, self._contradiction = importance, contradiction
        self._classes: list[Importance] = []
        self._signals = SignalIndex()
        self._vectors = Growing(model.dim)
        self._mixed = Growing(model.width)
        self._queries: dict[str, Floats] = {}
        self._waiting: list[Turn] = []

    def append(self, turns: Sequence[Turn]) -> None:
        """Take further turns; they are encoded together, on first use."""
        self._signals.append(turns)
        self._waiting.extend(turns)

    def score(self, query: Query) -> Scores:
        """The probability that each turn is needed to answer, its signals, and its class where one is asked for."""
        self._encode_waiting()
        signals = self._signals.signals(query)
        if not len(self._vectors):
            return Scores(score=[])
        vector = self._query_vector(query.text)
        prob = self._model.head(self._vectors.view, self._mixed.view, vector, signals)
        named = {name: Column(signals[:, k]) for k, name in enumerate(SIGNAL_NAMES)}
        classes = None if self._importance is None else list(self._classes)
        contradiction = self._contradictions(query.last_reply)
        signals_by_name = {"cosine": Column(self._vectors.view @ vector), **contradiction, **named}
        return Scores(score=prob.tolist(), importance=classes, signals=signals_by_name)

    def _contradictions(self, reply: str | None) -> dict[str, Column]:
        """The signal of Eq. 5 where there is a reply and somebody to ask."""
        if self._contradiction is None or not reply:
            return {}
        vector = self._query_vector(f"assistant: {reply}")
        return {"contradiction": Column(self._contradiction(self._vectors.view, vector))}

    def remember(self, texts: Sequence[str]) -> None:
        """Encode many questions at once, where they are known beforehand."""
        for text, vector in zip(texts, self._model.encode(texts), strict=True):
            self._queries[text] = vector

    def _query_vector(self, text: str) -> Floats:
        if text not in self._queries:
            return self._model.encode([text])[0]
        return self._queries[text]

    def _encode_waiting(self) -> None:
        if not self._waiting:
            return
        old, reach = len(self._vectors), self._model.reach
        vectors = self._model.encode([turn_text(t) for t in self._waiting])
        self._vectors.extend(vectors)
        if self._importance is not None:
            self._classes.extend(self._importance(vectors, self._waiting))
        self._waiting = []
        stale = max(0, old - reach)
        seen_from = max(0, stale - reach)
        mixed = self._model.mix(self._vectors.view[seen_from:])[stale - seen_from :]
        self._mixed.extend(mixed[old - stale :])
        self._mixed.replace(stale, mixed[: old - stale])
