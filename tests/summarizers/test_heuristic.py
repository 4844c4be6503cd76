"""The extractive compressor: never over the limit, nothing but the source's own spans; facts survive or it declines."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate.core.protocols import Compressed, Summarizer
from foveate.core.tokens import ChapterCounter, EncodeCounter, TokenCounter, load_counter
from foveate.summarizers.heuristic import HeuristicCompressor
from foveate.summarizers.segments import Span, clauses, sentences, words

CHARACTERS = EncodeCounter(lambda text: [ord(c) for c in text], "characters")
BYTES = EncodeCounter(lambda text: text.encode("utf-8", "replace"), "bytes")
WORDPIECE = load_counter("minilm")
COUNTERS = [ChapterCounter(), CHARACTERS, BYTES, WORDPIECE]

PIECES = st.sampled_from(
    "I ate. |No peanuts! |花生过敏。|天气很好，|https://a.b/c?x=1.2 |\n- item\n|1. first\n|```py\nx = 1\n```\n|v1.2.3 |"
    "Mr. Lee |\n\n|, and |; |: |“a. b” |مرحبا. |नमस्ते। |👩‍👩‍👧 |don't |\ud800|\x1f|\u2028".split("|")
)
TEXTS = st.one_of(st.text(max_size=120), st.lists(PIECES, max_size=25).map("".join))

LONG = (
    "Hey Anna! We had a lovely picnic by the lake with the whole family. My daughter is allergic to peanuts. "
    "The weather was great and we played games all afternoon. We fly to Bangkok on 7 May with Biscuit."
)


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda c: c.name)
@settings(max_examples=300, deadline=None)
@given(text=TEXTS, limit=st.integers(-1, 60), hint=st.text(max_size=10), strict=st.booleans())
def test_the_limit_always_holds_and_the_extract_is_made_of_the_source(
    counter: TokenCounter, text: str, limit: int, hint: str, strict: bool
) -> None:
    found = HeuristicCompressor(counter, strict=strict).compress(text, limit, hint)
    if found is None:
        return
    assert counter.count(found.text) <= limit
    assert len(found.text) <= len(text)
    assert 0.0 <= found.retention <= 1.0
    assert words(found.text)
    source = iter(text)
    assert all(c in source for c in found.text)


@given(TEXTS)
def test_spans_cover_the_text_in_order_without_overlap(text: str) -> None:
    spans = sentences(text)
    assert "".join(text[s.start : s.end] for s in spans) == text
    for span in spans:
        parts = clauses(text, span)
        assert "".join(text[p.start : p.end] for p in parts) == text[span.start : span.end]


def test_a_text_that_fits_is_itself_and_one_without_words_is_nothing() -> None:
    compressor = HeuristicCompressor(CHARACTERS)
    assert compressor.compress("Hi there.", 9) == compressor.compress("Hi there.", 900)
    assert compressor.compress("Hi there.", 9) == Compressed("Hi there.", 1.0)
    assert compressor.compress("?!", 100) is None
    assert compressor.compress("", 100) is None
    assert isinstance(compressor, Summarizer)


def test_the_hint_decides_what_is_kept() -> None:
    text = "The red house stands there alone. The blue boat sails there alone. The green tree grows there alone."
    kept = HeuristicCompressor(CHARACTERS).compress(text, 40, "what about the tree")
    assert kept is not None
    assert kept.text == "The green tree grows there alone."
    assert kept.retention == pytest.approx(1 / 3, abs=0.02)


def test_facts_survive_or_nothing_is_offered() -> None:
    strict, loose = HeuristicCompressor(CHARACTERS), HeuristicCompressor(CHARACTERS, strict=False)
    kept = strict.compress(LONG, 120, "picnic")
    assert kept is not None
    assert {"allergic", "peanuts", "Bangkok", "7", "Biscuit"} <= set(re.findall(r"\w+", kept.text))
    assert strict.compress(LONG, 70, "picnic") is None
    lossy = loose.compress(LONG, 70, "picnic")
    assert lossy is not None
    assert lossy.text == "Hey Anna! We had a lovely picnic by the lake with the whole family."


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("We talked a lot about our plans and dreams. I do not eat meat. It was great fun all evening.", "not"),
        ("We talked a lot about our plans and dreams. Use get_user_id here. It was great fun.", "get_user_id"),
        (
            "We talked a lot about our plans and dreams. See https://a.b/c?x=1.2,3 now. It was great.",
            "https://a.b/c?x=1.2,3",
        ),
        ("We talked a lot about our plans and dreams. The plate is KX-71.334. It was great fun.", "KX-71.334"),
        ("We talked a lot about our plans and dreams. Come on Friday. It was great fun all night.", "Friday"),
        ("We talked a lot about our plans and dreams. We met Carol Ann. It was great fun all night.", "Carol Ann"),
        ("天气很好，我们走了很久很久。我不吃花生。大家都很开心，真的很开心。", "我不吃花生"),
    ],
)
def test_each_kind_of_fact_is_kept_before_better_ranked_sentences(text: str, fact: str) -> None:
    for limit in range(8, len(text)):
        kept = HeuristicCompressor(CHARACTERS).compress(text, limit, "plans dreams")
        assert kept is None or fact in kept.text


def test_lists_and_code_are_spans_of_their_own() -> None:
    text = "Do this. Then that.\n1. Install it. Run it.\n- b) x\n\n```py\na = 1. + 2\n```\nDone. Bye now.\n"
    parts = [text[s.start : s.end] for s in sentences(text)]
    assert parts == [
        "Do this. ",
        "Then that.\n",
        "1. Install it. Run it.\n",
        "- b) x\n\n",
        "```py\na = 1. + 2\n```\n",
        "Done. ",
        "Bye now.\n",
    ]
    assert sentences("```\nopen to the end. x") == [Span(0, 22, code=True)]


def test_clauses_leave_enumerations_quotes_and_addresses_whole() -> None:
    def cut(text: str) -> list[str]:
        return [text[s.start : s.end] for s in clauses(text, Span(0, len(text)))]

    assert cut("I don't eat eggs, nuts, or milk") == ["I don't eat eggs, nuts, or milk"]
    assert cut("I ate, but she slept") == ["I ate, ", "but she slept"]
    assert cut('He said "a; b" and left; then it rained') == ['He said "a; b" and left; ', "then it rained"]
    assert cut("see http://a.b/;c now") == ["see http://a.b/;c now"]


def test_chinese_is_cut_and_joined_without_spaces() -> None:
    text = "我对花生过敏。我们明天去曼谷，住在河边的酒店。天气很好，我想吃街边小吃。"
    kept = HeuristicCompressor(CHARACTERS).compress(text, 20, "花生")
    assert kept is not None
    assert kept.text.startswith("我对花生过敏。")
    assert " " not in kept.text


def test_a_very_long_text_takes_linear_time() -> None:
    text = "We walked by the lake and talked about the garden. " * 4000
    kept = HeuristicCompressor(CHARACTERS).compress(text, 5000, "garden")
    assert kept is not None
    assert 4000 < len(kept.text) <= 5000
