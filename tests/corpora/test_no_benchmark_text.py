"""The claim of protocol P0: the shipped sample holds nothing that is said in the benchmark (captions apart)."""

from __future__ import annotations

import re
from pathlib import Path

from foveate.corpora import locomo, synthetic

LENGTH = 8
WORD = re.compile(r"[\w']+")


def runs_of_words(text: str) -> set[tuple[str, ...]]:
    words = WORD.findall(text.lower())
    return {tuple(words[i : i + LENGTH]) for i in range(len(words) - LENGTH + 1)}


def test_no_run_of_eight_words_is_in_the_sample_and_in_locomo(repo_root: Path, data_root: Path) -> None:
    sample = [chat for file in (repo_root / "data" / "synthetic").glob("*.jsonl") for chat in synthetic.read(file)]
    ours = {run for chat in sample for turn in chat.turns for run in runs_of_words(locomo.raw_text(turn))}
    theirs: set[tuple[str, ...]] = set()
    for conversation in locomo.load(data_root):
        for turn in conversation.turns:
            theirs |= runs_of_words(locomo.raw_text(turn))
        for question in conversation.questions:
            theirs |= runs_of_words(question.query.text)
    assert len(ours) > 10_000
    assert len(theirs) > 90_000
    assert ours & theirs == set()
