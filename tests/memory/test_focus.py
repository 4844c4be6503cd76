"""FocusManager: AFM's interface, AFM's allergy scenario, and the faults the field reports against such memories."""

import base64
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate import FocusManager
from foveate.core.errors import BudgetError, CheckpointError, ConfigError, ConversationError
from foveate.core.protocols import ImportanceClassifier, PolicyName, Scores
from foveate.core.schema import Query, Turn
from foveate.core.tiers import Importance, OrdinalThresholds, Thresholds, Tier, TierValues
from foveate.core.tokens import ChapterCounter, EncodeCounter, load_counter
from foveate.memory.choices import RULE_NAMES, load_scorer
from foveate.rules.acc import AccScorer, AdaptiveThresholds, CoherenceMode
from foveate.rules.afm import AfmScorer
from foveate.rules.budget import (
    BudgetRule,
    CoverageBudget,
    DynamicBudget,
    FixedBudget,
    NeedBudget,
    PriceBudget,
    fit_scalar,
)
from foveate.rules.coherence import CoherentScorer
from foveate.rules.hashing import HashingEmbedder
from foveate.rules.importance import ConstantImportance, KeywordImportance
from foveate.rules.ranking import FunctionScorer, RecencyScorer

CHARACTERS = EncodeCounter(lambda text: [ord(c) for c in text], "characters")

ALLERGY = "Hi! I have a severe, life-threatening peanut allergy and I'm planning a trip to Thailand."
QUESTION = "What are the best street foods I should try?"
MEDIUM = [
    ("user", ALLERGY),
    ("assistant", "Thanks for telling me. I will keep your peanut allergy in mind for Thailand."),
    ("user", "Which cities should I visit?"),
    ("assistant", "Bangkok for temples and markets, Chiang Mai for mountains, Krabi for beaches. " * 6),
    ("user", "How do I get from Bangkok to Chiang Mai?"),
    ("assistant", "The night train takes about twelve hours; flights take a little over one. " * 6),
    ("user", "Where can I watch Muay Thai?"),
    ("assistant", "Lumpinee and Rajadamnern in Bangkok hold fights several nights a week. " * 6),
    ("user", "the street food sounds AWESOME I wanna have it all"),
]


def memory(messages=(), **options) -> FocusManager:
    manager = FocusManager(**options)
    manager.add_messages([{"role": role, "content": content} for role, content in messages])
    return manager


def contents(packed) -> list:
    return [message["content"] for message in packed.messages]


# --- AFM's benchmark (EVALUATION section 8) ---


@pytest.mark.parametrize("scorer", ["afm", "chat", "acc-guard"])
@pytest.mark.parametrize("turns", [3, 9])
def test_the_allergy_is_kept_in_the_short_and_the_medium_conversation(scorer: str, turns: int) -> None:
    packed = memory(MEDIUM[:turns], scorer=scorer).build_context(QUESTION, 800, "You are a travel assistant.")
    assert any("peanut" in c.lower() and "allerg" in c.lower() for c in contents(packed))
    assert packed.trace[0].tier is Tier.FULL
    assert packed.tokens <= 800


def test_the_allergy_is_kept_under_a_budget_that_only_just_holds_it() -> None:
    manager = memory(MEDIUM, scorer="chat")
    least = BudgetFinder(manager).least()
    packed = manager.build_context(QUESTION, least + manager.counter.count(ALLERGY) + 4)
    assert any("peanut" in c and "allergy" in c for c in contents(packed))


def test_the_public_offline_code_loses_the_allergy() -> None:
    packed = memory(MEDIUM, scorer="afm-public-offline").build_context(QUESTION, 800)
    assert packed.trace[0].tier is Tier.PLACEHOLDER
    assert not any("peanut" in c and "allergy" in c for c in contents(packed)[:1])


class BudgetFinder:
    def __init__(self, manager: FocusManager) -> None:
        self._manager = manager

    def least(self, **options) -> int:
        with pytest.raises(BudgetError) as caught:
            self._manager.build_context(QUESTION, 0, **options)
        return caught.value.least


