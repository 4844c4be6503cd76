from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from random import Random

import pytest

from foveate.core.errors import DataError
from foveate.core.schema import Conversation, Evidence, Turn
from foveate.corpora import synthetic
from foveate.corpora.synthetic import Shape, moments
from foveate.corpora.synthetic.bank import Topic, choose, fill, parse_topics, placeholders, talk, topics, traits
from foveate.corpora.synthetic.questions import ask
from foveate.corpora.synthetic.session import to_second_person
from foveate.corpora.synthetic.world import Instance, Person, Stated, World

WORD = re.compile(r"[^\W_]+")
TIMES = re.compile(
    r"\byesterday\b|\blast (?:week|month|\w+day)\b|\b(?:three days|two weeks) ago\b|\btomorrow\b"
    r"|\bnext (?:month|\w+day)\b"
)
COMMON = frozenset(
    "a an the and or of to in on at for with is are was were do does did has have what which who where when why how "
    "this that it its he she they him her his from by about kind type sort be".split()
)


@pytest.fixture(scope="module")
def sample() -> list[Conversation]:
    return synthetic.generate(24, 77)


def turns_by_id(conversation: Conversation) -> dict[str, Turn]:
    return {turn.id: turn for turn in conversation.turns}


def content_words(text: str) -> set[str]:
    return {word for word in WORD.findall(text.lower()) if word not in COMMON}


def test_equal_seeds_give_equal_conversations_and_others_do_not() -> None:
    assert synthetic.generate(2, 5) == synthetic.generate(3, 5)[:2]
    assert synthetic.generate(1, 5) != synthetic.generate(1, 6)


def test_equal_bytes_in_every_process(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from foveate.corpora import synthetic;"
        "synthetic.write(Path(sys.argv[1]), synthetic.generate(2, 9))"
    )
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for file, seed in zip(files, ("0", "12345"), strict=True):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, str(file)], check=True, env=environment)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].read_bytes().count(b"\n") == 2


def test_sizes(sample: list[Conversation]) -> None:
    for conversation in sample:
        sessions = Counter(turn.session for turn in conversation.turns)
        assert 8 <= len(sessions) <= 20
        assert min(sessions.values()) >= 14
        assert 20 <= len(conversation.questions) <= 40


def test_turns_are_well_formed(sample: list[Conversation]) -> None:
    for conversation in sample:
        assert len(turns_by_id(conversation)) == len(conversation.turns)
        assert {turn.role for turn in conversation.turns} == {"user", "assistant"}
        assert len({turn.speaker for turn in conversation.turns}) == 2
        for before, after in zip(conversation.turns, conversation.turns[1:], strict=False):
            assert before.session != after.session or before.speaker != after.speaker
        for turn in conversation.turns:
            assert turn.text.strip() == turn.text
            assert "{" not in turn.text
            assert ">>" not in turn.text
            assert "(" not in turn.text


def test_sessions_share_a_date_and_dates_grow(sample: list[Conversation]) -> None:
    for conversation in sample:
        dates = {turn.session: turn.date for turn in conversation.turns}
        assert all(turn.date == dates[turn.session] for turn in conversation.turns)
        days = [parse_day(text) for text in dates.values() if text]
        assert days == sorted(set(days))


def parse_day(text: str) -> date:
    day, month, year = text.split()
    return date(int(year), moments.MONTHS.index(month) + 1, int(day))


def test_questions_are_well_formed(sample: list[Conversation]) -> None:
    for conversation in sample:
        known = turns_by_id(conversation)
        texts = [question.query.text for question in conversation.questions]
        assert len(set(texts)) == len(texts)
        assert len({question.id for question in conversation.questions}) == len(texts)
        for question in conversation.questions:
            evidence = question.evidence
            assert evidence.turn_ids
            assert set(evidence.turn_ids) <= known.keys()
            assert len(set(evidence.turn_ids)) == len(evidence.turn_ids)
            assert question.query.text.endswith("?")
            assert "{" not in question.query.text
            assert " my " not in question.query.text
            speakers = {turn.speaker or "" for turn in conversation.turns}
            assert evidence.category != "5" or any(name in question.query.text for name in speakers)
            assert (evidence.answer is None) == (evidence.category == "5") == (evidence.trap is not None)


