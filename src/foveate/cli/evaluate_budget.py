"""`foveate evaluate budget`: budget rules of a trained scorer against fixed budgets of equal mean cost."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

import foveate
from foveate.cli.outputs import check_outputs, write_outputs
from foveate.core.errors import ConfigError
from foveate.core.schema import Conversation
from foveate.core.tokens import load_counter
from foveate.corpora import synthetic
from foveate.evaluation.budget_report import findings, markdown, plot_points, shown_as
from foveate.evaluation.budgets import FAMILIES, Study, family_names, run_study, steps_of
from foveate.evaluation.checkpoints import load_checkpoint
from foveate.evaluation.plot import save_spending_plot
from foveate.evaluation.progress import progress
from foveate.evaluation.results import RunFacts, git_commit, rounded
from foveate.evaluation.suites import SplitName, Suite, SuiteName, load_suite

_FIT = Path("data/synthetic/validation.jsonl")
_EPILOG = f"""\
rules:
  {", ".join(FAMILIES)}; each has one scalar, fitted to every target mean on validation questions, without labels

splits:
  P0  one scorer for all conversations; scalars are fitted on --fit
  P1  LoCoMo only: RUN holds fold0 .. fold4; scalars are fitted on the fold's validation conversations

what is measured:
  evidence recall (ERB) against the mean rendered tokens; the difference to the best fixed budget of the same mean cost,
  its interval over conversations and the exact sign-flip p; budgets given; what perfect foresight could gain; rank
  correlations of what a rule goes by with what a question needs.

An interrupted run goes on where it stopped (finished folds and conversations lie in --work).

examples:
  foveate evaluate budget runs/locomo-p1 --split P1 --report docs/results/budget-p1.md --plot docs/results/budget-p1.png
  foveate evaluate budget runs/transfer --out docs/results/budget.jsonl
  foveate evaluate budget runs/transfer --rules share,prose --targets 512 --limit-conversations 1
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="a run of `foveate train`, or the folder of a run's folds"
    )
    parser.add_argument("--corpus", choices=get_args(SuiteName), default="locomo", help="what to test on (locomo)")
    parser.add_argument("--split", choices=get_args(SplitName), default="P0", help="protocol (default P0)")
    parser.add_argument("--rules", default="all", metavar="NAMES", help="rules, comma separated (default all)")
    parser.add_argument(
        "--targets", default="192,256,384,512,768,1024", metavar="TOKENS", help="mean tokens aimed at, comma separated"
    )
    parser.add_argument("--b-max", type=int, default=2048, metavar="TOKENS", help="most for a question (default 2048)")
    parser.add_argument("--b-min", type=int, default=64, metavar="TOKENS", help="least for a question (default 64)")
    parser.add_argument("--fit", type=Path, default=_FIT, metavar="FILE", help=f"P0: fit scalars on these ({_FIT})")
    parser.add_argument("--counter", default="minilm", metavar="SPEC", help="token counter (default minilm)")
    parser.add_argument("--seed", type=int, default=13, help="of generated conversations (default 13)")
    parser.add_argument("--data", type=Path, metavar="FILE", help="synthetic: test on this file, generate none")
    parser.add_argument("--limit-conversations", type=int, metavar="N", help="test on the first N only")
    parser.add_argument("--out", type=Path, metavar="FILE", help="add the result rows to this file")
    parser.add_argument("--report", type=Path, metavar="FILE", help="save the tables as Markdown, too")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="save recall over mean tokens (.png, .svg, .pdf)")
    parser.add_argument(
        "--work", type=Path, default=Path("runs/evaluate/budget"), metavar="FOLDER", help="for resuming"
    )


def run(args: argparse.Namespace) -> int:
    """Fit, measure, compare, store, print; 0."""
    check_outputs(args)
    study = study_of(args)
    with progress(steps_of(study)) as bar:
        asked, fits = run_study(study, bar)
    if not any(one.category not in study.suite.apart for one in asked):
        raise ConfigError(f"no question of {args.corpus} with evidence was asked: test on more conversations")
    found = findings(study, asked, fits, facts_of(args, study))
    found = shown_as(found, [rounded(row) for row in found.rows])
    title = f"{study.suite.name}, split {study.split}: evidence kept for a mean budget"
    write_outputs(
        args,
        markdown(study, found, study.suite.categories),
        found.rows,
        draw=lambda path: save_spending_plot(plot_points(found), title, study.counter.name, path),
    )
    return 0


def study_of(args: argparse.Namespace) -> Study:
    """What the arguments ask for.

    Raises:
        ConfigError: they contradict each other.
        CheckpointError: the folder holds no scorer.
    """
    whole = load_suite(args.corpus, data=args.data, seed=args.seed)
    folds = len(whole.folds) if args.split == "P1" else None
    if folds == 0:
        raise ConfigError(f"{args.corpus} has no folds: use --split P0")
    conversations, name = _fitted_on(args, whole)
    return Study(
        suite=whole.first(args.limit_conversations),
        split=args.split,
        checkpoint=load_checkpoint(args.run, whole.name, folds=folds),
        counter=load_counter(args.counter),
        rules=family_names(args.rules),
        targets=_targets(args.targets),
        b_min=args.b_min,
        b_max=args.b_max,
        fit_on=conversations,
        fit_name=name,
        work=args.work,
    )


def _fitted_on(args: argparse.Namespace, suite: Suite) -> tuple[tuple[Conversation, ...], str]:
    if args.split == "P1":
        return suite.conversations, "each fold's validation conversations"
    return tuple(synthetic.read(args.fit)), args.fit.name if args.fit.is_absolute() else args.fit.as_posix()


def _targets(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ConfigError(f"--targets {text!r}: give positive token counts, comma separated, for instance 256,512")
    return tuple(sorted({int(part) for part in parts}))


def facts_of(args: argparse.Namespace, study: Study) -> RunFacts:
    """What is true of all rows, and the command that makes them again."""
    run = args.run.name if args.run.is_absolute() else args.run.as_posix()
    options = [run, f"--split {args.split}", f"--targets {','.join(map(str, study.targets))}"]
    defaults = (("corpus", "locomo"), ("rules", "all"), ("b_max", 2048), ("b_min", 64), ("counter", "minilm"))
    more = (("seed", 13), ("limit_conversations", None))
    for name, default in (*defaults, *more):
        if (value := getattr(args, name)) != default:
            options.append(f"--{name.replace('_', '-')} {value}")
    if args.data is not None:
        options.append(f"--data {args.data.name}")
    if args.split == "P0" and args.fit != _FIT:
        options.append(f"--fit {study.fit_name}")
    return RunFacts(
        dataset=study.suite.name,
        data_sha=study.suite.data_sha,
        split=study.split,
        tokenizer_id=study.counter.name,
        render="chrono",
        apart=study.suite.apart,
        conversations=len(study.suite.conversations),
        seed=args.seed,
        command=f"foveate evaluate budget {' '.join(options)}",
        code_commit=git_commit(Path(foveate.__file__).parent),
    )
