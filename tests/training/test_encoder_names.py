"""What an encoder's name may stand for, and that a wrong one is refused before anything is downloaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny_runs import write_encoder

from foveate.core.errors import CheckpointError
from foveate.learned import encoder


def answers(monkeypatch: pytest.MonkeyPatch, error: Exception | None, cached: Path | None = None) -> None:
    """A hub that knows every name or fails with `error`, and a cache of one file or none."""

    def ask(_: str) -> None:
        if error is not None:
            raise error

    monkeypatch.setattr(encoder, "get_hf_file_metadata", ask)
    monkeypatch.setattr(encoder, "try_to_load_from_cache", lambda *_: None if cached is None else str(cached))


@pytest.fixture
def no_download(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        pytest.fail("a download was started")

    monkeypatch.setattr(encoder.AutoModel, "from_pretrained", fail)


@pytest.mark.usefixtures("no_download")
@pytest.mark.parametrize("name", ["/nowhere/encoder", "./encoder", "../encoder", "runs/some/encoder", "~/encoder"])
def test_a_path_that_is_no_folder_is_refused_without_asking_the_hub(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, AssertionError("the hub was asked"))
    with pytest.raises(CheckpointError, match="neither a folder nor a hub id") as caught:
        encoder.load_encoder(name)
    assert repr(name) in str(caught.value)


@pytest.mark.usefixtures("no_download")
def test_a_hub_that_does_not_answer_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, ConnectionError("no route\nmore"))
    with pytest.raises(CheckpointError, match=r"'some/encoder' is no folder.*\(no route\)") as caught:
        encoder.load_encoder("some/encoder")
    assert "\n" not in str(caught.value)


def test_what_the_hub_has_keeps_its_name_and_what_only_the_cache_has_becomes_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, None)
    assert encoder.resolve("some/encoder") == "some/encoder"
    answers(monkeypatch, ConnectionError("no route"), write_encoder(tmp_path) / "config.json")
    assert encoder.resolve("some/encoder") == str(tmp_path)
    assert encoder.load_encoder("some/encoder").config.hidden_size == 16
    assert encoder.load_tokenizer("some/encoder").get_vocab_size() > 0
