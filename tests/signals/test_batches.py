"""Texts to batches: windows, little padding, order kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from foveate.core.tokens import load_counter
from foveate.corpora import locomo
from foveate.signals.batches import Ids, Windows, encode_texts, length_batches, pad, padding_waste
from foveate.signals.lexical import Floats
from foveate.signals.vectors import turn_text

CLS, SEP = 1, 2
LETTERS = {letter: 4 + k for k, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}


def tokenizer(special: bool = True) -> Tokenizer:
    made = Tokenizer(WordLevel({"[PAD]": 0, "[CLS]": CLS, "[SEP]": SEP, "[UNK]": 3, **LETTERS}, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    if special:
        made.post_processor = TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)]
        )
    made.enable_truncation(4)
    made.enable_padding(length=9)
    return made


def test_every_window_has_the_special_tokens() -> None:
    split = Windows(tokenizer(), max_length=5).split(["a b", "a b c d e f g", ""])
    assert split[0] == [[CLS, 4, 5, SEP]]
    assert split[1] == [[CLS, 4, 5, 6, SEP], [CLS, 7, 8, 9, SEP], [CLS, 10, SEP]]
    assert split[2] == [[CLS, SEP]]


def test_a_tokenizer_without_special_tokens_fits_too() -> None:
    assert Windows(tokenizer(special=False), max_length=2).split(["a b c"]) == [[[4, 5], [6]]]


@given(st.lists(st.integers(0, 40), max_size=8), st.integers(3, 12))
def test_windows_keep_every_token_in_order(lengths: list[int], max_length: int) -> None:
    texts = [" ".join("abcdefghij"[i % 10] for i in range(n)) for n in lengths]
    for text, parts in zip(texts, Windows(tokenizer(), max_length).split(texts), strict=True):
        assert all(len(part) <= max_length for part in parts)
        assert [t for part in parts for t in part[1:-1]] == [LETTERS[letter] for letter in text.split()]


@given(st.lists(st.integers(1, 200), max_size=60), st.integers(1, 1000))
def test_batches_hold_every_item_once_within_their_tokens(lengths: list[int], tokens: int) -> None:
    groups = length_batches(lengths, tokens)
    assert sorted(i for g in groups for i in g) == list(range(len(lengths)))
    assert all(len(g) == 1 or len(g) * max(lengths[i] for i in g) <= tokens for g in groups)


def test_padding_waste_by_hand() -> None:
    assert padding_waste([2, 4, 3], [[0, 1], [2]]) == pytest.approx(1 - 9 / 11)
    assert padding_waste([5, 5], [[0, 1]]) == 0
    assert padding_waste([], []) == 0


def test_little_is_wasted_on_lengths_of_a_long_chat() -> None:
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(3.7, 0.4, 600).astype(int), 12, 128).tolist()
    assert padding_waste(lengths, length_batches(lengths, 4096)) < 0.10
    in_order = [list(range(a, min(a + 32, 600))) for a in range(0, 600, 32)]
    assert padding_waste(lengths, in_order) > 0.3


def test_little_is_wasted_on_locomo(data_root: Path) -> None:
    counter = load_counter("minilm")
    for conversation in locomo.load(data_root)[:3]:
        lengths = [counter.count(turn_text(t)) + 2 for t in conversation.turns]
        assert padding_waste(lengths, length_batches(lengths, 4096)) < 0.10


def test_pad_marks_what_is_real() -> None:
    ids, mask = pad([[7], [8, 9, 10]])
    assert ids.tolist() == [[7, 0, 0], [8, 9, 10]]
    assert mask.tolist() == [[1, 0, 0], [1, 1, 1]]


def one_hot(ids: Ids, mask: Ids) -> Floats:
    """Stands for an encoder: the first word's own unit vector."""
    return np.eye(32, dtype=np.float32)[ids[:, 1]] * (mask[:, :1] > 0)


@pytest.mark.parametrize("tokens_per_batch", [1, 20, 4096])
def test_vectors_come_back_in_the_order_of_the_texts(tokens_per_batch: int) -> None:
    rng = np.random.default_rng(1)
    letters = [chr(ord("a") + int(k)) for k in rng.integers(0, 26, 50)]
    texts = [" ".join([letter] * int(n)) for letter, n in zip(letters, rng.integers(1, 5, 50), strict=True)]
    found = encode_texts(texts, Windows(tokenizer(), 16), one_hot, 32, tokens_per_batch)
    assert found.argmax(1).tolist() == [LETTERS[letter] for letter in letters]
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-6)


def test_a_long_text_is_the_mean_of_its_windows_weighted_by_length() -> None:
    found = encode_texts(["a a a b"], Windows(tokenizer(), 5), one_hot, 32)[0]
    expected = np.zeros(32)
    expected[LETTERS["a"]], expected[LETTERS["b"]] = 5, 3
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected), rtol=1e-6)


def test_no_texts_no_vectors() -> None:
    assert encode_texts([], Windows(tokenizer(), 8), one_hot, 32).shape == (0, 32)


def test_an_unpaired_surrogate_is_read_as_a_replacement_character() -> None:
    windows = Windows(tokenizer(), 8)
    assert windows.split(["a \ud83d b"]) == windows.split(["a \ufffd b"])
