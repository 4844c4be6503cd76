"""YAML files and dotted arguments to a checked `TrainConfig`. The only place that knows jsonargparse."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

from foveate.config.schema import (
    DataConfig,
    EncoderConfig,
    LossConfig,
    ModelConfig,
    OptimConfig,
    RunConfig,
    TrainConfig,
)
from foveate.core.errors import ConfigError


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> TrainConfig:
    """The configuration in a YAML file with dotted overrides on top.

    Args:
        path: the YAML file.
        overrides: command-line words such as ["--optim.lr", "1e-4", "--data.fold=2"].

    Raises:
        ConfigError: the file is missing, a key is unknown, a value has the wrong type or contradicts another.
    """
    if not Path(path).is_file():
        raise ConfigError(f"no configuration file {path}: the shipped ones are in configs/")
    return _build(_parse(["--config", str(path), *overrides]))


def dump_config(config: TrainConfig) -> str:
    """The resolved configuration as YAML; `load_config` reads it back equal."""
    parser = _parser()
    return parser.dump(parser.parse_object(_plain(config)), skip_none=False)


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="foveate train", exit_on_error=False, default_env=False)
    parser.add_argument("--config", action="config")
    parser.add_class_arguments(TrainConfig, nested_key=None)
    return parser


def _parse(words: Sequence[str]) -> Namespace:
    parser = _parser()
    try:
        return parser.parse_args(list(words))
    except Exception as error:  # jsonargparse raises several unrelated types; each is a user's mistake here
        raise ConfigError(_one_line(str(error))) from error


def _build(values: Namespace) -> TrainConfig:
    data, model = values["data"], values["model"]
    encoder = EncoderConfig(**vars(model["encoder"]))
    rest = {k: v for k, v in vars(model).items() if k != "encoder"}
    return TrainConfig(
        out=values["out"],
        seed=values["seed"],
        data=DataConfig(**{k: tuple(v) if isinstance(v, list) else v for k, v in vars(data).items()}),
        model=ModelConfig(encoder=encoder, **rest),
        loss=LossConfig(**{k: tuple(v) if isinstance(v, list) else v for k, v in vars(values["loss"]).items()}),
        optim=OptimConfig(**vars(values["optim"])),
        run=RunConfig(**vars(values["run"])),
    )


def _plain(config: TrainConfig) -> dict[str, object]:
    from dataclasses import asdict

    return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(config).items()}


def _one_line(message: str) -> str:
    return re.sub(r"\s+", " ", message).strip()
