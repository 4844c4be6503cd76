"""An export says what the model says, and serves without torch."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from foveate.core.errors import CheckpointError, ConfigError
from foveate.core.schema import Conversation, Evidence, Query, Question
from foveate.core.tiers import Thresholds, TierValues
from foveate.corpora import synthetic
from foveate.export import folder as export_folder
from foveate.export.folder import export
from foveate.export.parity import FP32_TOLERANCE, Parity, compare, probe, top_agreement
from foveate.learned.model import FoveateModel
from foveate.learned.scorer import TorchVectorModel, load_model
from foveate.serving.onnx_scorer import OnnxScorer, OnnxVectorModel

Exported = tuple[Path, dict[str, Parity], list[str]]
FILES = {
    "README.md",
    "foveate.json",
    "encoder.onnx",
    "encoder.int8.onnx",
    "mixer.onnx",
    "head.onnx",
    "model.safetensors",
    "config.json",
    "tokenizer.json",
}
WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from foveate import FocusManager
from foveate.serving import OnnxScorer
manager = FocusManager(scorer=OnnxScorer(sys.argv[1]))
for number in range(12):
    manager.add_message("user" if number % 2 == 0 else "assistant", f"I bought {number} new lamps for the house.")
packed = manager.build_context("How many lamps did you buy?", 90)
assert 0 < packed.tokens <= 90, packed.tokens
assert packed.stats.full < 12
assert all(0 <= trace.score <= 1 for trace in packed.trace)
print(len({trace.score for trace in packed.trace}))
"""


@pytest.fixture
def copied(exported: Exported, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported[0], tmp_path / "copy"))


def reference(run_folder: Path) -> TorchVectorModel:
    return TorchVectorModel(*load_model(run_folder), "torch")


def cut(conversation: Conversation, turns: int) -> Conversation:
    question = Question("q", Query("What did they buy?"), Evidence())
    return Conversation("short", conversation.turns[:turns], (question,))


def test_fp32_agrees_on_the_probe(exported: Exported) -> None:
    parity = exported[1]["fp32"]
    assert parity.max_abs < FP32_TOLERANCE == 1e-4
    assert parity.agreement > 0.95
    assert parity.questions == sum(len(c.questions) for c in probe())


@pytest.mark.parametrize("turns", [1, 2, 5, 40])
def test_fp32_agrees_on_conversations_of_any_length(exported: Exported, run_folder: Path, turns: int) -> None:
    conversation = cut(synthetic.generate(1, 77)[0], turns)
    assert len(conversation.turns) == turns
    assert compare(reference(run_folder), OnnxVectorModel(exported[0]), [conversation]).max_abs < 1e-4


def test_padding_does_not_change_a_vector(exported: Exported, run_folder: Path) -> None:
    texts = ["hi", "what is new with you and the house?", "we have a new one " * 12, ""]
    model = OnnxVectorModel(exported[0])
    together, expected = model.encode(texts), reference(run_folder).encode(texts)
    np.testing.assert_allclose(together, expected, atol=1e-5)
    np.testing.assert_allclose(together, np.concatenate([model.encode([text]) for text in texts]), atol=1e-5)
    assert np.abs(together[0] - together[1]).max() > 1e-3


def test_the_contract_lists_every_file_with_its_digest(exported: Exported) -> None:
    folder, found, _ = exported
    assert {path.name for path in folder.iterdir()} == FILES
    manifest = json.loads((folder / "foveate.json").read_text())
    assert manifest["files"].keys() == FILES - {"README.md", "foveate.json"}
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert manifest["parity"]["fp32"]["max_abs"] == found["fp32"].max_abs
    assert not list(folder.parent.glob(".*.building"))


def test_what_was_learned_about_the_tiers_is_served(exported: Exported, run_folder: Path) -> None:
    model, _ = load_model(run_folder)
    served = OnnxScorer(exported[0])
    assert served.tier_values == model.tier_values != TierValues()
    assert model.thresholds is not None
    assert served.thresholds_at(200) == model.thresholds.at(200)
    result = json.loads((run_folder / "result.json").read_text())
    assert result["compressed_shift"] == model.tier_values.shift
    assert (result["tau_level"], result["tau_gap"]) == (model.thresholds.level, model.thresholds.gap)


def test_an_export_from_before_has_the_prior_and_the_usual_thresholds(copied: Path) -> None:
    manifest = json.loads((copied / "foveate.json").read_text())
    (copied / "foveate.json").write_text(
        json.dumps({key: value for key, value in manifest.items() if key not in ("tier_values", "thresholds")})
    )
    served = OnnxScorer(copied)
    assert served.tier_values == TierValues()
    assert served.thresholds_at(200) == Thresholds()


@pytest.mark.parametrize(
    ("key", "value"),
    [("tier_values", {"slope": -1.0, "shift": 0.0}), ("thresholds", {"level": 0.0}), ("tier_values", ["a"])],
)
def test_damaged_numbers_of_the_tiers_are_named(copied: Path, key: str, value: object) -> None:
    manifest = json.loads((copied / "foveate.json").read_text())
    (copied / "foveate.json").write_text(json.dumps(manifest | {key: value}))
    with pytest.raises(CheckpointError, match=f"foveate.json: {key} cannot be read"):
        OnnxScorer(copied)


