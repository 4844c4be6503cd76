"""`foveate evaluate`: measure methods and checkpoints on a corpus, keep the rows, print the tables."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import foveate
from foveate.core.errors import ConfigError
from foveate.core.files import write_atomically
from foveate.core.protocols import PolicyName
from foveate.core.tokens import load_counter
from foveate.evaluation.cache import RecordCache, code_digest
from foveate.evaluation.methods import NOTHING_TRAINED, RULES, AnyMethod, LabelMethod, Method, Methods, method_names
from foveate.evaluation.plot import check_name, save_plot
from foveate.evaluation.progress import Progress, progress
from foveate.evaluation.report import check_baseline, markdown
from foveate.evaluation.results import (
    Row,
    RunFacts,
    add_rows,
    check_writable,
    find_rows,
    git_commit,
    make_row,
    read_rows,
    rounded,
)
from foveate.evaluation.runner import Bench, method_code, method_digest, run_method
from foveate.evaluation.suites import SplitName, SuiteName, load_suite

PARTS = {
    "allergy": "the allergy benchmark at scale: is the planted allergy in the context, whatever the budget",
    "budget": "dynamic budgets against the best fixed budget of equal mean cost",
    "calibration": "what the packer believed a turn was worth against what it was, tier by tier",
    "coherence": "planted updates and contradictions: which side of a conflict is kept under each mode of Eq. 5",
    "importance": "CRITICAL turns found and taken for it: head, keyword rule, and either",
    "nli": "P(contradiction) on sentence pairs: accuracy, AUROC, F1, calibration",
    "reconstruction": "BLEU of the context against the history (Eq. 8), with BLEU/BP and BLEU/ceiling",
    "ranking": "R@k and MRR of a question's evidence among all turns, without a budget",
}
_INDENT = " " * 13
_RULES = textwrap.fill(", ".join(RULES), 116, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False)
_PARTS = "\n".join(f"  foveate evaluate {name:<15} {what}" for name, what in PARTS.items())
_EPILOG = f"""\
other evaluations, each with a --help of its own:
{_PARTS}

methods, comma separated:
  rules      all rule baselines:
{_RULES}
  FOLDER     a run of `foveate train` or a folder of `foveate export`

splits:
  P0  one scorer for all conversations, trained on none of them (rules too)
  P1  LoCoMo only: five folds by conversation; FOLDER holds fold0 .. fold4, and each question is answered by the
      scorer that was trained without its conversation; --fold K for one fold, FOLDER then may be its run alone

what is measured:
  ERB, the share of a question's evidence turns of which at least 0.8 of the words are in the packed context, with an
  interval over conversations; all / any / mean coverage; the answer string; tokens; latency. No language model reads
  the context. Budgets are tokens of the rendered context, date headers and stubs included.

Rows that are stored in --out for the same data, split, budgets and weights are printed again, not measured; --fresh
measures them anew. An interrupted run goes on where it stopped (finished conversations lie in --work).

