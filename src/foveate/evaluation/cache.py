"""Results of a method on a conversation, kept on disk: an interrupted evaluation goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from foveate.core.errors import DataError
from foveate.core.files import write_atomically
from foveate.evaluation.records import Record, from_json, to_json

FLOORS = ("core", "signals", "corpora", "metrics", "rules", "evaluation")
TRAINED_FLOORS = ("learned", "serving")
ONLY_SHOWN = ("budget_report.py", "plot.py", "progress.py", "report.py")


def digest(values: Mapping[str, object]) -> str:
    """A sha256 of named values that are JSON; the order of the names does not matter."""
    return hashlib.sha256(json.dumps(values, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


@lru_cache(maxsize=2)
def code_digest(trained: bool) -> str:
    """A sha256 over the source that an evaluation runs through; `trained` adds what runs trained scorers.

    What only shows results (tables, plot, progress) is left out.
    """
    package = Path(__file__).resolve().parents[1]
    found = hashlib.sha256()
    for floor in FLOORS + (TRAINED_FLOORS if trained else ()):
        for path in sorted((package / floor).rglob("*.py")):
            if floor == "evaluation" and path.name in ONLY_SHOWN:
                continue
            found.update(f"{path.relative_to(package).as_posix()}\0".encode())
            found.update(path.read_bytes())
    return found.hexdigest()


def _file_name(text: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in text)


class RecordCache:
    """One JSON file a (method, conversation), named after both and the digest of all that the result depends on.

    Args:
        folder: of all evaluations; made when the first result is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _path(self, method: str, key: str, conversation: str) -> Path:
        return self._folder / _file_name(method) / f"{_file_name(conversation)}-{key[:16]}.json"

    def read(self, method: str, key: str, conversation: str) -> list[Record] | None:
        """The records kept for this key; None where there are none.

        Raises:
            DataError: the file is there and cannot be read.
        """
        path = self._path(method, key, conversation)
        if not path.exists():
            return None
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise DataError(f"{path} is not JSON ({error}): delete it and evaluate again") from error
        return [from_json(item) for item in value["records"]]

    def write(self, method: str, key: str, conversation: str, records: Sequence[Record]) -> None:
        """Keep the records of one conversation: complete, or not at all."""
        value = {"method": method, "key": key, "conversation": conversation, "records": [to_json(r) for r in records]}
        write_atomically(self._path(method, key, conversation), json.dumps(value, ensure_ascii=False))
