"""Files that are whole or absent, and the digest that shows a file is the one it should be."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from foveate.core.errors import DataError


def sha256(path: Path) -> str:
    """The sha256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_atomically(path: Path, text: str) -> None:
    """Write a text file under a temporary name, flush it to disk, then rename it into place.

    Raises:
        DataError: the folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}") from error
