"""L_rec of Eq. 8, 1 - BLEU(D, D^), over soft gates: D is the whole conversation, D^ its packed rendering.

Every n-gram count of D^ is replaced by its expectation under the selection's probabilities, turns taken as independent:
an n-gram inside one option counts with that option's probability; one that runs over the seam of retained turns counts
with the probability that those turns are retained and everything between them is dropped. With probabilities of 0 and 1
these are the counts themselves, and the value is sacrebleu's sentence BLEU (13a tokens, exponential smoothing,
effective order) of D^ against D.

Sources: Eq. 8 of the adaptive compression paper; BLEU, Papineni et al. (2002); sacrebleu, Post (2018); self-critical
training, Rennie et al. (2017).

Shapes:  N turns, K options of a turn (option 0 is DROP: no text).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from torch import Tensor
from torch.nn.functional import one_hot

ORDERS = 4

Tokens = tuple[str, ...]
Node = tuple[int, int]
"""(turn, option)"""


class ExpectedBleu(NamedTuple):
    """BLEU of expected counts, each 0 to 1.

    Attributes:
        bleu: with the brevity penalty.
        precision: BLEU/BP, the geometric mean of the precisions.
        ceiling: exp(1 - 1/r) for the length ratio r < 1, the most that any extract of this length can reach; else 1.
    """

    bleu: Tensor
    precision: Tensor
    ceiling: Tensor


@dataclass(frozen=True)
class _Order:
    """Expected counts of one order: which products of probabilities add to which n-gram of the reference.

    Attributes:
        limit: (G,) counts in the reference.
        terms: by length of the chain: (C, m) turns, (C, m) options, (C,) n-gram, (C,) multiplicity.
    """

    limit: Tensor
    terms: list[tuple[Tensor, Tensor, Tensor, Tensor]]


class BleuInstance:
    """The n-grams of one conversation, indexed once; `expected` is then differentiable in the probabilities.

    Args:
        options: for each turn the texts of its options without DROP; the first is FULL.
    """

    def __init__(self, options: Sequence[Sequence[str]]) -> None:
        tokenize = Tokenizer13a()
        self._tokens: list[list[Tokens]] = [[tuple(tokenize(text).split()) for text in texts] for texts in options]
        width = max((len(texts) for texts in self._tokens), default=0)
        lengths = [[len(t) for t in texts] + [0] * (width - len(texts)) for texts in self._tokens]
        self.length = torch.tensor(lengths, dtype=torch.float64).reshape(len(options), width)
        reference = [token for texts in self._tokens for token in texts[0]]
        self.reference_length = len(reference)
        counts = [Counter(zip(*(reference[s:] for s in range(n)), strict=False)) for n in range(1, ORDERS + 1)]
        self._beginnings = self._by_token_before(counts[1])
        self._orders = [_index(n, counts[n - 1], list(self._chains(n, counts))) for n in range(1, ORDERS + 1)]

    def _chains(self, n: int, counts: Sequence[Counter[Tokens]]) -> Iterator[tuple[Tokens, tuple[Node, ...]]]:
        """Each n-gram of the reference that D^ can hold, with the options whose texts it runs over."""
        known = counts[n - 1]
        for turn, texts in enumerate(self._tokens):
            for option, tokens in enumerate(texts, start=1):
                node = ((turn, option),)
                yield from (
                    (gram, node) for gram in zip(*(tokens[s:] for s in range(n)), strict=False) if gram in known
                )
                for kept in range(1, min(n, len(tokens) + 1)):
                    yield from self._over_seams(tokens[len(tokens) - kept :], node, n, counts)

    def _over_seams(
        self, start: Tokens, nodes: tuple[Node, ...], n: int, counts: Sequence[Counter[Tokens]]
    ) -> Iterator[tuple[Tokens, tuple[Node, ...]]]:
        if start not in counts[len(start) - 1]:
            return
        for turn, option, tokens in self._beginnings.get(start[-1], ()):
            gram = start + tokens[: n - len(start)]
            if turn <= nodes[-1][0] or gram not in counts[len(gram) - 1]:
                continue
            if len(gram) == n:
                yield gram, (*nodes, (turn, option))
            else:
                yield from self._over_seams(gram, (*nodes, (turn, option)), n, counts)

    def _by_token_before(self, bigrams: Iterable[Tokens]) -> dict[str, list[tuple[int, int, Tokens]]]:
        """For each token, the options, in order, that begin with a token that follows it in the reference."""
        before: dict[str, list[str]] = defaultdict(list)
        for first, second in bigrams:
            before[second].append(first)
        found: dict[str, list[tuple[int, int, Tokens]]] = defaultdict(list)
        for turn, texts in enumerate(self._tokens):
            for option, tokens in enumerate(texts, start=1):
                for token in before[tokens[0]] if tokens else ():
                    found[token].append((turn, option, tokens))
        return found

    def expected(self, prob: Tensor) -> ExpectedBleu:
        """BLEU of D^ against D under the options' probabilities.

        Args:
            prob: (N, K) probabilities of the options, DROP first; each row sums to 1.
        """
        length = (prob[:, 1:] * self.length.to(prob)).sum()
        logs: list[Tensor] = []
        smoothing = 1.0
        matched = False
        for n, order in enumerate(self._orders, start=1):
            total = length - (n - 1)
            if float(total.detach()) <= 1e-6:
                break
            correct = self._correct(order, prob)
            if float(correct.detach()) > 1e-9:
                matched = True
                logs.append((correct / total).clamp(max=1.0).log())
            else:
                smoothing *= 2
                logs.append(-(smoothing * total).log())
        ratio = length / max(1, self.reference_length)
        ceiling = (1 - 1 / ratio.clamp(min=1e-6)).clamp(max=0.0).exp()
        if not matched:
            return ExpectedBleu(0 * length, 0 * length, ceiling)
        precision = torch.stack(logs).mean().exp()
        return ExpectedBleu(ceiling * precision, precision, ceiling)

    def _correct(self, order: _Order, prob: Tensor) -> Tensor:
        silent = prob[:, 0] + (prob[:, 1:] * (self.length == 0).to(prob)).sum(1)
        dropped = torch.cat([prob.new_zeros(1), silent.clamp(min=1e-30).log().cumsum(0)])
        found = prob.new_zeros(len(order.limit))
        for turns, options, gram, times in order.terms:
            term = prob[turns, options].prod(1) * times.to(prob)
            if turns.shape[1] > 1:
                term = term * (dropped[turns[:, 1:]] - dropped[turns[:, :-1] + 1]).sum(1).exp()
            found = found.index_add(0, gram, term)
        return torch.minimum(found, order.limit.to(prob)).sum()


def reconstruction_loss(instance: BleuInstance, prob: Tensor) -> Tensor:
    """1 - expected BLEU (Eq. 8), a scalar in [0, 1]; `prob` as in `BleuInstance.expected`."""
    return 1 - instance.expected(prob).bleu


def self_critical_loss(instance: BleuInstance, prob: Tensor, drawn: Tensor) -> Tensor:
    """1 - sacrebleu of a drawn rendering D^, a scalar in [0, 1], whose gradient is that of its mean over drawings.

    The gradient is REINFORCE's, -(BLEU(drawn) - BLEU(greedy)) grad log P(drawn): unbiased, where that of `expected` is
    exact for expected counts but not for the expectation of BLEU.

    Args:
        prob: (N, K) as in `BleuInstance.expected`.
        drawn: (N,) uniform in [0, 1); picks each turn's option by its cumulative probability.
    """
    last = prob.shape[1] - 1
    option = (drawn[:, None] >= prob.detach().cumsum(1)).sum(1).clamp(max=last)
    reward, greedy = (
        instance.expected(one_hot(which, last + 1).to(prob)).bleu for which in (option, prob.detach().argmax(1))
    )
    log_prob = prob.gather(1, option[:, None]).clamp(min=1e-12).log().sum()
    surrogate = (greedy - reward) * log_prob
    return 1 - reward + surrogate - surrogate.detach()


def _index(n: int, counts: Counter[Tokens], chains: Sequence[tuple[Tokens, tuple[Node, ...]]]) -> _Order:
    place = {gram: k for k, gram in enumerate(counts)}
    by_length: dict[int, Counter[tuple[Tokens, tuple[Node, ...]]]] = defaultdict(Counter)
    for chain in chains:
        by_length[len(chain[1])][chain] += 1
    terms: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
    for _, found in sorted(by_length.items()):
        nodes = torch.tensor([chain for _, chain in found], dtype=torch.long)
        gram = torch.tensor([place[g] for g, _ in found], dtype=torch.long)
        terms.append((nodes[..., 0], nodes[..., 1], gram, torch.tensor(list(found.values()), dtype=torch.float64)))
    return _Order(torch.tensor(list(counts.values()), dtype=torch.float64), terms)