def test_kinds_are_in_proportion(sample: list[Conversation]) -> None:
    kinds = Counter(q.evidence.category for c in sample for q in c.questions)
    share = {kind: kinds[kind] / kinds.total() for kind in "12345"}
    assert 0.10 < share["1"] < 0.20
    assert 0.12 < share["2"] < 0.22
    assert 0.03 < share["3"] < 0.08
    assert 0.35 < share["4"] < 0.50
    assert 0.15 < share["5"] < 0.27


def test_answers_follow_from_the_evidence(sample: list[Conversation]) -> None:
    """The bank guarantees that a statement names its value or one that belongs to it; most name it outright."""
    found, total = 0, 0
    for conversation in sample:
        known = turns_by_id(conversation)
        for question in conversation.questions:
            evidence = question.evidence
            said = " ".join(known[turn_id].text for turn_id in evidence.turn_ids).lower()
            answer = evidence.trap or evidence.answer or ""
            if evidence.category in "145":
                total += 1
                found += all(part.lower() in said for part in answer.removeprefix("to ").split(", "))
    assert found / total > 0.9


def test_multi_hop_has_several_turns_mostly_of_several_sessions(sample: list[Conversation]) -> None:
    spans: list[bool] = []
    for conversation in sample:
        known = turns_by_id(conversation)
        for question in conversation.questions:
            if question.evidence.category == "1":
                ids = question.evidence.turn_ids
                assert len(ids) > 1
                spans.append(len({known[turn_id].session for turn_id in ids}) > 1)
    assert sum(spans) / len(spans) > 0.8


ANA, BO = Person("Ana", "her", "user"), Person("Bo", "him", "assistant")
MAY = moments.Moment("yesterday", "7 May 2023", ("May 2023",))


def one_topic(name: str, told: list[tuple[str, str, dict[str, str]]]) -> list[tuple[str, Evidence]]:
    """All questions about Ana's single occurrence of a topic: (fact, turn id, changed values) in the order told."""
    topic = next(topic for topic in topics() if topic.name == name)
    values = {c: v for slot in topic.slots for c, v in zip(slot.columns, slot.rows[0], strict=True)}
    instance = Instance(topic, ANA, values)
    for session, (fact_name, turn_id, changed) in enumerate(told):
        fact = next(fact for fact in topic.facts if fact.name == fact_name)
        stated = Stated(fact, (turn_id,), session, values | changed, MAY, dated=fact.tense != "none")
        for earlier in instance.stated:
            if topic.updated_by(earlier.fact) is fact:
                earlier.replaced_by = stated
        instance.stated.append(stated)
    world = World((ANA, BO), instances=[instance])
    found = {q.query.text: q.evidence for seed in range(30) for q in ask(Random(seed), world, "c", 60)}
    return list(found.items())


def test_an_update_is_asked_at_its_newest_statement_and_what_was_before_at_both() -> None:
    found = one_topic("job", [("job", "D1:3", {"job": "a chef"}), ("newjob", "D2:5", {"job": "a pilot"})])
    single = [evidence for _, evidence in found if evidence.category == "4"]
    before = [(text, evidence) for text, evidence in found if evidence.category == "1"]
    assert single
    assert all(e.turn_ids == ("D2:5",) and e.answer == "a pilot" for e in single)
    assert {text for text, _ in before} <= {
        "What did Ana work as before becoming a pilot?",
        "What was Ana's earlier profession?",
    } | {text for text, e in before if ", and " in text}
    assert any(e.turn_ids == ("D1:3", "D2:5") and e.answer == "a chef" for _, e in before)
    assert not any(e.turn_ids == ("D1:3",) and e.category == "4" for _, e in found)


