"""One session of a synthetic conversation, told turn by turn."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from random import Random

from foveate.core.schema import Part, Turn
from foveate.corpora.synthetic import bank, moments
from foveate.corpora.synthetic.bank import Fact, Slot, Topic
from foveate.corpora.synthetic.world import Instance, Person, Stated, World

_LOWER_AFTER_LEAD = frozenset(
    "the my we it they when after for no what there last at all up give you somebody someone everybody everyone "
    "they're yesterday three two this it's nobody last half".split()
)
PLAIN = 0.85
"""Share of full statements that are told outright; their words are nearer to the question's."""
SHORT = 0.25
"""Share of prompted statements that lean on the prompt."""
ELABORATE = 0.8
"""Sentences of talk on its topic that a statement goes on with, two at most."""
DIRECT = 0.4
"""Share of prompts that ask outright, nearly as a question about the conversation would."""
CHAT = 0.5
"""Share of prompts that come after a remark on the topic."""
SEEN = 0.6
"""Share of pictures that the other speaks of."""
RECAP = 0.35
"""Share of statements whose answer the other repeats, which makes a turn with the right words that is no evidence."""
SWITCH = 0.12
"""Share of statements that go over to another matter in the same turn."""
REACT = 0.5
"""Share of the partner's remarks that take up the words of a fact."""
UNTOLD = 0.6
"""Share of the topics come back to that have something left to tell."""
COMMON = 0.5
"""Share of news on what the other has, too, that are the very same thing."""
BEFORE = 0.15
AFTER = 0.15
"""Shares of statements that small talk comes before and after in the same turn."""
TALK = {"terse": 0.4, "chatty": 1.5}
"""How much a voice adds to what it has to say, 1 where it is not named."""
VOICES = ("plain", "plain", "terse", "chatty", "casual", "hedging", "gushing")
CAST = 2
"""Companions of a person."""

_SECOND = (
    ("at {X}'s ", "with you "),
    ("{X}'s?", "yours?"),
    ("{X}'s", "your"),
    ("does {X}", "do you"),
    ("is {X}", "are you"),
    ("was {X}", "were you"),
    ("has {X}", "have you"),
    ("{X}", "you"),
    ("{his}", "your"),
    ("{himself}", "yourself"),
    ("{him}", "you"),
    ("{he}", "you"),
)
_SINCE = re.compile(r"\b(since|as of) \{when\}", re.IGNORECASE)
_MY = re.compile(r"\bmy\b")
_NOUN = re.compile(r"(an?|the|your|some|two|three) |(?!I )[A-Z]")
_PICTURE = re.compile(r"^a photo of ")
_CASUAL = (
    (re.compile(r"\b(I|to|you) want to\b"), r"\1 wanna"),
    (re.compile(r"\bbecause\b"), "cause"),
    (re.compile(r"\bhave to\b"), "gotta"),
    (re.compile(r"\bYes\b"), "Yeah"),
    (re.compile(r"\bthough\b"), "tho"),
    (re.compile(r"\.$"), ""),
)
_STOP = re.compile(r"(?<=\w)\.(?= |$)")


