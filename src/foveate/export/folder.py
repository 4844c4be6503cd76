"""A finished run to a folder that serves without torch.

README.md           the model card
foveate.json        the contract with serving: sizes, signals, policy, parity, sha256 of the other files
encoder.onnx        token ids, mask -> unit vectors           (encoder.int8.onnx beside it where asked for)
encoder.deltas.safetensors                                    in a slim export, whose graph and safetensors then hold
                                                              no weights of the encoder: its differences from the base
mixer.onnx          turn vectors -> mixed vectors
head.onnx           vectors, mixed, question, signals -> probability
model.safetensors, config.json, tokenizer.json                the same model for torch
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from foveate.config.load import load_config
from foveate.core.errors import CheckpointError, ConfigError
from foveate.core.files import sha256
from foveate.export.card import model_card
from foveate.export.graphs import export_graphs
from foveate.export.parity import FP32_TOLERANCE, INT8_AGREEMENT, Parity, compare, probe
from foveate.export.quantize import quantize_encoder
from foveate.export.slim import slim as take_out
from foveate.learned.model import FoveateModel
from foveate.learned.scorer import TorchVectorModel, load_model
from foveate.serving.onnx_scorer import FORMAT, MANIFEST, OnnxVectorModel, Precision

_NLI_METRICS = {
    "calibrated_score": "accuracy",
    "calibrated_f1": "F1 of contradiction",
    "calibrated_auroc": "AUROC of contradiction",
    "calibrated_ece": "ECE of contradiction",
}
NOT_A_FILE_OF_THE_EXPORT = (MANIFEST, "README.md")


def export(
    run: Path,
    out: Path,
    *,
    int8: bool = True,
    slim: bool = False,
    rows: Sequence[Mapping[str, Any]] = (),
    say: Callable[[str], None] = print,
) -> dict[str, Parity]:
    """Write the export folder and check it against the torch model before it gets its name.

    Args:
        run: a run folder of `foveate train`, or a saved model folder.
        out: the folder to make; it must not exist, or be an earlier export.
        int8: whether to add an int8 encoder.
        slim: whether to leave the packaged encoder's weights out and write the differences from them; no int8 then.
        rows: result rows of this model, for the card.
        say: prints a line of progress.

    Returns:
        The parity of each precision.

    Raises:
        CheckpointError: the run holds no finished model or a damaged file, or fp32 differs by more than 1e-4.
        ConfigError: `out` exists and is no export, or cannot be written.
    """
    if out.exists() and not (out / MANIFEST).is_file():
        raise ConfigError(f"{out} exists and is no export: give another folder, or remove it")
    model, tokenizer = load_model(run)
    name = out.name
    reference = TorchVectorModel(model, tokenizer, name)
    encoder, result = _provenance(run)
    if slim:
        encoder = "all-MiniLM-L6-v2"
    with _building(out) as building:
        say("writing safetensors, tokenizer and three ONNX graphs")
        model.save_pretrained(building)
        tokenizer.save(str(building / "tokenizer.json"))
        export_graphs(model, building)
        extra = take_out(model, building) if slim else {}
        if int8 and not slim:
            say("quantising the encoder to int8")
            quantize_encoder(building / "encoder.onnx", building / "encoder.int8.onnx")
        _write_manifest(building, _contract(name, model, {}, 0) | extra)
        say("comparing with the torch model")
        found = _parities(reference, building, ["fp32", "int8"] if int8 and not slim else ["fp32"])
        _judge(found, building, say)
        questions = next(iter(found.values())).questions
        manifest = _contract(name, model, {k: asdict(v) for k, v in found.items()}, questions) | extra
        _write_manifest(building, manifest)
        card = model_card(name, manifest, model.config.trained_on or [], encoder, result, rows)
        (building / "README.md").write_text(card, encoding="utf-8")
        _usual_permissions(building)
        shutil.rmtree(out, ignore_errors=True)
        building.rename(out)
    return found


@contextmanager
def _building(out: Path) -> Iterator[Path]:
    """A folder beside `out` to build in; whatever fails, it does not stay."""
    out = out.absolute()
    folder = out.with_name(f".{out.name}.building")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True)
        yield folder
    except OSError as error:
        raise ConfigError(f"{out} cannot be written ({error.strerror or error}): give another folder") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _usual_permissions(folder: Path) -> None:
    """Every file may be read by whom the umask lets; safetensors writes its own for the owner alone."""
    mode = (folder / "README.md").stat().st_mode
    for path in folder.iterdir():
        path.chmod(mode & 0o777)


def _parities(reference: TorchVectorModel, folder: Path, precisions: list[Precision]) -> dict[str, Parity]:
    conversations = probe()
    return {p: compare(reference, OnnxVectorModel(folder, p), conversations) for p in precisions}


def _judge(found: dict[str, Parity], folder: Path, say: Callable[[str], None]) -> None:
    """fp32 must agree; an int8 encoder below the stated bound is left out, and said so."""
    if found["fp32"].max_abs > FP32_TOLERANCE:
        raise CheckpointError(
            f"the fp32 export differs from the torch model by {found['fp32'].max_abs:.1e}, "
            f"more than {FP32_TOLERANCE:.0e}: nothing was exported; please report it with the run's config.yaml"
        )
    if "int8" in found and found["int8"].agreement < INT8_AGREEMENT:
        say(f"int8 agrees on {found['int8'].agreement:.3f} of the 20 best turns, below {INT8_AGREEMENT}: left out")
        (folder / "encoder.int8.onnx").unlink()
        del found["int8"]


def _contract(name: str, model: FoveateModel, parity: dict[str, Any], questions: int) -> dict[str, Any]:
    importance = {} if model.importance is None else {"critical_threshold": float(model.importance.threshold)}
    return {
        "format": FORMAT,
        "name": name,
        "dim": model.dim,
        "width": model.config.width,
        "reach": model.mixer.reach,
        "max_length": model.config.max_length,
        "signals": list(model.config.signal_names or ()),
        "policy": model.config.policy,
        **_tiers(model),
        "calibrated": True,
        "parity": parity,
        "parity_questions": questions,
        **importance,
    }


def _tiers(model: FoveateModel) -> dict[str, Any]:
    """What was learned about the tiers; nothing where it was not."""
    values = {} if model.tier_values.slope is None else {"tier_values": asdict(model.tier_values)}
    return values | ({} if model.thresholds is None else {"thresholds": asdict(model.thresholds)})


def _write_manifest(folder: Path, contract: dict[str, Any]) -> None:
    files = sorted(p.name for p in folder.iterdir() if p.name not in NOT_A_FILE_OF_THE_EXPORT)
    contract = contract | {"files": {name: sha256(folder / name) for name in files}}
    (folder / MANIFEST).write_text(json.dumps(contract, indent=1) + "\n")


def _provenance(run: Path) -> tuple[str, dict[str, Any]]:
    """Encoder and validation result of a run, and of the run that its NLI head was put on; empty for a bare model."""
    if not (run / "config.yaml").is_file():
        return "not recorded", {}
    try:
        config = load_config(run / "config.yaml")
    except ConfigError as error:
        raise CheckpointError(f"{run / 'config.yaml'} cannot be read ({error}): copy it again from the run") from error
    encoder, result = config.model.encoder.name, _result(run / "result.json")
    if config.stage != "nli":
        return encoder, result
    head = {f"NLI head, {name}": result[key] for key, name in _NLI_METRICS.items() if key in result}
    if (Path(encoder) / "config.yaml").is_file():
        encoder, scorer = _provenance(Path(encoder))
        return encoder, scorer | head
    return encoder, head


def _result(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}): copy it again, or remove it") from error
    if not isinstance(result, dict) or not isinstance(result.get("metrics", {}), dict):
        raise CheckpointError(f"{path} is no result of foveate train: copy it again, or remove it")
    return result
