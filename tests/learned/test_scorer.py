"""A saved model as a scorer, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import encoder, model, saved, tokenizer

from foveate.core.errors import CheckpointError, FoveateError
from foveate.core.schema import Query, Turn
from foveate.core.tokens import minilm_folder
from foveate.learned.encoder import load_encoder, load_tokenizer, pool
from foveate.learned.scorer import TorchVectorModel, load_model, load_scorer
from foveate.signals.batches import Windows, encode_texts

TURNS = [
    Turn(str(i), "user", text, speaker=("Ann", "Bob")[i % 2])
    for i, text in enumerate(
        ["hi Bob", "hi how are you ?", "fine .", "the lake is cold", "a dog barks", "a a a a a a a a"]
    )
]
QUESTION = Query("how cold is the lake ?")


@pytest.mark.parametrize("inner", ["model", "."])
def test_a_run_folder_and_a_model_folder_both_load(tmp_path: Path, inner: str) -> None:
    saved(tmp_path / inner, model(policy="optimal"))
    scorer = load_scorer(tmp_path)
    assert (scorer.name, scorer.policy) == (tmp_path.name, "optimal")
    assert load_scorer(str(tmp_path), name="mine").name == "mine"


def test_a_loaded_scorer_says_what_the_model_said(tmp_path: Path) -> None:
    made = model()
    loaded = load_scorer(saved(tmp_path, made)).open()
    loaded.append(TURNS)
    direct = TorchVectorModel(made, tokenizer(), "direct")
    vectors = direct.encode(["Ann: hi Bob"])
    assert vectors.shape == (1, direct.dim)
    score = np.array(loaded.score(QUESTION).score)
    assert score.shape == (len(TURNS),)
    assert bool(((score > 0) & (score < 1)).all())
    assert loaded.score(QUESTION).score == loaded.score(QUESTION).score


def test_growth_equals_a_batch(tmp_path: Path) -> None:
    scorer = load_scorer(saved(tmp_path, model()))
    growing, whole = scorer.open(), scorer.open()
    for turn in TURNS:
        growing.append([turn])
        growing.score(QUESTION)
    whole.append(TURNS)
    np.testing.assert_allclose(growing.score(QUESTION).score, whole.score(QUESTION).score, atol=1e-6)


def test_calibration_moves_the_probabilities_and_not_their_order(tmp_path: Path) -> None:
    made = model()
    plain = load_scorer(saved(tmp_path / "a", made)).open()
    made.config.calibration_scale, made.config.calibration_shift = 2.0, -1.0
    moved = load_scorer(saved(tmp_path / "b", made)).open()
    for index in (plain, moved):
        index.append(TURNS)
    before, after = np.array(plain.score(QUESTION).score), np.array(moved.score(QUESTION).score)
    np.testing.assert_allclose(np.log(after / (1 - after)), 2 * np.log(before / (1 - before)) - 1, atol=1e-4)


def refused(folder: Path, words: str) -> None:
    with pytest.raises(CheckpointError, match=words) as caught:
        load_scorer(folder)
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, "holds no finished model")
    refused(tmp_path / "nowhere", "nowhere holds no finished model")
    model().save_pretrained(tmp_path)
    refused(tmp_path, "holds no finished model")


def test_other_signals_are_refused(tmp_path: Path) -> None:
    saved(tmp_path, model())
    config = json.loads((tmp_path / "config.json").read_text())
    config["signal_names"][0] = "tfidf"
    (tmp_path / "config.json").write_text(json.dumps(config))
    refused(tmp_path, "other signals")


def test_another_kind_of_model_is_refused(tmp_path: Path) -> None:
    encoder().save_pretrained(tmp_path)
    tokenizer().save(str(tmp_path / "tokenizer.json"))
    refused(tmp_path, "holds a BertModel, not a foveate model")


def test_an_unknown_policy_is_refused(tmp_path: Path) -> None:
    refused(saved(tmp_path, model(policy="greedy")), "policy 'greedy'")


def test_the_model_comes_without_dropout(tmp_path: Path) -> None:
    loaded, words = load_model(saved(tmp_path, model()))
    assert not loaded.training
    assert words.encode("hi Bob").ids == tokenizer().encode("hi Bob").ids


def test_the_packaged_encoder_tells_topics_apart() -> None:
    try:
        minilm_folder()
    except FoveateError as error:
        pytest.skip(str(error))
    pretrained, windows = load_encoder("minilm").eval(), Windows(load_tokenizer("minilm"), 16)

    @torch.inference_mode()
    def run(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        ids_, mask_ = torch.from_numpy(ids), torch.from_numpy(mask)
        return pool(pretrained(input_ids=ids_, attention_mask=mask_).last_hidden_state, mask_).numpy()

    texts = ["A dog runs in the park. " * 8, "A puppy is playing outside.", "The invoice is due on Friday."]
    found = encode_texts(texts, windows, run, 384)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)
    assert found[0] @ found[1] > found[0] @ found[2] + 0.2


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path, model()) / name
    path.write_bytes(path.read_bytes()[:40])
    refused(tmp_path, f"{name} cannot be read")
