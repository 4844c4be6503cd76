"""`foveate evaluate calibration`: predicted against realised usefulness, tier by tier, of a trained scorer."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

import foveate
from foveate.cli.evaluate import parse_budgets
from foveate.cli.outputs import check_outputs, write_outputs
from foveate.core.errors import ConfigError
from foveate.core.protocols import PolicyName
from foveate.core.schema import Conversation
from foveate.core.tokens import load_counter
from foveate.corpora import synthetic
from foveate.evaluation.checkpoints import load_checkpoint
from foveate.evaluation.plot import save_reliability_plot
from foveate.evaluation.progress import progress
from foveate.evaluation.results import RunFacts, git_commit, rounded
from foveate.evaluation.suites import SplitName, Suite, SuiteName, load_suite
from foveate.evaluation.tier_calibration import (
    Setup,
    ShortenName,
    ValuesName,
    markdown,
    middle_of,
    plot_points,
    rows_of,
    run_calibration,
)

_FIT = Path("data/synthetic/validation.jsonl")
_EPILOG = """\
splits:
  P0  one scorer for all conversations
  P1  LoCoMo only: RUN holds fold0 .. fold4; --fold K for one fold, RUN then may be its run alone

what is measured:
  For every turn and question the tier that was given, the value the packer read for it, and whether it was useful: the
  turn is evidence and at least 0.8 of its words were emitted. Per tier: means, their ratio, ECE over bins of equal
  mass, the share of evidence, and the bins. Of dropped turns: the value given up and the evidence lost. Beside it ERB,
  mean coverage and tokens.

values of a compressed form (--values):
  own    as the scorer has them
  prior  retention squared, whatever the scorer has
  fit    fitted now: P1 on the fold's validation conversations, P0 on --fit

An interrupted run goes on where it stopped (finished conversations lie in --work).

examples:
  foveate evaluate calibration runs/locomo-p1 --split P1 --report docs/results/tiers-p1.md --plot runs/tiers-p1.png
  foveate evaluate calibration runs/transfer --budgets 512 --policy topk --limit-conversations 1
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.epilog = _EPILOG
    parser.add_argument("run", type=Path, metavar="RUN", help="a run, an export, or the folder of a run's folds")
    parser.add_argument("--corpus", choices=get_args(SuiteName), default="locomo", help="what to test on (locomo)")
    parser.add_argument("--split", choices=get_args(SplitName), default="P0", help="protocol (default P0)")
    parser.add_argument("--fold", type=int, metavar="K", help="P1: only this fold's test conversations")
    parser.add_argument(
        "--budgets", default="256,512,1024,2048", metavar="TOKENS", help="token budgets (default 256,512,1024,2048)"
    )
    parser.add_argument(
        "--policy", choices=get_args(PolicyName), help="how turns are chosen (default the scorer's own)"
    )
    parser.add_argument("--values", choices=get_args(ValuesName), default="own", help="see below (default own)")
    parser.add_argument(
        "--shorten", choices=get_args(ShortenName), default="strict", help="the heuristic compressor on offer (strict)"
    )
    parser.add_argument(
        "--stub-value", type=float, default=0.0, metavar="SHARE", help="value of a stub, a share of the score (0)"
    )
    parser.add_argument("--fit", type=Path, default=_FIT, metavar="FILE", help=f"P0, --values fit: on these ({_FIT})")
    parser.add_argument("--counter", default="minilm", metavar="SPEC", help="token counter (default minilm)")
    parser.add_argument("--seed", type=int, default=13, help="of generated conversations (default 13)")
    parser.add_argument("--data", type=Path, metavar="FILE", help="synthetic: test on this file, generate none")
    parser.add_argument("--limit-conversations", type=int, metavar="N", help="test on the first N only")
    parser.add_argument("--out", type=Path, metavar="FILE", help="add the result rows to this file")
    parser.add_argument("--report", type=Path, metavar="FILE", help="save the tables as Markdown, too")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="save the reliability per tier (.png, .svg, .pdf)")
    parser.add_argument(
        "--work", type=Path, default=Path("runs/evaluate/calibration"), metavar="FOLDER", help="for resuming"
    )


def run(args: argparse.Namespace) -> int:
    """Measure, store, print; 0."""
    check_outputs(args)
    setup = setup_of(args)
    with progress(len(setup.suite.conversations)) as bar:
        samples = run_calibration(setup, bar)
    rows = [rounded(row) for row in rows_of(setup, samples, facts_of(args, setup))]
    title = f"{setup.suite.name}, split {setup.split}: usefulness at {middle_of(rows)} tokens"
    text = markdown(setup, rows)
    write_outputs(args, text, rows, draw=lambda path: save_reliability_plot(plot_points(rows), title, path))
    return 0


def setup_of(args: argparse.Namespace) -> Setup:
    """What the arguments ask for.

    Raises:
        ConfigError: they contradict each other.
        CheckpointError: the folder holds no scorer.
    """
    if args.fold is not None and args.split != "P1":
        raise ConfigError(f"--fold {args.fold} without folds: give --split P1")
    whole = load_suite(args.corpus, data=args.data, seed=args.seed)
    if args.split == "P1" and not whole.folds:
        raise ConfigError(f"{args.corpus} has no folds: use --split P0")
    tested = whole.only_fold(args.fold).first(args.limit_conversations)
    if args.split == "P1" and args.fold is None:
        checkpoint = load_checkpoint(args.run, whole.name, folds=len(whole.folds))
    else:
        checkpoint = load_checkpoint(args.run, whole.name, fold=args.fold)
    return Setup(
        suite=tested,
        split=args.split,
        fold=args.fold,
        checkpoint=checkpoint,
        counter=load_counter(args.counter),
        budgets=parse_budgets(args.budgets),
        policy=args.policy,
        values=args.values,
        shorten=args.shorten,
        stub_value=args.stub_value,
        fit_on=_fitted_on(args, whole),
        work=args.work,
    )


def _fitted_on(args: argparse.Namespace, suite: Suite) -> tuple[Conversation, ...]:
    if args.values != "fit":
        return ()
    return suite.conversations if args.split == "P1" else tuple(synthetic.read(args.fit))


def facts_of(args: argparse.Namespace, setup: Setup) -> RunFacts:
    """What is true of all rows, and the command that makes them again."""
    run = args.run.name if args.run.is_absolute() else args.run.as_posix()
    options = [run, f"--split {args.split}", f"--budgets {','.join(map(str, setup.budgets))}"]
    defaults = (("corpus", "locomo"), ("fold", None), ("policy", None), ("values", "own"), ("shorten", "strict"))
    more = (("stub_value", 0.0), ("counter", "minilm"), ("seed", 13), ("limit_conversations", None))
    for name, default in (*defaults, *more):
        if (value := getattr(args, name)) != default:
            options.append(f"--{name.replace('_', '-')} {value}")
    if args.data is not None:
        options.append(f"--data {args.data.name}")
    if args.values == "fit" and args.split == "P0" and args.fit != _FIT:
        options.append(f"--fit {args.fit.name if args.fit.is_absolute() else args.fit.as_posix()}")
    return RunFacts(
        dataset=setup.suite.name,
        data_sha=setup.suite.data_sha,
        split=setup.split,
        tokenizer_id=setup.counter.name,
        render="chrono",
        apart=setup.suite.apart,
        conversations=len(setup.suite.conversations),
        seed=args.seed,
        command=f"foveate evaluate calibration {' '.join(options)}",
        code_commit=git_commit(Path(foveate.__file__).parent),
        fold=args.fold,
    )
