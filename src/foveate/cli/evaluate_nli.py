"""`foveate evaluate nli`: how well contradictions are known, per set and method."""

from __future__ import annotations

import argparse
from pathlib import Path

import foveate
from foveate.cli.outputs import check_outputs, write_outputs
from foveate.core.errors import ConfigError
from foveate.corpora.root import data_root
from foveate.evaluation.nli import LEXICAL, SETS, evaluate, load_sets, markdown, nli_method, save_reliability
from foveate.evaluation.progress import progress
from foveate.evaluation.results import git_commit

_EPILOG = f"""\
methods, comma separated:
  {LEXICAL}  the rule of Eq. 5 without a model: words, negations, opposites, numbers
  FOLDER   a run with an NLI head (nli.form: bi) or a cross-encoder (nli.form: cross); a hub id of a sequence classifier

sets, comma separated:
  {", ".join(SETS)}
  breaking and negation are the groups of sentences that no training pair shares; decode holds contradictions only.

examples:
  foveate evaluate nli --method lexical,runs/nli-bi,runs/nli-cross --plot runs/nli.png
  foveate evaluate nli --method runs/nli-bi --sets snli-test,mnli --limit 500
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.epilog = _EPILOG
    parser.add_argument("--method", required=True, metavar="NAMES", help="methods, comma separated (see below)")
    parser.add_argument("--sets", default=",".join(SETS), metavar="NAMES", help="sets, comma separated (default all)")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="at most N pairs a set, evenly spaced")
    parser.add_argument("--out", type=Path, metavar="FILE", help="result rows, one JSON object a line")
    parser.add_argument("--report", type=Path, metavar="FILE", help="save the tables as Markdown, too")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="save reliability diagrams (.png, .svg, .pdf)")


def run(args: argparse.Namespace) -> int:
    """Evaluate, print, write; 0."""
    if args.limit < 0:
        raise ConfigError(f"--limit {args.limit}: give 0 or more pairs")
    check_outputs(args, add=False)
    methods = [nli_method(name) for name in _names(args.method, "--method")]
    sets = load_sets(data_root(), _names(args.sets, "--sets"), args.limit)
    with progress(len(sets) * len(methods)) as bar:
        rows = [evaluate(method, one, bar) for method in methods for one in sets]
    commit = git_commit(Path(foveate.__file__).parent)
    command = f"foveate evaluate nli --sets {args.sets} --limit {args.limit}"
    rows = [row | {"limit": args.limit, "code_commit": commit, "command": command} for row in rows]
    write_outputs(args, markdown(rows), rows, draw=lambda path: save_reliability(rows, path), add=False)
    return 0


def _names(text: str, option: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ConfigError(f"{option} {text!r} names nothing: give names, comma separated")
    return names
