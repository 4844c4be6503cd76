"""foveate export RUN OUT"""

from __future__ import annotations

import argparse
from pathlib import Path

from foveate.core.errors import ConfigError, MissingExtraError
from foveate.evaluation.results import read_rows


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, help="run folder of foveate train (its best model), or a saved model folder")
    parser.add_argument("out", type=Path, help="folder to write; an earlier export there is replaced")
    parser.add_argument("--no-int8", action="store_true", help="leave the int8 encoder out")
    parser.add_argument(
        "--slim",
        action="store_true",
        help="write the encoder as its differences from the packaged all-MiniLM-L6-v2, which serving then needs",
    )
    parser.add_argument(
        "--rows", type=Path, metavar="FILE", help="put this model's result rows of that file on its card"
    )
    parser.epilog = """\
The folder holds ONNX graphs (fp32 and int8), safetensors, tokenizer, config and a model card. It is compared with the
torch model before it gets its name: fp32 probabilities must agree to 1e-4, int8 on 0.9 of the 20 best turns.
  foveate export runs/toy exports/toy
  foveate compress data/examples/long_chat.json --scorer exports/toy --query "..." --budget 512
"""


def run(args: argparse.Namespace) -> int:
    try:
        from foveate.export.folder import export
    except ImportError as error:
        raise MissingExtraError(error.name or "torch", "train") from error
    rows = [] if args.rows is None else [row for row in read_rows(args.rows) if row["method"] == args.out.name]
    if args.rows is not None and not rows:
        raise ConfigError(f"--rows {args.rows} has no row of {args.out.name}: evaluate that folder first")
    found = export(args.run, args.out, int8=not args.no_int8, slim=args.slim, rows=rows)
    for precision, parity in found.items():
        agreement = f"top-20 agreement {parity.agreement:.3f} over {parity.questions} questions"
        print(f"{precision}: max abs {parity.max_abs:.1e}, {agreement}")
    print(f"exported to {args.out}")
    return 0