def test_the_other_person_is_asked_about_with_the_tempting_turn() -> None:
    found = one_topic("pet", [("animal", "D1:3", {})])
    adversarial = [(text, evidence) for text, evidence in found if evidence.category == "5"]
    assert "What sort of pet did Bo get?" in [text for text, _ in adversarial]
    for text, evidence in adversarial:
        assert "Ana" not in text
        assert evidence == Evidence(("D1:3",), None, "5", trap="a beagle")


def test_single_and_temporal_questions_name_the_person_who_told() -> None:
    found = one_topic("pet", [("animal", "D1:3", {}), ("quirk", "D2:1", {})])
    kinds = {evidence.category: text for text, evidence in found}
    assert kinds.keys() == {"1", "2", "3", "4", "5"}
    assert ("When did Ana adopt Biscuit?", Evidence(("D1:3",), "7 May 2023", "2")) in found
    assert (
        "What odd habit does Ana's Biscuit have?",
        Evidence(("D2:1",), "steals socks from the washing line", "4"),
    ) in (found)
    joined = [evidence for text, evidence in found if evidence.category == "1"]
    assert all(evidence.turn_ids == ("D1:3", "D2:1") for evidence in joined)


def told(
    topic_name: str, fact_name: str, turn_id: str, session: int, owner: Person, day: date | None = None
) -> Instance:
    """One occurrence of a topic of which one fact was told, with the first values of its slots."""
    topic = next(topic for topic in topics() if topic.name == topic_name)
    fact = next(fact for fact in topic.facts if fact.name == fact_name)
    values = {c: v for slot in topic.slots for c, v in zip(slot.columns, slot.rows[0], strict=True)}
    moment = moments.Moment("yesterday", moments.day_text(day), (moments.month_text(day),), day) if day else MAY
    instance = Instance(topic, owner, values)
    instance.stated.append(Stated(fact, (turn_id,), session, values, moment, dated=day is not None))
    return instance


def all_asked(*instances: Instance, turns: tuple[Turn, ...] = ()) -> dict[str, Evidence]:
    found: dict[str, Evidence] = {}
    for seed in range(40):
        world = World((ANA, BO), turns=list(turns), instances=list(instances))
        found |= {q.query.text: q.evidence for q in ask(Random(seed), world, "c", 60)}
    return found


def test_what_belongs_to_one_kind_is_asked_for_with_all_its_turns() -> None:
    found = all_asked(told("yoga", "style", "D1:2", 0, ANA), told("esports", "game", "D2:4", 1, ANA))
    expected = Evidence(("D1:2", "D2:4"), "hot yoga, Starfall Arena", "1")
    assert all(found[text.replace("{X}", "Ana")] == expected for text in traits()["relax"])
    assert not any("Bo" in text and evidence.category == "1" for text, evidence in found.items())


def test_what_was_done_with_a_companion_needs_the_turns_that_name_it() -> None:
    camping, museum = told("camping", "spot", "D1:1", 0, ANA), told("museum", "show", "D2:1", 1, ANA)
    for instance, turn_id in ((camping, "D1:3"), (museum, "D2:3")):
        fact = next(fact for fact in instance.topic.facts if fact.name == "mate")
        first = instance.stated[0]
        instance.stated.append(Stated(fact, (turn_id,), first.session, first.values, MAY))
    turns = (
        Turn("D1:3", "user", "My sister came along to Loch Arden.", "Ana"),
        Turn("D2:3", "user", "With my sister.", "Ana"),
    )
    found = all_asked(camping, museum, turns=turns)
    answer = "Loch Arden, the exhibition of ancient masks"
    assert found["What has Ana done together with her sister?"] == Evidence(("D1:3", "D2:1", "D2:3"), answer, "1")


def test_what_two_people_have_in_common_is_asked_for_with_a_turn_of_each() -> None:
    found = all_asked(told("team", "sport", "D1:2", 0, ANA), told("team", "sport", "D2:5", 1, BO))
    assert found["Which team sport do both Ana and Bo play?"] == Evidence(("D1:2", "D2:5"), "volleyball", "1")
    assert not any(e.category == "5" and e.turn_ids == ("D1:2",) and "volleyball" in t for t, e in found.items())


