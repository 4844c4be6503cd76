"""A whole run, and runs that were stopped and went on."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tiny_runs import silent, tiny_config, with_run

from foveate.config.load import load_config
from foveate.config.schema import TrainConfig
from foveate.core.errors import CheckpointError, ConfigError
from foveate.learned.model import build_model
from foveate.learned.scorer import load_model, load_scorer
from foveate.training.evidence import EvidenceStage
from foveate.training.run import record_sources, train
from foveate.training.stage import Batch, LossParts
from foveate.training.tracking import Tracker
from foveate.training.trainer import NotFiniteError

Losses = Callable[[EvidenceStage, torch.nn.Module, Batch, int], LossParts]


def lines(out: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def weights(out: Path) -> dict[str, torch.Tensor]:
    return load_file(out / "model" / "model.safetensors")


def assert_same_run(first: Path, second: Path) -> None:
    one, other = weights(first), weights(second)
    assert one.keys() == other.keys()
    assert [name for name in one if not torch.equal(one[name], other[name])] == []
    assert (first / "metrics.jsonl").read_text() == (second / "metrics.jsonl").read_text()
    assert (first / "result.json").read_text() == (second / "result.json").read_text()


def stop_at(step: int, error: BaseException, *, inside: bool) -> Losses:
    """The stage's loss, which raises once when it is asked for `step`; `inside` the step, after its dropout."""
    original, waiting = EvidenceStage.loss, [error]

    def loss(self: EvidenceStage, model: torch.nn.Module, batch: Batch, at: int) -> LossParts:
        if at == step and waiting and not inside:
            raise waiting.pop()
        parts = original(self, model, batch, at)
        if at == step and waiting:
            raise waiting.pop()
        return parts

    return loss


