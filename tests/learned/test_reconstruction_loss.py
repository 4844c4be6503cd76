"""Expected BLEU: sacrebleu's value at gates of 0 and 1, and a gradient between them."""

from __future__ import annotations

import itertools
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from torch import Tensor

from foveate.learned.objective.reconstruction import BleuInstance, reconstruction_loss, self_critical_loss

SENTENCE_BLEU = BLEU(effective_order=True)
WORDS = "the cat sat on a mat . , I 3.5 1,000 don't No! (dog) e.g. 文字".split()
TEXTS = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
TURNS = st.lists(st.lists(TEXTS, min_size=1, max_size=3), min_size=1, max_size=9)


def chosen(options: list[list[str]], choice: list[int], width: int) -> Tensor:
    prob = torch.zeros(len(options), width + 1, dtype=torch.float64)
    prob[range(len(options)), choice] = 1
    return prob


@given(TURNS, st.randoms(use_true_random=False))
def test_at_gates_of_0_and_1_it_is_sacrebleu(options: list[list[str]], draw: random.Random) -> None:
    choice = [draw.randrange(len(texts) + 1) for texts in options]
    packed = [texts[k - 1] for texts, k in zip(options, choice, strict=True) if k and texts[k - 1]]
    whole = [texts[0] for texts in options if texts[0]]
    expected = SENTENCE_BLEU.sentence_score(" ".join(packed), [" ".join(whole)])
    instance = BleuInstance(options)
    found = instance.expected(chosen(options, choice, instance.length.shape[1]))
    assert 100 * float(found.bleu) == pytest.approx(expected.score, abs=1e-8)
    if packed and whole:
        assert float(found.ceiling) == pytest.approx(expected.bp, abs=1e-9)
    assert float(reconstruction_loss(instance, chosen(options, choice, instance.length.shape[1]))) == pytest.approx(
        1 - expected.score / 100, abs=1e-9
    )


OPTIONS = [
    ["the cat sat on the mat .", "cat sat ."],
    ["I do not know , the dog is on the mat"],
    ["yes"],
    ["the dog sat on the cat , 3.5 times", "dog sat , 3.5"],
]


def test_gradcheck_between_the_gates() -> None:
    instance = BleuInstance(OPTIONS)
    logits = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3), requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: reconstruction_loss(instance, torch.softmax(z, -1)), (logits,))


def test_keeping_more_is_never_worse_for_the_loss() -> None:
    """BLEU against the whole conversation is a length meter: that is why it is one part of four."""
    instance = BleuInstance([[texts[0]] for texts in OPTIONS])
    kept = [torch.full((4, 2), 0.5, dtype=torch.float64), torch.tensor([[0.1, 0.9]] * 4, dtype=torch.float64)]
    half, most = (float(reconstruction_loss(instance, prob)) for prob in kept)
    assert most < half


def test_no_text_at_all_is_a_loss_of_one() -> None:
    instance = BleuInstance([["a b c"], [""]])
    assert float(reconstruction_loss(instance, torch.tensor([[1.0, 0.0], [0.0, 1.0]]))) == 1
    assert float(reconstruction_loss(BleuInstance([]), torch.zeros(0, 1))) == 1


def test_self_critical_gradients_average_to_that_of_the_mean_bleu() -> None:
    """Over all eight renderings of three turns, weighted by their probability, where the mean can be written out."""
    texts = [options[0] for options in OPTIONS[:3]]
    instance = BleuInstance([[text] for text in texts])
    logits = torch.tensor([0.3, -0.8, 1.1], dtype=torch.float64, requires_grad=True)
    keep = torch.sigmoid(logits)
    prob = torch.stack([1 - keep, keep], -1)
    mean = keep.new_zeros(())
    found = torch.zeros(3, dtype=torch.float64)
    for kept in itertools.product([0, 1], repeat=3):
        weight = prob[range(3), kept].prod()
        score = SENTENCE_BLEU.sentence_score(" ".join(itertools.compress(texts, kept)), [" ".join(texts)]).score / 100
        mean = mean + weight * (1 - score)
        inside = torch.where(torch.tensor(kept) == 0, prob[:, 0] / 2, (1 + prob[:, 0]) / 2).detach()
        loss = self_critical_loss(instance, prob, inside)
        assert float(loss.detach()) == pytest.approx(1 - score, abs=1e-9)
        (gradient,) = torch.autograd.grad(loss, logits, retain_graph=True)
        found += float(weight.detach()) * gradient
    (expected,) = torch.autograd.grad(mean, logits)
    assert float(expected.abs().max()) > 0.01
    torch.testing.assert_close(found, expected)