def test_cause_and_consequence_need_both_turns() -> None:
    garden = told("garden", "enemy", "D1:2", 0, ANA)
    trick = next(fact for fact in garden.topic.facts if fact.name == "trick")
    garden.stated.append(Stated(trick, ("D2:3",), 1, garden.values, MAY))
    found = all_asked(garden)
    assert found["Why does Ana need crushed eggshells?"] == Evidence(("D1:2", "D2:3"), "because of slugs", "1")


def test_the_order_of_two_events_follows_their_days_not_the_telling() -> None:
    climb = told("climb", "peak", "D1:2", 0, ANA, date(2024, 5, 20))
    trip = told("trip", "place", "D3:4", 2, ANA, date(2024, 5, 1))
    found = all_asked(climb, trip)
    order = {text: e for text, e in found.items() if len(e.turn_ids) == 2 and e.category == "2"}
    assert len(order) >= 4
    for text, evidence in order.items():
        assert evidence.turn_ids == ("D1:2", "D3:4")
        if "How much time" in text:
            assert evidence.answer == "about 3 weeks"
        else:
            assert evidence.answer == ("the climb of Mount Aldis" if "recent" in text else "the trip to Lisbon")


@pytest.mark.parametrize(
    ("days", "text"),
    [(1, "1 day"), (13, "13 days"), (14, "about 2 weeks"), (59, "about 8 weeks"), (91, "about 3 months")],
)
def test_distances_are_told_in_the_unit_that_suits_them(days: int, text: str) -> None:
    start = date(2024, 1, 1)
    assert moments.distance_text(start, start + timedelta(days=days)) == text
    assert moments.distance_text(start + timedelta(days=days), start) == text


def test_a_turn_may_tell_of_two_matters(sample: list[Conversation]) -> None:
    leads = tuple(line.rstrip(".:") for line in talk()["switch"])
    switched = [t for c in sample for t in c.turns if any(f" {lead}" in t.text for lead in leads)]
    assert len(switched) > 24


def test_words_of_a_fact_come_back_in_turns_that_are_no_evidence(sample: list[Conversation]) -> None:
    hard, total = 0, 0
    for conversation in sample:
        for question in conversation.questions:
            answer = question.evidence.trap or question.evidence.answer or ""
            if question.evidence.category in "45" and len(answer) > 8:
                told_in = question.evidence.turn_ids
                total += 1
                hard += any(
                    answer.lower() in turn.text.lower() for turn in conversation.turns if turn.id not in told_in
                )
    assert hard / total > 0.25


def test_sad_matters_get_no_cheer() -> None:
    cheerful = {line for key in ("tail", "gush", "recap", "quote") for line in talk()[key] if "{" not in line}
    seen = 0
    for conversation in synthetic.generate(30, 31):
        for turn in conversation.turns:
            if re.search(r"\b(passed away|I'm heartbroken|The house is so quiet)\b", turn.text):
                seen += 1
                assert not any(line in turn.text for line in cheerful), turn.text
    assert seen > 3


def test_relative_dates_are_resolved_against_the_session(sample: list[Conversation]) -> None:
    checked = 0
    for conversation in sample:
        known = turns_by_id(conversation)
        for question in conversation.questions:
            turn = known[question.evidence.turn_ids[-1]]
            if (
                question.evidence.category == "2"
                and re.search(r"(?<!day before )yesterday\b", turn.text.lower())
                and turn.date
            ):
                if len(TIMES.findall(turn.text.lower())) > 1 or len(question.evidence.turn_ids) > 1:
                    continue
                checked += 1
                assert question.evidence.answer is not None
                assert (parse_day(turn.date) - parse_day(question.evidence.answer)).days == 1
    assert checked > 5


