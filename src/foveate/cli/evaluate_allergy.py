"""`foveate evaluate allergy`: AFM's allergy benchmark at scale (`evaluation.allergy`), on rules and trained scorers."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

import foveate
from foveate.cli.outputs import check_outputs, write_outputs
from foveate.core.errors import ConfigError
from foveate.core.tokens import TokenCounter, load_counter
from foveate.evaluation import allergy
from foveate.evaluation.allergy import Budget, Candidate, Memory, Plan, Remembering, cells_of, markdown
from foveate.evaluation.allergy_plot import save_plot
from foveate.evaluation.allergy_script import PARAPHRASES
from foveate.evaluation.checkpoints import load_checkpoint
from foveate.evaluation.progress import progress
from foveate.evaluation.results import git_commit
from foveate.memory.focus import FocusManager
from foveate.signals.vectors import VectorScorer

RuleName = Literal["stateless", "recency", "afm-paper-offline", "afm-public-offline", "afm-rule", "chat"]
RULES: tuple[RuleName, ...] = get_args(RuleName)

_EPILOG = f"""\
methods, comma separated:
  rules      {", ".join(RULES)}
             stateless gets no history; recency is the paper's truncated replay; the three afm are its offline readings;
             chat is the default FocusManager
  FOLDER     a run of `foveate train` or a folder of `foveate export`, through the FocusManager

The script is a reconstruction (the paper's was not released). A row is one method, budget, distractor count and place
of the allergy. Measured cells lie in --work, so an interrupted run goes on where it stopped.

examples:
  foveate evaluate allergy --method rules --report runs/allergy.md --plot runs/allergy.png --out runs/allergy.jsonl
  foveate evaluate allergy --method chat,runs/transfer --distractors 0,20 --budgets least,256
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments."""
    parser.epilog = _EPILOG
    parser.add_argument("--method", default="rules", metavar="NAMES", help="methods, comma separated (default rules)")
    parser.add_argument(
        "--budgets", default=_listed(allergy.BUDGETS), metavar="TOKENS", help=f"(default {_listed(allergy.BUDGETS)})"
    )
    parser.add_argument(
        "--distractors", default=_listed(allergy.DISTRACTORS), metavar="N", help="messages, comma separated"
    )
    parser.add_argument("--paraphrases", type=int, default=len(PARAPHRASES), metavar="N", help="only the first N")
    parser.add_argument("--counter", default="minilm", metavar="SPEC", help="token counter (default minilm)")
    parser.add_argument("--seed", type=int, default=13, help="of the distractors (default 13)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="save the rows as JSON lines")
    parser.add_argument("--report", type=Path, metavar="FILE", help="save the tables as Markdown")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="save the plot (.png, .svg, .pdf)")
    parser.add_argument(
        "--work", type=Path, default=Path("runs/evaluate"), metavar="FOLDER", help="for resuming (runs/evaluate)"
    )


def run(args: argparse.Namespace) -> int:
    """Measure, save, print; 0."""
    check_outputs(args, add=False)
    counter = load_counter(args.counter)
    cells = cells_of(parse_counts(args.distractors), allergy.POSITIONS)
    plan = Plan(cells, parse_budgets(args.budgets), args.paraphrases, counter, args.seed)
    candidates = [candidate(name, counter) for name in names_of(args.method)]
    with progress(len(candidates) * len(cells)) as bar:
        rows = allergy.run(candidates, plan, args.work, bar)
    commit = git_commit(Path(foveate.__file__).parent)
    rows = [{**row, "code_commit": commit} for row in rows]
    write_outputs(args, markdown(rows), rows, draw=lambda path: save_plot(rows, path), add=False)
    return 0


def names_of(text: str) -> list[str]:
    """The methods of a comma-separated list, "rules" standing for all of `RULES`.

    Raises:
        ConfigError: there is none, or one stands twice.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    names = [name for part in parts for name in (RULES if part == "rules" else (part,))]
    if not names or len(set(names)) < len(names):
        raise ConfigError(
            f"--method {text!r}: give each of {', '.join(RULES)} or a folder at most once, and at least one"
        )
    return names


def candidate(name: str, counter: TokenCounter) -> Candidate:
    """A rule by name, else the scorer in a folder.

    Raises:
        ConfigError: neither.
        CheckpointError: the folder holds no scorer.
    """
    rule: RuleName | None = next((known for known in RULES if known == name), None)
    if rule is not None:
        return Candidate(name, _rule(rule, counter), sees_turns=rule != "stateless")
    if not Path(name).is_dir():
        raise ConfigError(
            f"no method {name!r}: give the folder of a run or an export, 'rules', or of {', '.join(RULES)}"
        )
    found = load_checkpoint(Path(name), "afm-allergy")
    loaded = found.scorer(0)
    if not isinstance(loaded, VectorScorer):
        raise ConfigError(f"{name} holds a {type(loaded).__name__}: give a run or an export")
    scorer = VectorScorer(Remembering(loaded.model), loaded.importance)
    return Candidate(
        found.name, lambda: FocusManager(scorer, counter=counter), fingerprint=found.fingerprint, shares=True
    )


def _rule(name: RuleName, counter: TokenCounter) -> Callable[[], Memory]:
    """The baselines as they are published: without the critical guard, which is not theirs."""
    match name:
        case "stateless" | "recency":
            return lambda: FocusManager("recency", counter=counter, importance=None, summarizer=None)
        case "afm-paper-offline" | "afm-public-offline":
            return lambda: FocusManager(name, counter=counter, importance=None, summarizer="heuristic-loose")
        case "afm-rule":
            return lambda: FocusManager("afm", counter=counter, importance=None, summarizer="heuristic-loose")
        case "chat":
            return lambda: FocusManager(counter=counter)


def parse_budgets(text: str) -> tuple[Budget, ...]:
    """Budgets of a comma-separated list of positive numbers and "least", least first and then ascending.

    Raises:
        ConfigError: a part is neither.
    """
    parts = {part.strip() for part in text.split(",") if part.strip()}
    numbers = parts - {"least"}
    if not parts or not all(part.isdecimal() and int(part) > 0 for part in numbers):
        raise ConfigError(f"--budgets {text!r}: give positive token counts or least, for instance least,256,800")
    least: tuple[Budget, ...] = ("least",) if "least" in parts else ()
    return (*least, *sorted(int(part) for part in numbers))


def parse_counts(text: str) -> tuple[int, ...]:
    """Ascending distractor counts of a comma-separated list. Raises ConfigError for anything below 0."""
    parts = {part.strip() for part in text.split(",") if part.strip()}
    if not parts or not all(part.isdecimal() for part in parts):
        raise ConfigError(f"--distractors {text!r}: give numbers of messages from 0 on, for instance 0,20,500")
    return tuple(sorted({int(part) for part in parts}))


def _listed(values: tuple[object, ...]) -> str:
    return ",".join(map(str, values))
