"""foveate train CONFIG [--dotted.key value]"""

from __future__ import annotations

import argparse
import sys

from foveate.config.load import dump_config, load_config
from foveate.core.errors import MissingExtraError

ALLOW_EXTRA = True


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "foveate train CONFIG [--dotted.key value ...] [--print_config]"
    parser.add_argument("config", help="YAML file; the shipped ones are in configs/, each says what it takes and gives")
    parser.add_argument("--print_config", action="store_true", help="print the resolved configuration and stop")
    parser.epilog = """\
Any value of the file can be set here by its dotted name:
  foveate train configs/toy.yaml --out runs/mine --optim.lr 1e-3 --data.fold 2
The run folder (out) holds config.yaml, environment.json, metrics.jsonl, checkpoints/ and, at the end, model/ and
result.json. The same command resumes an interrupted run; --run.resume false starts it again.
With several processes: accelerate launch --num_processes N -m foveate.cli.main train CONFIG
"""


def run(args: argparse.Namespace) -> int:
    config = load_config(args.config, args.extra)
    if args.print_config:
        sys.stdout.write(dump_config(config))
        return 0
    try:
        from foveate.training.run import train
    except ImportError as error:
        raise MissingExtraError(error.name or "torch", "train") from error
    train(config)
    return 0