# --- AFM's interface ---


def test_messages_come_out_in_order_with_preamble_first_and_query_last() -> None:
    packed = memory(MEDIUM).build_context(QUESTION, 10_000, "Be brief.")
    assert packed.messages[0] == {"role": "system", "content": "Be brief."}
    assert packed.messages[-1] == {"role": "user", "content": QUESTION}
    assert contents(packed)[1:-1] == [content for _, content in MEDIUM]
    assert packed.stats.full == 9


def test_ids_are_unique_and_never_used_again() -> None:
    manager = memory(MEDIUM[:2])
    third = manager.add_message("user", "x", id="m3")
    fourth = manager.add_message("user", "y")
    manager.clear()
    fifth = manager.add_message("user", "z")
    ids = ["m0", "m1", third, fourth, fifth]
    assert len(set(ids)) == 5
    with pytest.raises(ConversationError, match="taken"):
        manager.add_message("user", "again", id=fifth)
    assert [turn.id for turn in manager.turns] == [fifth]


def test_an_empty_history_gives_preamble_and_query() -> None:
    packed = FocusManager().build_context("Hello?", 100, "Be brief.")
    assert contents(packed) == ["Be brief.", "Hello?"]
    assert packed.trace == ()
    assert packed.stats.turns == 0


def test_expand_gives_back_what_a_stub_stands_for() -> None:
    manager = memory(MEDIUM, scorer="afm-paper-offline")
    packed = manager.build_context(QUESTION, 500)
    stubs = [turn for turn in packed.trace if turn.tier is Tier.PLACEHOLDER]
    assert stubs
    for stub in stubs:
        assert stub.turn_id in stub.emitted
        assert manager.expand(stub.turn_id).text == stub.text
    with pytest.raises(ConversationError, match="nope"):
        manager.expand("nope")


def test_a_removed_turn_is_gone_for_good() -> None:
    manager = memory(MEDIUM)
    gone = manager.remove("m0")
    assert gone.text == ALLERGY
    assert ALLERGY not in contents(manager.build_context(QUESTION, 10_000))
    assert len(manager) == 8
    with pytest.raises(ConversationError, match="m0"):
        manager.remove("m0")


def test_system_messages_are_pinned_only_where_they_open_the_history() -> None:
    manager = memory(
        [("system", "Rule one."), ("system", "Rule two."), ("user", "Hi there"), ("system", "Later note.")]
    )
    manager.add_message("system", "Latest note.")
    assert [turn.pinned for turn in manager.turns] == [True, True, False, False, False]


def test_the_reserve_is_left_free() -> None:
    manager = memory(MEDIUM, reserve=200)
    assert manager.build_context(QUESTION, 350).tokens <= 150
    assert 150 < manager.build_context(QUESTION, 350, reserve=0).tokens <= 350


def test_each_turn_is_embedded_once_and_not_before_it_is_needed() -> None:
    class Counting(HashingEmbedder):
        texts: list[str]

        def embed(self, texts):
            self.texts.extend(texts)
            return super().embed(texts)

    embedder = Counting(dim=64)
    embedder.texts = []
    manager = memory([("user", "a b"), ("user", "c d")], scorer=AfmScorer(embedder, ConstantImportance()))
    assert embedder.texts == []
    for _ in range(3):
        manager.build_context("q", 100)
    manager.add_message("user", "e f")
    manager.build_context("q", 100)
    assert sorted(embedder.texts) == ["a b", "c d", "e f", "q", "q", "q", "q"]


def test_the_last_reply_reaches_the_scorer() -> None:
    seen: list[str | None] = []

    def fn(turns, query: Query):
        seen.append(query.last_reply)
        return [1.0] * len(turns)

    manager = memory([("user", "hi")], scorer=FunctionScorer("spy", fn))
    manager.build_context("q", 100)
    manager.add_messages([{"role": "assistant", "content": "first"}, {"role": "user", "content": "ok"}])
    manager.add_message("assistant", "second")
    manager.add_message("assistant", None, tool_calls=[{"id": "c1", "function": {"name": "f", "arguments": "{}"}}])
    manager.build_context("q", 100)
    assert seen == [None, "second"]