def stopped_and_resumed(config: TrainConfig, losses: Losses, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Runs into the stop, goes on with the same configuration; what the second run said."""
    said: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(EvidenceStage, "loss", losses)
        with pytest.raises((KeyboardInterrupt, OSError)):
            train(config, silent)
        assert not (Path(config.out) / "model").exists()
        train(config, said.append)
    return said


def configured(shared: Path, out: Path, kind: str) -> TrainConfig:
    """The tiny run; "cosine" is the fine-tuning of the encoder alone."""
    if kind == "frozen":
        return tiny_config(shared, out)
    config = tiny_config(shared, out, "top")
    if kind == "top":
        return config
    return replace(
        config,
        model=replace(config.model, fusion="cosine"),
        objective=replace(config.objective, binary=0.0, packing=0.0),
    )


@pytest.fixture(scope="module", params=["frozen", "top", "cosine"])
def straight(request: pytest.FixtureRequest, shared: Path) -> tuple[str, Path]:
    out = shared / f"straight-{request.param}"
    train(configured(shared, out, request.param), silent)
    return request.param, out


def test_a_run_leaves_what_is_needed_to_understand_and_use_it(straight: tuple[str, Path], shared: Path) -> None:
    tune, out = straight
    assert load_config(out / "config.yaml") == configured(shared, out, tune)
    environment = json.loads((out / "environment.json").read_text())
    assert environment["packages"]["torch"].split("+")[0] == torch.__version__.split("+")[0]
    result = json.loads((out / "result.json").read_text())
    assert result["scale"] > 0
    assert result["policy"] in {"score", "optimal"}
    assert {"erb_256", "erb_2048", "score"} <= result["metrics"].keys()
    logged = lines(out)
    steps = [line["step"] for line in logged if "loss" in line]
    assert steps == list(range(1, len(steps) + 1))
    assert sum("validation/score" in line for line in logged) == 2
    scorer = load_scorer(out)
    assert scorer.calibrated
    assert scorer.policy == result["policy"]


def test_the_frozen_encoder_stays_and_the_thawed_one_moves(straight: tuple[str, Path], shared: Path) -> None:
    tune, out = straight
    before, after = load_file(shared / "encoder" / "model.safetensors"), weights(out)
    moved = {name for name, tensor in before.items() if not torch.equal(tensor, after[f"encoder.{name}"])}
    moved = {name for name in moved if "pooler" not in name}
    if tune == "frozen":
        assert moved == set()
    else:
        assert moved
        assert all(name.startswith("encoder.layer.1.") for name in moved)


@pytest.mark.parametrize("inside", [False, True], ids=["before-the-step", "inside-the-step"])
@pytest.mark.parametrize("step", [2, 9])
def test_an_interrupted_run_ends_as_the_straight_one(
    straight: tuple[str, Path], shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, inside: bool
) -> None:
    tune, out = straight
    config = configured(shared, tmp_path / "run", tune)
    said = stopped_and_resumed(config, stop_at(step, KeyboardInterrupt(), inside=inside), monkeypatch)
    assert any(line.startswith(f"resumed at step {step} of") for line in said)
    assert_same_run(out, tmp_path / "run")


@pytest.mark.parametrize("save_every", [1, 2, 3])
def test_a_killed_run_ends_as_the_straight_one(
    straight: tuple[str, Path], shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save_every: int
) -> None:
    """Nothing is saved at the kill: the run goes on from its last checkpoint, across the end of the epoch."""
    tune, out = straight
    epoch = max(line["step"] for line in lines(out)) // 2
    config = with_run(configured(shared, tmp_path / "run", tune), save_every=save_every)
    said = stopped_and_resumed(config, stop_at(int(epoch) + 1, OSError("killed"), inside=True), monkeypatch)
    assert any(line.startswith("resumed at step") for line in said)
    assert_same_run(out, tmp_path / "run")


def test_an_interrupted_validation_is_done_again(
    straight: tuple[str, Path], shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tune, out = straight
    original, waiting = EvidenceStage.validate, [KeyboardInterrupt()]

    def validate(self: EvidenceStage) -> dict[str, float]:
        if waiting:
            raise waiting.pop()
        return original(self)

    monkeypatch.setattr(EvidenceStage, "validate", validate)
    config = configured(shared, tmp_path / "run", tune)
    stopped: list[str] = []
    said: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        train(config, stopped.append)
    train(config, said.append)
    epoch = int(max(line["step"] for line in lines(out))) // 2
    assert stopped[-1] == f"interrupted at step {epoch}; the same command resumes there"
    assert any(line.startswith(f"resumed at step {epoch} of") for line in said)
    assert_same_run(out, tmp_path / "run")


@pytest.mark.parametrize("validating", [False, True], ids=["a-step", "a-validation"])
def test_a_ctrl_c_while_it_is_recorded_waits_until_it_is(
    straight: tuple[str, Path], shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, validating: bool
) -> None:
    tune, out = straight
    original, waiting = Tracker.log, [signal.SIGINT]

    def log(self: Tracker, step: int, values: dict[str, float]) -> None:
        if waiting and step >= 3 and ("validation/score" in values) is validating:
            signal.raise_signal(waiting.pop())
        original(self, step, values)

    monkeypatch.setattr(Tracker, "log", log)
    config = configured(shared, tmp_path / "run", tune)
    with pytest.raises(KeyboardInterrupt):
        train(config, silent)
    train(config, silent)
    assert_same_run(out, tmp_path / "run")


def test_a_validation_that_was_recorded_but_not_saved_is_recorded_once(tmp_path: Path) -> None:
    tracker = Tracker(tmp_path, "off", {}, None)
    for values in ({"loss": 1.0}, {"validation/score": 0.5}):
        tracker.log(4, values)
    Tracker(tmp_path, "off", {}, 4, validated=True)
    assert len(lines(tmp_path)) == 2
    Tracker(tmp_path, "off", {}, 4, validated=False)
    assert lines(tmp_path) == [{"step": 4, "loss": 1.0}]


def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = with_run(tiny_config(shared, tmp_path / "run"), save_every=1)
    with monkeypatch.context() as patch:
        patch.setattr(EvidenceStage, "loss", stop_at(4, OSError("killed"), inside=False))
        with pytest.raises(OSError, match="killed"):
            train(config, silent)
    damaged = tmp_path / "run" / "checkpoints" / "step-00000004" / "weights.safetensors"
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    said: list[str] = []
    train(config, said.append)
    assert any(line.startswith("warning:") and str(damaged) in line for line in said)
    assert any(line.startswith("resumed at step 3 of") for line in said)
    straight = with_run(tiny_config(shared, tmp_path / "straight"), save_every=1)
    train(straight, silent)
    assert_same_run(tmp_path / "straight", tmp_path / "run")


def test_the_loss_decreases(shared: Path, tmp_path: Path) -> None:
    config = tiny_config(shared, tmp_path / "run")
    config = replace(
        config, optim=replace(config.optim, epochs=30, lr=5e-3), run=replace(config.run, evaluate_every=30)
    )
    train(config, silent)
    losses = [line["loss"] for line in lines(tmp_path / "run") if "loss" in line]
    tenth = len(losses) // 10
    assert sum(losses[-tenth:]) < 0.8 * sum(losses[:tenth])


def test_a_scorer_learns_on_an_encoder_that_was_fine_tuned_first(shared: Path, tmp_path: Path) -> None:
    """Two runs in a row: retrieval fine-tuning, then the scorer on the vectors of its frozen encoder."""
    plain = configured(shared, tmp_path / "encoder", "cosine")
    first = replace(plain, optim=replace(plain.optim, encoder_lr=1e-3))
    train(first, silent)
    second = tiny_config(shared, tmp_path / "scorer")
    encoder = replace(second.model.encoder, name=first.out)
    train(replace(second, model=replace(second.model, encoder=encoder)), silent)
    tuned, kept, before = (
        weights(tmp_path / "encoder"),
        weights(tmp_path / "scorer"),
        load_file(shared / "encoder" / "model.safetensors"),
    )
    names = [name for name in tuned if name.startswith("encoder.")]
    assert all(torch.equal(tuned[name], kept[name]) for name in names)
    assert any(
        not torch.equal(tuned[name], before[name.removeprefix("encoder.")]) for name in names if "layer.1" in name
    )
    assert load_model(tmp_path / "scorer")[0].config.trained_on == [*first.data.train]
    losses = [line["listwise"] for line in lines(tmp_path / "encoder") if "listwise" in line]
    assert all(0 < loss < 20 for loss in losses)


def test_an_encoder_that_saw_another_fold_is_refused(shared: Path, tmp_path: Path) -> None:
    config = tiny_config(shared, tmp_path / "run")
    encoder = build_model(config.model)
    encoder.config.trained_on, encoder.config.chosen_on = ["locomo:3"], ["locomo:3", "qmsum:val"]
    encoder.save_pretrained(tmp_path / "tuned")
    model = replace(config.model, encoder=replace(config.model.encoder, name=str(tmp_path / "tuned")))
    data = replace(config.data, train=("locomo", "cloze:locomo", "qmsum:train"), validation=("locomo",), fold=3)
    made = build_model(model)
    record_sources(made, replace(config, model=model, data=data))
    assert made.config.trained_on == ["locomo:3", "qmsum:train"]
    assert made.config.chosen_on == ["locomo:3", "qmsum:val"]
    with pytest.raises(ConfigError, match=r"data.fold=2.*locomo:2, locomo:3"):
        record_sources(build_model(model), replace(config, model=model, data=replace(data, fold=2)))


def test_patience_stops_a_run_that_gets_no_better(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EvidenceStage, "validate", lambda _self: {"score": 0.5})
    config = with_run(tiny_config(shared, tmp_path / "run"), patience=2)
    summary = train(replace(config, optim=replace(config.optim, epochs=9)), silent)
    validations = [line for line in lines(tmp_path / "run") if "validation/score" in line]
    assert len(validations) == 3
    assert summary["best_step"] == validations[0]["step"]


def test_another_configuration_in_the_same_folder_is_refused(shared: Path, tmp_path: Path) -> None:
    config = tiny_config(shared, tmp_path / "run")
    (tmp_path / "run").mkdir()
    train(replace(config, optim=replace(config.optim, epochs=1)), silent)
    with pytest.raises(ConfigError, match=r"another configuration \(first change: epochs: 2\)") as caught:
        train(config, silent)
    assert "\n" not in str(caught.value)


def test_a_run_that_failed_at_once_leaves_its_folder_to_any_configuration(shared: Path, tmp_path: Path) -> None:
    config = tiny_config(shared, tmp_path / "run")
    model = replace(config.model, encoder=replace(config.model.encoder, name=str(tmp_path / "none")))
    with pytest.raises(CheckpointError, match="none"):
        train(replace(config, model=model), silent)
    (tmp_path / "run" / "config.yaml").write_text("out: of a run that never saved anything\n")
    train(config, silent)
    assert load_config(tmp_path / "run" / "config.yaml") == config


def test_not_resumed_another_configuration_replaces_the_run(shared: Path, tmp_path: Path) -> None:
    config = tiny_config(shared, tmp_path / "run")
    train(config, silent)
    fewer = with_run(replace(config, optim=replace(config.optim, epochs=1)), resume=False)
    best = tmp_path / "run" / "best"
    train(fewer, silent)
    assert len(list(best.iterdir())) == 1
    assert load_config(tmp_path / "run" / "config.yaml") == fewer
    said: list[str] = []
    train(with_run(fewer, resume=True), said.append)
    assert any(line.startswith("resumed") for line in said)


def test_what_a_run_is_to_replace_stays_until_it_can_start(shared: Path, tmp_path: Path) -> None:
    config = tiny_config(shared, tmp_path / "run")
    train(config, silent)
    model = replace(config.model, encoder=replace(config.model.encoder, name=str(tmp_path / "none")))
    with pytest.raises(CheckpointError, match="none"):
        train(with_run(replace(config, model=model), resume=False), silent)
    assert load_config(tmp_path / "run" / "config.yaml") == config
    assert load_scorer(tmp_path / "run").calibrated


@pytest.mark.parametrize("place", ["afile", "afile/sub", "/proc/nope/x"])
@pytest.mark.parametrize("name", ["out", "run.cache"])
def test_a_folder_that_cannot_be_written_is_named(shared: Path, tmp_path: Path, name: str, place: str) -> None:
    (tmp_path / "afile").touch()
    path, config = str(tmp_path / place), tiny_config(shared, tmp_path / "run")
    config = replace(config, out=path) if name == "out" else with_run(config, cache=path)
    with pytest.raises(ConfigError, match=rf"{name}={path} cannot be written \(.*\): give another folder"):
        train(config, silent)


def test_a_run_that_is_not_resumed_starts_again(shared: Path, tmp_path: Path) -> None:
    config = with_run(tiny_config(shared, tmp_path / "run"), resume=False)
    train(config, silent)
    first, record = weights(tmp_path / "run"), (tmp_path / "run" / "metrics.jsonl").read_text()
    said: list[str] = []
    train(config, said.append)
    assert not any(line.startswith("resumed") for line in said)
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == record
    assert all(torch.equal(first[name], tensor) for name, tensor in weights(tmp_path / "run").items())


def test_a_loss_that_is_no_number_names_the_batch(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Batch] = []

    def loss(self: EvidenceStage, model: torch.nn.Module, batch: Batch, step: int) -> LossParts:
        asked.append(batch)
        return LossParts(torch.tensor(float("nan"), requires_grad=True), {}, len(batch.questions))

    monkeypatch.setattr(EvidenceStage, "loss", loss)
    with pytest.raises(NotFiniteError) as caught:
        train(tiny_config(shared, tmp_path / "run"), silent)
    where = f"step 1, conversation {asked[0].example}, questions {list(asked[0].questions)}"
    assert where in str(caught.value)
