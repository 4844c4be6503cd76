"""`foveate evaluate ranking`: R@k and MRR of a question's evidence among all turns (`evaluation.ranking`)."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import get_args

import foveate
from foveate.cli.outputs import check_outputs, write_outputs
from foveate.core.errors import ConfigError
from foveate.evaluation.methods import RULES, Method, Methods, method_names
from foveate.evaluation.progress import progress
from foveate.evaluation.ranking import can_rank, markdown, rank
from foveate.evaluation.results import RunFacts, git_commit, rounded
from foveate.evaluation.suites import SplitName, Suite, SuiteName, load_suite

_EPILOG = """\
methods and splits are those of `foveate evaluate locomo --help`; "rules" are the rule baselines that rank turns.

examples:
  foveate evaluate ranking --method dense,best-sum-content,checkpoints/foveate-minilm
  foveate evaluate ranking --split P1 --method runs/locomo-p1 --report runs/ranking.md
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.epilog = _EPILOG
    parser.add_argument("--method", required=True, metavar="NAMES", help="methods, comma separated")
    parser.add_argument("--corpus", choices=get_args(SuiteName), default="locomo", help="what to rank (default locomo)")
    parser.add_argument("--split", choices=get_args(SplitName), default="P0", help="protocol (default P0)")
    parser.add_argument("--fold", type=int, metavar="K", help="P1: only this fold's test conversations")
    parser.add_argument("--seed", type=int, default=13, help="of generated conversations (default 13)")
    parser.add_argument("--data", type=Path, metavar="FILE", help="synthetic: read this file, generate none")
    parser.add_argument("--limit-conversations", type=int, metavar="N", help="only the first N")
    parser.add_argument("--out", type=Path, metavar="FILE", help="add the result rows to this file")
    parser.add_argument("--report", type=Path, metavar="FILE", help="save the tables as Markdown, too")


def run(args: argparse.Namespace) -> int:
    """Measure, store, print; 0."""
    check_outputs(args)
    if args.fold is not None and args.split != "P1":
        raise ConfigError(f"--fold {args.fold} without folds: give --split P1")
    suite = load_suite(args.corpus, data=args.data, seed=args.seed).only_fold(args.fold).first(args.limit_conversations)
    chosen = _methods(args, suite)
    with progress(len(chosen) * len(suite.conversations)) as bar:
        facts = facts_of(args, suite)
        rows = [
            rounded(rank(method, suite, replace(facts, command=f"{facts.command} --method {name}"), bar))
            for name, method in chosen.items()
        ]
    write_outputs(args, markdown(rows, suite.categories), rows)
    return 0


def _methods(args: argparse.Namespace, suite: Suite) -> dict[str, Method]:
    """The methods by their names; of "rules" those that rank.

    Raises:
        ConfigError: a name is no method, or one that ranks nothing.
    """
    finder, chosen = Methods(suite, args.split, args.fold), dict[str, Method]()
    for name in method_names(args.method):
        method = finder.find(name)
        if isinstance(method, Method) and can_rank(method):
            path = Path(name)
            chosen[name if name in RULES or not path.is_absolute() else path.name] = method
        elif "rules" not in args.method.split(","):
            raise ConfigError(f"method {name!r} ranks no turns: name one that does, for instance bm25 or a run")
    return chosen


def facts_of(args: argparse.Namespace, suite: Suite) -> RunFacts:
    """What is true of all rows; the command is completed for each method."""
    options = [f"--split {args.split}"]
    for name, default in (("corpus", "locomo"), ("fold", None), ("seed", 13), ("limit_conversations", None)):
        if (value := getattr(args, name)) != default:
            options.append(f"--{name.replace('_', '-')} {value}")
    if args.data is not None:
        options.append(f"--data {args.data.name}")
    return RunFacts(
        dataset=suite.name,
        data_sha=suite.data_sha,
        split=args.split,
        tokenizer_id="none",
        render="none",
        apart=suite.apart,
        conversations=len(suite.conversations),
        seed=args.seed,
        command=f"foveate evaluate ranking {' '.join(options)}",
        code_commit=git_commit(Path(foveate.__file__).parent),
        fold=args.fold,
    )
