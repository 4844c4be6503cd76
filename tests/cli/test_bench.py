"""`foveate bench`: small sizes only; what is measured is checked for sense, never for speed."""

import json
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from foveate.cli import main as cli
from foveate.cli import speed
from foveate.cli.bench import Report, text_of
from foveate.core.errors import CheckpointError
from foveate.core.files import sha256
from foveate.core.tokens import minilm_folder
from foveate.signals.features import SIGNAL_NAMES

DIM = 8


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """An export whose encoder looks vectors up and averages them: the contract of a real one, in kilobytes."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    h, f, i = onnx.helper, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    table = np.random.default_rng(0).standard_normal((30_600, DIM)).astype(np.float32)

    def save(name: str, nodes: list, inputs: list, output: object, values: list) -> None:
        graph = h.make_graph(nodes, name, inputs, [output], values)
        onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=9), tmp_path / f"{name}.onnx")

    value, tensor = h.make_tensor_value_info, onnx.numpy_helper.from_array
    save(
        "encoder",
        [
            h.make_node("Gather", ["table", "ids"], ["rows"]),
            h.make_node("ReduceMean", ["rows"], ["vectors"], axes=[1], keepdims=0),
        ],
        [value("ids", i, ["b", "t"]), value("mask", i, ["b", "t"])],
        value("vectors", f, ["b", DIM]),
        [tensor(table, "table")],
    )
    save(
        "mixer",
        [h.make_node("Identity", ["vectors"], ["mixed"])],
        [value("vectors", f, ["n", DIM])],
        value("mixed", f, ["n", DIM]),
        [],
    )
    save(
        "head",
        [h.make_node("MatMul", ["vectors", "query"], ["raw"]), h.make_node("Sigmoid", ["raw"], ["probability"])],
        [
            value("vectors", f, ["n", DIM]),
            value("mixed", f, ["n", DIM]),
            value("query", f, [DIM]),
            value("signals", f, ["n", len(SIGNAL_NAMES)]),
        ],
        value("probability", f, ["n"]),
        [],
    )
    (tmp_path / "tokenizer.json").write_bytes((minilm_folder() / "tokenizer.json").read_bytes())
    files = {name: sha256(tmp_path / name) for name in ("encoder.onnx", "mixer.onnx", "head.onnx", "tokenizer.json")}
    manifest = {"format": 1, "name": "tiny", "dim": DIM, "width": DIM, "reach": 0, "policy": "score", "max_length": 64}
    (tmp_path / "foveate.json").write_text(json.dumps({**manifest, "signals": list(SIGNAL_NAMES), "files": files}))
    return tmp_path


Bench = Callable[..., tuple[int, str, str]]


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str]) -> Bench:
    def run(*arguments: object) -> tuple[int, str, str]:
        small = ("--turns", "40", "--seconds", "0.01", "--items", "60", "--solver-budget", "300")
        code = cli.main(["bench", *small, *map(str, arguments)])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def test_ratios_come_first_and_json_holds_everything(bench: Bench, tmp_path: Path) -> None:
    code, out, _ = bench("--turns", "20,40", "--json", tmp_path / "new" / "bench.json")
    data = json.loads((tmp_path / "new" / "bench.json").read_text())
    assert code == 0
    assert out.startswith("ratios\n  optimal against the dynamic program: ")
    assert "a cached context at 40 turns, against 20" in out
    assert [p["turns"] for p in data["packing"]] == [20, 40]
    assert all(p["cached"]["p50"] <= p["cached"]["p95"] for p in data["packing"])
    assert data["numpy_gflops"] > 0
    assert data["machine"]["cores"] >= 1


def test_an_export_is_timed_and_packed_with(bench: Bench, export: Path, tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    code, out, _ = bench("--export", export, "--scorer", export, "--encode-turns", 400, "--json", path)
    data = json.loads(path.read_text())
    assert code == 0
    assert [e["backend"] for e in data["encoding"]] == ["onnx fp32"]
    assert data["encoding"][0]["turns_per_second"] > 0
    assert data["encoding"][0]["gflops"] is None
    assert 0 <= data["padding_sorted"] < 0.1 < data["padding_unsorted"] < 1
    assert f"scorer {export}" in out


def test_steps_are_timed_without_and_with_a_reader(bench: Bench, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    sys.path.append(str(Path(__file__).resolve().parents[1] / "learned"))
    import tiny_reader  # pyright: ignore[reportMissingImports]

    path = tmp_path / "bench.json"
    reader = tiny_reader.saved(tmp_path / "reader")
    code, out, _ = bench("--reader", reader, "--reader-tokens", "32,64", "--json", path)
    steps = json.loads(path.read_text())["steps"]
    assert code == 0
    assert [(s["reader_tokens"], s["read"]) for s in steps] == [(0, 0), (32, 1), (64, 1)]
    assert all(s["times"]["p50"] > 0 for s in steps)
    assert 0 < steps[0]["peak_mib"] <= steps[1]["peak_mib"] <= steps[2]["peak_mib"]
    assert "a training step over cached vectors" in out


def test_optimal_is_within_a_thousandth_of_the_dynamic_program() -> None:
    found = speed.solver_speed(400, 500, seconds=0.01)
    assert found.loss <= 0.001
    assert found.gap <= 0.001
    shares = {p.policy: p.share_of_optimum for p in found.policies}
    assert shares["optimal"] == pytest.approx(1.0, abs=1e-3)
    assert all(share <= 1 + 1e-9 for share in shares.values())


def test_a_history_has_its_length_unique_ids_and_questions() -> None:
    turns, questions = speed.history(1234)
    assert len(turns) == 1234 == len({turn.id for turn in turns})
    assert questions
    assert speed.history(1234) == (turns, questions)


def test_matrix_weights_are_those_of_the_encoder_without_embeddings(tmp_path: Path) -> None:
    shapes = {
        "encoder.embeddings.word_embeddings.weight": [100, 8],
        "encoder.layer.0.dense.weight": [8, 16],
        "encoder.layer.0.dense.bias": [16],
        "head.weight": [4, 4],
    }
    header = json.dumps({name: {"dtype": "F32", "shape": shape} for name, shape in shapes.items()}).encode()
    assert speed.matrix_weights(tmp_path) is None
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    assert speed.matrix_weights(tmp_path) == 128
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 20)
    with pytest.raises(CheckpointError, match="damaged"):
        speed.matrix_weights(tmp_path)


def test_the_text_names_each_encoder_and_its_share_of_the_peak() -> None:
    times = speed.Times(0.001, 0.002, 5)
    solver = speed.SolverSpeed(10, 20, "dp", 0.001, 0.05, 0.0, 0.0, (speed.PolicySpeed("optimal", times, 1.0),))
    encoding = (speed.EncodeSpeed("torch", 100.0, 3000.0, 50.0), speed.EncodeSpeed("onnx fp32", 150.0, 4500.0, 75.0))
    text = text_of(Report({}, "chat", 100, (), solver, 90.0, 100.0, encoding, 0.05, 0.5))
    assert "optimal against the dynamic program: 50.0 times as fast" in text
    assert "onnx fp32 against torch: 1.50 times" in text
    assert "torch: 50 % of the machine's matrix product" in text
    assert "5.0 % in batches sorted by length" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--turns", "many"), "--turns 'many'"),
        (("--turns", "0"), "at least 1"),
        (("--items", "0"), "--items 0"),
        (("--seconds", "0"), "--seconds 0"),
        (("--scorer", "nope"), "no scorer 'nope'"),
        (("--scorer", ""), "no scorer ''"),
        (("--export", "/nowhere"), "/nowhere is no export"),
        (("--reader", "/nowhere"), "reader '/nowhere' is neither a folder nor a hub id"),
        (("--reader-tokens", "few"), "--reader-tokens 'few'"),
    ],
)
def test_bad_input_is_one_line_before_anything_is_measured(bench: Bench, arguments, said: str) -> None:
    code, out, err = bench(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("foveate: error: ")
    assert err.count("\n") == 1
    assert said in err