def test_a_users_own_scorer_and_policy_are_used() -> None:
    longest = FunctionScorer("longest", lambda turns, query: [float(len(t.text)) for t in turns])
    packed = memory(
        [("user", "aa"), ("user", "b" * 30), ("user", "c")], scorer=longest, counter=CHARACTERS
    ).build_context("q", 3 + 5 + 34)
    assert contents(packed) == ["b" * 30, "q"]
    assert memory(scorer=longest, policy="newest").build_context("q", 100).stats.policy == "newest"


@pytest.mark.parametrize("name", RULE_NAMES)
def test_every_named_rule_packs(name: str) -> None:
    packed = memory(MEDIUM, scorer=name).build_context(QUESTION, 300, "Be brief.")
    assert packed.tokens <= 300
    assert contents(packed)[0] == "Be brief."


def test_a_transcript_is_one_text() -> None:
    packed = memory(MEDIUM[:2], renderer="transcript").build_context("And now?", 500)
    assert packed.text.endswith("And now?")
    assert len(packed.messages) == 1


# --- Eq. 2 and Eq. 3 through the manager ---


def test_thresholds_move_with_the_length() -> None:
    fixed = AccScorer(adaptive=AdaptiveThresholds(Thresholds(0.30, 0.15), reference=2, rate=0.0))
    moving = AccScorer(adaptive=AdaptiveThresholds(Thresholds(0.30, 0.15), reference=2, rate=0.5))
    messages = [("user", f"Fact number {i} about peanuts") for i in range(12)]
    kept = [memory(messages, scorer=s).build_context("peanuts", 5000).stats.full for s in (fixed, moving)]
    assert kept[1] < kept[0]
    n, scores = 12, moving.open()
    scores.append([Turn(f"m{i}", "user", text) for i, (_, text) in enumerate(messages)])
    z = scores.score(Query("peanuts")).score
    assert kept[1] == sum(value > moving.thresholds_at(n).high for value in z)


class Learned:
    """Falling probabilities, with tier values and thresholds of its own."""

    name, calibrated = "learned", True
    tier_values = TierValues(0.0, 4.0)
    turns = 0

    def __init__(self, policy: PolicyName) -> None:
        self.policy: PolicyName = policy

    def thresholds_at(self, n: int) -> Thresholds:
        return OrdinalThresholds(level=-1.0, rate=-1.0, gap=0.5).at(n)

    def open(self) -> "Learned":
        return Learned(self.policy)

    def append(self, turns: Sequence[Turn]) -> None:
        self.turns += len(turns)

    def score(self, query: Query) -> Scores:
        return Scores([0.5 / (1 + i) for i in range(self.turns)])


def test_a_scorers_thresholds_and_tier_values_are_used_and_its_scores_left_alone() -> None:
    said = "we had fun together. my word stays with you. the weather was nice all week long."
    messages = [("user", said)] * 6
    scores = [0.5 / (1 + i) for i in range(6)]
    tau = Learned("topk").thresholds_at(6)
    packed = memory(messages, scorer=Learned("topk"), importance=None).build_context("q", 5000)
    assert packed.stats.full == sum(score > tau.high for score in scores) == 0
    longer = memory(messages * 40, scorer=Learned("topk"), importance=None).build_context("q", 50000)
    assert longer.stats.full == sum(0.5 / (1 + i) > Learned("topk").thresholds_at(240).high for i in range(240)) > 0
    assert [trace.score for trace in packed.trace] == scores
    best = memory(messages, scorer=Learned("optimal"), importance=None).build_context("q", 150)
    assert best.stats.compressed > 0
    given = zip(best.tiers, scores, strict=True)
    worth = {Tier.FULL: 1.0, Tier.COMPRESSED: TierValues(0.0, 4.0).carried(0.5), Tier.DROP: 0.0}
    assert best.stats.value == pytest.approx(sum(worth[tier] * score for tier, score in given))


