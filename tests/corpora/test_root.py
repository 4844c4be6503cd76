from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from foveate.core.errors import DataError
from foveate.corpora import root


def test_an_unset_data_root_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FOVEATE_DATA", raising=False)
    with pytest.raises(DataError, match="FOVEATE_DATA is not set: export FOVEATE_DATA="):
        root.data_root()


def test_a_data_root_that_is_no_folder_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FOVEATE_DATA", str(tmp_path / "absent"))
    with pytest.raises(DataError, match="absent is not a folder"):
        root.data_root()


def test_the_data_root_is_the_folder_of_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FOVEATE_DATA", str(tmp_path))
    assert root.data_root() == tmp_path


def test_a_changed_file_is_refused_with_both_hashes(tmp_path: Path) -> None:
    file = tmp_path / "errors.json"
    file.write_bytes(b"[]")
    expected = hashlib.sha256(b"[1]").hexdigest()
    with pytest.raises(DataError) as caught:
        root.verify(file, expected)
    message = str(caught.value)
    assert expected in message
    assert hashlib.sha256(b"[]").hexdigest() in message
    assert "foveate data where" in message
    assert "\n" not in message


def test_an_unchanged_file_passes(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"[]")
    root.verify(file, hashlib.sha256(b"[]").hexdigest())


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"locomo10\.json is missing"):
        root.locate(tmp_path, "locomo", "locomo10.json")


def test_a_file_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"locomo/other\.json is no known data file"):
        root.locate(tmp_path, "locomo", "other.json")


def test_known_hashes_are_sha256_and_every_corpus_says_its_terms() -> None:
    for source in root.KNOWN.values():
        assert source.licence
        assert "/" in source.upstream
        assert source.files
        for digest in source.files.values():
            assert len(bytes.fromhex(digest)) == 32


def test_non_commercial_text_never_trains_the_shipped_checkpoint() -> None:
    for source in root.KNOWN.values():
        if "NC" in source.licence.split()[1:2] or "-NC" in source.licence:
            assert source.checkpoint == "no"


def test_every_known_file_present_is_the_pinned_one(data_root: Path) -> None:
    for source in root.KNOWN.values():
        for name in source.files:
            assert root.locate(data_root, source.folder, name).is_file()


@pytest.mark.parametrize(("text", "what"), [("{", "is not JSON"), ("", "is not JSON")])
def test_broken_json_is_one_clear_line(tmp_path: Path, text: str, what: str) -> None:
    file = tmp_path / "f.json"
    file.write_text(text)
    with pytest.raises(DataError, match=what):
        root.read_json(file)


def test_a_broken_jsonl_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    file.write_text('{"a": 1}\n\n{"a": \n')
    with pytest.raises(DataError, match="line 3 is not JSON"):
        root.read_jsonl(file, lambda value, number: (value, number))


def test_jsonl_lines_keep_their_numbers(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    file.write_text("1\n\n2\n")
    assert root.read_jsonl(file, lambda value, number: (value, number)) == [(1, 1), (2, 3)]
