"""The `foveate` command: finds the verb, imports its module only then, and turns errors into one line.

A verb is a module `foveate.cli.<verb>` with `configure(parser)`, which adds its arguments, and `run(args)`, which
returns the exit code. One that sets `ALLOW_EXTRA = True` gets the arguments it does not know as the list `args.extra`.
One with `PARTS`, names and what they do, leaves `foveate <verb> <part> ...` to the module `foveate.cli.<verb>_<part>`.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

from foveate import __version__
from foveate.core.errors import FoveateError

VERBS = {
    "train": "train a scorer from a YAML file: foveate train configs/toy.yaml --optim.lr 1e-4",
    "evaluate": "score methods and checkpoints on a benchmark: foveate evaluate locomo --split P1",
    "export": "turn a finished run into a folder that serves without torch",
    "compress": "pack a conversation (OpenAI messages, JSON or JSONL) into a token budget",
    "data": "list the corpora, say where to get them, verify the files, generate synthetic ones",
    "bench": "measure packing, encoding and training speed on this machine",
}

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
_DESCRIPTION = "Sharp where the question points, a cheap trace of the rest: long conversations under a token budget."
_EPILOG = """\
foveate VERB --help explains one verb. Errors a user can act on are one line on stderr and exit with 2.
Corpora are read from the folder that the environment variable FOVEATE_DATA names.
"""


def top_parser() -> argparse.ArgumentParser:
    """The parser of the verbs' names; it knows nothing of their arguments and imports none of them."""
    width = max(map(len, VERBS))
    lines = "\n".join(f"  {verb:<{width}}  {help_}" for verb, help_ in VERBS.items())
    parser = argparse.ArgumentParser(
        prog="foveate",
        usage="foveate [-h] [--version] VERB ...",
        description=f"{_DESCRIPTION}\n\nverbs:\n{lines}",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"foveate {__version__}")
    parser.add_argument("verb", metavar="VERB", choices=VERBS, help=argparse.SUPPRESS)
    return parser


def find(verb: str, arguments: Sequence[str]) -> tuple[str, str, ModuleType, Sequence[str]]:
    """What is called, what it does, its module and the arguments left: `evaluate nli` is a verb of its own."""
    module = importlib.import_module(f"foveate.cli.{verb}")
    parts: Mapping[str, str] = vars(module).get("PARTS", {})
    if not arguments or arguments[0] not in parts:
        return verb, VERBS[verb], module, arguments
    part = arguments[0]
    return f"{verb} {part}", parts[part], importlib.import_module(f"foveate.cli.{verb}_{part}"), arguments[1:]


def parse(called: str, does: str, module: ModuleType, arguments: Sequence[str]) -> argparse.Namespace:
    """The verb's arguments, read by the parser that its module configures."""
    parser = argparse.ArgumentParser(
        prog=f"foveate {called}",
        description=does,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.configure(parser)
    if not vars(module).get("ALLOW_EXTRA", False):
        return parser.parse_args(arguments)
    args, args.extra = parser.parse_known_args(arguments)
    return args


def guarded(run: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """The exit code of `run`; foveate's own errors, an interrupt and an output that cannot be written
    become one line or none.

    Anything else is a bug and keeps its traceback.
    """
    try:
        code = run(args)
        sys.stdout.flush()
    except FoveateError as error:
        print(f"foveate: error: {' '.join(str(error).split())}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("foveate: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _silence()  # the reader went away (`| head`)
        return 141
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:  # an open stream's error carries no name
            raise
        _silence()
        print(f"foveate: error: the output cannot be written: {error.strerror}", file=sys.stderr)
        return 2
    return code


def _silence() -> None:
    """Point stdout at nothing, so that the interpreter's last flush stays quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one verb; returns the exit code (0 fine, 2 a user's error, 130 interrupted)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a character shows "?"
    parser = top_parser()
    if not arguments:
        parser.print_help()
        return 2
    verb = parser.parse_args(arguments[:1]).verb
    called, does, module, rest = find(verb, arguments[1:])
    return guarded(module.run, parse(called, does, module, rest))


if __name__ == "__main__":
    sys.exit(main())
