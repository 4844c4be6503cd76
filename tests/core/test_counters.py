"""Token counters, declared prices, drift."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from packing_histories import counter

from foveate.core import (
    ChapterCounter,
    ChatRenderer,
    ConfigError,
    DriftMonitor,
    EncodeCounter,
    MessageCosts,
    Turn,
    load_counter,
    minilm_folder,
)
from foveate.core.render import Piece, Rendered


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("hello", 2),
        ("hello world", 3),
        ("Hello, world!", 4),
        ("don't", 2),
        ("internationalization", 5),
        ("The cat sat on the mat.", 7),
        ("(a) [b]", 4),
        ("123456789", 3),
        ("antidisestablishmentarianism", 7),
        ("   ", 0),
        (" ".join(["hello"] * 10), 14),
        (" ".join(["hello"] * 20), 27),
    ],
)
def test_chapter_golden_counts(text: str, tokens: int) -> None:
    assert ChapterCounter().count(text) == tokens


def test_chapter_golden_message() -> None:
    chat = ChatRenderer()
    rendered = chat.render([Piece("turn", Turn("m0", "user", "hello world"))])
    assert chat.count(rendered, ChapterCounter()) == 3 + 4 + 3
    assert chat.cost(Piece("turn", Turn("m0", "user", "hello world")), ChapterCounter()) == 7


def test_chapter_counts_utf16_units_as_typescript_does() -> None:
    assert ChapterCounter().count("🥜🥜🥜🥜🥜") == 3  # ten units
    assert ChapterCounter().count("\ufeffab\u3000cd") == 2  # both are white space there


def test_minilm_counts_no_special_tokens_and_truncates_nothing() -> None:
    minilm = load_counter("minilm")
    assert minilm.name == "minilm"
    assert minilm.count("") == 0
    assert minilm.count("hello world") == 2
    assert minilm.count("peanut " * 3000) == minilm.count("peanut") * 3000


def test_a_path_and_its_folder_load_the_same_tokenizer() -> None:
    folder, text = minilm_folder(), "Thailand, 7 May"
    expected = load_counter("minilm").count(text)
    assert load_counter(str(folder)).count(text) == expected
    assert load_counter(str(folder / "tokenizer.json")).count(text) == expected


def test_unpaired_surrogates_are_counted() -> None:
    assert load_counter("minilm").count("a \ud800 b") == 2
    assert EncodeCounter(lambda text: text.encode(), "bytes").count("\ud800") == 3


@pytest.mark.parametrize("spec", ["", "nope", "tiktoken:nope", "/nowhere/tokenizer.json"])
def test_an_unknown_counter_is_one_clear_line(spec: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_counter(spec)
    assert "\n" not in str(caught.value)
    assert spec.removeprefix("tiktoken:") in str(caught.value)


def test_a_file_that_is_no_tokenizer_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(ConfigError, match=r"tokenizer\.json is not a tokenizer\.json"):
        load_counter(str(tmp_path))


@pytest.mark.parametrize("name", ["minilm", "bpe"])
def test_eight_threads_share_one_counter(name: str) -> None:
    shared = counter(name)
    texts = [f"turn {k} about peanuts, {'明天 ' * (k % 7)} and {k * 7919}" for k in range(400)]
    alone = [shared.count(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        for together in pool.map(lambda _: [shared.count(text) for text in texts], range(8)):
            assert together == alone


def test_non_text_parts_cost_their_price_whatever_the_payload() -> None:
    costs = MessageCosts(image=85, audio=7, file=9)
    content = [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}},
        {"type": "input_audio", "input_audio": {"data": "B" * 100_000, "format": "wav"}},
        {"type": "file", "file": {"file_data": "C" * 100_000}},
        {"type": "text", "text": "hello world"},
    ]
    rendered = Rendered([{"role": "user", "content": content}], "")
    assert ChatRenderer(costs).count(rendered, ChapterCounter()) == 3 + 4 + 85 + 7 + 9 + 3


@pytest.mark.parametrize("price", [-1, 1.5])
def test_a_price_is_a_whole_number(price: float) -> None:
    with pytest.raises(ConfigError, match=f"costs.image={price}"):
        MessageCosts(image=price)  # type: ignore[arg-type]


def test_drift_alerts_above_fifteen_percent_and_calibrates() -> None:
    monitor = DriftMonitor()
    assert (monitor.ratio, monitor.alert) == (1.0, False)
    assert monitor.calibrated(ChapterCounter()).count("hello") == 2
    monitor.observe(estimated=100, actual=115)
    assert not monitor.alert
    monitor.observe(estimated=100, actual=125)
    assert monitor.ratio == pytest.approx(1.2)
    assert monitor.alert
    calibrated = monitor.calibrated(ChapterCounter())
    assert calibrated.count("hello " * 10) == 17  # ceil(14 * 1.2)
    monitor.observe(estimated=10_000, actual=10_000)
    assert calibrated.count("hello " * 10) == 17
    with pytest.raises(ConfigError):
        monitor.observe(-1, 3)