def test_no_file_names_a_place_on_this_machine(exported: Exported) -> None:
    for path in (p for p in exported[0].rglob("*") if p.is_file()):
        assert not [mark for mark in (b"site-packages", b'.py", line', b"/src/foveate") if mark in path.read_bytes()], (
            path
        )


def test_the_model_card_says_what_it_is(exported: Exported) -> None:
    card = (exported[0] / "README.md").read_text()
    _, front, body = card.split("---\n", 2)
    assert yaml.safe_load(front) == {
        "library_name": "foveate",
        "license": "apache-2.0",
        "pipeline_tag": "text-ranking",
    }
    assert "foveate's own synthetic conversations" in body
    assert "| fp32 |" in body
    assert "| score |" in body


def test_the_card_of_a_head_put_on_later_has_the_scorers_numbers_too(run_folder: Path, tmp_path: Path) -> None:
    later, erb = tmp_path / "run", json.loads((run_folder / "result.json").read_text())["metrics"]["score"]
    shutil.copytree(run_folder / "model", later / "model")
    config = yaml.safe_load((run_folder / "config.yaml").read_text()) | {"stage": "nli"}
    config["model"]["encoder"] = {"name": str(run_folder), "tune": "frozen"}
    config["nli"]["form"] = "bi"
    (later / "config.yaml").write_text(yaml.safe_dump(config))
    (later / "result.json").write_text(json.dumps({"calibrated_auroc": 0.75, "metrics": {"score": 0.125}}))
    export(later, tmp_path / "export", int8=False, say=lambda _: None)
    card = (tmp_path / "export" / "README.md").read_text()
    assert "| NLI head, AUROC of contradiction | 0.75 |" in card
    assert f"| score | {erb:.4g} |" in card


def test_the_folder_loads_in_torch_too(exported: Exported, run_folder: Path) -> None:
    model, _ = load_model(exported[0])
    assert isinstance(model, FoveateModel)
    conversation = cut(synthetic.generate(1, 78)[0], 9)
    assert compare(reference(run_folder), reference(exported[0]), [conversation]).max_abs == 0.0


def test_it_packs_where_torch_cannot_be_imported(exported: Exported) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, str(exported[0])], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1


def test_a_damaged_file_is_named(copied: Path) -> None:
    content = bytearray((copied / "head.onnx").read_bytes())
    content[-1] ^= 1
    (copied / "head.onnx").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"head\.onnx is missing or damaged"):
        OnnxScorer(copied)


def test_a_missing_file_is_named(copied: Path) -> None:
    (copied / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=r"tokenizer\.json is missing or damaged"):
        OnnxScorer(copied)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"signals": ["bm25"]}, "trained on other signals"),
        ({"format": 99}, "not of format"),
        ({"policy": "best"}, "'best'"),
    ],
)
def test_a_contract_of_another_version_is_refused(copied: Path, change: dict[str, object], named: str) -> None:
    path = copied / "foveate.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(CheckpointError, match=named) as caught:
        OnnxScorer(copied)
    assert "\n" not in str(caught.value)


def test_a_contract_that_is_no_json_is_refused(copied: Path) -> None:
    (copied / "foveate.json").write_text("{")
    with pytest.raises(CheckpointError, match="cannot be read"):
        OnnxScorer(copied)


def test_a_folder_that_is_no_export_says_how_to_make_one(run_folder: Path) -> None:
    with pytest.raises(CheckpointError, match="foveate export"):
        OnnxScorer(run_folder)


