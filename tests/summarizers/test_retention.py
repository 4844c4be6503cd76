"""What counts as a fact, in a dozen languages; what an audit finds; that a guarded form loses and adds nothing."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foveate
from foveate.core.protocols import Compressed, Summarizer
from foveate.core.tokens import ChapterCounter, EncodeCounter, TokenCounter, load_counter
from foveate.summarizers.heuristic import HeuristicCompressor
from foveate.summarizers.retention import FactKind, GuardedSummarizer, audit, facts, retained
from foveate.summarizers.segments import sentences, words

CHARACTERS = EncodeCounter(lambda text: [ord(c) for c in text], "characters")
COUNTERS = [ChapterCounter(), CHARACTERS, load_counter("minilm")]


def keys(text: str, kind: str) -> list[str]:
    return [fact.key for fact in facts(text) if fact.kind == kind]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("There were 1,000 of 1000 and 1 000 people", ["1000", "1000", "1000"]),
        ("We are two, no, 2", ["2", "2"]),
        ("twenty-one and two hundred and five and one hundred thousand", ["21", "205", "100000"]),
        ("three dozen, half, twice, the third", ["36", "0.5", "2", "3"]),
        ("２０ ٢٠ २० 20", ["20", "20", "20", "20"]),
        ("1.50 and 1.5 and 1,5 and ½ and -3", ["1.5", "1.5", "1.5", "0.5", "-3"]),
        ("1.000 is not one, 1.000.000 is a million, 1.234,50", ["1.000", "1000000", "1000000", "1234.5"]),
        ("5k, 2.5 million, 3万, 3 млн", ["5000", "2500000", "30000", "3000000"]),
        ("120/80 and 24/7 in the 1990s, 2nd, 007", ["120/80", "24/7", "1990s", "2", "007"]),
        ("一共三个人，一个朋友", ["3"]),
        ("No one knows the one I mean. One day I will.", []),
        ("1. Install it\n2) Run it\n", []),
        ("It is an often tense, tender, freighted attempt", []),
    ],
)
def test_numbers(text: str, found: list[str]) -> None:
    assert keys(text, "number") == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2023-05-07, 7 May 2023, May 7th, 2023, the 7th of May 2023", ["2023-05-07"] * 4),
        ("2023年5月7日、2023년 5월 7일", ["2023-05-07"] * 2),
        ("7. Mai 2023, le 7 mai 2023, 7 de mayo de 2023, 7 мая 2023, 7 maggio 2023", ["2023-05-07"] * 5),
        ("May 7 and 5月7日 and 五月七日", ["-05-07"] * 3),
        ("in May 2023, in May, in August", ["2023-05", "-05", "-08"]),
        ("07/05/2023 or 7/5/2023", ["7/5/2023"] * 2),
        ("at 5 pm, 5:00 p.m., 17:00, 5:30", ["17:00", "17:00", "17:00", "5:30"]),
        ("on Friday, on Fridays, today, tomorrow, yesterday", ["friday", "friday", "today", "tomorrow", "yesterday"]),
        ("last week, next month, two weeks ago, 2 weeks ago", ["last week", "next month", "2 week ago", "2 week ago"]),
        ("今天星期三，明天见", ["今天", "星期三", "明天"]),
        ("am Montag, le lundi, el lunes, в понедельник", ["monday"] * 4),
        ("10時30分、3시 반", ["10:30", "3:30"]),
        ("May I come? You may march to the sea", []),
        ("the marches, sundae, a fried egg, 10 may do", []),
    ],
)
def test_dates(text: str, found: list[str]) -> None:
    assert keys(text, "date") == found
    assert keys(text, "number") == (["10"] if "10 may" in text else [])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("$1,000.50 and USD 1000.5 and 1000.50 dollars and US$1000.5", ["1000.5 $"] * 4),
        ("€20k, 20 000 euros, EUR 20000, 20.000,00 €", ["20000 €"] * 4),
        ("$2.5 million or 2.5 million dollars", ["2500000 $"] * 2),
        ("30円、¥30、３０円", ["30 ¥"] * 3),
        ("两百块，200元", ["200 元"] * 2),
        ("twenty bucks", ["20 $"]),
        ("5 pounds of flour, 20 people", []),
    ],
)
def test_money(text: str, found: list[str]) -> None:
    assert keys(text, "money") == found
    assert keys(text, "number") == (["20"] if "people" in text else [])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("20 mg, 20mg, ２０ｍｇ, 20-mg, twenty milligrams, 20 毫克, 20 мг", ["20 mg"] * 7),
        ("20%, 20 percent, 20 %", ["20 %"] * 3),
        ("two weeks, 2 weeks, a 2-week trip, 2周, 2 Wochen, 2 semaines, 2 недели, 2週間", ["2 week"] * 8),
        ("-5 °C, 12 km/h, 1/2 cup, .5 ml", ["-5 °c", "12 km/h", "1/2 cup", "0.5 ml"]),
        ("8 GB, 16gb, 30 fps", ["8 gb", "16 gb"]),
        ("a 20-year-old, 二十五岁, 3時間", ["20 year", "25 岁", "3 hour"]),
        ("20 people, one week, weeks", []),
    ],
)
def test_quantities(text: str, found: list[str]) -> None:
    assert keys(text, "quantity") == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I met Anna Smith and Jean-Luc O'Brien", ["anna", "smith", "jean-luc", "o'brien"]),
        ("Anna came. I like Anna’s dog.", ["anna", "anna"]),
        ("ask Dr. Lee or J. Doe", ["lee", "j", "doe"]),
        ("Мы видели Анну в Москве", ["анну", "москве"]),
        ("Είδα την Άννα", ["άννα"]),
        ("我昨天见了Anna。", ["anna"]),
        ("She said “Biscuit sleeps”", ["biscuit"]),
        ("Hello there. We ate. Great!", []),
        ("Thanks, Mel! Wow, I'm so glad I did.", []),
        ("- Buy milk\n- Water plants\n# Title", []),
        ("We met on Monday in May", []),
    ],
)
def test_names(text: str, found: list[str]) -> None:
    assert keys(text, "name") == found


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("see https://a.b/c?x=1.2,3, and www.foo.com/a.", "url", ["https://a.b/c?x=1.2,3", "www.foo.com/a"]),
        ("mail bob.smith@x.co.uk or example.com", "url", ["bob.smith@x.co.uk", "example.com"]),
        ("看https://a.b/c。好", "url", ["https://a.b/c"]),
        ("call +49 30 1234567 or (555) 123-4567", "identifier", ["+49301234567", "5551234567"]),
        ("plates KX-71.334, B-MW 1234, order #12345", "identifier", ["KX-71.334", "B-MW 1234", "#12345"]),
        ("123e4567-e89b-12d3-a456-426614174000", "identifier", ["123e4567-e89b-12d3-a456-426614174000"]),
        (
            "get_user_id, iPhone, v1.2.3, 10.0.0.1, 3D",
            "identifier",
            ["get_user_id", "iPhone", "v1.2.3", "10.0.0.1", "3D"],
        ),
        (r"in src/foo/bar.py, C:\Temp\x.txt or ~/x/y", "identifier", ["src/foo/bar.py", r"C:\Temp\x.txt", "~/x/y"]),
        ("and/or well-known state-of-the-art", "identifier", []),
        ("run `pip install x` now", "code", ["`pip install x`"]),
        ("so:\n```py\nx = 1 \n```\nok", "code", ["```py\nx = 1\n```"]),
        ("so:\n    x = 1\nok", "code", ["x = 1"]),
        ("it's a 'quote'", "code", []),
    ],
)
def test_literals(text: str, kind: str, found: list[str]) -> None:
    assert keys(text, kind) == found
    assert not keys(text, "number")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I am not allergic", ["not allerg"]),
        ("I'm really not very hungry; she isn’t hungry", ["not hungri", "not hungri"]),
        ("She cannot swim, never swims, doesnt swim, without swimming", ["not swim"] * 4),
        ("I hope not.", ["not hope"]),
        ("No, thanks. I do not, however, eat", ["not", "not"]),
        (
            "unless it rains, except rain, avoid rain, stopped smoking",
            ["unless rain", "except rain", "avoid rain", "stop smoke"],
        ),
        ("Ich esse kein Fleisch, und nie Fisch", ["not fleisch", "not fisch"]),
        ("Je ne mange pas de viande", ["not mang", "not viand"]),
        ("Nunca como carne", ["not como"]),
        ("Я не ем мясо", ["not ем мясо"]),
        ("我不吃花生，没有狗，沒有狗，无人", ["不 吃花", "没 狗", "没 狗", "无 人"]),
        ("肉は食べません。肉は食べない。", ["not 食べ", "not 食べ"]),
        ("고기를 안 먹어요", ["not 먹어"]),
        ("أنا لا آكل الفول", ["not آكل الفول"]),
        ("मैं मांस नहीं खाता।", ["not खाता"]),
        ("a notable knot, nonetheless; see No. 5; 特别好，别人", []),
    ],
)
def test_negations(text: str, found: list[str]) -> None:
    assert keys(text, "negation") == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("allergic to penicillin", ["allergy penicillin", "penicillin"]),
        ("my peanut allergy", ["allergy peanut"]),
        ("allergic to tree nuts, shellfish and mango.", ["allergy nut", "allergy shellfish", "allergy mango"]),
        ("allergic to cats and I carry a pen", ["allergy cat"]),
        ("Allergies: nuts. lactose intolerance", ["allergy nut", "allergy lactos"]),
        ("not allergic to nuts, no known allergies", ["no allergy nut", "no allergy"]),
        (
            "warfarin 5 mg, 500 mg of metformin, aspirin, atorvastatin",
            ["warfarin 5 mg", "metformin 500 mg", "aspirin", "atorvastatin"],
        ),
        ("我对花生和虾过敏。不过敏", ["allergy 花生", "allergy 虾", "no allergy"]),
        ("卵アレルギーです。卵アレルギーはない。", ["allergy 卵", "no allergy 卵"]),
        ("땅콩 알레르기가 있어요", ["allergy 땅콩"]),
        (
            "allergisch gegen Nüsse, alérgico a los gatos, аллергия на орехи",
            ["allergy nüsse", "allergy gato", "allergy орехи"],
        ),
        ("حساسية من الفول", ["allergy الفول"]),
        ("in April the milk is fine", []),
    ],
)
def test_allergies_and_medications(text: str, found: list[str]) -> None:
    assert keys(text, "medical") == found


def test_a_part_of_one_fact_is_no_fact_of_its_own() -> None:
    text = "On 7 May 2023 I paid $20 for 20 mg of v2.0 at https://a.b/7 with `x = 3`, 3 times"
    assert [fact.kind.value for fact in facts(text)] == [
        *("date", "money", "quantity", "identifier", "url", "code", "quantity"),
    ]
    for fact in facts(text):
        assert text[fact.start : fact.end] == fact.text


@pytest.mark.parametrize(
    ("source", "compressed", "lost", "added"),
    [
        ("I'm not allergic to nuts", "I'm allergic to nuts", ["negation", "medical"], ["medical"]),
        ("I'm allergic to nuts", "I'm not allergic to nuts", ["medical"], ["negation", "medical"]),
        ("I do not eat meat", "I eat meat, not fish", ["negation"], ["negation"]),
        ("Take 20 mg", "Take 20", ["quantity"], []),
        ("Take 20", "Take 20 mg", ["number"], ["quantity"]),
        ("I met Anna Smith", "I met Anna", ["name"], []),
        ("I met Anna", "Anna", [], []),
        ("I met Anna", "I met Anna Jones", [], ["name"]),
        ("hey anna, come", "I saw Anna", [], []),
        ("on 7 May 2023 and in May", "on 7 May 2023", [], []),
        ("in May", "in May 2023", [], ["date"]),
        ("on 7 May 2023", "in 2023", ["date"], []),
        ("two dogs", "2 dogs", [], []),
        ("20 euros", "€20", [], []),
        ("He said 3 and 3 again", "3", [], []),
        ("see https://a.b/c", "see https://a.b/d", ["url"], ["url"]),
        ("我不吃花生", "我吃花生", ["negation"], []),
        ("肉は食べません", "肉は食べます", ["negation"], []),
        ("Je ne fume pas", "Je fume", ["negation", "negation"], []),
        ("No soy alérgico", "Soy alérgico", ["negation"], []),
        ("Я не ем мясо", "Я ем мясо", ["negation"], []),
        ("Ich esse kein Fleisch", "Ich esse Fleisch", ["negation"], []),
        ("أنا لا آكل الفول", "أنا آكل الفول", ["negation"], []),
        ("warfarin 5 mg, metformin 500 mg", "warfarin 500 mg, metformin 5 mg", ["medical"] * 2, ["medical"] * 2),
    ],
)
def test_an_audit_names_what_changed(source: str, compressed: str, lost: list[str], added: list[str]) -> None:
    seen = audit(source, compressed)
    assert [fact.kind.value for fact in seen.lost] == lost
    assert [fact.kind.value for fact in seen.added] == added
    assert seen.holds == (not lost and not added)


def test_an_audit_can_be_read() -> None:
    seen = audit("I met Bob on Friday.\nBob did not pay $20.", "I met Bob, he paid £20.")
    assert seen.report() == (
        "kept 2 of 5 facts, added 1\n"
        "lost date 'Friday' at 13-19\n"
        "lost negation 'not pay' at 29-36\n"
        "lost money '$20' at 37-40\n"
        "added money '£20' at 19-22"
    )
    assert seen.kept_share == pytest.approx(0.4)
    assert seen.kept_by_kind == {FactKind.NAME: 1.0, FactKind.DATE: 0.0, FactKind.NEGATION: 0.0, FactKind.MONEY: 0.0}
    assert audit("hello there", "").kept_share is None


def test_the_public_audit_costs_no_torch() -> None:
    code = "import foveate, sys; assert 'numpy' not in sys.modules; foveate.audit; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert foveate.audit is audit


# A sentence in each of a dozen languages and scripts, with what must be read again in any shorter form that is offered.
PLANTED = {
    "I am not allergic to cats. ": ("not allergic",),
    "We paid $1,250.50 to Anna Smith on 7 May 2023, but it rained; she left. ": (
        "$1,250.50",
        "Anna Smith",
        "7 May 2023",
    ),
    "Ich nehme 20 mg Ibuprofen und esse kein Fleisch. ": ("20 mg", "kein Fleisch"),
    "Je ne mange jamais de noix le lundi. ": ("ne mange jamais", "lundi"),
    "No soy alérgica a la penicilina, pero tomo 2 tabletas. ": ("No soy alérgica", "2 tabletas"),
    "Я не ем орехи и плачу 300 рублей. ": ("не ем орехи", "300 рублей"),
    "我对花生过敏，不吃海鲜。": ("花生过敏", "不吃海鲜"),
    "2023年5月8日に田中さんと会い、肉は食べません。": ("2023年5月8日", "食べません"),
    "저는 고기를 안 먹어요. ": ("안 먹어",),
    "عندي ٢٠ يوم ولا آكل الفول. ": ("٢٠ يوم", "لا آكل"),
    "मैं मांस नहीं खाता। ": ("नहीं खाता",),
    "Bugün 15 elma almadım ama Ankara güzel değil. ": ("15", "Ankara", "değil"),
    "Eu não bebo café e moro em Lisboa. ": ("não bebo", "Lisboa"),
    "Call +49 30 1234567 or see https://a.b/c?x=1.2,3 👍🏽 now! ": ("+49 30 1234567", "https://a.b/c?x=1.2,3"),
    "Use get_user_id in `x = 1`. ": ("get_user_id", "`x = 1`"),
    "\n- item KX-71.334\n- 3 eggs\n": ("KX-71.334", "3"),
    "\n```py\nx = 1\n```\n": ("```py\nx = 1\n```",),
}
FILLER = (
    "It was great fun all evening. |We talked and walked by the lake, and then we went home. |天气很好，大家都很开心。|"
    "Das war schön. |C'était bien. |Fue muy divertido. |Было весело. |とても楽しかったです。|정말 좋았어요. |"
    "كان جميلا. |So |, and |; |: |\n\n|“a. b” |👩‍👩‍👧 |😀🎉 |\ud800|3|. |not |May |$|Mr. |対|\u2028"
).split("|")
TEXTS = st.lists(st.sampled_from([*PLANTED, *FILLER]), max_size=14).map("".join) | st.text(max_size=60)
CLEAN = st.lists(st.sampled_from([*PLANTED, *[f for f in FILLER if len(f) > 9]]), min_size=1, max_size=12)


@dataclass(frozen=True)
class Mangler:
    """Keeps the words, or sentences, whose bits are set, and may say things of its own."""

    mask: int
    whole: bool
    extra: str = ""

    name = "mangler"

    def compress(self, text: str, max_tokens: int, hint: str = "") -> Compressed | None:
        parts = [text[s.start : s.end] for s in sentences(text)] if self.whole else text.split(" ")
        kept = [part for i, part in enumerate(parts) if self.mask >> (i % 60) & 1]
        return Compressed(("" if self.whole else " ").join(kept).strip() + self.extra, 0.5)


INNERS = st.builds(
    Mangler, st.integers(0, 2**60), st.booleans(), st.sampled_from(["", "", "", " Bob and Zoe paid $99.", " not fun"])
)


@given(TEXTS)
def test_a_text_loses_nothing_to_itself_and_everything_to_silence(text: str) -> None:
    same, silent = audit(text, text), audit(text, "")
    assert same.holds
    assert same.lost == same.added == ()
    assert silent.lost == silent.facts == facts(text)
    assert silent.added == ()
    for fact in facts(text):
        assert text[fact.start : fact.end] == fact.text != ""


@given(TEXTS)
def test_disjoint_kinds_do_not_overlap(text: str) -> None:
    plain = [f for f in facts(text) if f.kind not in {FactKind.NEGATION, FactKind.MEDICAL}]
    assert all(a.end <= b.start for a, b in pairwise(plain))
    assert list(facts(text)) == sorted(facts(text), key=lambda f: f.start)


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda c: c.name)
@settings(max_examples=300, deadline=None)
@given(text=TEXTS, inner=INNERS, limit=st.integers(0, 250), repair=st.booleans())
def test_a_guarded_form_keeps_the_facts_and_the_limits(
    counter: TokenCounter, text: str, inner: Mangler, limit: int, repair: bool
) -> None:
    found = GuardedSummarizer(inner, counter, repair).compress(text, limit)
    if found is None:
        return
    assert audit(text, found.text).holds
    assert counter.count(found.text) <= limit
    assert counter.count(found.text) < counter.count(text) or found == Compressed(text, 1.0)
    assert len(found.text) <= len(text)
    assert 0.0 <= found.retention <= 1.0


@settings(max_examples=400, deadline=None)
@given(pieces=CLEAN, inner=INNERS, limit=st.integers(0, 600))
def test_what_was_planted_is_read_in_every_guarded_form(pieces: list[str], inner: Mangler, limit: int) -> None:
    found = GuardedSummarizer(inner, CHARACTERS).compress("".join(pieces), limit)
    for piece in pieces if found else ():
        assert found is not None
        assert all(fact in found.text for fact in PLANTED.get(piece, ())), piece
        assert "$99" not in found.text


@settings(max_examples=400, deadline=None)
@given(pieces=CLEAN, limit=st.integers(0, 400), hint=st.sampled_from(["", "lake", "花生"]))
def test_a_strict_extract_keeps_what_was_planted(pieces: list[str], limit: int, hint: str) -> None:
    found = HeuristicCompressor(CHARACTERS).compress("".join(pieces), limit, hint)
    for piece in pieces if found else ():
        assert found is not None
        assert all(fact in found.text for fact in PLANTED.get(piece, ())), piece


@settings(max_examples=400, deadline=None)
@given(text=TEXTS, limit=st.integers(0, 400), hint=st.sampled_from(["", "lake", "花生"]))
def test_a_strict_extract_passes_its_audit(text: str, limit: int, hint: str) -> None:
    found = HeuristicCompressor(CHARACTERS).compress(text, limit, hint)
    assert found is None or audit(text, found.text).holds


@dataclass(frozen=True)
class Says:
    text: str | None

    name = "says"

    def compress(self, text: str, max_tokens: int, hint: str = "") -> Compressed | None:
        return None if self.text is None else Compressed(self.text, 0.3)


SOURCE = (
    "We had a long and lovely evening by the lake. I do not eat meat, but I like fish. Bob left at 5 pm. It was fun."
)


@pytest.mark.parametrize(
    ("form", "limit", "result"),
    [
        ("It was fun.", 100, "I do not eat meat, Bob left at 5 pm. It was fun."),
        ("It was fun.", 47, "I do not eat meat, Bob left at 5 pm."),
        ("It was fun.", 35, None),
        ("We had a long and lovely evening by the lake. It was fun.", 60, "I do not eat meat, Bob left at 5 pm."),
        ("A nice evening", 100, "A nice evening\nI do not eat meat, Bob left at 5 pm."),
        ("I do not eat meat. Bob left at 5 pm", 100, "I do not eat meat. Bob left at 5 pm"),
        ("I do not eat meat. Bob left at 5 pm", 34, None),
        ("I do not eat meat. Bob left at 6 pm", 100, None),
        (SOURCE, 200, SOURCE),
        (SOURCE, 100, None),
        (SOURCE + " It was fun.", 200, SOURCE),
        ("", 100, None),
        (None, 100, None),
    ],
)
def test_a_repair_puts_back_the_clauses_that_hold_what_was_lost(
    form: str | None, limit: int, result: str | None
) -> None:
    guard = GuardedSummarizer(Says(form), CHARACTERS)
    found = guard.compress(SOURCE, limit)
    assert (found and found.text) == result
    if found is not None and found.text not in {form, SOURCE}:
        assert found.retention == retained(SOURCE, found.text)
    if form is not None and found is not None and found.text == form != SOURCE:
        assert found.retention == 0.3


def test_without_repair_a_lossy_form_is_withdrawn() -> None:
    assert GuardedSummarizer(Says("It was fun."), CHARACTERS, repair=False).compress(SOURCE, 100) is None


def test_a_guard_is_a_summarizer_and_says_so() -> None:
    guard = GuardedSummarizer(HeuristicCompressor(CHARACTERS, strict=False), CHARACTERS)
    assert isinstance(guard, Summarizer)
    assert guard.name == "heuristic-loose+guard"
    found = guard.compress(SOURCE, 90, "lake")
    assert found is not None
    assert {"not", "5", "Bob"} <= set(found.text.split())


def test_facts_take_linear_time() -> None:
    for text in ("not a-b/c.d_e 1,000.5 May 7 ", "aA1_", "a" * 50, "1 ", "不", "( ", "/", "@a.", "+1 ", "Anna Smith "):
        facts(text * (40_000 // len(text)))
    assert words("done")
