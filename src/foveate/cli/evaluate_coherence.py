"""`foveate evaluate coherence`: which side of a planted conflict survives the packing, with and without Eq. 5."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path

import foveate
from foveate.cli.outputs import check_outputs, write_outputs
from foveate.core.errors import ConfigError, MissingExtraError
from foveate.core.protocols import Scorer
from foveate.core.tokens import load_counter
from foveate.corpora.synthetic import conflicts
from foveate.evaluation.checkpoints import load_checkpoint
from foveate.evaluation.coherence import MODES, Contradictor, Mode, evaluate, markdown
from foveate.evaluation.embedding import MiniLmEmbedder
from foveate.evaluation.progress import progress
from foveate.evaluation.results import Row, git_commit
from foveate.rules.acc import acc_rule
from foveate.rules.coherence import plain_text
from foveate.rules.contradiction import LexicalContradiction
from foveate.signals.vectors import turn_text

LEXICAL = "lexical"
_EPILOG = """\
A user states a fact, and updates it or hears a last reply that contradicts it; then asks. Measured is whether the
context still holds the user's newest statement (true), a turn that says otherwise (wrong), or both.

modes:
  off    z = s             as if there were no last reply
  paper  z = s (1 - P)     Eq. 6 as printed: what contradicts the last reply is demoted
  guard  z = s + weight P  what contradicts the last reply is kept

example:
  foveate evaluate coherence --scorer acc,runs/transfer --nli lexical,runs/nli-bi,runs/nli-cross --budgets 64,128,256
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.epilog = _EPILOG
    parser.add_argument("--scorer", default="acc", metavar="NAMES", help="acc, acc-dense (Eq. 1) or run folders")
    parser.add_argument("--nli", default=LEXICAL, metavar="NAMES", help="lexical, run folders, hub ids; commas")
    parser.add_argument("--modes", default=",".join(MODES), help="of off, paper, guard (default all)")
    parser.add_argument("--budgets", default="64,128,256", metavar="TOKENS", help="token budgets (default 64,128,256)")
    parser.add_argument("--n", type=int, default=240, help="conflicts (default 240)")
    parser.add_argument("--seed", type=int, default=13, help="of the conflicts (default 13)")
    parser.add_argument("--weight", type=float, default=0.5, help="of a contradiction in guard (default 0.5)")
    parser.add_argument("--counter", default="minilm", metavar="SPEC", help="token counter (default minilm)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="result rows, one JSON object a line")
    parser.add_argument("--report", type=Path, metavar="FILE", help="save the tables as Markdown, too")


def run(args: argparse.Namespace) -> int:
    """Evaluate, print, write; 0."""
    modes, budgets = _modes(args.modes), _budgets(args.budgets)
    if not 0 <= args.weight < math.inf:
        raise ConfigError(f"--weight {args.weight}: give a finite number, 0 or more")
    check_outputs(args, add=False)
    scorers = [_scorer(name) for name in _names(args.scorer, "--scorer")]
    models = [_contradiction(name) for name in _names(args.nli, "--nli")]
    planted, counter = conflicts.generate(args.n, args.seed), load_counter(args.counter)
    rows: list[Row] = []
    with progress(len(scorers) * len(planted)) as bar:
        for base in scorers:
            rows += evaluate(base, models, modes, args.weight, planted, budgets, counter, bar)
    facts = {
        "seed": args.seed,
        "tokenizer_id": counter.name,
        "code_commit": git_commit(Path(foveate.__file__).parent),
        "command": f"foveate evaluate coherence --n {args.n} --seed {args.seed} --weight {args.weight:g}",
    }
    rows = [row | facts for row in rows]
    write_outputs(args, markdown(rows), rows, add=False)
    return 0


def _scorer(name: str) -> Scorer:
    match name:
        case "acc":
            return replace(acc_rule(), name=name)
        case "acc-dense":
            return replace(acc_rule(MiniLmEmbedder()), name=name)
        case _:
            return load_checkpoint(Path(name), "synthetic").scorer(0)


def _contradiction(name: str) -> Contradictor:
    """A model over sentence vectors reads turns with date and speaker, as their kept vectors do."""
    if name == LEXICAL:
        return Contradictor(name, LexicalContradiction())
    try:
        from foveate.learned.contradiction import BiEncoderNli, load_nli
    except ImportError as error:
        raise MissingExtraError(error.name or "torch", "train") from error
    model = load_nli(name)
    return Contradictor(model.name, model, turn_text if isinstance(model, BiEncoderNli) else plain_text)


def _modes(text: str) -> list[Mode]:
    given = [name.strip() for name in text.split(",") if name.strip()]
    chosen: list[Mode] = [mode for mode in MODES if mode in given]
    if not given or len(chosen) != len(given):
        raise ConfigError(f"--modes {text!r}: give modes of {', '.join(MODES)}, comma separated, each once")
    return chosen


def _budgets(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ConfigError(f"--budgets {text!r}: give positive token counts, comma separated, for instance 64,128")
    return sorted({int(part) for part in parts})


def _names(text: str, option: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ConfigError(f"{option} {text!r} names nothing: give names, comma separated")
    return names