def test_a_folder_of_something_else_is_not_replaced(run_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigError, match="exists and is no export"):
        export(run_folder, tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


@pytest.fixture
def without_graphs(exported: Exported, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the graphs from the session's export: what is tested is what happens after they are made."""

    def graphs(_: FoveateModel, folder: Path) -> None:
        for name in ("encoder.onnx", "mixer.onnx", "head.onnx"):
            shutil.copy(exported[0] / name, folder / name)

    def quantized(_: Path, target: Path) -> None:
        shutil.copy(exported[0] / "encoder.int8.onnx", target)

    monkeypatch.setattr(export_folder, "export_graphs", graphs)
    monkeypatch.setattr(export_folder, "quantize_encoder", quantized)


@pytest.mark.usefixtures("without_graphs")
def test_int8_below_the_bound_is_left_out(run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_folder, "INT8_AGREEMENT", 1.1)
    said: list[str] = []
    assert export(run_folder, tmp_path / "out", say=said.append).keys() == {"fp32"}
    assert any("left out" in line for line in said)
    assert not (tmp_path / "out" / "encoder.int8.onnx").exists()
    assert OnnxScorer(tmp_path / "out").calibrated
    with pytest.raises(CheckpointError, match="no int8 encoder"):
        OnnxScorer(tmp_path / "out", "int8")


@pytest.mark.usefixtures("without_graphs")
def test_an_export_that_differs_gets_no_name(run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_folder, "FP32_TOLERANCE", -1.0)
    with pytest.raises(CheckpointError, match="nothing was exported"):
        export(run_folder, tmp_path / "out", int8=False)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("without_graphs")
def test_an_earlier_export_is_replaced(copied: Path, run_folder: Path) -> None:
    (copied / "old.txt").write_text("old")
    export(run_folder, copied, int8=False, say=lambda _: None)
    assert {path.name for path in copied.iterdir()} == FILES - {"encoder.int8.onnx"}


def test_int8_serves_near_what_fp32_does(exported: Exported, run_folder: Path) -> None:
    conversation = cut(synthetic.generate(1, 79)[0], 30)
    found = compare(reference(run_folder), OnnxVectorModel(exported[0], "int8"), [conversation])
    assert 0 < found.max_abs < 0.2


def test_agreement_is_the_shared_part_of_the_best() -> None:
    first = np.array([0.9, 0.8, 0.7, 0.1], dtype=np.float32)
    assert top_agreement(first, first, 2) == 1.0
    assert top_agreement(first, first[::-1].copy(), 2) == 0.0
    assert top_agreement(first, np.array([0.9, 0.1, 0.7, 0.2], dtype=np.float32), 2) == 0.5
    assert top_agreement(np.zeros(4, dtype=np.float32), first, 2) == 1.0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model/model.safetensors", None),
        ("model/config.json", "{"),
        ("model/tokenizer.json", "x"),
        ("result.json", "{"),
        ("result.json", '{"metrics": 3}'),
        ("config.yaml", "model: [\n"),
    ],
)
def test_a_damaged_run_is_one_line_before_the_long_work(
    run_folder: Path, tmp_path: Path, name: str, content: str | None
) -> None:
    run = Path(shutil.copytree(run_folder, tmp_path / "run", ignore=shutil.ignore_patterns("checkpoints")))
    path = run / name
    path.write_bytes(path.read_bytes()[:1000] if content is None else content.encode())
    said: list[str] = []
    with pytest.raises(CheckpointError, match=re.escape(str(path))) as caught:
        export(run, tmp_path / "out", say=said.append)
    assert "\n" not in str(caught.value)
    assert said == []
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("out", ["afile/x", "/proc/x"])
def test_an_out_that_cannot_be_written_is_named(run_folder: Path, tmp_path: Path, out: str) -> None:
    (tmp_path / "afile").touch()
    with pytest.raises(ConfigError, match="cannot be written") as caught:
        export(run_folder, tmp_path / out, say=lambda _: None)
    assert str(tmp_path / out) in str(caught.value)


def test_nothing_stays_of_an_export_that_fails(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def graphs(_: FoveateModel, folder: Path) -> None:
        (folder / "encoder.onnx").touch()
        raise RuntimeError("exporter")

    monkeypatch.setattr(export_folder, "export_graphs", graphs)
    with pytest.raises(RuntimeError, match="exporter"):
        export(run_folder, tmp_path / "out", say=lambda _: None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("without_graphs")
def test_files_get_the_permissions_that_the_umask_says(run_folder: Path, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        export(run_folder, tmp_path / "out", int8=False, say=lambda _: None)
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "out").iterdir()} == {0o640}


def test_serving_does_not_read_what_it_does_not_use(copied: Path) -> None:
    (copied / "model.safetensors").unlink()
    (copied / "encoder.int8.onnx").unlink()
    assert OnnxScorer(copied).calibrated


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"dim": None}, "dim is missing"),
        ({"policy": None}, "policy is missing"),
        ({"dim": "x"}, "dim is 'x', not a whole number of at least 1"),
        ({"dim": 7}, "dim is 7, the graphs make"),
        ({"width": 3}, "width is 3, the graphs make"),
        ({"reach": -1}, "reach is -1, not a whole number of at least 0"),
        ({"policy": ["x"]}, "policy is .*, not a text"),
        ({"files": []}, "files is .*, not file names"),
        ({"files": {"encoder.onnx": "0"}}, "encoder.onnx is missing or damaged"),
        ({"files": {"encoder.int8.onnx": "0"}}, "no fp32 encoder"),
    ],
)
def test_a_damaged_contract_names_file_and_key(copied: Path, change: dict[str, object], named: str) -> None:
    path = copied / "foveate.json"
    manifest = json.loads(path.read_text()) | change
    path.write_text(json.dumps({key: value for key, value in manifest.items() if value is not None}))
    with pytest.raises(CheckpointError, match=named) as caught:
        OnnxScorer(copied)
    assert str(copied) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_contract_without_anything_but_its_format_is_refused(copied: Path) -> None:
    (copied / "foveate.json").write_text('{"format": 1}')
    with pytest.raises(CheckpointError, match=r"foveate\.json: dim is missing"):
        OnnxScorer(copied)