examples:
  foveate evaluate locomo --method bm25,dense,best-sum,oracle --budgets 256,512,1024,2048
  foveate evaluate locomo --method rules --against best-sum --plot runs/locomo.svg
  foveate evaluate locomo --split P1 --method runs/locomo-p1 --budgets 256,512,1024,2048
  foveate evaluate locomo --method bm25 --limit-conversations 1          # a quick look; nothing is stored
  foveate evaluate synthetic --data data/synthetic.jsonl --method rules --out runs/synthetic.jsonl
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.epilog = _EPILOG
    parser.add_argument("corpus", choices=get_args(SuiteName), help="what to evaluate on")
    parser.add_argument("--method", required=True, metavar="NAMES", help="methods, comma separated (see below)")
    parser.add_argument("--split", choices=get_args(SplitName), default="P0", help="protocol (default P0)")
    parser.add_argument(
        "--budgets", default="256,512,1024,2048", metavar="TOKENS", help="token budgets (default 256,512,1024,2048)"
    )
    parser.add_argument(
        "--policy", choices=get_args(PolicyName), help="how turns are chosen with trained scorers (default their own)"
    )
    parser.add_argument("--render", choices=("chrono",), default="chrono", help="sessions and turns in order")
    parser.add_argument("--counter", default="minilm", metavar="SPEC", help="token counter (default minilm)")
    parser.add_argument("--seed", type=int, default=13, help="of the run and of generated conversations (default 13)")
    parser.add_argument("--data", type=Path, metavar="FILE", help="synthetic: read this file, generate none")
    parser.add_argument(
        "--fold", type=int, metavar="K", help="P1: only this fold's test conversations; stored only with --out"
    )
    parser.add_argument("--limit-conversations", type=int, metavar="N", help="only the first N; stored only with --out")
    parser.add_argument("--out", type=Path, metavar="FILE", help="result rows (default docs/results/CORPUS.jsonl)")
    parser.add_argument("--against", metavar="METHOD", help="compare the others with this method, paired")
    parser.add_argument("--report", type=Path, metavar="FILE", help="save the tables as Markdown, too")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="save the budget-recall plot (.png, .svg, .pdf)")
    parser.add_argument("--fresh", action="store_true", help="measure again what is stored")
    parser.add_argument(
        "--work",
        type=Path,
        default=Path("runs/evaluate"),
        metavar="FOLDER",
        help="for resuming (runs/evaluate)",
    )


def run(args: argparse.Namespace) -> int:
    """Evaluate, store, print; 0."""
    budgets = parse_budgets(args.budgets)
    names = method_names(args.method)
    if args.against is not None:
        check_baseline(args.against, [name if name in RULES else Path(name).name for name in names])
    if args.plot is not None:
        check_name(args.plot)
    for path in (args.report, args.plot):
        if path is not None:
            check_writable(path)
    if args.fold is not None and args.split != "P1":
        raise ConfigError(f"--fold {args.fold} without folds: give --split P1")
    suite = load_suite(args.corpus, data=args.data, seed=args.seed).only_fold(args.fold).first(args.limit_conversations)
    counter = load_counter(args.counter)
    bench = Bench(suite, args.split, budgets, counter, RecordCache(args.work), args.seed, args.fold, args.policy)
    out: Path | None = args.out
    if out is None and args.limit_conversations is None and args.fold is None:
        out = Path("docs/results") / f"{suite.name}.jsonl"
    stored = [] if out is None else read_rows(out)
    rows, measured = gather(names, bench, [] if args.fresh else stored, facts_of(args, bench), out)
    if out is not None and measured:
        add_rows(out, measured)
    text = markdown(rows, names=suite.categories, against=args.against)
    print(text)
    if args.report is not None:
        write_atomically(args.report, text)
    if args.plot is not None:
        save_plot(rows, args.plot)
    for what, path in (("rows", out if measured else None), ("tables", args.report), ("plot", args.plot)):
        if path is not None:
            print(f"{what}: {path}", file=sys.stderr)
    return 0


