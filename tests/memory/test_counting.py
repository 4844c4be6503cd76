"""The cautious counter reads at or above the tokenizers of chat models, on what the others under-count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.core.tokens import ChapterCounter, TokenCounter
from foveate.memory import CautiousCounter

# Counts of cl100k_base, o200k_base and Qwen 3.5, taken once with their own vocabularies.
REFERENCE = [
    (
        "我对花生过敏。我们明天去曼谷，住在河边的酒店。天气很好，我想吃街边小吃。最近看了一部电影，觉得不错。",
        (66, 40, 31),
    ),
    (
        "私はピーナッツアレルギーです。明日はバンコクへ行きます。川沿いのホテルに泊まります。とても楽しみです。",
        (55, 39, 26),
    ),
    ("저는 땅콩 알레르기가 있습니다. 내일 방콕에 갑니다. 강가 호텔에 묵을 거예요.", (49, 31, 28)),
    ("У меня аллергия на арахис. Завтра мы летим в Бангкок и будем жить в гостинице у реки.", (46, 29, 30)),
    ("لدي حساسية من الفول السوداني. سنسافر غدا إلى بانكوك وسنقيم في فندق على النهر.", (50, 29, 28)),
    ("मुझे मूंगफली से एलर्जी है। कल हम बैंकॉक जाएंगे और नदी के किनारे होटल में रहेंगे।", (84, 26, 53)),
    ("ฉันแพ้ถั่วลิสง พรุ่งนี้เราจะไปกรุงเทพฯ พักโรงแรมริมแม่น้ำ", (58, 27, 29)),
    ("😀😃👩‍👩‍👧🎉🥳 so happy!! 🇹🇭 🙏🏽 ❤️", (40, 27, 39)),
    (
        "id 550e8400-e29b-41d4-a716-446655440000 plate KX-71.334 call +1 (555) 013-4471 at 10:45:22 "
        "https://a.b.com/x/y?q=1&z=abc_DEF",
        (60, 60, 88),
    ),
]


@pytest.mark.parametrize(("text", "counts"), REFERENCE)
def test_it_is_not_below_a_chat_models_tokenizer(text: str, counts: tuple[int, ...]) -> None:
    assert max(counts) <= CautiousCounter().count(text) <= 4 * min(counts)


def test_the_chapters_rule_is_below_on_most_of_these() -> None:
    assert sum(ChapterCounter().count(text) < min(counts) for text, counts in REFERENCE) >= 8


def test_golden_counts() -> None:
    count = CautiousCounter().count
    assert [
        count(t) for t in ("", "hello", "hello world", "Hello, world!", "2023", "internationalization", "a\n\nb")
    ] == [*(0, 1, 2, 4, 4, 5, 3)]


@given(st.text(max_size=80), st.text(max_size=80))
def test_it_counts_every_text_and_joining_adds_little(a: str, b: str) -> None:
    counter = CautiousCounter()
    assert isinstance(counter, TokenCounter)
    assert 0 <= counter.count(a + "\n" + b) <= counter.count(a) + counter.count(b) + 1


def test_encoded_data_is_not_one_word() -> None:
    assert CautiousCounter().count("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9w" * 8) > 300