class Session:
    """One session: speakers alternate strictly; whoever's turn it is not, the other fills in."""

    def __init__(self, rng: Random, world: World, index: int, today: date) -> None:
        self.rng = rng
        self.world = world
        self.index = index
        self.today = today
        self.start = len(world.turns)
        self.last = ""
        self.answers: Sequence[str] = ()
        self.shown = ""
        self.heard = ""
        self.sad = False
        self.gloomy = False
        self.topics: set[str] = set()
        self.next = world.people[0] if world.people[1].helper else rng.choice(world.people)

    def hold(self, length: int) -> None:
        """Greet, talk until `length` turns are reached, and part."""
        self._greet()
        while self._length() < length:
            self._thread()
        self._part()

    # -- speaking

    def _length(self) -> int:
        return len(self.world.turns) - self.start

    def _turn_id(self) -> str:
        """The id of the turn that is spoken next."""
        return f"D{self.index + 1}:{self._length() + 1}"

    def _speak(self, text: str, caption: str | None = None) -> str:
        person = self.next
        turn_id = self._turn_id()
        text = _voiced(self.rng, "plain" if self.sad else person.voice, text)
        content = (Part("text", text), Part("image", caption)) if caption else text
        turn = Turn(turn_id, person.role, content, person.name, str(self.index + 1), moments.day_text(self.today))
        self.world.turns.append(turn)
        self.next = self.world.other(person)
        self.last, self.heard, self.gloomy = "", "", self.sad
        self.shown = _PICTURE.sub("", caption) if caption else ""
        return turn_id

    def _line(self, section: str, person: Person) -> str:
        """A phrase of talk.txt from `person`, who does not call an assistant by its name."""
        lines: Sequence[str] = bank.talk()[section]
        other = self.world.other(person)
        if other.helper:
            lines = [line for line in lines if "{P}" not in line]
        return self._pick(lines).replace("{P}", other.name)

    def _pick(self, lines: Sequence[str]) -> str:
        """One of the lines that have been used least in this conversation, its words chosen."""
        least = min(self.world.uses[line] for line in lines)
        line = self.rng.choice([line for line in lines if self.world.uses[line] == least])
        self.world.uses[line] += 1
        return bank.choose(self.rng, line)

    def _chance(self, share: float) -> bool:
        return self.rng.random() < share

    def _yield_to(self, person: Person) -> None:
        """Have the other one say something light when it is not `person`'s turn."""
        if self.next is not person:
            self._light()

    def _light(self) -> None:
        """A turn without facts from whoever is next, which fits what was said last."""
        person = self.next
        if person.helper:
            section = self.rng.choice(("helpersmall", "helperask"))
            self._speak(self._join(self._line("helperack", person), self._line(section, person)))
            return
        if self.last == "asked":
            self._speak(self._join(self._pick(self.answers), self._aside(0.3, person)))
            return
        section = "smallreply" if self.last == "small" else "small"
        if not self.world.other(person).helper and self._chance(0.3):
            section = "bridge"
        caption = self._line("caption", person) if self._chance(0.2) else None
        ack = self._ack(0.4, person)
        more = self._maybe("small", 0.5, person)
        self._speak(self._join(ack, self._line(section, person), more), caption)
        self.last = "small" if more else section

    def _maybe(self, section: str, share: float, person: Person) -> str:
        """A phrase in a share of the cases; on a sad matter one that suits it, and no small talk."""
        if self.sad or (self.gloomy and section == "ack"):
            section = f"sad{section}" if f"sad{section}" in bank.talk() else section
            share = 0.0 if section == "small" else share
        return self._line(section, person) if self._chance(share * TALK.get(person.voice, 1.0)) else ""

    def _ack(self, share: float, person: Person) -> str:
        """A word on what was just said or shown; at times it repeats it."""
        shown, heard = self.shown, self.heard
        cheerful = not (self.sad or self.gloomy or person.helper)
        if cheerful and shown and self._chance(SEEN):
            return bank.fill(self._line("seen", person), {"S": shown})
        if cheerful and heard and self._chance(RECAP):
            section = "recap" if _NOUN.match(heard) else "quote"
            return bank.fill(self._line(section, person), {"A": heard})
        return self._maybe("ack", share, person)

    def _tail(self, person: Person) -> str:
        """What a statement is let out with; some voices have their own way."""
        own = {"hedging": "hedge", "gushing": "gush"}.get(person.voice)
        if own and not self.sad and self._chance(0.35):
            return self._line(own, person)
        return self._maybe("tail", 0.55, person)

    @staticmethod
    def _join(*parts: str) -> str:
        return " ".join(part for part in parts if part)

    def _told(self, person: Person, core: str, more: str = "") -> str:
        """A sentence dressed as speech: what goes before and after it varies."""
        if self._chance(0.2):
            core = _led(self._line("sadlead" if self.sad else "lead", person), core)
        asked = self.last == "prompt"
        ack = self._maybe("thanks", 0.4, person) if asked else self._ack(0.4, person)
        before = self._aside(BEFORE, person) if not asked else ""
        return self._join(ack, before, core, more, self._tail(person), self._aside(AFTER, person))

    def _aside(self, share: float, person: Person) -> str:
        """Small talk within a turn, which an assistant is spared."""
        return "" if self.world.other(person).helper else self._maybe("small", share, person)

    # -- the parts of a session

    def _greet(self) -> None:
        first, helper = self.next, self.world.people[1].helper
        if helper:
            self._speak(self._line("helperopen" if self._chance(0.5) else "small", first))
            self._speak(self._line("helpergreet", self.next).replace("{P}", first.name))
            return
        self._speak(self._join(self._line("greet", first), self._maybe("small", 0.6, first)))
        self._speak(self._join(self._line("reply", self.next), self._maybe("small", 0.6, self.next)))

    def _part(self) -> None:
        first, second = self.next, self.world.other(self.next)
        self._speak(self._line("helperbye" if first.helper else "bye", first))
        self._speak(self._line("helperbye" if second.helper else "bye2", second))

    def _thread(self) -> None:
        """One stretch of talk: an old matter taken up again, news, or nothing much."""
        self.sad = False
        earlier = [i for i in self.world.instances if self._untouched(i)]
        draw = self.rng.random()
        if earlier and draw < 0.4:
            self._revisit(self._again(earlier))
        elif draw < 0.93:
            self._news()
        else:
            self._light()
            self._light()

    def _again(self, earlier: Sequence[Instance]) -> Instance:
        """One that has more to tell, or one of those that were come back to least."""
        open_ = [i for i in earlier if i.waiting or self._due_update(i)]
        if open_ and self._chance(UNTOLD):
            return self.rng.choice(open_)
        least = min(i.visits for i in earlier)
        return self.rng.choice([i for i in earlier if i.visits == least])

    def _untouched(self, instance: Instance) -> bool:
        return not instance.foreign and instance.topic.name not in self.topics

    def _news(self) -> None:
        owner = self.world.people[0] if self.world.people[1].helper else self.rng.choice(self.world.people)
        topic = self._choose_topic(owner)
        if topic is None:
            self._light()
            return
        self.sad = topic.sad
        instance, first, *rest = self._open(topic, owner)
        self._state(instance, first)
        for fact in rest:
            if self._chance(0.2):
                instance.waiting.append(fact)
            elif self._chance(0.85):
                self._digress(instance, 0.3)
                self._state(instance, fact)
        if self._chance(0.4):
            self._digress(instance, 1.0)
        if self._chance(0.4):
            self._third_person(instance)

    def _open(self, topic: Topic, owner: Person) -> tuple[Instance, *tuple[Fact, ...]]:
        """A new occurrence of a topic, and the facts to tell of it."""
        self.topics.add(topic.name)
        values = self._draw_values(topic, owner)
        if topic.get("both") and self._chance(COMMON):
            values |= self._in_common(topic, owner)
        instance = Instance(topic, owner, values)
        self.world.instances.append(instance)
        return (instance, *(fact for fact in topic.facts if fact.update is None))

    def _in_common(self, topic: Topic, owner: Person) -> dict[str, str]:
        """The key, and what belongs to it, of something the other has and `owner` has not."""
        theirs = self.world.owned(topic, self.world.other(owner))
        rows = [{column: i.values[column] for column in topic.slots[0].columns} for i in theirs]
        rows = [row for row in rows if not self.world.holds(topic, owner, row[topic.key])]
        return self.rng.choice(rows) if rows else {}

    def _revisit(self, instance: Instance) -> None:
        """Come back to a topic later: mostly talk that repeats its words, at times a new fact or a changed one."""
        topic, owner, partner = instance.topic, instance.owner, self.world.other(instance.owner)
        self.topics.add(topic.name)
        self.sad = topic.sad
        instance.visits += 1
        update = self._due_update(instance)
        if update is not None and self._chance(0.6):
            self._state(instance, update)
            return
        self._yield_to(partner)
        hook = bank.fill(self._pick(topic.get("hook")), _to(owner, instance.values))
        self._speak(self._join("" if partner.helper else self._ack(0.3, partner), hook))
        self.last = "prompt"
        self._echo(instance)
        if instance.waiting:
            self._state(instance, instance.waiting.pop(0))
        else:
            self._digress(instance, 0.5)

    def _digress(self, instance: Instance, share: float) -> None:
        """Talk on the topic that carries none of its facts."""
        if not self._chance(share):
            return
        partner = self.world.other(instance.owner)
        if self.next is partner and partner.helper:
            self._light()
        elif self.next is partner:
            asked, _, answers = self._maybe("ask", 0.35, partner).partition(" => ")
            self._speak(self._join(self._ack(0.5, partner), self._remark(instance), asked))
            self.last = "asked" if asked else ""
            self.answers = answers.split(" | ")
        if self.last == "asked":
            self._light()
        elif self._chance(0.7):
            self._echo(instance)

    def _remark(self, instance: Instance) -> str:
        """What the partner has to say on the topic: in general, or with the words of what they have been told."""
        known = instance.topic.get("react") if instance.stated else ()
        if known and self._chance(REACT):
            return bank.fill(self._pick(known), _to(instance.owner, instance.values))
        return self._pick(instance.topic.get("chat"))

    def _echo(self, instance: Instance) -> None:
        caption = self._line("caption", instance.owner) if self._chance(0.2) else None
        self._speak(self._told(instance.owner, self._echo_line(instance)), caption)

    def _echo_line(self, instance: Instance) -> str:
        return bank.fill(self._pick(instance.topic.get("echo")), instance.values)

    # -- facts

    def _state(self, instance: Instance, fact: Fact) -> None:
        """Have the owner tell a fact, of their own accord or asked for it."""
        old = self._replace_values(instance, fact) if fact.update else None
        stated = self._tell(instance, fact)
        if old is not None:
            old.replaced_by = stated
        instance.stated.append(stated)

    def _tell(self, instance: Instance, fact: Fact) -> Stated:
        owner, partner = instance.owner, self.world.other(instance.owner)
        before: tuple[str, ...] = ()
        split = [f"{question} >> {answer}" for question, answer in fact.pairs("split")]
        unasked = partner.helper or self._chance(0.35)
        if unasked:
            self._yield_to(owner)
            template = self._pick(fact.get("plain" if self._chance(PLAIN) else "say"))
        elif split and self._chance(0.4):
            question, template = self._pick(split).split(" >> ")
            before = (self._prompt(instance, question),)
        else:
            self._prompt(instance, self._pick(self._prompts(instance, fact)))
            told = "plain" if self._chance(PLAIN) else "say"
            template = self._pick(fact.get("short" if self._chance(SHORT) else told))
        moment = moments.draw(self.rng, self.today, fact.tense, since=_SINCE.search(template) is not None)
        core = bank.fill(template, instance.values | _timed(moment) | {"P": partner.name})
        captions = [bank.fill(text, instance.values) for text in fact.get("caption")]
        caption = self.rng.choice(captions) if captions and self._chance(0.7) else None
        share = ELABORATE * TALK.get(owner.voice, 1.0)
        more = self._join(*dict.fromkeys(self._echo_line(instance) for _ in range(2) if self._chance(share / 2)))
        text = self._told(owner, core, more)
        addition = self._switch(owner) if self._chance(SWITCH) else ""
        turn_id = self._speak(self._join(text, addition), caption)
        stated = Stated(fact, (*before, turn_id), self.index, dict(instance.values), moment, _dated(template))
        self.heard = _MY.sub("your", bank.fill(fact.answer, instance.values))
        return stated

    def _switch(self, owner: Person) -> str:
        """The first news on another topic, for the end of a turn."""
        topic = None if self.sad else self._choose_topic(owner)
        if topic is None or topic.sad:
            return ""
        instance, first, *rest = self._open(topic, owner)
        template = self._pick(first.get("plain" if self._chance(PLAIN) else "say"))
        moment = moments.draw(self.rng, self.today, first.tense, since=_SINCE.search(template) is not None)
        told = bank.fill(template, instance.values | _timed(moment) | {"P": self.world.other(owner).name})
        values = dict(instance.values)
        instance.stated.append(Stated(first, (self._turn_id(),), self.index, values, moment, _dated(template)))
        instance.waiting.extend(rest)
        return _led(self._line("switch", owner), told)

    def _prompts(self, instance: Instance, fact: Fact) -> Sequence[str]:
        """Ways to draw a fact out: at times the plain question, which before the topic is open may not name its key."""
        plain = [text for text in fact.get("ask") if "{month}" not in text and "according" not in text]
        if not instance.stated:
            plain = [text for text in plain if not instance.topic.names_key(text)]
        direct = bool(plain) and fact.update is None and self._chance(DIRECT)
        return [to_second_person(text) for text in plain] if direct else fact.get("prompt")

    def _prompt(self, instance: Instance, question: str) -> str:
        """The partner's question that draws a fact out."""
        partner = self.world.other(instance.owner)
        self._yield_to(partner)
        text = bank.fill(question, _to(instance.owner, instance.values) | {"P": instance.owner.name})
        chat = self._pick(instance.topic.get("chat")) if not partner.helper and self._chance(CHAT) else ""
        turn_id = self._speak(self._join(self._ack(0.5, partner), chat, text))
        self.last = "prompt"
        return turn_id

    def _third_person(self, instance: Instance) -> None:
        """Somebody tells of a third person what the topic's first fact says: a distractor."""
        topic = instance.topic
        fact = next((f for f in topic.facts if f.get("other")), None)
        teller = instance.owner if self.world.other(instance.owner).helper else self.world.other(instance.owner)
        if fact is None:
            return
        values = self._draw_values(topic, teller)
        self._yield_to(teller)
        turn_id = self._speak(self._told(teller, bank.fill(self._pick(fact.get("other")), values)))
        moment = moments.draw(self.rng, self.today, "past")
        foreign = Instance(topic, teller, values, foreign=True)
        foreign.stated.append(Stated(fact, (turn_id,), self.index, values, moment))
        self.world.instances.append(foreign)

    def _due_update(self, instance: Instance) -> Fact | None:
        """The update of a fact that was stated in an earlier session and still stands."""
        for stated in instance.stated:
            update = instance.topic.updated_by(stated.fact)
            if update is not None and stated.replaced_by is None and stated.session < self.index:
                return update
        return None

    def _replace_values(self, instance: Instance, update: Fact) -> Stated:
        slot = instance.topic.slot_of(update.update or "")
        old = {f"old_{column}": instance.values[column] for column in slot.columns}
        instance.values = instance.values | self._draw_row(instance.topic, slot) | old
        return next(s for s in instance.stated if instance.topic.updated_by(s.fact) is update)

    # -- choosing

    def _choose_topic(self, owner: Person) -> Topic | None:
        """A topic the owner may have news on; now and then one that the other has talked about, or a repeat."""
        open_ = [t for t in bank.topics() if self._may_have(t, owner)]
        shared = [t for t in open_ if self.world.owned(t, self.world.other(owner))]
        again = [t for t in open_ if self.world.owned(t, owner)]
        draw = self.rng.random()
        if shared and draw < 0.22:
            return self.rng.choice(shared)
        if again and 0.22 <= draw < 0.42:
            return self.rng.choice(again)
        return self.rng.choice(open_) if open_ else None

    def _may_have(self, topic: Topic, owner: Person) -> bool:
        if topic.name in self.topics or not self._free_rows(topic, topic.slots[0]):
            return False
        return len(self.world.owned(topic, owner)) < (4 if topic.repeat else 1)

    def _free_rows(self, topic: Topic, slot: Slot) -> list[tuple[str, ...]]:
        return [row for row in slot.rows if (topic.name, row) not in self.world.used]

    def _draw_values(self, topic: Topic, owner: Person) -> dict[str, str]:
        values: dict[str, str] = {}
        for slot in topic.slots:
            values |= self._draw_companion(slot, owner) if slot.shared else self._draw_row(topic, slot)
        return values

    def _draw_companion(self, slot: Slot, owner: Person) -> dict[str, str]:
        """One of the few that a person does things with."""
        cast = self.world.casts.setdefault(owner.name, [])
        if not cast:
            cast.extend(self.rng.sample(slot.rows, CAST))
        return dict(zip(slot.columns, self.rng.choice(cast), strict=True))

    def _draw_row(self, topic: Topic, slot: Slot) -> dict[str, str]:
        """A row of values that nobody in this conversation has yet, while there are any."""
        row = self.rng.choice(self._free_rows(topic, slot) or list(slot.rows))
        self.world.used.add((topic.name, row))
        return dict(zip(slot.columns, row, strict=True))