def test_the_dynamic_budget_is_used_and_never_breaks_the_call() -> None:
    plain = memory(MEDIUM, scorer="bm25").build_context(QUESTION, 400)
    shrunk = memory(MEDIUM, scorer="bm25", dynamic_budget=DynamicBudget(lam=60.0)).build_context(QUESTION, 400)
    assert shrunk.tokens <= shrunk.budget < 400
    assert shrunk.tokens < plain.tokens
    nothing = DynamicBudget(lam=1e9)
    tiny = memory(MEDIUM, scorer="bm25", dynamic_budget=nothing, importance=None).build_context(QUESTION, 400)
    assert contents(tiny) == [QUESTION]
    with pytest.raises(BudgetError, match="a budget of 5 tokens"):
        memory(MEDIUM, dynamic_budget=nothing).build_context(QUESTION, 5)


def test_a_rule_that_would_spend_nothing_still_leaves_room_for_what_is_critical() -> None:
    packed = memory(MEDIUM, scorer="bm25", dynamic_budget=FixedBudget(0)).build_context(QUESTION, 800)
    assert ALLERGY in contents(packed)
    assert all(t.importance is Importance.CRITICAL for t in packed.trace if t.tier is not Tier.DROP)


@pytest.mark.parametrize(
    "rule",
    [
        FixedBudget(90),
        DynamicBudget(lam=200.0, normalised=True, log_odds=True),
        PriceBudget(0.01),
        PriceBudget(0.002, "share"),
        NeedBudget(0.5),
        CoverageBudget(0.5),
    ],
    ids=lambda rule: type(rule).__name__,
)
@pytest.mark.parametrize("budget", [60, 150, 400, 5000])
def test_every_budget_rule_holds_the_budget(rule: BudgetRule, budget: int) -> None:
    scorer = FunctionScorer("p", lambda turns, query: [1 / (2 + i) for i in range(len(turns))], calibrated=True)
    full = memory(MEDIUM, scorer=scorer, importance=None).build_context(QUESTION, budget, "Be brief.")
    packed = memory(MEDIUM, scorer=scorer, importance=None, dynamic_budget=rule).build_context(
        QUESTION, budget, "Be brief.", reserve=10
    )
    assert packed.tokens + 10 <= packed.budget <= budget
    assert packed.tokens <= full.tokens
    assert contents(packed)[0] == "Be brief."
    assert contents(packed)[-1] == QUESTION


def test_a_price_takes_what_is_worth_it_whatever_is_allowed() -> None:
    scorer = FunctionScorer("p", lambda turns, query: [0.9, *[0.01] * (len(turns) - 1)], calibrated=True)
    manager = memory(MEDIUM, scorer=scorer, importance=None, dynamic_budget=PriceBudget(0.01), summarizer=None)
    for budget in (300, 3000):
        assert contents(manager.build_context(QUESTION, budget)) == [ALLERGY, QUESTION]


def test_a_price_is_learned_from_the_offers_of_past_queries() -> None:
    scorer = FunctionScorer("p", lambda turns, query: [1 / (2 + i) for i in range(len(turns))], calibrated=True)
    manager = memory(MEDIUM, scorer=scorer, importance=None, summarizer=None)
    offers = [manager.offer(query) for query in (QUESTION, "When is the train?")]
    price = fit_scalar(PriceBudget, offers, 100, 1000, low=1e-9, high=1.0, tolerance=40)
    spending = memory(MEDIUM, scorer=scorer, importance=None, summarizer=None, dynamic_budget=PriceBudget(price))
    bare = FocusManager().build_context(QUESTION, 1000).tokens
    assert 60 <= spending.build_context(QUESTION, 1000).tokens - bare <= 140


def test_a_rule_that_needs_probabilities_refuses_scores_that_are_none() -> None:
    with pytest.raises(ConfigError, match="PriceBudget needs probabilities, which 'chat' does not give"):
        FocusManager("chat", dynamic_budget=PriceBudget(0.01))


# --- what the field's users trip on (FIELD.md) ---


