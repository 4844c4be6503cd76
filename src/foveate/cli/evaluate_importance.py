"""`foveate evaluate importance`: how well CRITICAL turns are found by a head, by the keyword rule, by either."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from foveate.core.errors import MissingExtraError
from foveate.core.files import write_atomically
from foveate.corpora import store
from foveate.corpora.root import data_root
from foveate.evaluation.results import check_writable

_EPILOG = """\
A folder whose model has an importance head is measured as it is. Otherwise a head is trained on the vectors of the
encoder (a minute or two, most of it encoding; vectors are kept in --cache), on templates, generated chats, MTS-Dialog,
ACI-Bench and QMSum, never on LoCoMo.

examples:
  foveate evaluate importance
  foveate evaluate importance --model runs/transfer --flagged runs/flagged.txt --report runs/importance.md
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments."""
    parser.epilog = _EPILOG
    parser.add_argument("--model", default="minilm", metavar="NAME", help="a run, an encoder or minilm (default)")
    parser.add_argument(
        "--chats", type=Path, default=Path("data/synthetic/train.jsonl"), metavar="FILE", help="generated conversations"
    )
    parser.add_argument("--seed", type=int, default=13, help="of templates, splits and training (default 13)")
    parser.add_argument("--epochs", type=int, default=8, help="of training the head (default 8)")
    parser.add_argument("--cache", type=Path, default=Path("runs/cache"), metavar="FOLDER", help="of vectors")
    parser.add_argument("--flagged", type=Path, metavar="FILE", help="write the LoCoMo turns that are flagged, to read")
    parser.add_argument("--report", type=Path, metavar="FILE", help="save the table as Markdown")


def run(args: argparse.Namespace) -> int:
    """Train where needed, measure, print; 0."""
    try:
        from foveate.evaluation.importance import Setup, markdown, measure
    except ImportError as error:
        raise MissingExtraError(error.name or "torch", "train") from error
    for path in (args.flagged, args.report):
        if path is not None:
            check_writable(path)
    setup = Setup(args.model, store.read(args.chats), data_root(), args.cache, args.seed, args.epochs)
    found = measure(setup, lambda line: print(line, file=sys.stderr, flush=True))
    text = markdown(found)
    print(text, end="")
    if args.report is not None:
        write_atomically(args.report, text)
    if args.flagged is not None:
        lines = [f"{who}\t{turn.id}\t{' '.join(turn.text.split())}\n" for who, turn in found.flagged]
        write_atomically(args.flagged, "".join(lines))
    return 0
