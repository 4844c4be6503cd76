"""The inverse cloze task (Lee et al., 2019): a sentence taken out of its turn is a question that the turn answers.

Labels for dialogues that have none: what a speaker says in one breath belongs together, so the sentence and what is
left of its turn are about one thing, in other words. No answer is known, and none is needed for retrieval.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace

from sentencex.sentencex import segment

from foveate.core.schema import Conversation, Evidence, Query, Question, Turn

SENTENCE_WORDS = (6, 30)
"""Words that a sentence has that may be taken out."""
TURN_WORDS = 20
"""Words that its turn has at least."""
_MARK = re.compile(r"\{[a-z]+\}")


def inverse_cloze(conversation: Conversation, most: int, seed: int = 0) -> Conversation:
    """The conversation with at most `most` questions of this kind, instead of its own; they differ in their turns.

    The sentences that are asked are missing from the turns. The draw depends on the seed and the conversation's id
    alone. Marks of transcribers such as {vocalsound} are left out of what is asked and of what is left.
    """
    rng = random.Random(f"{seed}:{conversation.id}")
    turns: list[Turn] = list(conversation.turns)
    order = list(range(len(turns)))
    rng.shuffle(order)
    questions: list[Question] = []
    for place in order:
        if len(questions) == most:
            break
        content = turns[place].content
        cut = _cut(content, rng) if isinstance(content, str) else None
        if cut is not None:
            asked, left = cut
            turns[place] = replace(turns[place], content=left)
            evidence = Evidence(turn_ids=(turns[place].id,), category="cloze")
            questions.append(Question(f"{conversation.id}:c{place}", Query(asked), evidence))
    return Conversation(conversation.id, tuple(turns), tuple(questions))


def _cut(text: str, rng: random.Random) -> tuple[str, str] | None:
    """A sentence and what is left of the text; None where the text is too short for it."""
    parts = [part.strip() for part in segment("en", _MARK.sub("", text)) if part.strip()]
    fit = _of_length(parts)
    if len(parts) < 2 or not fit or sum(len(part.split()) for part in parts) < TURN_WORDS:
        return None
    chosen = rng.choice(fit)
    return parts[chosen], " ".join(parts[:chosen] + parts[chosen + 1 :])


def _of_length(parts: Sequence[str]) -> list[int]:
    least, longest = SENTENCE_WORDS
    return [place for place, part in enumerate(parts) if least <= len(part.split()) <= longest]
