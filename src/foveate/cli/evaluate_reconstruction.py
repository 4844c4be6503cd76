"""`foveate evaluate reconstruction`: BLEU of packed contexts against the history (`evaluation.reconstruction`)."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import get_args

from foveate.cli.evaluate import facts_of, parse_budgets
from foveate.cli.outputs import check_outputs, write_outputs
from foveate.core.errors import ConfigError
from foveate.core.protocols import PolicyName
from foveate.core.tokens import load_counter
from foveate.evaluation.cache import RecordCache
from foveate.evaluation.methods import Method, Methods, method_names
from foveate.evaluation.progress import progress
from foveate.evaluation.reconstruction import markdown, rebuild, rows_of
from foveate.evaluation.results import Row, rounded
from foveate.evaluation.runner import Bench
from foveate.evaluation.suites import SplitName, SuiteName, load_suite

_EPILOG = """\
methods and splits are those of `foveate evaluate locomo --help`, the oracle excepted.

example:
  foveate evaluate reconstruction --method recency,best-sum-content,checkpoints/foveate-minilm --report runs/bleu.md
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.epilog = _EPILOG
    parser.add_argument("--method", required=True, metavar="NAMES", help="methods, comma separated")
    parser.add_argument("--questions", type=int, default=20, metavar="N", help="of each conversation (default 20)")
    parser.add_argument(
        "--budgets", default="256,1024,4096", metavar="TOKENS", help="token budgets (default 256,1024,4096)"
    )
    parser.add_argument("--corpus", choices=get_args(SuiteName), default="locomo", help="what is packed (locomo)")
    parser.add_argument("--split", choices=get_args(SplitName), default="P0", help="protocol (default P0)")
    parser.add_argument("--fold", type=int, metavar="K", help="P1: only this fold's test conversations")
    parser.add_argument(
        "--policy", choices=get_args(PolicyName), help="how turns are chosen with trained scorers (default their own)"
    )
    parser.add_argument("--counter", default="minilm", metavar="SPEC", help="token counter (default minilm)")
    parser.add_argument("--seed", type=int, default=13, help="of generated conversations (default 13)")
    parser.add_argument("--data", type=Path, metavar="FILE", help="synthetic: read this file, generate none")
    parser.add_argument("--limit-conversations", type=int, metavar="N", help="only the first N")
    parser.add_argument("--out", type=Path, metavar="FILE", help="add the result rows to this file")
    parser.add_argument("--report", type=Path, metavar="FILE", help="save the table as Markdown, too")
    parser.set_defaults(render="chrono")


def run(args: argparse.Namespace) -> int:
    """Measure, store, print; 0."""
    check_outputs(args)
    if args.questions < 1:
        raise ConfigError(f"--questions {args.questions} leaves nothing to measure: give 1 or more")
    if args.fold is not None and args.split != "P1":
        raise ConfigError(f"--fold {args.fold} without folds: give --split P1")
    suite = load_suite(args.corpus, data=args.data, seed=args.seed).only_fold(args.fold).first(args.limit_conversations)
    counter, cache = load_counter(args.counter), RecordCache(Path("runs/evaluate"))
    bench = Bench(suite, args.split, parse_budgets(args.budgets), counter, cache, args.seed, args.fold, args.policy)
    finder = Methods(suite, args.split, args.fold, args.policy)
    chosen = {name: _method(finder, name) for name in method_names(args.method)}
    facts = facts_of(args, bench)
    command = facts.command.replace(f"evaluate {suite.name}", f"evaluate reconstruction --questions {args.questions}")
    rows: list[Row] = []
    with progress(len(chosen) * len(suite.conversations)) as bar:
        for name, method in chosen.items():
            path = Path(name)
            shown = path.name if path.is_absolute() else name
            mine = replace(facts, command=f"{command} --method {shown}")
            found = rebuild(method, bench, args.questions, bar)
            rows.extend(rounded(row) for row in rows_of(method, bench, found, mine))
    write_outputs(args, markdown(rows), rows)
    return 0


def _method(finder: Methods, name: str) -> Method:
    method = finder.find(name)
    if not isinstance(method, Method):
        raise ConfigError(f"method {name!r} is a ceiling and no method: name others")
    return method
