"""`foveate data`: which corpora there are, under which licence, where to get them, whether they are whole."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from foveate.core.errors import DataError
from foveate.core.files import sha256
from foveate.corpora import synthetic
from foveate.corpora.root import KNOWN, Source, Use, data_root

_EPILOG = """\
examples:
  foveate data list
  foveate data where locomo
  FOVEATE_DATA=/path/to/data foveate data verify
  foveate data generate --conversations 100 --seed 7 --out runs/synthetic.jsonl

No third-party corpus comes with foveate: get each from its own repository at the commit that `where` names, accept its
licence, and put the files where `where` says, under the folder that FOVEATE_DATA names.
"""

_USES: dict[Use, str] = {
    "yes": "may train the shipped checkpoint",
    "no": "evaluation only; never in the shipped checkpoint",
    "research": "your own experiments; never in the shipped checkpoint",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the four actions."""
    parser.epilog = _EPILOG
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser(
        "list", help="a table: licence, whether it may train the shipped checkpoint, whether it is there"
    )
    where = actions.add_parser("where", help="where to get each corpus, and what its files must hash to")
    where.add_argument("corpus", nargs="?", choices=sorted(KNOWN), metavar="CORPUS", help="only this one")
    actions.add_parser("verify", help="compare the sha256 of every known file; exit 2 when one has changed")
    generate = actions.add_parser("generate", help="write synthetic conversations as JSONL")
    generate.add_argument("--conversations", type=int, required=True, metavar="N", help="how many")
    generate.add_argument("--seed", type=int, required=True, metavar="S", help="equal seeds give equal bytes")
    generate.add_argument("--out", type=Path, required=True, metavar="FILE", help="the JSONL file to write")


def run(args: argparse.Namespace) -> int:
    """Do what was asked; 2 where a known file has changed."""
    match args.action:
        case "list":
            return _list()
        case "where":
            return _where(KNOWN.values() if args.corpus is None else [KNOWN[args.corpus]])
        case "verify":
            return _verify(data_root())
        case _:
            return _generate(args.conversations, args.seed, args.out)


def _root_or_none() -> Path | None:
    try:
        return data_root()
    except DataError as error:
        print(f"foveate: note: {error}", file=sys.stderr)
        return None


def _list() -> int:
    root = _root_or_none()
    rows = [("corpus", "licence", "may train the checkpoint", "here", "what")]
    for source in KNOWN.values():
        rows.append((source.folder, source.licence, source.checkpoint, _presence(root, source), source.what))
    rows.append(("synthetic", "Apache-2.0", "yes", "made", "long chats of our own making (`foveate data generate`)"))
    _table(rows)
    return 0


def _presence(root: Path | None, source: Source) -> str:
    if root is None:
        return "?"
    here = sum((root / source.folder / name).is_file() for name in source.files)
    return "yes" if here == len(source.files) else f"{here} of {len(source.files)}" if here else "no"


def _table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)]
        print("  ".join(cells).rstrip())


def _where(sources: Iterable[Source]) -> int:
    for source in sources:
        print(f"{source.folder}: {source.what}")
        print(f"  from     {source.upstream} on GitHub, commit {source.commit}")
        print(f"  licence  {source.licence}")
        print(f"  use      {_USES[source.checkpoint]}")
        if source.made:
            print(f"  made     {source.made}")
        for name, digest in source.files.items():
            print(f"  file     $FOVEATE_DATA/{source.folder}/{name}  sha256 {digest}")
    return 0


def _verify(root: Path) -> int:
    changed: list[str] = []
    for source in KNOWN.values():
        for name, expected in source.files.items():
            path = root / source.folder / name
            found = sha256(path) if path.is_file() else ""
            state = "missing" if not found else "ok" if found == expected else "CHANGED"
            print(f"{state:<8} {source.folder}/{name}")
            if state == "CHANGED":
                print(f"         expected {expected}\n         found    {found}")
                changed.append(f"{source.folder}/{name}")
    if changed:
        raise DataError(f"changed: {', '.join(changed)}; get the pinned files again (`foveate data where`)")
    return 0


def _generate(n: int, seed: int, out: Path) -> int:
    conversations = synthetic.generate(n, seed)
    synthetic.write(out, conversations)
    turns = sum(len(c.turns) for c in conversations)
    questions = sum(len(c.questions) for c in conversations)
    print(f"{out}: {n} conversations, {turns} turns, {questions} questions, {out.stat().st_size} bytes")
    return 0
