"""What is denied, and what somebody must not be given: each tied to the word it is about."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from foveate.rules.importance import MEDICATIONS, SUBSTANCES
from foveate.signals.lexical import STOPWORDS, terms
from foveate.summarizers.facts.base import CJK, STOP, Fact, FactKind, Word, lower
from foveate.summarizers.facts.lexicon import DEGREES, NEGATIONS

_ENGLISH = frozenset(
    "not never no none nobody nothing nowhere neither nor without cannot unless except avoid avoids avoided avoiding "
    "stop stops stopped stopping quit quits quitting".split()
)
_FRENCH = re.compile(r"n'(?=[aeéèêiouyh])")

# Scripts that do not part words. What is negated follows the first group and comes before the second.
_UNSPACED = re.compile(
    rf"(?P<before>[没沒]有?|[不無无未勿莫禁忌戒]|(?<![特分区區个個级級])[别別](?!人)|ไม่|ห้าม|อย่า|(?<![{CJK}])안(?=\s))"
    r"|(?P<after>な(?:い|く|かった|し)|ません|ぬ(?![ぁ-ん])|ず(?=[に、。]|$)|않|없|못|아니|마세요|말고)"
)
_TWO = re.compile(f" ?[{CJK}]{{1,2}}")
_STEM_BEFORE = re.compile("([一-龥ァ-ヴー]+[ぁ-ん]{0,3}?|[ぁ-ん]{1,3}?|[가-힣]+?)(?:[はがもを]|[은는이가를을]?\\s)?\\Z")
_SIMPLE = str.maketrans("沒無別", "没无别")

_ALLERGY = re.compile(
    r"allerg\w*|alérg\w*|alerg\w*|аллерг\w*|anaphyla\w*|intoleran\w*|intolér\w*|coeliac|celiac|过敏|過敏|アレルギー|알레르기|حساسية|एलर्जी"
)
_GATE = re.compile(r"(?:[aа]l+[eéе]r?g|аллер|anaph|intol|o?eliac|过敏|過敏|アレルギー|알레르기|حساسية|एलर्जी)")
_TO = frozenset("to against reaction gegen auf à aux au a al alla ai на от من ضد".split())
_THE = _TO | frozenset("los las el la le les de du des die der das den il i gli".split())
_SUBSTANCE = re.compile(rf"\b(?:{'|'.join(dict.fromkeys((*SUBSTANCES, *MEDICATIONS)))})\b")
_AND = frozenset("and or nor und oder et ou y o e и или و أو".split())
_CJK_OBJECT = re.compile(
    rf"(?:[对對](?P<to>[{CJK}、]{{1,8}}?)|(?P<what>(?:(?![不没沒无無有我你他她都])[ァ-ヴー一-龥]){{1,8}}|[가-힣]{{1,8}}))"
    r"(?:[のに]|都)?\s?\Z"
)
_DOSES = (" mg", " µg", " g", " ml", " iu", " unit", " tablet", " pill", " drop", " puff", " 片")
# Named drugs, and the stems that the WHO gives to generic names.
_DRUG = re.compile(
    rf"\b(?:(?:{'|'.join(MEDICATIONS)}|paracetamol|acetaminophen|penicillin)"
    r"|\w{2,}(?:cillin|statin|prazole|olol|sartan|mycin|cycline|azepam|azolam|oxetine|triptan|gliptin|floxacin|profen|codone)"
    r"|\w{3,}(?:pril|oxaban|parin))s?\b"
)


def negations(text: str, source: str, tokens: Sequence[Word]) -> Iterator[Fact]:
    """Each negating word with what it negates: the next content word of its clause, or the last before it."""
    for i, word in enumerate(tokens):
        marker = _marker(word.low)
        if marker and not (word.low == "no" and text[word.end : word.end + 3].strip(". ")[:1].isdigit()):
            yield _tied(text, source, tokens, i, marker)
    if not text.isascii():
        yield from _unspaced(text, source)


def medical(text: str, source: str, tokens: Sequence[Word], others: Sequence[Fact]) -> Iterator[Fact]:
    """Allergies, one fact for each thing they are to, and medications with the dose beside them.

    Args:
        text: the plain text, nothing taken.
        source: the text itself.
        tokens: words of the plain text.
        others: facts found before: an allergy inside a negation is denied, a quantity beside a drug is its dose.
    """
    low = lower(text)
    if _GATE.search(low):
        denied = [fact for fact in others if fact.kind is FactKind.NEGATION]
        for m in _ALLERGY.finditer(low):
            no = "no " if any(f.start <= m.start() < f.end for f in denied) else ""
            for start, end, what in _objects(low, m, tokens):
                yield Fact(FactKind.MEDICAL, source[start:end], f"{no}allergy {what}".strip(), start, end)
    for m in _DRUG.finditer(low):
        yield _dosed(low, source, m, others)


def _stem(low: str) -> str:
    return terms(low)[0] if low.isascii() else low


def _marker(low: str) -> str:
    """The class of a negating word, "" where the word is none."""
    if low in NEGATIONS:
        return NEGATIONS[low]
    return "not" if low.endswith("n't") or (low[:2] == "n'" and _FRENCH.match(low)) else ""


def _tied(text: str, source: str, tokens: Sequence[Word], i: int, marker: str) -> Fact:
    """The negation with the word it is about; without one where its clause has no other content word."""
    word = tokens[i]
    english = word.low in _ENGLISH or word.low.endswith("n't") or (word.text.isascii() and word.low.endswith("nt"))
    if word.low.startswith("n'"):
        return Fact(FactKind.NEGATION, source[word.start : word.end], f"{marker} {word.low[2:]}", word.start, word.end)
    about = _content(text, tokens, i, 1, english) or _content(text, tokens, i, -1, english)
    start, end = min([word.start, *(w.start for w in about)]), max([word.end, *(w.end for w in about)])
    key = " ".join((marker, *(_stem(w.low) for w in about)))
    return Fact(FactKind.NEGATION, source[start:end], key, start, end)


def _content(text: str, tokens: Sequence[Word], i: int, step: int, english: bool) -> list[Word]:
    """The nearest content word of the same clause; of other languages, short words on the way to a long one too."""
    found: list[Word] = []
    j = i + step
    while 0 <= j < len(tokens):
        left, right = sorted((j, j - step))
        if STOP.search(text, tokens[left].end, tokens[right].start):
            break
        low = tokens[j].low
        if low not in STOPWORDS and low not in DEGREES and not _marker(low) and (english or low not in _THE):
            found.append(tokens[j])
            if english or len(low) > 3:
                break
        j += step
    return found


def _unspaced(text: str, source: str) -> Iterator[Fact]:
    for m in _UNSPACED.finditer(text):
        start, end = m.span()
        if m["before"]:
            found = _TWO.match(text, end)
            about, end = (found[0].strip(), found.end()) if found else ("", end)
            marker = m["before"][0].translate(_SIMPLE) if m["before"][0] in "不没沒無无未勿莫禁忌戒别別" else "not"
        else:
            before = _STEM_BEFORE.search(text[max(0, start - 12) : start])
            about, start, marker = (before[1], start - len(before[0]), "not") if before else ("", start, "not")
        yield Fact(FactKind.NEGATION, source[start:end], f"{marker} {about}".strip(), start, end)


def _objects(low: str, m: re.Match[str], tokens: Sequence[Word]) -> list[tuple[int, int, str]]:
    """(start, end, what) of each thing an allergy is to, the allergy word included; `what` is "" for none."""
    if re.match(f"[{CJK}]", m[0]):
        found = _before_cjk(low, m)
    else:
        i = bisect_left(tokens, m.start(), key=lambda word: word.start)
        found = _listed(low, tokens, i) or _compound(low, tokens, i)
    spans = [(min(m.start(), a), max(m.end(), b), what) for a, b, what in found]
    return spans or [(m.start(), m.end(), "")]


def _before_cjk(low: str, m: re.Match[str]) -> list[tuple[int, int, str]]:
    start = max(0, m.start() - 12)
    found = _CJK_OBJECT.search(low[start : m.start()])
    if found is None:
        return []
    group = found.lastgroup or "what"
    offset = start + found.start(group)
    return [(offset + p.start(), offset + p.end(), p[0]) for p in re.finditer(r"[^和及与與、やと]+", found[group])]


def _listed(low: str, tokens: Sequence[Word], i: int) -> list[tuple[int, int, str]]:
    """What follows "allergic to": the first content word, and every further item of the enumeration."""
    j = i + 1
    while (
        j < len(tokens) and tokens[j].low in (_TO if j == i + 1 else _THE) and tokens[j].start - tokens[j - 1].end == 1
    ):
        j += 1
    found: list[tuple[int, int, str]] = []
    open_ = j > i + 1 or (i < len(tokens) and low[tokens[i].end : tokens[i].end + 1] == ":")
    for k in range(j, len(tokens)):
        gap = low[tokens[k - 1].end : tokens[k].start]
        if (not open_ and not found) or _marker(tokens[k].low) or gap.strip(" ,:-'\"“"):
            break
        word = tokens[k]
        open_ = open_ or "," in gap or word.low in _AND
        if not open_ or word.low in STOPWORDS or word.low in _AND or word.low in DEGREES:
            continue
        if found and not _SUBSTANCE.fullmatch(word.low) and not _closes(low, tokens, k):
            break
        after = tokens[k + 1] if k + 1 < len(tokens) and low[word.end : tokens[k + 1].start] == " " else word
        named = after if _SUBSTANCE.fullmatch(after.low) and not _SUBSTANCE.fullmatch(word.low) else word
        found.append((named.start, named.end, _stem(named.low)))
        open_ = False
    return found


def _closes(low: str, tokens: Sequence[Word], k: int) -> bool:
    """Whether an item of an enumeration ends with this word."""
    after = low[tokens[k].end : tokens[k].end + 1]
    return after in {"", ".", ",", ";", "!", "?", ")"} or (k + 1 < len(tokens) and tokens[k + 1].low in _AND)


def _compound(low: str, tokens: Sequence[Word], i: int) -> list[tuple[int, int, str]]:
    """The word before a noun: "peanut allergy", "lactose intolerance"."""
    if i == 0 or i == len(tokens) or tokens[i].low.endswith(("ic", "isch")):
        return []
    word = tokens[i - 1]
    joined = low[word.end : tokens[i].start] in {" ", "-"}
    if not joined or word.low in STOPWORDS or word.low in DEGREES or _marker(word.low):
        return []
    return [(word.start, word.end, _stem(word.low))]


def _dosed(low: str, source: str, m: re.Match[str], others: Sequence[Fact]) -> Fact:
    """A medication, with the quantity that stands beside it."""
    start, end, key = m.start(), m.end(), _stem(m[0])
    for dose in others:
        if dose.kind is FactKind.QUANTITY and dose.key.endswith(_DOSES):
            after = 0 < dose.start - end <= 4 and not STOP.search(low, end, dose.start)
            if after or low[dose.end : start] in {" ", " of "}:
                return Fact(
                    FactKind.MEDICAL,
                    source[min(start, dose.start) : max(end, dose.end)],
                    f"{key} {dose.key}",
                    min(start, dose.start),
                    max(end, dose.end),
                )
    return Fact(FactKind.MEDICAL, source[start:end], key, start, end)
