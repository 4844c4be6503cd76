"""The NLI head, temperature, class order, and both trained forms of ContradictionProb."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import BertForSequenceClassification, PreTrainedTokenizerFast

from foveate.config.schema import EncoderConfig, ModelConfig, NliConfig
from foveate.core.errors import CheckpointError
from foveate.core.schema import Query, Turn
from foveate.learned import contradiction
from foveate.learned.contradiction import BiEncoderNli, CrossEncoderNli, load_nli
from foveate.learned.model import FoveateConfig, FoveateModel, build_model, with_nli_head
from foveate.learned.nli import (
    NLI_LABELS,
    NliHead,
    build_cross_encoder,
    class_order,
    fit_temperature,
    pair_features,
)
from foveate.learned.scorer import TorchVectorModel, load_model
from foveate.rules.acc import AccScorer

NLI = NliConfig(form="bi", width=16)
PREMISES = ["the lake is cold", "a dog barks", "you are fine"]


def pair_tokenizer() -> Tokenizer:
    made = Tokenizer(WordLevel({word: k for k, word in enumerate(tiny.WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    made.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    return made


def classifier(names: tuple[str, ...] = NLI_LABELS, **extra: object) -> BertForSequenceClassification:
    torch.manual_seed(3)
    config = tiny.bert_config()
    config.id2label = dict(enumerate(names))
    for key, value in extra.items():
        setattr(config, key, value)
    model = BertForSequenceClassification(config)
    torch.nn.init.normal_(model.classifier.weight)
    return model.eval()


def saved_classifier(folder: Path, model: BertForSequenceClassification) -> Path:
    model.save_pretrained(folder)
    fast = PreTrainedTokenizerFast(tokenizer_object=pair_tokenizer(), pad_token="[PAD]", unk_token="[UNK]")
    fast.save_pretrained(folder)
    return folder


def test_the_head_tells_premise_from_hypothesis_and_keeps_pairs_apart() -> None:
    torch.manual_seed(0)
    head = NliHead(tiny.DIM, 8, 0.0)
    u, v, _ = tiny.inputs(turns=4, questions=4)
    logits = head(u, v)
    assert logits.shape == (4, len(NLI_LABELS))
    assert not torch.allclose(logits, head(v, u))
    assert torch.allclose(logits[2:3], head(u[2:3], v[2:3]), atol=1e-6)


def test_features_are_the_four_parts_at_one_scale() -> None:
    u, v = torch.tensor([[0.6, 0.8]]), torch.tensor([[1.0, 0.0]])
    root = math.sqrt(2)
    expected = torch.tensor([[0.6, 0.8, 1.0, 0.0, 0.4, 0.8, 0.6 * root, 0.0]]) * root
    assert torch.allclose(pair_features(u, v), expected)


def test_the_temperature_undoes_a_scaling() -> None:
    torch.manual_seed(1)
    honest = torch.randn(20000, 3, dtype=torch.float64)
    labels = torch.distributions.Categorical(logits=honest).sample()
    assert fit_temperature(honest, labels) == pytest.approx(1.0, abs=0.05)
    assert fit_temperature(3.0 * honest, labels) == pytest.approx(3.0, rel=0.05)
    assert fit_temperature(0.25 * honest, labels) == pytest.approx(0.25, rel=0.05)


def test_the_temperature_is_the_best_one_and_stays_in_its_range() -> None:
    torch.manual_seed(2)
    logits, labels = torch.randn(200, 3), torch.randint(0, 3, (200,))

    def loss(t: float) -> float:
        return float(torch.nn.functional.cross_entropy(logits / t, labels))

    best = fit_temperature(logits, labels)
    assert best == pytest.approx(20.0) or (loss(best) <= loss(best * 1.02) and loss(best) <= loss(best / 1.02))
    right = torch.eye(3) * 5
    assert fit_temperature(right, torch.arange(3)) == pytest.approx(0.05, rel=1e-6)
    assert fit_temperature(right, torch.tensor([1, 2, 0])) == pytest.approx(20.0, rel=1e-6)


@pytest.mark.parametrize(
    "names",
    [{0: "CONTRADICTION", 1: "neutral", 2: "Entailment"}, {"2": "entailment", "0": "contradiction", "1": "neutral"}],
)
def test_classes_are_found_by_name(names: dict[int, str]) -> None:
    assert class_order(names, "m") == [2, 1, 0]


@pytest.mark.parametrize(
    "names",
    [
        None,
        {},
        {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"},
        {0: "entailment", 1: "not_entailment"},
        {0: "contradiction", 1: "contradiction", 2: "neutral"},
        {0: "entailment", 1: "neutral", 2: "contradiction", 3: "other"},
    ],
)
def test_classes_without_one_name_each_are_refused(names: dict[int, str] | None) -> None:
    with pytest.raises(CheckpointError, match="id2label"):
        class_order(names, "some/model")


def test_a_cross_encoder_gives_the_probability_of_the_class_named_contradiction() -> None:
    usual = CrossEncoderNli(classifier(), pair_tokenizer(), "usual")
    swapped = classifier(("contradiction", "neutral", "entailment"))
    swapped.classifier.load_state_dict(
        {name: tensor.flip(0) for name, tensor in classifier().classifier.state_dict().items()}
    )
    other = CrossEncoderNli(swapped, pair_tokenizer(), "swapped")
    found = usual.probabilities(PREMISES, "the lake is fine")
    assert found == pytest.approx(other.probabilities(PREMISES, "the lake is fine"), abs=1e-6)
    judged = usual.judge(PREMISES, ["the lake is fine"] * 3)
    assert judged.probabilities[:, 2].tolist() == pytest.approx(found)
    assert judged.probabilities.sum(1) == pytest.approx(np.ones(3), abs=1e-6)
    assert usual.probabilities([], "x") == []


def test_a_cross_encoder_reads_each_pair_whatever_its_company() -> None:
    model = CrossEncoderNli(classifier(), pair_tokenizer(), "m")
    together = model.judge([*PREMISES, "a"], ["hi", "how are you", "a dog", "the"]).probabilities
    alone = model.judge(PREMISES[1:2], ["how are you"]).probabilities
    assert together[1] == pytest.approx(alone[0], abs=1e-6)


def test_a_stored_temperature_divides_the_logits() -> None:
    cold, hot = (CrossEncoderNli(classifier(nli_temperature=t), pair_tokenizer(), "m") for t in (1.0, 4.0))
    logits = np.log(cold.judge(PREMISES, PREMISES[::-1]).probabilities)
    expected = np.exp(logits / 4) / np.exp(logits / 4).sum(1, keepdims=True)
    assert hot.judge(PREMISES, PREMISES[::-1]).probabilities == pytest.approx(expected, abs=1e-5)


def test_what_is_cut_is_flagged() -> None:
    model = CrossEncoderNli(classifier(nli_max_length=12), pair_tokenizer(), "m")
    judged = model.judge(["a dog barks", "a dog barks " * 9], ["hi", "hi"])
    assert judged.truncated.tolist() == [False, True]
    assert model.truncated == 1
    # nli_max_length never exceeds what the encoder has positions for
    longest = CrossEncoderNli(classifier(nli_max_length=500), pair_tokenizer(), "m")
    assert longest.judge(["dog " * 100], ["hi"]).truncated.tolist() == [True]


def test_a_saved_classifier_loads_and_one_without_names_is_refused(tmp_path: Path) -> None:
    folder = saved_classifier(tmp_path / "nli", classifier(nli_temperature=2.0))
    direct = CrossEncoderNli(classifier(nli_temperature=2.0), pair_tokenizer(), "m")
    loaded = load_nli(str(folder))
    assert loaded.name == "nli"
    assert loaded.probabilities(PREMISES, "hi") == pytest.approx(direct.probabilities(PREMISES, "hi"), abs=1e-6)
    nameless = saved_classifier(tmp_path / "nameless", classifier(("LABEL_0", "LABEL_1", "LABEL_2")))
    with pytest.raises(CheckpointError, match="nameless names its classes"):
        load_nli(str(nameless))


def bi_encoder(temperature: float = 1.0) -> BiEncoderNli:
    model = with_nli_head(tiny.model(), NLI).eval()
    assert model.nli is not None
    return BiEncoderNli(TorchVectorModel(model, tiny.tokenizer(), "tiny"), model.nli, temperature)


def test_the_bi_encoder_encodes_each_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = bi_encoder()
    asked: list[str] = []
    original = TorchVectorModel.encode

    def encode(self: TorchVectorModel, texts: list[str]) -> np.ndarray:
        asked.extend(texts)
        return original(self, texts)

    monkeypatch.setattr(TorchVectorModel, "encode", encode)
    first = model.probabilities(PREMISES, "hi")
    again = model.probabilities([*PREMISES, PREMISES[0], "how"], "hi")
    assert asked == ["hi", *PREMISES, "how"]
    assert again[:3] == pytest.approx(first, abs=1e-6)
    assert again[3] == pytest.approx(again[0], abs=1e-6)
    judged = model.judge(PREMISES, ["hi"] * 3)
    assert judged.probabilities[:, 2].tolist() == pytest.approx(first, abs=1e-6)
    assert not judged.truncated.any()
    assert model.probabilities([], "hi") == []


def test_kept_vectors_are_bounded_and_forgetting_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    free = bi_encoder().probabilities(PREMISES, "hi")
    monkeypatch.setattr(contradiction, "MOST_VECTORS", 2)
    model = bi_encoder()
    assert model.probabilities(PREMISES, "hi") == pytest.approx(free, abs=1e-6)
    assert model.probabilities(PREMISES, "hi") == pytest.approx(free, abs=1e-6)
    assert len(model._kept) <= 2


def test_the_seam_of_the_rule_takes_both_forms() -> None:
    turns = [Turn(id=f"t{n}", role="user", content=text) for n, text in enumerate(PREMISES)]
    for model in (bi_encoder(), CrossEncoderNli(classifier(), pair_tokenizer(), "m")):
        index = AccScorer(contradiction=model, coherence="guard").open()
        index.append(turns)
        scores = index.score(Query("how are you", last_reply="the lake is fine"))
        assert scores.signals["contradiction"] == pytest.approx(model.probabilities(PREMISES, "the lake is fine"))


def test_a_model_keeps_its_head_and_an_older_one_loads_without(tmp_path: Path) -> None:
    model = with_nli_head(tiny.model(), NLI)
    model.config.nli_temperature = 1.5
    folder = tiny.saved(tmp_path / "with", model)
    loaded, _ = load_model(folder)
    assert loaded.nli is not None
    assert model.nli is not None
    u, v, _ = tiny.inputs(turns=3, questions=3)
    assert torch.equal(loaded.nli.eval()(u, v), model.nli.eval()(u, v))
    assert isinstance(load_nli(str(folder)), BiEncoderNli)

    older = tiny.saved(tmp_path / "older", tiny.model())
    config = json.loads((older / "config.json").read_text())
    kept = {key: value for key, value in config.items() if not key.startswith("nli")}
    (older / "config.json").write_text(json.dumps(kept))
    assert load_model(older)[0].nli is None
    with pytest.raises(CheckpointError, match="without an NLI head"):
        load_nli(str(older))


def test_the_head_leaves_the_other_weights_of_a_seed_alone() -> None:
    torch.manual_seed(0)
    plain = FoveateModel(FoveateConfig(encoder=tiny.bert_config().to_dict(), width=tiny.WIDTH))
    torch.manual_seed(0)
    more = FoveateModel(FoveateConfig(encoder=tiny.bert_config().to_dict(), width=tiny.WIDTH, nli=True))
    assert all(torch.equal(tensor, more.state_dict()[name]) for name, tensor in plain.state_dict().items())


@pytest.mark.parametrize("tune", ["full", "top", "lora"])
def test_a_cross_encoder_is_built_on_a_plain_encoder_and_on_a_scorers(tmp_path: Path, tune: str) -> None:
    tiny.encoder().save_pretrained(tmp_path / "plain")
    tiny.saved(tmp_path / "scorer", tiny.model())
    for name in ("plain", "scorer"):
        config = EncoderConfig(name=str(tmp_path / name), tune=tune, top_layers=1, lora_rank=2)  # type: ignore[arg-type]
        network = build_cross_encoder(config).eval()
        ids = torch.tensor([[1, 5, 6, 2, 7, 2]])
        before = network(ids, torch.ones_like(ids), torch.zeros_like(ids))
        trains = {n for n, p in network.named_parameters() if p.requires_grad}
        assert any("pooler" in n for n in trains)
        assert any(n.startswith("classifier.classifier.") for n in trains)
        assert all(n.startswith(("encoder.", "classifier.")) for n in trains)
        frozen = {n for n, p in network.named_parameters() if not p.requires_grad}
        assert bool(frozen) == (tune != "full")
        finished = network.finished()
        assert class_order(finished.config.id2label, "m") == [0, 1, 2]
        after = finished(
            input_ids=ids, attention_mask=torch.ones_like(ids), token_type_ids=torch.zeros_like(ids)
        ).logits
        assert torch.allclose(before, after, atol=1e-5)


def test_a_model_is_built_with_a_head_where_the_configuration_asks_for_one(tmp_path: Path) -> None:
    tiny.encoder().save_pretrained(tmp_path)
    config = ModelConfig(encoder=EncoderConfig(name=str(tmp_path)), width=8)
    assert build_model(config).nli is None
    assert build_model(config, NliConfig()).nli is None
    built = build_model(config, NLI)
    assert built.nli is not None
    assert built.config.nli
