"""YAML files and dotted arguments to a checked `TrainConfig`. The only place that knows jsonargparse."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from foveate.config.schema import (
    BudgetConfig,
    DataConfig,
    EncoderConfig,
    ImportanceConfig,
    ModelConfig,
    NliConfig,
    ObjectiveConfig,
    OptimConfig,
    ReaderConfig,
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
        ConfigError: the file is missing or no YAML mapping, a key is unknown, a value has the wrong type or
            contradicts another.
    """
    if not Path(path).is_file():
        raise ConfigError(f"no configuration file {path}: the shipped ones are in configs/")
    try:
        Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read ({_one_line(str(error))}): give YAML in UTF-8") from error
    return _build(_parse(path, overrides))


def dump_config(config: TrainConfig) -> str:
    """The resolved configuration as YAML; `load_config` reads it back equal."""
    parser = _parser()
    return parser.dump(parser.parse_object(_plain(config)))


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="foveate train", exit_on_error=False, default_env=False)
    parser.add_argument("--config", action="config")
    parser.add_class_arguments(TrainConfig, nested_key=None)
    return parser


def _parse(path: str | Path, overrides: Sequence[str]) -> Namespace:
    parser = _parser()
    try:
        return parser.parse_args(["--config", str(path), *overrides])
    except Exception as error:  # jsonargparse raises several unrelated types; each is a user's mistake here
        if str(error).startswith("Unexpected config"):  # it does not say which file
            raise ConfigError(f"{path} is empty or no mapping: give keys and values, such as out: runs/mine") from error
        raise ConfigError(_one_line(str(error)) + _hint(str(error))) from error


def _build(values: Namespace) -> TrainConfig:
    """Each dataclass is constructed here, so that its `__post_init__` runs (jsonargparse alone would skip it)."""
    model = _fields("model", values["model"])
    encoder = EncoderConfig(**_fields("model.encoder", model.pop("encoder")))
    return TrainConfig(
        out=values["out"],
        seed=values["seed"],
        stage=values["stage"],
        data=DataConfig(**_fields("data", values["data"])),
        model=ModelConfig(encoder=encoder, **model),
        objective=ObjectiveConfig(**_fields("objective", values["objective"])),
        budget=BudgetConfig(**_fields("budget", values["budget"])),
        nli=NliConfig(**_fields("nli", values["nli"])),
        importance=ImportanceConfig(**_fields("importance", values["importance"])),
        reader=ReaderConfig(**_fields("reader", values["reader"])),
        optim=OptimConfig(**_fields("optim", values["optim"])),
        run=RunConfig(**_fields("run", values["run"])),
    )


def _fields(section: str, group: object) -> dict[str, Any]:
    """The values of a section; jsonargparse lets a lone value through where a mapping belongs."""
    if not isinstance(group, Namespace):
        given = "null" if group is None else group
        raise ConfigError(f"{section}={given} is no mapping: give {section} its keys, or leave it out for the defaults")
    return {name: tuple(value) if isinstance(value, list) else value for name, value in vars(group).items()}


def _plain(config: TrainConfig) -> dict[str, object]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(config).items()}


def _hint(message: str) -> str:
    unknown = any(sign in message for sign in ("unrecognized arguments", "does not accept", "is not accepted"))
    return "; `foveate train CONFIG --print_config` lists every key" if unknown else ""


def _one_line(message: str) -> str:
    return re.sub(r"\s+", " ", message).strip()