def to_second_person(question: str) -> str:
    """A question about {X} as one asks {X}."""
    for third, second in _SECOND:
        question = question.replace(third, second)
    return question


def _dated(template: str) -> bool:
    return bool({"when", "When"} & bank.placeholders(template))


def _voiced(rng: Random, voice: str, text: str) -> str:
    """The text in the manner of a voice."""
    match voice:
        case "casual":
            for pattern, word in _CASUAL:
                text = pattern.sub(word, text) if rng.random() < 0.7 else text
            return text
        case "gushing":
            return _STOP.sub(lambda _: "!" if rng.random() < 0.45 else ".", text)
        case _:
            return text


def _timed(moment: moments.Moment) -> dict[str, str]:
    return {"when": moment.phrase, "When": moment.phrase[:1].upper() + moment.phrase[1:]}


def _to(owner: Person, values: Mapping[str, str]) -> dict[str, str]:
    """Values as the partner says them to their owner."""
    return {key: _MY.sub("your", value) for key, value in values.items()} | owner.words()


def _led(lead: str, core: str) -> str:
    """`lead` before `core`, whose first word is written small where it is an ordinary word."""
    word = core.split(" ", 1)[0].strip(",").lower()
    if lead[-1] in ",:" and word in _LOWER_AFTER_LEAD:
        core = core[0].lower() + core[1:]
    elif lead[-1] == ",":
        return core
    return f"{lead} {core}"
