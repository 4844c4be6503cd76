"""Numbers, dates, money and quantities, in digits of any script and in English words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from foveate.summarizers.facts.base import CJK, LETTER, Fact, FactKind, Word
from foveate.summarizers.facts.lexicon import (
    BARE_MONTHS,
    CARDINALS,
    CJK_DIGITS,
    CJK_SCALES,
    CODES,
    CURRENCIES,
    DAYS,
    MONTHS,
    PERIODS,
    SCALES,
    SINGLE,
    SUFFIXES,
    UNITS,
)

_SIGNS = "$€£¥₹₽₩₺₴฿₫₪"
_FREE = r"(?<![A-Za-z\u00c0-\u024f\u0370-\u052f_\d])"
_MONTH = (
    "(?:May|MAY|March|MARCH|(?i:"
    + "|".join(sorted((re.escape(name) for name in MONTHS if name not in {"may", "march"}), key=len, reverse=True))
    + "))"
)
_YEAR = r"(?:,?\s(?:de\s|del\s)?\d{4}(?!\d))"
_DIGITS = (
    r"\d{1,3}(?P<s>[,' ])\d{3}(?:(?P=s)\d{3})*(?!\d)(?:\.\d+)?|\d{1,2}(?:,\d{2})+,\d{3}(?!\d)"
    r"|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}(?!\d)|\d+(?:[.,/]\d+)?|(?<![^\s($€£])\.\d+"
)
_FIGURE = re.compile(
    rf"{_FREE}(?:"
    r"(?P<ymd>\d{4}(?P<a>[-/.])(?:0?[1-9]|1[0-2])(?P=a)(?:[12]\d|3[01]|0?[1-9])(?!\d))"
    r"|(?P<dmy>\d{1,2}(?P<b>[./-])\d{1,2}(?P=b)(?:\d{4}|\d{2})(?![\d]))"
    r"|(?P<cjk>\d{4} ?[年년](?: ?\d{1,2} ?[月월](?: ?\d{1,2} ?[日号號일])?)?"
    r"|\d{1,2} ?[月월](?: ?\d{1,2} ?[日号號일])?|\d{1,2}[日号號](?![間间]))"
    rf"|(?P<day>\d{{1,2}}(?:st|nd|rd|th|\.|º|er)?\s(?:of\s|de\s)?{_MONTH}(?!{LETTER}){_YEAR}?)"
    r"|(?P<time>\d{1,2}:\d{2}(?::\d{2})?(?:\s?[AaPp]\.?[Mm]\b)?|\d{1,2}\s?(?:[AaPp]\.[Mm]\.|[AaPp][Mm]\b|o'clock\b)"
    r"|\d{1,2}(?:[点點時时](?![間间])|시(?!간))(?: ?\d{1,2}[分분]|半| ?반)?)"
    rf"|(?P<sign>(?:US|CA|AU|HK|NZ|R)?[{_SIGNS}]\s?|(?:{'|'.join(sorted(CODES))})\s?)?(?P<minus>(?<![^\s(\[])[-+])?"
    rf"(?P<num>{_DIGITS}|\d*[½⅓⅔¼¾⅛])"
    rf"|(?P<month>{_MONTH}\.?\s\d{{1,2}}(?:st|nd|rd|th)?(?![\d:]){_YEAR}?|{_MONTH},?\s(?:de\s)?\d{{4}}(?!\d)))"
)
_ATTACHED = re.compile(r"(?:st|nd|rd|th)(?![A-Za-z])|(?:(?<=\d0)s(?![A-Za-z]))")
_NEXT = re.compile(
    rf"(?: {{0,2}}|-)(°\s?[CFcf]?|[%‰{_SIGNS}]|[A-Za-zм]{{1,4}}/[A-Za-zlч]{{1,2}}(?!{LETTER})|{LETTER}+[²2]?(?![\d]))"
)
_AGO = re.compile(r" (?:ago|earlier)\b")
_IDENTIFIER = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_DIGIT = re.compile("[0-9½⅓⅔¼¾⅛]")
_ITEM = re.compile(r"(?:^|(?<=\n))[ \t]*\(?\d{1,3}[.)](?=[ \t])")
_DAYS = frozenset((*DAYS, *BARE_MONTHS, "last", "next", "ago"))
_SPEAKING = frozenset((*_DAYS, *CARDINALS, *SCALES, *SINGLE))
_NUMERALS = "〇零一二三四五六七八九十百千万萬两兩"
_COUNTED = "个個只隻件次天年周週小分秒块塊元岁歲杯瓶片粒人位本张張条條公斤克米点點時间間回匹枚月"
_CJK_WORDS = re.compile(
    rf"(?P<date>[一二三四五六七八九十]{{1,3}}月[一二三四五六七八九十]{{1,3}}[日号號]"
    r"|(?:今|明|昨|后|後|前)天|[今明昨]日|[今明去来]年|[上下](?:个|個)?(?:周|週|星期|礼拜|月)[一二三四五六日天]?|[先来][週月]"
    r"|(?:星期|礼拜|周|週)[一二三四五六日天](?![一-龥]?[起围])|[月火水木金土日]曜日?"
    r"|오늘|내일|어제|[월화수목금토일]요일|지난\s?[주달]|다음\s?[주달]|작년|내년|พรุ่งนี้|เมื่อวาน|วันนี้)"
    rf"|(?P<num>(?!一[{_COUNTED}])[{_NUMERALS}]+)(?=[{_COUNTED}])"
)


def figures(text: str, source: str) -> Iterator[Fact]:
    """Facts in digits of a plain text: dates and times, money, quantities, other numbers, tokens like "3D".

    The number of a list item is none.
    """
    if not _DIGIT.search(text):
        return
    position = 0
    items = {m.end() - 1 for m in _ITEM.finditer(text)}
    while m := _FIGURE.search(text, position):
        fact = _dated(m, source) if m["num"] is None else _counted(text, source, m)
        if fact.end not in items:
            yield fact
        position = fact.end


def worded(text: str, source: str, tokens: Sequence[Word]) -> Iterator[Fact]:
    """Facts in words of a plain text: "two weeks", "Friday", "last month"."""
    position = 0
    for i, word in enumerate(tokens):
        if word.start < position or word.low not in _SPEAKING:
            continue
        fact = _day(source, tokens, i) if word.low in _DAYS else _number(text, source, tokens, i)
        if fact and fact.start >= position:
            yield fact
            position = fact.end
    if not text.isascii():
        yield from _cjk_words(text, source)


def number_key(digits: str) -> str:
    """A number's normal form: no grouping, a decimal point, no trailing zeros.

    "1.000" is left as it is: a thousand in Berlin, one in Boston.
    """
    if re.fullmatch(r"\d{1,3}([,' ])\d{3}(?:\1\d{3})*(?:\.\d+)?|\d{1,2}(?:,\d{2})+,\d{3}", digits):
        digits = re.sub(r"[,' ]", "", digits)
    elif re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}", digits):
        digits = digits.replace(".", "").replace(",", ".")
    digits = digits.replace(",", ".")
    if digits[-1] in "½⅓⅔¼¾⅛":
        return f"{int(digits[:-1] or 0) + unicodedata.numeric(digits[-1]):.4g}"
    whole, point, rest = digits.partition(".")
    if not point or len(rest) == 3:
        return digits
    return f"{whole or '0'}.{rest}".rstrip("0").rstrip(".")


def _number(text: str, source: str, tokens: Sequence[Word], i: int) -> Fact | None:
    """The number that token i begins; "one" alone is none."""
    if tokens[i].low in SINGLE:
        return _finished(text, source, tokens[i].start, tokens[i].end, SINGLE[tokens[i].low])
    value, last = _spelled(text, tokens, i)
    if value == "1":
        return None
    return _finished(text, source, tokens[i].start, tokens[last].end, value)


def _dated(m: re.Match[str], source: str) -> Fact:
    start, end = m.span()
    form = next(name for name in ("ymd", "dmy", "cjk", "day", "time", "month") if m[name] is not None)
    return Fact(FactKind.DATE, source[start:end], _date_key(form, m[0]), start, end)


def _date_key(form: str, text: str) -> str:
    """The form "2023-05-07", without what is not said: "-05-07", "2023-05", "-05"; "17:30"; "7/5/2023" as written."""
    numbers = [int(n) for n in re.findall(r"\d+", text)]
    match form:
        case "ymd":
            return "{}-{:02}-{:02}".format(*numbers)
        case "dmy":
            return "/".join(map(str, numbers))
        case "time":
            return _time_key(text.lower(), numbers)
        case "cjk":
            return _parts(*(_before(text, marks) for marks in ("年년", "月월", "日号號일")))
    month = MONTHS[next(word for word in re.findall(rf"{LETTER}+", text.lower()) if word in MONTHS)]
    day = next((n for n in numbers if n < 32), None)
    return _parts(next((n for n in numbers if n > 31), None), month, day)


def _before(text: str, marks: str) -> int | None:
    found = re.search(rf"(\d+) ?[{marks}]", text)
    return int(found[1]) if found else None


def _parts(year: int | None, month: int | None, day: int | None) -> str:
    key = "" if year is None else str(year)
    key += "" if month is None else f"-{month:02}"
    return key if day is None else f"{key}-{day:02}" if month is not None else f"--{day:02}"


def _time_key(text: str, numbers: list[int]) -> str:
    hour, minute = numbers[0], [30] if text[-1] in "半반" else numbers[1:] or [0]
    half = re.search(r"[ap](?=\.?m)", text)
    if half:
        hour = hour % 12 + (12 if half[0] == "p" else 0)
    return ":".join((str(hour), *(f"{n:02}" for n in minute)))


def _counted(text: str, source: str, m: re.Match[str]) -> Fact:
    """A number as digits, with the currency before or whatever follows it."""
    start, end = m.span()
    value = ("-" if m["minus"] == "-" else "") + number_key(m["num"])
    if m["sign"]:
        return _finished(text, source, start, end, value, CURRENCIES.get(m["sign"].strip().lower(), m["sign"].strip()))
    if attached := _ATTACHED.match(text, end):
        value += "s" if attached[0] == "s" else ""
        return Fact(FactKind.NUMBER, source[start : attached.end()], value, start, attached.end())
    fact = _finished(text, source, start, end, value)
    rest = _IDENTIFIER.match(text, fact.end)
    if rest is None:
        return fact
    return Fact(FactKind.IDENTIFIER, source[start : rest.end()], text[start : rest.end()], start, rest.end())


def _finished(text: str, source: str, start: int, end: int, value: str, currency: str = "") -> Fact:
    """The fact a number makes with the multiplier, currency, unit or "ago" after it."""
    kind, unit = FactKind.NUMBER, currency
    word, after = _next(text, end, SUFFIXES)
    if word and "/" not in value:
        value, end = f"{Decimal(value) * SUFFIXES[word]:f}", after
        value = value.rstrip("0").rstrip(".") if "." in value else value
    if not currency:
        word, after = _next(text, end, CURRENCIES)
        if word:
            currency, end = CURRENCIES[word], after
        else:
            word, after = _next(text, end, UNITS)
            unit, end = (UNITS[word], after) if word else ("", end)
    kind = FactKind.MONEY if currency else FactKind.QUANTITY if unit else FactKind.NUMBER
    key = f"{value} {currency or unit}".strip()
    if kind is FactKind.QUANTITY and (ago := _AGO.match(text, end)):
        kind, key, end = FactKind.DATE, f"{key} ago", ago.end()
    return Fact(kind, source[start:end], key, start, end)


def _next(text: str, end: int, known: Mapping[str, object]) -> tuple[str, int]:
    """The known word that follows, and where it ends; of a text without spaces the longest of its first characters."""
    m = _NEXT.match(text, end)
    if m is None:
        return "", end
    word = m[1].replace(" ", "")
    for form in (word, word.lower()):
        if form in known:
            return form, m.end()
    if re.match(f"[{CJK}]", word):
        for size in (4, 3, 2, 1):
            if len(word) > size and word[:size] in known:
                return word[:size], m.start(1) + size
    return "", end


def _spelled(text: str, tokens: Sequence[Word], i: int) -> tuple[str, int]:
    """The value of the number words from token i on, and the last of them."""
    total = current = 0
    last = j = i
    while j < len(tokens) and (j == i or text[tokens[j - 1].end : tokens[j].start] in {" ", "-"}):
        low = tokens[j].low
        if low in SCALES:
            if low == "hundred":
                current = max(current, 1) * 100
            else:
                total, current = total + max(current, 1) * SCALES[low], 0
        elif low in CARDINALS and _continues(current, CARDINALS[low], first=j == i, scaled=total > 0):
            current += CARDINALS[low]
        elif not (low == "and" and j > i and (current >= 100 or total)):
            break
        last = j if low != "and" else last
        j += 1
    return str(total + current), last


def _continues(current: int, value: int, *, first: bool, scaled: bool) -> bool:
    if current == 0:
        return first or scaled
    return current % 100 == 0 or (current % 10 == 0 and current % 100 >= 20 and value < 10)


def _day(source: str, tokens: Sequence[Word], i: int) -> Fact | None:
    """A weekday, month, "tomorrow", "last week" or "a week ago" at token i."""
    word, after = tokens[i], tokens[i + 1] if i + 1 < len(tokens) else None
    period = after.low.removesuffix("'s") if after else ""
    start, end, key = word.start, word.end, ""
    if word.low in DAYS:
        key = DAYS[word.low]
    elif word.low in BARE_MONTHS and (word.low not in {"may", "march"} or _is_month(tokens, i)):
        key = f"-{MONTHS[word.low]:02}"
    elif after and word.low in {"last", "next"} and period in PERIODS:
        end, key = after.end, f"{word.low} {period}"
    elif word.low == "ago" and i > 1 and tokens[i - 1].low in UNITS:
        start, key = tokens[i - 2].start, f"{tokens[i - 2].low} {UNITS[tokens[i - 1].low]} ago"
    return Fact(FactKind.DATE, source[start:end], key, start, end) if key else None


def _is_month(tokens: Sequence[Word], i: int) -> bool:
    """Whether "May" or "March" is the month: capitalised, and not the verb of a question or wish."""
    after = tokens[i + 1].low if i + 1 < len(tokens) else ""
    return tokens[i].text[0].isupper() and after not in {
        "i",
        "you",
        "we",
        "he",
        "she",
        "they",
        "it",
        "the",
        "your",
        "this",
    }


def _cjk_words(text: str, source: str) -> Iterator[Fact]:
    position = 0
    while m := _CJK_WORDS.search(text, position):
        if m["date"]:
            fact = Fact(FactKind.DATE, source[m.start() : m.end()], _cjk_date_key(m[0]), *m.span())
        else:
            fact = _finished(text, source, m.start(), m.end(), str(_cjk_value(m["num"])))
        yield fact
        position = fact.end


def _cjk_date_key(text: str) -> str:
    month, found, day = text.partition("月")
    if not (found and day and all(c in CJK_DIGITS or c in CJK_SCALES for c in month)) or not month:
        return text.replace(" ", "")
    return _parts(None, _cjk_value(month), _cjk_value(day[:-1]))


def _cjk_value(numerals: str) -> int:
    """The value of Chinese numerals below a hundred million; a string of plain digits is read by place."""
    if not any(c in CJK_SCALES for c in numerals):
        return int("".join(str(CJK_DIGITS[c]) for c in numerals))
    total = section = digit = 0
    for c in numerals:
        if c in CJK_DIGITS:
            digit = CJK_DIGITS[c]
        elif CJK_SCALES[c] == 10_000:
            total, section, digit = total + max(section + digit, 1) * 10_000, 0, 0
        else:
            section, digit = section + max(digit, 1) * CJK_SCALES[c], 0
    return total + section + digit
