"""Result rows (EVALUATION.md section 14): one JSON line for a method at one budget, merged by key into a file."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foveate.core.errors import DataError
from foveate.core.files import write_atomically
from foveate.evaluation.records import Budget, Record, clusters, interval, metrics

METRIC_VERSION = 1
REQUIRED = (
    "dataset",
    "data_sha",
    "split",
    "method",
    "q_aware",
    "budget",
    "tokenizer_id",
    "render",
    "reader",
    "adv_track",
    "n",
    "n_errors",
    "metrics",
    "ci",
    "seed",
    "code_commit",
    "train_data",
    "test_eval_count",
)
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is true of a whole evaluation run and goes into each of its rows.

    Attributes:
        dataset, data_sha: the corpus and its bytes.
        split: P0 or P1.
        fold: the only fold evaluated; None where all folds are pooled.
        tokenizer_id: name of the counter that budgets are in.
        render: how contexts are rendered.
        apart: categories that are not pooled.
        conversations: how many were evaluated.
        seed: of the run.
        command: the command line that makes the rows again.
        code_commit: the commit, with "-dirty" where the tree differed; None outside a repository.
    """

    dataset: str
    data_sha: str
    split: str
    tokenizer_id: str
    render: str
    apart: frozenset[str]
    conversations: int
    seed: int
    command: str
    code_commit: str | None
    fold: int | None = None


def make_row(
    facts: RunFacts,
    records: Sequence[Record],
    *,
    method: str,
    q_aware: bool,
    label_leak: bool,
    train_data: str | None,
    method_digest: str,
    code_digest: str,
) -> Row:
    """The row of one method at one budget; all records must be of that budget.

    Where P1 pools the test questions of all folds, `split.fold` is None. `clusters` holds, per conversation, the number
    of pooled questions with evidence and the sum of their ERB, so that differences can be tested from rows alone.
    """
    pooled = [record for record in records if record.category not in facts.apart]
    bounds = interval(pooled)
    return {
        "dataset": facts.dataset,
        "data_sha": facts.data_sha,
        "split": {"name": facts.split, "fold": facts.fold},
        "method": method,
        "q_aware": q_aware,
        "label_leak": label_leak,
        "budget": records[0].budget,
        "tokenizer_id": facts.tokenizer_id,
        "render": facts.render,
        "reader": None,
        "adv_track": None,
        "n": len(records),
        "n_errors": 0,
        "n_evidence": sum(record.erb is not None for record in pooled),
        "conversations": facts.conversations,
        "metrics": metrics(records, facts.apart),
        "ci": {"cluster": {"erb": None if bounds is None else [bounds.low, bounds.high]}},
        "clusters": {name: [n, total] for name, (n, total) in clusters(pooled).items()},
        "seed": facts.seed,
        "code_commit": facts.code_commit,
        "train_data": train_data,
        "test_eval_count": 1,
        "metric_version": METRIC_VERSION,
        "method_digest": method_digest,
        "code_digest": code_digest,
        "command": facts.command,
    }


def key_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What makes two rows the same measurement: everything but the numbers and where they came from."""
    split = row["split"]
    fields = ("dataset", "method", "budget", "tokenizer_id", "render", "seed", "adv_track", "conversations")
    reader = json.dumps(row["reader"], sort_keys=True)
    return (split["name"], split["fold"], reader, *(row.get(name) for name in fields))


def read_rows(path: Path) -> list[Row]:
    """The rows of a file, in its order; none where there is no file.

    Raises:
        DataError: a line is not a result row; names the line and the missing key.
    """
    if not path.exists():
        return []
    rows: list[Row] = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read ({error}): name a file of result rows, or a new one") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            rows.append(_parse(path, number, line))
    return rows


def _parse(path: Path, number: int, line: str) -> Row:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} line {number} is not JSON ({error}): mend the line or remove it") from error
    missing = [name for name in REQUIRED if not isinstance(row, dict) or name not in row]
    if missing:
        raise DataError(f"{path} line {number} is no result row, {', '.join(missing)} missing: mend or remove the line")
    return row


def merge(old: Iterable[Row], new: Iterable[Row]) -> list[Row]:
    """Old rows with those of equal key replaced in place, and further ones at the end.

    A replaced row's `test_eval_count` is the old one plus 1, so that looks at the test set are counted.
    """
    merged = {key_of(row): row for row in old}
    for row in new:
        before = merged.get(key_of(row))
        count = 1 if before is None else before["test_eval_count"] + 1
        merged[key_of(row)] = {**row, "test_eval_count": count}
    return list(merged.values())


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write rows as JSON lines: complete, or not at all."""
    write_atomically(path, "".join(json.dumps(rounded(row), ensure_ascii=False) + "\n" for row in rows))


def check_writable(path: Path) -> None:
    """Raises DataError where no file of that name can be written; nothing is left behind."""
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DataError(f"{path} cannot be written ({error.strerror}): name another file") from error


def add_rows(path: Path, new: Iterable[Row]) -> None:
    """Merge rows into a file that other evaluations may be adding to: read, merged and written under one lock."""
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        write_rows(path, merge(read_rows(path), new))
    finally:
        os.close(folder)


def rounded(value: Any) -> Any:
    """JSON values with floats cut to 6 decimals, so that files are readable and differ only where numbers do."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return value


def find_rows(rows: Iterable[Row], facts: RunFacts, method: str, budgets: Sequence[Budget]) -> list[Row] | None:
    """The stored rows of a method for all the budgets asked for, on the same data; None unless all are there."""
    found: dict[Budget, Row] = {}
    for row in rows:
        same = (
            row["method"] == method
            and row["dataset"] == facts.dataset
            and row["data_sha"] == facts.data_sha
            and row["split"] == {"name": facts.split, "fold": facts.fold}
            and row["tokenizer_id"] == facts.tokenizer_id
            and row["render"] == facts.render
            and row["seed"] == facts.seed
            and row.get("conversations") == facts.conversations
        )
        if same:
            found[row["budget"]] = row
    return [found[budget] for budget in budgets] if all(budget in found for budget in budgets) else None


def git_commit(folder: Path) -> str | None:
    """The commit of the repository that tracks a package, "-dirty" where tracked files differ; None without one."""
    try:
        _git(folder, "ls-files", "--error-unmatch", "__init__.py")
        head = _git(folder, "rev-parse", "HEAD")
        dirty = _git(folder, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head}-dirty" if dirty else head


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()