def test_words_of_question_and_evidence_overlap_only_in_part(sample: list[Conversation]) -> None:
    shares: list[float] = []
    for conversation in sample:
        known = turns_by_id(conversation)
        names = {(turn.speaker or "").lower() for turn in conversation.turns}
        for question in conversation.questions:
            asked = content_words(question.query.text) - names
            said = content_words(" ".join(known[turn_id].text for turn_id in question.evidence.turn_ids))
            shares.append(len(asked & said) / max(1, len(asked)))
    assert 0.25 < sum(shares) / len(shares) < 0.5
    assert sum(share <= 0.25 for share in shares) / len(shares) > 0.3


def test_helpers_own_no_facts() -> None:
    for conversation in synthetic.generate(4, 8, Shape(sessions=(3, 4), helper_share=1)):
        helper = next(turn.speaker for turn in conversation.turns if turn.role == "assistant")
        known = turns_by_id(conversation)
        assert helper in talk()["helper"]
        for question in conversation.questions:
            assert all(known[turn_id].role == "user" for turn_id in question.evidence.turn_ids)


def test_files_round_trip(tmp_path: Path, sample: list[Conversation]) -> None:
    file = tmp_path / "s.jsonl"
    synthetic.write(file, sample[:3])
    assert synthetic.read(file) == sample[:3]
    assert any(isinstance(turn.content, tuple) for turn in sample[0].turns)


def damaged(change: str) -> str:
    (record,) = (json.loads(line) for line in [json.dumps(MINIMAL)])
    match change:
        case "turns":
            record["turns"] = {}
        case "id":
            del record["turns"][0]["id"]
        case "evidence":
            record["questions"][0]["evidence"] = ["D9:9"]
        case "twice":
            record["turns"].append(record["turns"][0])
        case "content":
            record["turns"][0]["content"] = 3
        case "kind":
            record["turns"][0]["content"] = [{"kind": "video", "text": "x"}]
        case "answer":
            record["questions"][0]["answer"] = 3
        case _:
            return "[]"
    return json.dumps(record)


MINIMAL = {
    "id": "c",
    "turns": [{"id": "D1:1", "role": "user", "content": "Hi"}],
    "questions": [{"id": "c:q0", "question": "What?", "evidence": ["D1:1"]}],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("turns", "line 2: 'turns' must be a list"),
        ("id", "line 2 turn 0: 'id' must be a string"),
        ("evidence", "line 2 question 0: evidence 'D9:9' is no turn"),
        ("twice", "line 2: turn ids are not unique"),
        ("content", "line 2 turn 0: content is int"),
        ("kind", "line 2 turn 0: part kind 'video' is not one of"),
        ("answer", "line 2 question 0: 'answer' must be a string"),
        ("list", "line 2: expected an object, found list"),
    ],
)
def test_malformed_lines_are_named(tmp_path: Path, change: str, message: str) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text(json.dumps(MINIMAL) + "\n" + damaged(change) + "\n")
    with pytest.raises(DataError, match=re.escape(message)):
        synthetic.read(file)


@pytest.mark.parametrize("n", [0, -1])
def test_no_conversations_are_refused(n: int) -> None:
    with pytest.raises(DataError, match="give at least 1"):
        synthetic.generate(n, 1)


def test_shapes_are_checked() -> None:
    with pytest.raises(DataError, match="sessions="):
        Shape(sessions=(5, 2))
    with pytest.raises(DataError, match="helper_share="):
        Shape(helper_share=2)


# -- the phrase bank


def test_the_bank_is_large() -> None:
    facts = [fact for topic in topics() for fact in topic.facts]
    assert len(topics()) >= 145
    assert len(facts) >= 540
    assert sum(len(f.get("say") + f.get("plain") + f.get("short") + f.get("split")) for f in facts) >= 1800
    assert sum(len(f.get("ask") + f.get("when") + f.get("used") + f.get("infer")) for f in facts) >= 1200
    assert sum(len(f.get("trait") + f.get("step") + f.get("deed") + f.get("event")) for f in facts) >= 250
    assert all(fact.get("ask") and (fact.update or len(fact.get("ask")) > 1) for fact in facts)


