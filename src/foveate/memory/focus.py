"""FocusManager: AFM's interface (section 3.6) in front of any scorer, with a budget that holds and nothing dropped in
silence.

memory = FocusManager(counter="tiktoken:o200k_base")
memory.add_message("user", "I'm allergic to peanuts.")
memory.add_message("assistant", "Noted.")
packed = memory.build_context("What should I eat in Bangkok?", budget_tokens=2000, system_preamble="Be brief.")
client.chat.completions.create(model=..., messages=packed.messages)
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from foveate.core.context import ContextBuilder
from foveate.core.errors import ConfigError
from foveate.core.messages import read_messages
from foveate.core.packed import Packed
from foveate.core.protocols import (
    ImportanceClassifier,
    PolicyName,
    Scorer,
    Scores,
    Summarizer,
    thresholds_of,
    tier_values_of,
)
from foveate.core.render import Renderer
from foveate.core.schema import Query, Turn
from foveate.core.tiers import Importance, Thresholds
from foveate.core.tokens import TokenCounter
from foveate.memory.choices import (
    RendererName,
    SummarizerName,
    checked,
    load_scorer,
    pick_counter,
    pick_policy,
    pick_renderer,
    pick_summarizer,
    whole_number,
    with_coherence,
)
from foveate.rules.acc import CoherenceMode
from foveate.rules.budget import BudgetRule, Offer, critical_tokens, offer_of
from foveate.rules.importance import KeywordImportance

_BY_KEYWORD = KeywordImportance()


class FocusManager:
    """The memory of one conversation. Its methods may be called from several threads; each holds one lock.

    Args:
        scorer: "auto" is the checkpoint that comes with foveate where onnxruntime, tokenizers, safetensors and the
            packaged MiniLM are installed, else "chat" (BM25, recency and keyword importance; needs nothing). Or "afm",
            "acc", another name in `memory.choices`, the folder of an export (onnxruntime and tokenizers, no torch), or
            any object that offers `core.protocols.Scorer`.
        counter: how tokens are counted. "cautious" needs nothing and over-counts; give the reader's own tokenizer where
            you can: a counter, "tiktoken:<encoding>", or the path of a tokenizer.json.
        renderer: "chat" for OpenAI messages, "transcript" for one text, or a renderer.
        summarizer: makes the COMPRESSED form: "heuristic", "heuristic-loose", a summarizer such as
            `summarizers.llm.LlmSummarizer`, or None for none.
        importance: the class of each turn where the scorer has no opinion, as trained ones have none: a CRITICAL turn
            (an allergy, a hard constraint) is then under the packer's guard. None takes every turn for RELEVANT.
        policy: how turns are chosen; None takes the scorer's.
        coherence: what to do with turns that contradict the newest assistant message (Eq. 5-6): "guard" keeps them,
            "paper" demotes them as the paper prints it, None looks at no reply. Judged by the scorer's NLI head, else
            by `rules.contradiction.LexicalContradiction`. Not for the `acc` scorers, which have their own.
        reserve: tokens of every budget that are left free, for instance for the reply.
        thresholds: tau_high and tau_mid; None takes those that belong to the scorer (Eq. 2 adapts them to the length).
        dynamic_budget: a rule that may use less than the budget given (see `rules.budget`): `PriceBudget`, which spends
            a mean budget best where the scorer is calibrated, `DynamicBudget`, which is Eq. 3, or any other. It decides
            over what preamble, query, pinned turns and reserve leave, and is not followed below what the CRITICAL turns
            take. None uses all of it.
    """

    def __init__(
        self,
        scorer: str | Path | Scorer = "auto",
        *,
        counter: str | TokenCounter = "cautious",
        renderer: RendererName | Renderer = "chat",
        summarizer: SummarizerName | Summarizer | None = "heuristic",
        importance: ImportanceClassifier | None = _BY_KEYWORD,
        policy: PolicyName | None = None,
        coherence: CoherenceMode | None = None,
        reserve: int = 0,
        thresholds: Thresholds | None = None,
        dynamic_budget: BudgetRule | None = None,
    ) -> None:
        self._scorer = with_coherence(load_scorer(scorer), coherence)
        self._counter = pick_counter(counter)
        self._renderer = pick_renderer(renderer)
        self._summarizer = pick_summarizer(summarizer, self._counter)
        for value, kind, what in (
            (importance, ImportanceClassifier, "importance"),
            (thresholds, Thresholds, "thresholds"),
            (dynamic_budget, BudgetRule, "dynamic_budget"),
        ):
            if value is not None:
                checked(value, kind, what)
        if dynamic_budget is not None and dynamic_budget.probabilities and not self._scorer.calibrated:
            raise ConfigError(
                f"{type(dynamic_budget).__name__} needs probabilities, which {self._scorer.name!r} does not give: "
                "take the folder of an export as scorer, or DynamicBudget"
            )
        self._importance = importance
        self._policy: PolicyName = pick_policy(policy, self._scorer)
        self._reserve = whole_number(reserve, "reserve")
        self._thresholds = thresholds
        self._dynamic = dynamic_budget
        self._lock = threading.RLock()
        self._added = 0
        self._ids: set[str] = set()
        self._restart(())

    @property
    def scorer(self) -> Scorer:
        """What scores the turns."""
        return self._scorer

    @property
    def counter(self) -> TokenCounter:
        """What counts the tokens."""
        return self._counter

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The history so far."""
        with self._lock:
            return tuple(self._builder.turns)

    def __len__(self) -> int:
        with self._lock:
            return len(self._builder.turns)

    def add_message(self, role: str, content: object, **fields: Any) -> str:
        """Appends a message and returns its id. Nothing is scored or embedded yet; its tokens are counted.

        Args:
            role: system, developer, user, assistant or tool. System messages that open the history are pinned.
            content: a string, a list of content parts in OpenAI form, or None.
            fields: further keys of the message: tool_calls, tool_call_id, name, and foveate's own id, session, date,
                pinned, link (see `core.messages`).

        Raises:
            ConversationError: the message cannot be read, or its id is taken.
        """
        return self.add_messages([{"role": role, "content": content, **fields}])[0]

    def add_messages(self, messages: Iterable[Mapping[str, Any]]) -> list[str]:
        """Appends messages in OpenAI form and returns their ids; either all are added or none."""
        if isinstance(messages, Iterable) and not isinstance(messages, Mapping | str | bytes):
            messages = list(messages)
        with self._lock:
            return self.add_turns(read_messages(self._prepared(messages)))

    def add_turns(self, turns: Iterable[Turn]) -> list[str]:
        """Appends turns as they are and returns their ids; either all are added or none."""
        turns = [checked(turn, Turn, "a turn") for turn in turns]
        with self._lock:
            self._builder.append(turns)
            self._waiting.extend(turns)
            self._added += len(turns)
            self._ids.update(turn.id for turn in turns)
            self._opening = self._opening and all(turn.role in ("system", "developer") for turn in turns)
            return [turn.id for turn in turns]

    def build_context(
        self,
        current_query: str,
        budget_tokens: int,
        system_preamble: str | None = None,
        *,
        reserve: int | None = None,
    ) -> Packed:
        """The messages to send: preamble, what the history gives for this query, and the query as the last user
        message.

        The query is not added to the history: add it, and the reply, once the reply is there. The newest assistant
        message is r_{t-1} of Eq. 5. An empty history gives the preamble and the query.

        Args:
            current_query: the newest user message.
            budget_tokens: tokens for all of it, the reserve included.
            system_preamble: opens the context; never dropped.
            reserve: overrides the manager's own.

        Raises:
            BudgetError: preamble, query, pinned turns and reserve do not fit; names the least budget.
            ConfigError: an argument is of another type.
        """
        checked(current_query, str, "current_query")
        budget_tokens = whole_number(budget_tokens, "budget_tokens")
        if system_preamble is not None:
            checked(system_preamble, str, "system_preamble")
        kept_free = self._reserve if reserve is None else whole_number(reserve, "reserve")
        with self._lock:
            query = Query(text=current_query, last_reply=self._last_reply())
            scores = self.score(query)
            lowered = self._budget(scores, budget_tokens, query, system_preamble, kept_free)
            return self._build(scores, lowered, query, system_preamble, kept_free)

    def score(self, query: Query) -> Scores:
        """What the scorer says of every turn, with their importance; new turns are handed to it first."""
        with self._lock:
            if self._waiting:
                self._index.append(self._waiting)
                self._waiting = []
            scores = self._index.score(query)
            if scores.importance is not None or self._importance is None:
                return scores
            unseen = self._builder.turns[len(self._classes) :]
            self._classes.extend(self._importance.classify(turn) for turn in unseen)
            return replace(scores, importance=tuple(self._classes))

    def offer(self, current_query: str, system_preamble: str | None = None) -> Offer:
        """What the dynamic budget would be shown for this query. `rules.budget.fit_scalar` learns a rule's scalar, for
        instance the price of a token, from the offers of past queries and a target mean; no labels are needed.
        """
        with self._lock:
            query = Query(text=current_query, last_reply=self._last_reply())
            scores = self.score(query)
            return offer_of(self._builder.problem(scores, query=query, preamble=system_preamble, include_query=True))

    def expand(self, turn_id: str) -> Turn:
        """The original turn behind an id, for instance one that a stub carries.

        Raises:
            ConversationError: there is no such turn.
        """
        with self._lock:
            return self._builder.expand(turn_id)

    def remove(self, turn_id: str) -> Turn:
        """Forgets one turn for good and returns it. Everything derived from the history is made anew.

        Raises:
            ConversationError: there is no such turn.
        """
        with self._lock:
            gone = self._builder.expand(turn_id)
            self._restart([turn for turn in self._builder.turns if turn.id != turn_id])
            return gone

    def clear(self) -> None:
        """Forgets everything. Ids go on where they were, so an old id never means a new turn."""
        with self._lock:
            self._restart(())

    def _restart(self, turns: Sequence[Turn]) -> None:
        self._builder = ContextBuilder(
            counter=self._counter,
            renderer=self._renderer,
            summarizer=self._summarizer,
            tier_values=tier_values_of(self._scorer),
        )
        self._index = self._scorer.open()
        self._waiting: list[Turn] = list(turns)
        self._classes: list[Importance] = []
        self._opening = all(turn.role in ("system", "developer") for turn in turns)
        self._builder.append(turns)

    def _prepared(self, messages: Iterable[Mapping[str, Any]]) -> Any:
        """The messages with an id each; system messages are pinned only where they open the whole history.

        What is no list, or no mapping in it, is left for `read_messages` to refuse.
        """
        if not isinstance(messages, list):
            return messages
        taken = self._ids | {str(message.get("id")) for message in messages if isinstance(message, Mapping)}
        prepared: list[Mapping[str, Any]] = []
        for place, message in enumerate(messages):
            if isinstance(message, Mapping):
                defaults: dict[str, Any] = {} if self._opening else {"pinned": False}
                message = {**defaults, **message}
                if message.get("id") is None:
                    message["id"] = _fresh(self._added + place, taken)
            prepared.append(message)
        return prepared

    def _last_reply(self) -> str | None:
        replies = (turn.text for turn in reversed(self._builder.turns) if turn.role == "assistant" and turn.text)
        return next(replies, None)

    def _budget(self, scores: Scores, budget: int, query: Query, preamble: str | None, reserve: int) -> int:
        """The budget after the rule: never more than allowed, never less than the required part and the CRITICAL turns,
        as far as they fit.
        """
        if self._dynamic is None:
            return budget
        problem = self._builder.problem(scores, query=query, preamble=preamble, include_query=True)
        required = problem.fixed + reserve
        if budget <= required:
            return budget
        free = budget - required
        return required + min(free, max(critical_tokens(problem), self._dynamic.tokens(offer_of(problem), free)))

    def _build(self, scores: Scores, budget: int, query: Query, preamble: str | None, reserve: int) -> Packed:
        return self._builder.build(
            scores,
            budget,
            policy=self._policy,
            query=query,
            preamble=preamble,
            include_query=True,
            reserve=reserve,
            thresholds=self._thresholds or thresholds_of(self._scorer, len(scores.score)),
        )


def _fresh(number: int, taken: set[str]) -> str:
    fresh = f"m{number}"
    while fresh in taken:
        fresh += "'"
    taken.add(fresh)
    return fresh
