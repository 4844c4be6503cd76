from __future__ import annotations

import json
from pathlib import Path

import pytest

from foveate.core.messages import atomic_groups, load_conversation
from foveate.corpora import synthetic

MADE_WITH = {"train.jsonl": (24, 1), "validation.jsonl": (6, 2), "test.jsonl": (6, 3)}


@pytest.mark.parametrize("name", MADE_WITH)
def test_the_shipped_sample_is_what_its_command_makes(repo_root: Path, name: str) -> None:
    made = synthetic.generate(*MADE_WITH[name])
    assert synthetic.read(repo_root / "data" / "synthetic" / name) == made


def test_no_chat_is_in_two_files(repo_root: Path) -> None:
    chats = [c for name in MADE_WITH for c in synthetic.read(repo_root / "data" / "synthetic" / name)]
    assert len({c.id for c in chats}) == len(chats) == 36
    assert len({tuple(turn.text for turn in c.turns) for c in chats}) == 36


def test_the_sample_stays_small_and_its_readme_names_each_file(repo_root: Path) -> None:
    files = [path for path in (repo_root / "data").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 4_000_000
    readme = (repo_root / "data" / "README.md").read_text()
    assert all(path.name in readme for path in files if path.name != "README.md")
    for name, (n, seed) in MADE_WITH.items():
        assert f"foveate data generate --conversations {n} --seed {seed} --out data/synthetic/{name}" in readme


def test_the_long_chat_holds_what_the_demo_needs(repo_root: Path) -> None:
    path = repo_root / "data" / "examples" / "long_chat.json"
    turns = load_conversation(path)
    assert len(turns) >= 150
    assert len({turn.session for turn in turns if turn.session}) == 9
    peanuts = [index for index, turn in enumerate(turns) if "peanuts are off limits" in turn.text]
    trip = [index for index, turn in enumerate(turns) if "two weeks in Thailand" in turn.text]
    assert len(peanuts) == len(trip) == 1
    assert peanuts[0] < 20
    assert trip[0] - peanuts[0] > 80
    assert sum(len(group) > 1 for group in atomic_groups(turns)) == 1
    assert (
        sum(any(part.kind == "image" for part in turn.content or () if not isinstance(part, str)) for turn in turns)
        == 1
    )
    assert "Thailand" in json.loads(path.read_text())["question"]