@pytest.mark.parametrize("topic", topics(), ids=lambda topic: topic.name)
def test_every_statement_carries_its_answer(topic: Topic) -> None:
    for fact in topic.facts:
        columns = {c for name in placeholders(fact.answer) for c in topic.slot_of(name).columns}
        for key in ("say", "plain", "short", "split", "other"):
            for line in fact.get(key):
                assert columns & placeholders(line), f"{topic.name}.{fact.name}: {line}"
        for line in (*fact.get("when"), *fact.get("event")):
            assert fact.tense != "none", line
        for line in fact.get("deed"):
            assert topic.slot_of(fact.answer.strip("{}")).shared, line
        for kind, line in fact.keyed("trait"):
            assert line
            assert traits()[kind]


@pytest.mark.parametrize("topic", topics(), ids=lambda topic: topic.name)
def test_every_topic_can_be_talked_about(topic: Topic) -> None:
    assert topic.get("chat")
    assert topic.get("echo")
    assert topic.get("hook")
    assert topic.get("react") or not topic.repeat
    assert topic.facts[0].update is None
    assert not topic.repeat or len(topic.slots[0].rows) >= 5
    for fact in topic.facts:
        if fact.update:
            assert fact.get("used")
            assert fact.update in {column for slot in topic.slots for column in slot.columns}


def test_templates_are_filled() -> None:
    values = {"item": "a red kite", "X": "Ana"}
    assert fill("{X} has {item}. {item_}! {the_item}, {the_item_}", values) == (
        "Ana has a red kite. A red kite! the red kite, The red kite"
    )
    assert placeholders("{the_item} {item_} {X}") == {"item", "X"}


def test_choices_are_drawn() -> None:
    drawn = {choose(Random(seed), "(so|and then) it (ended|stopped)") for seed in range(40)}
    assert drawn == {"so it ended", "so it stopped", "and then it ended", "and then it stopped"}


def test_questions_are_turned_to_the_person() -> None:
    assert to_second_person("What does {X} want {the_item} for?") == "What do you want {the_item} for?"
    assert to_second_person("What is {X}'s profession?") == "What is your profession?"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["chat: hello"], "before the first topic"),
        (["== t", "nonsense"], "not of the form key: text"),
        (["== t", "smalltalk: x"], "unknown key 'smalltalk'"),
        (["== t", "slot a/b: 1/2 | 3"], "does not have 2 columns"),
        (["== t", "slot a: 1", "-- f", "say: {a}"], "no plain line"),
        (
            [
                "== t",
                "slot a: 1",
                "-- f",
                *(f"{k}: {{a}}" for k in "say plain short prompt ask answer".split()),
                "step: g: {a}? => {a}",
            ],
            "step 'g' is no fact of the topic with question => answer",
        ),
        (
            [
                "== t",
                "slot a: 1",
                "-- f",
                "say: {b}",
                *(f"{k}: {{a}}" for k in "plain short prompt ask answer".split()),
            ],
            "unknown placeholder {b}",
        ),
        (
            [
                "== t",
                "slot a: 1",
                "-- f",
                "say: {a} {when}",
                *(f"{k}: {{a}}" for k in "plain short prompt ask answer".split()),
            ],
            "{when} in a fact that is neither past nor future",
        ),
    ],
)
def test_a_broken_bank_is_refused(lines: list[str], message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        parse_topics(lines, "x.txt")


@pytest.mark.parametrize("tense", ["past", "future"])
def test_moments_lie_on_their_side_of_today(tense: str) -> None:
    today = date(2024, 3, 1)
    for seed in range(200):
        moment = moments.draw(Random(seed), today, "past" if tense == "past" else "future")
        if moment.answer[0].isdigit():
            assert (parse_day(moment.answer) < today) == (tense == "past")
            assert moment.answer.endswith(moment.month)


def test_months_that_cannot_be_told_are_left_open() -> None:
    today = date(2024, 5, 4)
    weeks = [m for m in (moments.draw(Random(s), today, "past") for s in range(300)) if m.phrase == "last week"]
    assert weeks
    assert weeks[0].months == ("April 2024", "May 2024") or weeks[0].month == "April 2024"
    assert weeks[0].answer == "the week before 4 May 2024"