def tool_messages(result: str = "21 degrees") -> list[dict]:
    calls = [{"id": f"c{k}", "type": "function", "function": {"name": "weather", "arguments": "{}"}} for k in (1, 2)]
    return [
        {"role": "user", "content": "Weather in Lyon and Oslo?"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": result},
        {"role": "tool", "tool_call_id": "c2", "content": "3 degrees"},
        {"role": "assistant", "content": "Lyon 21, Oslo 3."},
    ]


@pytest.mark.parametrize("scorer", ["chat", "afm", "acc", "recency"])
def test_a_tool_result_never_comes_without_its_call(scorer: str) -> None:
    manager = FocusManager(scorer, counter=CHARACTERS)
    manager.add_messages(tool_messages())
    least = BudgetFinder(manager).least()
    for budget in range(least, least + 260, 7):
        roles = [m["role"] for m in manager.build_context(QUESTION, budget).messages]
        assert roles.count("tool") in (0, 2)
        for place, role in enumerate(roles):
            assert role != "tool" or roles[place - 1] in ("assistant", "tool")


def test_a_batch_of_tool_results_that_overflows_is_left_out_as_one() -> None:
    manager = FocusManager(counter=CHARACTERS)
    manager.add_messages(tool_messages("x" * 5000))
    packed = manager.build_context("And in Lyon?", 300)
    assert "tool" not in [m["role"] for m in packed.messages]
    assert "Lyon 21, Oslo 3." in contents(packed)


def test_a_last_message_beyond_the_budget_does_not_empty_the_context() -> None:
    manager = memory([("user", "I moved to Lyon."), ("user", "word " * 4000)])
    packed = manager.build_context("Where did I move?", 120)
    assert "I moved to Lyon." in contents(packed)


def test_a_query_or_pinned_turn_beyond_the_budget_names_the_least_budget() -> None:
    manager = memory([("user", "hello")])
    with pytest.raises(BudgetError) as caught:
        manager.build_context("word " * 500, 100, "Be brief.")
    assert manager.build_context("word " * 500, caught.value.least, "Be brief.").tokens == caught.value.least
    manager.add_message("user", "pin " * 300, pinned=True)
    with pytest.raises(BudgetError, match="pinned turn"):
        manager.build_context("q", 100)


def test_everything_that_is_sent_is_counted_once() -> None:
    manager = FocusManager(counter=CHARACTERS)
    manager.add_message("user", "four")
    manager.add_message("assistant", None, tool_calls=[{"id": "c", "function": {"name": "ab", "arguments": "{}"}}])
    packed = manager.build_context("q", 1000, "sys")
    overhead = 3 + 4 * 4
    assert packed.tokens == overhead + len("sys") + len("four") + len("c" + "ab" + "{}") + len("q")


def test_lists_of_parts_are_priced_and_sent_untouched() -> None:
    image = {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64," + base64.b64encode(b"x" * 9000).decode()},
    }
    manager = FocusManager(counter=CHARACTERS)
    manager.add_message("user", [{"type": "text", "text": "Look at this"}, image])
    packed = manager.build_context("What was it?", 3000)
    assert packed.messages[0]["content"][1] == image
    assert 1105 < packed.tokens < 1200
    small = manager.build_context("What was it?", 600)
    assert small.tokens <= 600
    assert not any(isinstance(content, list) for content in contents(small))


@pytest.mark.parametrize("content", [None, "", [], [{"type": "text", "text": ""}]])
@pytest.mark.parametrize("scorer", ["chat", "afm", "acc"])
def test_content_without_words_is_legal(content, scorer: str) -> None:
    manager = FocusManager(scorer)
    manager.add_message("assistant", content)
    assert manager.build_context("", 100).tokens <= 100


def test_short_prompts_are_left_alone_and_long_ones_hit_the_budget() -> None:
    short = memory([("user", "We met Carol.")]).build_context("Who?", 4000)
    assert contents(short) == ["We met Carol.", "Who?"]
    long = memory([("user", f"Note {i}: the garden has {i} roses.") for i in range(500)])
    packed = long.build_context("roses in the garden", 1000)
    assert 960 <= packed.tokens <= 1000


def test_cjk_is_not_under_counted_and_not_spaced() -> None:
    sentence = "我对花生过敏。我们明天去曼谷，住在河边的酒店。"
    packed = memory([("user", sentence)] * 20).build_context("花生", 200)
    assert packed.tokens >= sum(len(c) for c in contents(packed))
    assert all(content in sentence or content == "花生" for content in contents(packed))


def test_identifiers_are_whole_or_absent() -> None:
    text = (
        "The plate is KX-71.334 and the log is at https://a.b/c?x=1.2,3 today. "
        + "It was a nice walk by the lake. " * 20
    )
    manager = memory([("user", text)], counter=CHARACTERS)
    least = BudgetFinder(manager).least()
    for budget in range(least, least + len(text), 23):
        for content in contents(manager.build_context(QUESTION, budget))[:-1]:
            assert "KX-71.334" in content
            assert "https://a.b/c?x=1.2,3" in content


@given(st.integers(0, 140))
@settings(max_examples=60, deadline=None)
def test_the_newest_and_only_relevant_turn_is_kept_whenever_it_fits(extra: int) -> None:
    manager = memory(
        [("user", f"Small talk about the weather, part {i}.") for i in range(30)]
        + [("user", "The passport is in the blue drawer.")]
    )
    question, preamble = "Where is the passport?", "Be brief."
    counter = manager.counter
    least = 3 + 3 * 4 + sum(map(counter.count, (question, preamble, "The passport is in the blue drawer.")))
    packed = manager.build_context(question, least + extra, preamble)
    assert "The passport is in the blue drawer." in contents(packed)
    assert contents(packed)[0] == preamble


def test_without_a_word_in_common_the_newest_turns_are_kept() -> None:
    talk = [("user", f"Talk number {i} it was") for i in range(40)]
    packed = memory(talk, scorer="chat").build_context("zzz?", 120)
    kept = [turn.turn_id for turn in packed.trace if turn.tier is Tier.FULL]
    assert kept == [f"m{i}" for i in range(40 - len(kept), 40)]
    assert kept


def test_a_critical_turn_is_never_dropped_while_another_is_kept() -> None:
    manager = memory([("user", ALLERGY)] + [("user", f"We talked about trains and plan {i}.") for i in range(50)])
    least = BudgetFinder(manager).least()
    for budget in range(least, least + 400, 11):
        trace = manager.build_context(QUESTION, budget).trace
        others = [turn for turn in trace[1:] if turn.tier is not Tier.DROP]
        assert trace[0].tier is Tier.FULL or not others
        assert trace[0].importance is Importance.CRITICAL


def test_adding_while_building_from_threads_is_safe() -> None:
    manager = FocusManager(counter=load_counter("minilm"))
    errors: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for i in range(30):
                manager.add_message("user", f"{name} says {i} about gardens", id=f"{name}{i}")
                assert manager.build_context("gardens", 200).tokens <= 200
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(manager) == 120


def test_equal_inputs_give_equal_bytes_in_every_process() -> None:
    code = (
        "import json, sys; from foveate import FocusManager\n"
        "for scorer in ('chat', 'afm', 'acc-guard'):\n"
        "    m = FocusManager(scorer)\n"
        "    m.add_messages(json.loads(sys.argv[1]))\n"
        "    print(json.dumps(m.build_context('street food', 300).messages))"
    )
    messages = json.dumps([{"role": role, "content": content} for role, content in MEDIUM])
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code, messages],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "7")
    }
    assert len(outputs) == 1