def parse_budgets(text: str) -> tuple[int, ...]:
    """Ascending token budgets of a comma-separated list. Raises ConfigError for anything that is no positive number."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ConfigError(f"--budgets {text!r}: give positive token counts, comma separated, for instance 256,512")
    return tuple(sorted({int(part) for part in parts}))


def facts_of(args: argparse.Namespace, bench: Bench) -> RunFacts:
    """What is true of all rows of this run; the command is completed for each method."""
    options = [f"--split {args.split}", f"--budgets {','.join(map(str, bench.budgets))}"]
    if args.counter != "minilm":
        options.append(f"--counter {args.counter}")
    if args.seed != 13:
        options.append(f"--seed {args.seed}")
    if args.data is not None:
        options.append(f"--data {args.data.name}")
    if args.policy is not None:
        options.append(f"--policy {args.policy}")
    if args.fold is not None:
        options.append(f"--fold {args.fold}")
    if args.limit_conversations is not None:
        options.append(f"--limit-conversations {args.limit_conversations}")
    return RunFacts(
        dataset=bench.suite.name,
        data_sha=bench.suite.data_sha,
        split=bench.split,
        tokenizer_id=bench.counter.name,
        render=args.render,
        apart=bench.suite.apart,
        conversations=len(bench.suite.conversations),
        seed=args.seed,
        command=f"foveate evaluate {bench.suite.name} {' '.join(options)}",
        code_commit=git_commit(Path(foveate.__file__).parent),
        fold=args.fold,
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """A method to measure, or None and the stored rows that stand for it."""

    method: AnyMethod | None
    rows: list[Row]


def gather(
    names: Sequence[str], bench: Bench, stored: Sequence[Row], facts: RunFacts, out: Path | None
) -> tuple[list[Row], list[Row]]:
    """The rows of the methods, stored ones where they still hold, and those of them that were measured now.

    Every method is found, and the file tried, before the first is measured, so that a wrong name costs no time.
    """
    methods = Methods(bench.suite, bench.split, bench.fold, bench.policy)
    plans = [(name, _plan(name, methods, bench, stored, facts)) for name in names]
    rows: list[Row] = []
    measured: list[Row] = []
    steps = sum(plan.method is not None for _, plan in plans) * len(bench.suite.conversations)
    if out is not None and steps:
        check_writable(out)
    with progress(steps) as bar:
        for name, plan in plans:
            if plan.method is None:
                _note(plan, name, out)
                rows.extend(plan.rows)
            else:
                found = _measure(plan.method, name, bench, facts, bar)
                measured.extend(found)
                rows.extend(found)
    return rows, measured


def _plan(name: str, methods: Methods, bench: Bench, stored: Sequence[Row], facts: RunFacts) -> Plan:
    """Whether a method is measured or its stored rows are printed again.

    Stored rows hold for the same weights; those of a folder that is no longer there hold as they are.
    """
    if name not in RULES and not Path(name).is_dir():
        found = find_rows(stored, facts, Path(name).name, bench.budgets)
        return Plan(methods.find(name) if found is None else None, found or [])
    method = methods.find(name)
    found = find_rows(stored, facts, method.name, bench.budgets_for(method))
    if found is None or any(row.get("method_digest") != method_digest(method) for row in found):
        return Plan(method, [])
    return Plan(None, found)


def _measure(method: AnyMethod, name: str, bench: Bench, facts: RunFacts, bar: Progress) -> list[Row]:
    """The rows of a method, rounded as they are stored, so that they print the same when they are read back."""
    records = run_method(method, bench, bar)
    facts = replace(facts, command=f"{facts.command} --method {_shown(name)}")
    rows = [
        make_row(
            facts,
            [record for record in records if record.budget == budget],
            method=method.name,
            q_aware=method.q_aware if isinstance(method, Method) else True,
            label_leak=isinstance(method, LabelMethod),
            train_data=method.train_data if isinstance(method, Method) else NOTHING_TRAINED,
            method_digest=method_digest(method),
            code_digest=method_code(method),
        )
        for budget in bench.budgets_for(method)
    ]
    return [rounded(row) for row in rows]


def _shown(name: str) -> str:
    """A method as it stands in a stored command: a folder outside the working folder by its name alone."""
    path = Path(name)
    return path.name if path.is_absolute() and not path.is_relative_to(Path.cwd()) else name


def _note(plan: Plan, name: str, out: Path | None) -> None:
    current = code_digest(name not in RULES)
    other = any(row.get("code_digest") != current for row in plan.rows)
    tail = "; the code has changed since, --fresh measures again" if other else ""
    print(f"{name}: rows stored in {out} (commit {str(plan.rows[0]['code_commit'])[:12]}){tail}", file=sys.stderr)
