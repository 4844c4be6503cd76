"""YAML and dotted arguments to a checked configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from foveate.config.load import dump_config, load_config
from foveate.config.schema import DataConfig, EncoderConfig, ObjectiveConfig, OptimConfig, RunConfig, TrainConfig
from foveate.core.errors import ConfigError

CONFIGS = sorted((Path(__file__).resolve().parents[2] / "configs").glob("*.yaml"))


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.yaml"
    path.write_text("out: runs/plain\n")
    return path


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_shipped_configuration_parses_and_survives_a_dump(path: Path, tmp_path: Path) -> None:
    config = load_config(path)
    assert config.out.startswith("runs/")
    (tmp_path / "dumped.yaml").write_text(dump_config(config))
    assert load_config(tmp_path / "dumped.yaml") == config


def test_configurations_are_shipped() -> None:
    assert {path.stem for path in CONFIGS} >= {"toy", "locomo_p1"}


def test_every_kind_of_value_survives_a_dump(tmp_path: Path) -> None:
    config = TrainConfig(
        out="runs/with space",
        seed=0,
        data=DataConfig(train=("locomo", "qmsum:train"), fold=4, max_turns=100),
        objective=ObjectiveConfig(listwise=0.0, budgets=(7,), temperature=1e-3),
        optim=OptimConfig(lr=3e-5, accumulate=2),
        run=RunConfig(wandb="offline", resume=False),
    )
    config = replace(config, model=replace(config.model, fusion="linear", encoder=EncoderConfig(tune="lora")))
    (tmp_path / "dumped.yaml").write_text(dump_config(config))
    assert load_config(tmp_path / "dumped.yaml") == config


def test_the_command_line_wins_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    path = tmp_path / "some.yaml"
    path.write_text("out: runs/a\noptim: {lr: 0.5, epochs: 7}\n")
    config = load_config(path, ["--optim.lr", "1e-4", "--data.fold=2", "--run.resume", "false"])
    assert (config.optim.lr, config.optim.epochs, config.optim.questions) == (1e-4, 7, OptimConfig().questions)
    assert config.data.fold == 2
    assert config.run.resume is False


def test_an_unknown_key_says_where_the_known_ones_are(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("out: a\noptim: {rate: 1}\n")
    with pytest.raises(ConfigError, match=r"'rate'.*--print_config"):
        load_config(path)
    path.write_text("out: a\n")
    with pytest.raises(ConfigError, match=r"--optim.rate.*--print_config"):
        load_config(path, ["--optim.rate", "1"])


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("out: a\nlearning_rate: 1\n", "learning_rate"),
        ("out: a\noptim: {rate: 1}\n", "rate"),
        ("out: a\noptim: {lr: fast}\n", "fast"),
        ("out: a\nmodel: {encoder: {tune: half}}\n", "half"),
        ("out: a\ndata: {train: 3}\n", "train"),
        ("seed: 1\n", "out"),
        ("out: [\n", ""),
        ("out: a\nobjective: {listwise: 0, binary: 0, packing: 0}\n", "every weight of objective's task is 0"),
        ("out: a\ndata: {train: [locomo]}\n", "data.fold"),
        ("out: a\ndata: {train: []}\n", "data.train is empty"),
        ("out: a\nmodel: {width: 10}\n", "model.width=10"),
        ("out: ''\n", "out is empty"),
        ("out: a\noptim: 5\n", "optim=5 is no mapping"),
        ("out: a\noptim: [1]\n", "optim=[1] is no mapping"),
        ("out: a\nmodel: null\n", "model=null is no mapping"),
        ("out: a\nmodel: {encoder: 5}\n", "model.encoder=5 is no mapping"),
        ("out: a\ndata: foo\n", '"data"'),
        ("", "bad.yaml is empty or no mapping"),
        ("# only a comment\n", "bad.yaml is empty or no mapping"),
        ("5\n", "bad.yaml is empty or no mapping"),
        ("out: a\noptimm: {lr: 1}\n", "'optimm.lr' is not accepted; `foveate train CONFIG --print_config`"),
        ("out: a\noptim: {lr: .nan}\n", "optim.lr=nan"),
        ("out: a\noptim: {encoder_lr: .inf}\n", "optim.encoder_lr=inf"),
        ("out: a\noptim: {clip: .inf}\n", "optim.clip=inf"),
        ("out: a\noptim: {weight_decay: .nan}\n", "optim.weight_decay=nan"),
        ("out: a\noptim: {weight_decay: -0.1}\n", "optim.weight_decay=-0.1"),
        ("out: a\nobjective: {binary: .nan}\n", "objective.binary=nan"),
        ("out: a\nobjective: {packing: .inf}\n", "objective.packing=inf"),
        ("out: a\nobjective: {listwise: -1}\n", "objective.listwise=-1"),
        ("out: a\nobjective: {temperature: .inf}\n", "objective.temperature=inf"),
        ("out: a\nmodel: {encoder: {top_layers: 0}}\n", "model.encoder.top_layers=0"),
        ("out: a\nmodel: {encoder: {lora_dropout: 1}}\n", "model.encoder.lora_dropout=1"),
        ("out: a\nmodel: {encoder: {lora_dropout: .nan}}\n", "model.encoder.lora_dropout=nan"),
    ],
)
def test_a_bad_file_is_one_line_that_names_the_value(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--optim.lr", "-1"], "optim.lr=-1"),
        (["--optim.lr", "much"], "much"),
        (["--optim.learn", "1"], "learn"),
        (["--data.fold", "5"], "data.fold=5"),
        (["--model.context_kernel", "4"], "model.context_kernel=4"),
        (["--model.dropout", "1"], "model.dropout=1"),
        (["--objective.budgets", "[0]"], "objective.budgets=[0]"),
        (["--objective.temperature", "0"], "objective.temperature=0"),
        (["--run.keep", "0"], "run.keep=0"),
        (["--model.encoder.max_length", "2"], "model.encoder.max_length=2"),
        (["stray"], "stray"),
    ],
)
def test_a_bad_argument_is_one_line_that_names_the_value(plain: Path, words: Sequence[str], named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(plain, words)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"out: caf\xe9\n")
    with pytest.raises(ConfigError, match=r"latin\.yaml cannot be read .*UTF-8"):
        load_config(tmp_path / "latin.yaml")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml"):
        load_config(tmp_path / "none.yaml")
