"""The NLI stage: batches, runs of both forms, resuming, and vectors for the evidence stage."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from test_run import assert_same_run
from tiny_runs import silent, tiny_config
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from foveate.config.schema import EncoderConfig, NliConfig, OptimConfig, RunConfig, TrainConfig, Tune
from foveate.core.errors import ConfigError
from foveate.corpora.nli import Label, Pair
from foveate.learned.contradiction import BiEncoderNli, CrossEncoderNli, load_nli
from foveate.learned.encoder import load_tokenizer
from foveate.learned.model import FoveateModel
from foveate.learned.nli import NLI_LABELS
from foveate.learned.scorer import load_model, load_scorer
from foveate.training import nli
from foveate.training.nli import NliBatches, NliStage, load_pairs, measured, readings, texts_of
from foveate.training.run import train
from foveate.training.stage import Batch, LossParts

THINGS = "cat dog lake house tree boat bird road hill fish".split()


def pairs(count: int) -> list[Pair]:
    """Same thing: entailment; "not": contradiction; another thing: neutral."""
    made: list[Pair] = []
    for n in range(count):
        thing, other = THINGS[n % 10], THINGS[(n + 1 + n // 10) % 10]
        forms: dict[Label, str] = {
            "entailment": f"there is a {thing}",
            "contradiction": f"there is not a {thing}",
            "neutral": f"there is a {other} {n}",
        }
        label = list(forms)[n % 3]
        made.append(Pair(f"i have a {thing} {n}", forms[label], label, "snli:dev"))
    return made


@pytest.fixture(autouse=True)
def own_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nli, "load_pairs", lambda config: (pairs(60), pairs(90)[60:]))


def config(shared: Path, out: Path, form: str, tune: Tune) -> TrainConfig:
    base = tiny_config(shared, out)
    encoder = EncoderConfig(name=str(shared / "encoder"), tune=tune, top_layers=1, max_length=32, lora_rank=2)
    return replace(
        base,
        stage="nli",
        model=replace(base.model, encoder=encoder),
        nli=NliConfig(form=form, pairs=16, width=16, max_length=40, unrelated=0.0),  # type: ignore[arg-type]
        optim=OptimConfig(epochs=3, warmup_steps=2, lr=5e-3, encoder_lr=1e-3),
        run=RunConfig(evaluate_every=1, cache=str(shared / "cache"), keep=2),
    )


FORMS: list[tuple[str, Tune]] = [("bi", "frozen"), ("cross", "full"), ("cross", "lora")]


@pytest.mark.parametrize(("form", "tune"), FORMS)
def test_a_run_leaves_a_calibrated_model_and_resumes_exactly(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, tune: Tune
) -> None:
    whole = config(shared, tmp_path / "whole", form, tune)
    train(whole, silent)
    result = json.loads((tmp_path / "whole" / "result.json").read_text())
    assert 0.05 <= result["temperature"] <= 20
    assert {"score", "f1", "auroc", "ece"} <= result["metrics"].keys()
    assert {"calibrated_score", "calibrated_ece"} <= result.keys()

    original, waiting = NliStage.loss, [KeyboardInterrupt()]

    def loss(self: NliStage, model: torch.nn.Module, batch: Batch, step: int) -> LossParts:
        parts = original(self, model, batch, step)
        if step == 6 and waiting:
            raise waiting.pop()
        return parts

    with monkeypatch.context() as patch:
        patch.setattr(NliStage, "loss", loss)
        with pytest.raises(KeyboardInterrupt):
            train(replace(whole, out=str(tmp_path / "parts")), silent)
        said: list[str] = []
        train(replace(whole, out=str(tmp_path / "parts")), said.append)
    assert any(line.startswith("resumed at step 6 of") for line in said)
    assert_same_run(tmp_path / "whole", tmp_path / "parts")

    loaded = load_nli(str(tmp_path / "whole"))
    assert isinstance(loaded, BiEncoderNli if form == "bi" else CrossEncoderNli)
    found = loaded.judge(["i have a cat"], ["there is not a cat"]).probabilities
    assert found.sum() == pytest.approx(1.0, abs=1e-5)


def test_a_cross_encoder_learns_and_is_a_plain_classifier(shared: Path, tmp_path: Path) -> None:
    run = config(shared, tmp_path / "run", "cross", "full")
    run = replace(run, optim=replace(run.optim, epochs=16, encoder_lr=3e-3), nli=replace(run.nli, turn_share=0.0))
    train(run, silent)
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["metrics"]["auroc"] > 0.9
    folder = tmp_path / "run" / "model"
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    assert [model.config.id2label[k] for k in range(3)] == list(NLI_LABELS)
    assert model.config.nli_temperature == pytest.approx(result["temperature"])
    assert model.config.trained_on == [f"nli:{name}" for name in sorted(run.nli.sources)]
    inputs = AutoTokenizer.from_pretrained(folder)("i have a cat", "there is not a cat", return_tensors="pt")
    inputs = {name: inputs[name] for name in ("input_ids", "attention_mask")}
    ours = load_nli(str(tmp_path / "run"))
    plain = torch.softmax(model(**inputs, token_type_ids=_segments(folder)).logits / model.config.nli_temperature, -1)
    assert ours.judge(["i have a cat"], ["there is not a cat"]).probabilities[0] == pytest.approx(
        plain[0].detach().numpy(), abs=1e-5
    )


def _segments(folder: Path) -> torch.Tensor:
    return torch.tensor([load_tokenizer(str(folder)).encode("i have a cat", "there is not a cat").type_ids])


def test_the_head_is_added_to_a_finished_scorer_that_stays_as_it_was(shared: Path, tmp_path: Path) -> None:
    scorer = tiny_config(shared, tmp_path / "scorer")
    train(scorer, silent)
    run = config(shared, tmp_path / "run", "bi", "frozen")
    encoder = replace(run.model.encoder, name=str(tmp_path / "scorer"))
    train(replace(run, model=replace(run.model, encoder=encoder)), silent)
    before, after = (load_model(tmp_path / name)[0] for name in ("scorer", "run"))
    assert before.nli is None
    assert after.nli is not None
    kept = after.state_dict()
    assert all(torch.equal(tensor, kept[name]) for name, tensor in before.state_dict().items())
    assert after.config.calibration_scale == before.config.calibration_scale
    assert set(before.config.trained_on or ()) < set(after.config.trained_on or ())
    assert after.config.nli_temperature != 1.0


def test_on_a_plain_encoder_the_scorer_is_its_cosine(shared: Path, tmp_path: Path) -> None:
    train(config(shared, tmp_path / "run", "bi", "frozen"), silent)
    model, _ = load_model(tmp_path / "run")
    assert isinstance(model, FoveateModel)
    assert model.config.fusion == "cosine"
    assert load_scorer(tmp_path / "run").calibrated


def test_pairs_are_those_of_the_configured_sets_thinned(data_root: Path) -> None:
    train_pairs, validation = load_pairs(
        NliConfig(form="bi", sources=("snli", "negation"), max_pairs=1000, validation_pairs=50)
    )
    sets = [pair.source.partition(":")[0] for pair in train_pairs]
    assert Counter(sets) == {"snli": 1000, "negation": 1000}
    assert len(validation) == 50
    assert {pair.source.partition(":")[0] for pair in validation} == {"snli", "negation"}
    everything, _ = load_pairs(NliConfig(form="bi"))
    assert len(everything) == 34204
    assert not {p.premise for p in train_pairs} & {p.premise for p in validation}


def count_encoder(texts: Sequence[str]) -> np.ndarray:
    """A vector that knows its text."""
    rows = np.array([[len(text), sum(map(ord, text)) % 97, 1.0] for text in texts], dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_vector_batches_are_a_function_of_the_seed_and_the_step() -> None:
    some = pairs(23)
    first, second, other = (NliBatches(some, count_encoder, 5, seed) for seed in (1, 1, 2))
    for step in (0, 4, 7):
        assert all(torch.equal(a, b) for a, b in zip(first.batch(step), second.batch(step), strict=True))
    assert not torch.equal(first.batch(0)[0], other.batch(0)[0])
    epoch = [first.batch(step) for step in range(5)]
    assert [len(labels) for _, _, labels in epoch] == [5, 5, 5, 5, 3]
    seen = torch.cat([labels for _, _, labels in epoch]).tolist()
    assert Counter(seen) == Counter(NLI_LABELS.index(pair.label) for pair in some)
    assert not torch.equal(first.batch(0)[0], first.batch(5)[0])


def test_vector_batches_hold_the_vectors_of_what_is_read() -> None:
    some = pairs(12)
    asked: list[str] = []

    def encode(texts: Sequence[str]) -> np.ndarray:
        asked.extend(texts)
        return count_encoder(texts)

    made = NliBatches(some, encode, 4, 1)
    assert len(asked) == len(set(asked))
    u, v = made.inputs([3, 7])
    for row, number in enumerate((3, 7)):
        premise, hypothesis = texts_of(some[number], 0.5)
        assert u[row].numpy() == pytest.approx(count_encoder([premise])[0])
        assert v[row].numpy() == pytest.approx(count_encoder([hypothesis])[0])


def test_half_of_the_sentences_are_read_as_turns_always_the_same() -> None:
    some = pairs(300)
    assert all(texts_of(pair, 0.0) == (pair.premise, pair.hypothesis) for pair in some)
    assert [texts_of(pair, 0.5) for pair in some] == [texts_of(pair, 0.5) for pair in some]
    dressed = [texts_of(pair, 0.5) for pair in some]
    share = sum(a != p.premise for (a, _), p in zip(dressed, some, strict=True)) / len(some)
    assert share == pytest.approx(0.5, abs=0.1)
    assert all(a.endswith(p.premise) and b.endswith(p.hypothesis) for (a, b), p in zip(dressed, some, strict=True))
    turns = [texts_of(pair, 1.0)[0] for pair in some]
    assert all(": i have a" in text for text in turns)
    assert 0.6 < sum(text[0].isdigit() for text in turns) / len(turns) < 0.9


def test_unrelated_pairs_are_neutral_and_join_what_is_read_already() -> None:
    some = pairs(60)
    texts, labels = readings(some, 0.5, 0.5, 1)
    assert texts[:60] == [texts_of(pair, 0.5) for pair in some]
    assert labels[:60] == [pair.label for pair in some]
    assert 20 <= len(texts) - 60 <= 30
    assert set(labels[60:]) == {"neutral"}
    own = dict.fromkeys(texts[:60])
    assert not any(both in own for both in texts[60:])
    assert {premise for premise, _ in texts[60:]} <= {premise for premise, _ in own}
    assert {hypothesis for _, hypothesis in texts[60:]} <= {hypothesis for _, hypothesis in own}
    assert readings(some, 0.5, 0.5, 1) == (texts, labels)
    assert readings(some, 0.5, 0.5, 2) != (texts, labels)
    assert len(readings(some, 0.5, 0.0, 1)[0]) == 60


def test_batches_hold_every_pair_once_and_similar_lengths(shared: Path, tmp_path: Path) -> None:
    run = config(shared, tmp_path, "cross", "full")
    _, stage = nli.NliJob(run).build(None, silent)  # type: ignore[arg-type]
    batches = stage.batches(0)
    assert sorted(i for batch in batches for i in batch.questions) == list(range(60))
    assert stage.batches(0) == batches != stage.batches(1)
    assert max(len(batch.questions) for batch in batches) == 16
    spread = [max(x) - min(x) for x in ([stage.train.lengths[i] for i in b.questions] for b in batches)]
    lengths = stage.train.lengths
    assert np.mean(spread) < (max(lengths) - min(lengths)) / 2


def test_measured_metrics() -> None:
    logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    labels = torch.tensor([0, 2, 1, 2])
    found = measured(logits, labels)
    assert found["score"] == 0.5
    assert found["f1"] == 0.5
    assert found["auroc"] == 0.75
    assert "auroc" not in measured(logits[:1], labels[:1])


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"form": "off"}, "stage=nli with nli.form=off"),
        ({"form": "cross"}, "nothing would train"),
        ({"form": "bi", "sources": ("snli", "rte")}, "nli.sources names 'rte'"),
        ({"form": "bi", "sources": ()}, "nli.sources is empty"),
        ({"form": "bi", "pairs": 1}, "nli.pairs=1"),
        ({"form": "bi", "turn_share": 1.5}, "nli.turn_share=1.5"),
    ],
)
def test_contradictory_configurations_are_refused(changes: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        TrainConfig(out="x", stage="nli", nli=NliConfig(**changes))  # type: ignore[arg-type]


def test_forms_and_what_trains_must_fit() -> None:
    base = TrainConfig(out="x")
    tuned = replace(base.model, encoder=EncoderConfig(tune="top"))
    with pytest.raises(ConfigError, match=r"nli\.form=bi with model.encoder.tune=top"):
        replace(base, stage="nli", nli=NliConfig(form="bi"), model=tuned)
    with pytest.raises(ConfigError, match="give stage: nli"):
        replace(base, nli=NliConfig(form="cross"))
    assert replace(base, nli=NliConfig(form="bi")).stage == "evidence"