def test_no_torch_is_imported() -> None:
    code = (
        "import sys; from foveate import FocusManager; m = FocusManager('chat'); m.add_message('user', 'hi'); "
        "m.build_context('q', 50); sys.exit('torch' in sys.modules or 'tokenizers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# --- properties ---

MESSAGES = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "system", "tool"]), st.one_of(st.none(), st.text(max_size=60))),
    max_size=12,
)


@given(
    MESSAGES,
    st.sampled_from(["chat", "afm", "acc", "acc-guard", "recency", "afm-paper-offline"]),
    st.integers(0, 300),
    st.text(max_size=20),
    st.sampled_from(["chat", "transcript"]),
)
@settings(max_examples=80, deadline=None)
def test_the_budget_holds_whatever_is_said(messages, scorer, budget, query, renderer) -> None:
    manager = memory(messages, scorer=scorer, renderer=renderer)
    try:
        packed = manager.build_context(query, budget, "Be brief.")
    except BudgetError as error:
        budget = error.least
        packed = manager.build_context(query, budget, "Be brief.")
    assert packed.tokens <= budget
    assert len(packed.trace) == len(messages)


# --- bad input ---


def test_bad_names_and_messages_are_one_clear_error(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"no scorer 'nope'.*chat, afm"):
        FocusManager("nope")
    with pytest.raises(ConfigError, match="no renderer 'html'"):
        FocusManager(renderer="html")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="no summarizer 'gpt'"):
        FocusManager(summarizer="gpt")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="no token counter 'nope'"):
        FocusManager(counter="nope")
    with pytest.raises(CheckpointError, match=str(tmp_path)):
        FocusManager(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(CheckpointError, match="is a file"):
        load_scorer(tmp_path / "file")
    with pytest.raises(ConversationError, match="role 'robot' is unknown"):
        FocusManager().add_message("robot", "x")
    with pytest.raises(ConversationError, match="message 1"):
        FocusManager().add_messages([{"role": "user", "content": "x"}, "y"])  # pyright: ignore[reportArgumentType]


def test_a_failed_batch_adds_nothing() -> None:
    manager = memory([("user", "x")])
    with pytest.raises(ConversationError):
        manager.add_messages([{"role": "user", "content": "y"}, {"role": "user", "content": "z", "id": "m0"}])
    assert [turn.text for turn in manager.turns] == ["x"]
    assert manager.build_context("q", 100).stats.turns == 1


def test_a_scorer_that_miscounts_is_named() -> None:
    class Short:
        name, policy, calibrated = "short", "score", False

        def open(self):
            return self

        def append(self, turns):
            pass

        def score(self, query):
            return Scores([])

    manager = FocusManager(Short())  # pyright: ignore[reportArgumentType]
    manager.add_message("user", "x")
    with pytest.raises(ConfigError, match="0 values of score for 1 turns"):
        manager.build_context("q", 100)


def test_recency_with_the_newest_policy_keeps_a_suffix() -> None:
    packed = memory([("user", f"turn {i} here") for i in range(20)], scorer=RecencyScorer()).build_context("q", 60)
    kept = [place for place, turn in enumerate(packed.trace) if turn.tier is Tier.FULL]
    assert kept == list(range(20 - len(kept), 20))


def _flat_manager(importance: ImportanceClassifier | None) -> FocusManager:
    """A scorer without an opinion on importance that likes everything but the allergy."""
    scorer = FunctionScorer("flat", lambda turns, _query: [0.1 if "peanut" in turn.text else 1.0 for turn in turns])
    return FocusManager(scorer, summarizer=None, importance=importance)


@pytest.mark.parametrize("guarded", [True, False])
def test_a_critical_turn_is_guarded_where_the_scorer_has_no_opinion(guarded: bool) -> None:
    manager = _flat_manager(KeywordImportance() if guarded else None)
    manager.add_message(
        "user", "I have a severe peanut allergy, " + "and it has been with me for as long as I can remember, " * 3
    )
    for k in range(40):
        manager.add_message("user", f"Number {k}: the weather was fine and we walked along the river for a while.")
    packed = manager.build_context("What shall we eat?", 200)
    kept = {row.turn_id for row in packed.trace if row.tier}
    assert (packed.trace[0].tier is Tier.FULL) is guarded
    assert len(kept) > 2


def made(**options: Any) -> Any:
    return FocusManager(**options)


def build(**arguments: Any) -> Any:
    return memory(MEDIUM).build_context(**{"current_query": "q", "budget_tokens": 300, **arguments})


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: made(policy="nope"), "no policy 'nope': give one of afm, topk"),
        (lambda: made(scorer=None), "scorer is None"),
        (lambda: made(scorer=RecencyScorer), "scorer is <class"),
        (lambda: made(counter="nope"), "or give 'cautious'"),
        (lambda: made(counter=len), "counter is <built-in"),
        (lambda: made(renderer=None), "renderer is None"),
        (lambda: made(summarizer=5), "summarizer is 5"),
        (lambda: made(importance="keyword"), "importance is a str: give a ImportanceClassifier"),
        (lambda: made(thresholds=5), "thresholds is a int"),
        (lambda: made(dynamic_budget=5), "dynamic_budget is a int"),
        (lambda: made(reserve="5"), "reserve is '5': give a whole number"),
        (lambda: build(current_query=None), "current_query is a NoneType: give a str"),
        (lambda: build(budget_tokens="300"), "budget_tokens is '300': give a whole number"),
        (lambda: build(budget_tokens=float("nan")), "budget_tokens is nan"),
        (lambda: build(system_preamble=5), "system_preamble is a int"),
        (lambda: build(reserve=0.5), "reserve is 0.5"),
        (lambda: made().add_turns(["x"]), "a turn is a str: give a Turn"),
    ],
)
def test_an_argument_of_another_type_is_named_at_the_call(call, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        call()
    assert said in str(caught.value)


@pytest.mark.parametrize("messages", [None, 5, "hello", {"role": "user", "content": "x"}])
def test_what_is_no_list_of_messages_is_refused(messages) -> None:
    with pytest.raises(ConversationError, match="a list of messages"):
        FocusManager().add_messages(messages)


def test_messages_may_come_from_a_generator() -> None:
    manager = FocusManager()
    assert manager.add_messages({"role": "user", "content": text} for text in ("a", "b")) == ["m0", "m1"]
    assert [turn.text for turn in manager.turns] == ["a", "b"]


def test_what_the_caller_changes_later_changes_no_turn() -> None:
    manager = FocusManager()
    parts = [{"type": "text", "text": "before"}, {"type": "image_url", "image_url": {"url": "data:,x"}}]
    calls = [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]
    manager.add_message("user", parts)
    manager.add_message("assistant", None, tool_calls=calls, extra={"deep": ["x"]})
    sent = json.dumps(manager.build_context("q", 3000).messages)
    parts[0]["text"] = parts[1]["image_url"]["url"] = calls[0]["function"]["name"] = "after"
    assert json.dumps(manager.build_context("q", 3000).messages) == sent


class Judging:
    """A scorer to which all turns are alike, with an NLI head that finds the first one contradicted."""

    name, calibrated = "judging", True
    policy: PolicyName = "score"
    turns = 0

    def open(self) -> "Judging":
        return Judging()

    def append(self, turns: Sequence[Turn]) -> None:
        self.turns += len(turns)

    def score(self, query: Query) -> Scores:
        signals = {"contradiction": [1.0] + [0.0] * (self.turns - 1)} if query.last_reply else {}
        return Scores([0.5] * self.turns, signals=signals)


@pytest.mark.parametrize(("mode", "kept"), [("guard", True), ("paper", False)])
def test_coherence_keeps_or_demotes_what_the_reply_contradicts(mode: CoherenceMode, kept: bool) -> None:
    scorer = CoherentScorer(Judging(), None, mode)
    manager = FocusManager(scorer, counter=ChapterCounter(), summarizer=None, importance=None)
    manager.add_message("user", "My train leaves at nine in the morning.")
    for number in range(8):
        manager.add_message("user", f"We talked about the weather in town {number} for a while.")
    manager.add_message("assistant", "Your train leaves at ten, then.")
    packed = manager.build_context("When does it leave?", 60)
    assert (packed.tiers[0] == Tier.FULL) is kept
    assert packed.trace[0].signals["base"] == 0.5


def test_a_mode_of_coherence_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="no coherence 'strict': give one of paper, guard"):
        FocusManager("chat", coherence="strict")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="which has its own"):
        FocusManager("acc", coherence="guard")
