"""AFM's importance classes by keyword (section 3.2), for use without a chat model.

The lexicon, in three parts, is the whole rule; the tests list what it must and must not catch.

- CRITICAL: a first- or third-person statement of an allergy, intolerance, medication, medical condition or emergency;
  that a food, drug, sting or material harms somebody, in whatever words ("prawns make my lips swell"); a hard
  constraint ("must not", "never" as an order, "under no circumstances"); an explicit "remember that ...". Figures of
  speech ("sick of this song", "allergic to mornings"), generic advice ("if you have any allergies"), questions about
  allergies and denials ("not allergic to anything") are not.
- TRIVIAL: nothing but greetings, thanks, agreement and filler.
- RELEVANT: everything else: facts, preferences, plans, questions. What the lexicon does not know is RELEVANT, never
  TRIVIAL, so other languages lose nothing but the CRITICAL class.

English only. A keyword rule misses paraphrases ("my son and hazelnuts do not mix") and is no medical device.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from foveate.core.schema import Turn
from foveate.core.tiers import Importance

_CLAUSE = re.compile(r"[^.!?;\n]+[.!?;\n]*")
_TRIGGERS = (
    "allerg anaphyla epi celiac coeliac intoleran diabet asthma seizure hemophilia haemophilia immunocomp "
    "pacemaker dialysis throat me_in pregnant diagnos condition disease failure disorder illness pressure "
    "hypertension cancer chemo stroke attack insulin warfarin thinner metformin statin antibiotic blocker "
    "inhaler steroid opioid ibuprofen aspirin lithium medic meds dose dosage take taking prescribed overdos "
    "suicid harm kill call emergency breath chest must may shall circumstance negotiable breaker never can't "
    "cannot can_not not_allowed not_able not_supposed hard strictly ever remember forget mind note important "
    "record fatal deadly lethal poison toxic danger harmful intensive_care epinephrine adrenaline medical orders "
    "swell swollen airway hives rash blister hospital ambulance reac tolerat digest the_end_of shock hospitali "
    "resuscitat contain injector make_me makes_me make_him makes_him make_her makes_her make_us makes_us "
    "make_them makes_them handle health"
).split()
_KEYS = tuple(key.replace("_", " ") for key in _TRIGGERS)

_FIGURES = (
    r"allerg(?:y|ic|ies) to (?:the |my |all |doing |any )*(?:mornings?|mondays?|work(?:ing)?|chores?|homework"
    r"|commitment|drama|people|exercis\w*|cardio|responsibilit\w+|bullshit|bs|nonsense|fun|meetings?|cleaning|waking|early"
    r"|deadlines?|stupid\w*)",
    r"(?:stroke of (?:luck|genius|brilliance|midnight)|(?:back|breast|butterfly|brush) ?strokes?)",
    r"pregnant pause",
    r"(?:wardrobe|fashion|snack|chocolate|cake|coffee) emergency",
    r"(?:an?|the|i'?m|am|being a|as a) (?:typical |true |real )?cancer(?= (?:and|so|by|sign|rising|sun|moon)\b|$|,)",
    r"cancer (?:season|zodiac|sign|rising)",
    r"(?:addicted|addiction) to (?:this|that|the|my|your|coffee|chocolate|tv|netflix|it|reading|these|games?|video)",
    r"(?:gave|give|gives|giving|had|have|nearly had|almost had) (?:me |you |him |her |us )?(?:a )?heart attack",
    r"heart attack(?= (?:when|from|at|on a plate)\b)",
    r"(?:sugar|brain|adrenaline) (?:rush|overdose)",
    r"overdos\w+ on (?:cute\w*|chocolate|tv|netflix|sugar|fun|coffee)",
    r"(?:the|a|perfect|best) (?:prescription|medicine|cure)(?= (?:for|to)\b)",
    r"(?:laughter|music|nature|laughing|dancing|time) is (?:truly |really )?(?:the |a )?(?:best |great )?medicine",
    r"(?:best|good|own) medicine",
    r"(?:suicide squad|seizure of|pain killer song)",
)

_GENERIC = (
    r"\bif (?:you|anyone|someone|they) (?:have|has|had|suffer|are|is)\b",
    r"\b(?:do|does|are|is|did|have|has) (?:you|anyone|they|your \w+|she|he)\b[^.]{0,80}"
    r"\b(?:allerg|intoleran|medic|meds|condition)",
    r"\b(?:any|no|without|possible|common|potential)\b[^.]{0,30}\b(?:allerg|intoleran|medications?|conditions?)",
    r"\bask (?:the |your )?\w+ (?:about|for)\b",
    r"\b(?:not|never|isn'?t|aren'?t|wasn'?t|don'?t|doesn'?t|didn'?t|haven'?t|hasn'?t) (?!just\b|only\b|merely\b)"
    r"(?:\w+ ){0,2}(?:allerg|intoleran|diabet|asthma|epilep|diagnos|pregnant|cancer|hypertension|medicat)",
)

MEDICATIONS = (
    *("insulin", "warfarin", "blood thinners?", "metformin", "statins?", "antidepressants?", "antibiotics"),
    *("beta[- ]blockers?", "inhaler", "steroids", "opioids?", "ibuprofen", "aspirin", "lithium"),
)
"""Patterns of what people say they take, by name."""

_MEDICAL = (
    r"\ballerg(?:y|ies|ic)\b",
    r"\banaphyla\w*",
    r"\bepi-?pens?\b",
    r"\b(?:celiac|coeliac)\b",
    r"\b(?:lactose|gluten|dairy|fructose|histamine)[- ]intoleran\w*",
    r"\bintolerant to\b|\bintolerance (?:to|of)\b",
    r"\b(?:type (?:1|2|i|ii|one|two) )?diabet(?:es|ic)\b",
    r"\b(?:asthma(?:tic)?|epilep(?:sy|tic)|seizures?|ha?emophilia\w*|immunocompromised|pacemaker|dialysis)\b",
    r"\b(?:i'?m|i am|she'?s|is|am|wife|partner|sister|daughter|got|be) (?:\w+ (?:weeks|months) )?pregnant\b",
    r"\bdiagnosed with\b|\b(?:got|gave|received) (?:\w+ ){0,2}diagnosis\b",
    r"\b(?:heart|kidney|liver|lung|thyroid|autoimmune|medical|chronic) "
    r"(?:condition|disease|failure|disorder|illness)\b",
    r"\b(?:high|low) blood pressure\b|\bhypertension\b",
    r"\b(?:has|have|had|with|beat|got|from) (?:\w+ )?cancer\b|\bchemo(?:therapy)?\b",
    r"\b(?:had|has|suffered|having) (?:a |an |another )?(?:\w+ )?(?:stroke|heart attack)\b",
    r"\b(?:i|he|she|they|we|must|to|should|you)\b[^.]{0,25}\b(?:take|takes|took|taking|on|prescribed|need|needs|inject)\b"
    rf"[^.]{{0,25}}\b(?:{'|'.join(MEDICATIONS)}|medication|medications|meds|medicine)\b",
    r"\b(?:take|takes|taking|prescribed|dose|dosage)\b[^.]{0,40}\b\d+(?:[.,]\d+)? ?(?:mg|mcg|µg|milligrams?|units?)\b",
    r"\bprescribed (?:me|him|her|us|them|a|an|some)\b",
    r"\bthroat (?:closed|closes|closing|swell\w*|swollen)\b",
    r"\b(?:put|puts|landed|lands|sent) me in(?:to)? (?:the )?(?:hospital|er)\b",
    r"\boverdos\w+",
    r"\bsuicid\w*|\bself-?harm\w*|\bkill(?:ing)? myself\b",
)

# What people do not tolerate: the 14 allergens that European law makes menus declare, further common ones, the drugs of
# which reactions are most often reported, stings and materials.
SUBSTANCES = (
    "peanuts? nuts? almonds? cashews? walnuts? hazelnuts? pecans? pistachios? macadamias? gluten wheat rye "
    "barley oats? milk dairy lactose cheese eggs? fish shellfish seafood prawns? shrimps? crabs? lobsters? "
    "molluscs? mussels? oysters? clams? squid soy soya sesame celery mustard lupin sulphites? sulfites? kiwis? "
    "strawberr(?:y|ies) mangos? mangoes avocados? bananas? tomatoes corn alcohol caffeine penicillin amoxicillin "
    "cephalosporins? sulfa codeine morphine ibuprofen aspirin nsaids? antibiotics? an?aesthetics? iodine latex "
    "pollen bees? wasps? hornets? stings?"
).split()
_HARMS = (
    r"\b(?:kill|kills|killed) (?:me|him|her|us|them)\b",
    r"\bthe end of (?:me|him|her|us|them)\b",
    r"\b(?:fatal|deadly|lethal|poison(?:ous)?|toxic) (?:for|to) (?:me|him|her|us|them)\b|\blife-threatening\b",
    r"\bsw(?:ell|ells|elled|elling|ollen)\b|\bairways?\b|\bhives\b|\brash(?:es)?\b|\bblisters?\b",
    r"\b(?:put|puts|land|lands|landed|send|sends|sent|end|ends|ended|rushed)\b[^.]{0,25}"
    r"\b(?:hospital|emergency room)\b",
    r"\bhospital for (?:me|him|her|us|them)\b|\b(?:call|called|need|needs|needed) an ambulance\b",
    r"\breact(?:s|ed)? (?:\w+ )?(?:badly|horribly|terribly|violently|strongly)\b",
    r"\b(?:bad|severe|awful|terrible|horrible|violent|serious) reactions?\b",
    r"\b(?:can'?t|cannot|can not|doesn'?t|don'?t|unable to) (?:handle|tolerate|digest|process)\b",
    r"\bmakes? (?:me|him|her|us|them) (?:\w+ )?(?:sick|ill|vomit|faint|wheeze)\b",
    r"\bdangerous (?:for|to) (?:me|him|her|us|them)\b",
    r"\b(?:into|in|anaphylactic) shock\b|\bhospitali[sz]ed\b|\bresuscitat\w+|\ban ambulance (?:every|each) time\b",
    r"\b(?:can'?t|cannot|can not|may not|must not|mustn'?t|should not|shouldn'?t) contain\b",
    r"\bhad (?:an? )?(?:\w+ )?reactions?\b",
)

# Danger to somebody's life or health in so many words, whatever it comes from.
_DANGER = (
    r"\b(?:fatal|deadly|lethal|life-threatening|dangerous|harmful|poison(?:ous)?|toxic) (?:for|to) "
    r"(?:my|his|her|our|their) (?:health|life|\w+'s (?:health|life)|son|daughter|wife|husband|partner|child|kids?"
    r"|mother|father|mum|mom|dad|brother|sister|baby)\b",
    r"\bfor (?:medical|health) reasons\b|\b(?:doctor|physician|cardiologist)(?:'?s|s'?) orders\b",
    r"\bintensive care\b|\bepinephrine\b|\badrenaline (?:pens?|shots?|injections?|(?:auto-?)?injectors?)\b",
)

_EMERGENCY = (
    r"\bcall (?:911|999|112|000|an ambulance)\b",
    r"\b(?:medical|family|real|actual) emergency\b|\b(?:this|it) is an emergency\b|\bit'?s an emergency\b",
    r"\bemergency (?:contact|surgery|number)\b",
    r"\b(?:can'?t|cannot|couldn'?t|trouble|difficulty) breath(?:e|ing)\b|\bchest pains?\b",
)

_CONSTRAINT = (
    r"\b(?:must|may|shall) (?:not|never)\b|\bmustn'?t\b",
    r"\bunder no circumstances?\b|\bnon-?negotiable\b|\bdeal-?breaker\b",
    r"^(?:please |and |but |so |also |you (?:should|can|must) |always remember,? )*never "
    r"(?!(?:mind|again|ever|been|had|have|thought|knew|know|gets?|fails?|gonna|too|a|an|in|seen|heard|really|stop|give|lose"
    r"|underestimate|say|would|said|did|got|forget|ending|easy|gave|going|felt|dull|change|saw|done|came|found|met|went|took"
    r"|made|\w+ed)\b)\w+",
    r"\b(?:can'?t|cannot|can not|(?:am|is|are|'m|'s|'re) not (?:allowed|able) to|not supposed to) "
    r"(?:eat|have|drink|consume|touch|be near) (?:any |anything (?:with|containing) )?(?:\w+ ){0,2}"
    r"(?:peanuts?|nuts?|dairy|milk|gluten|wheat|shellfish|fish|meat|pork|beef|eggs?|soy|sugar|alcohol|caffeine|sesame|lactose)\b",
    r"\bhard (?:limit|requirement|constraint|deadline|rule)\b",
    r"\bstrictly (?:no|forbidden|prohibited|vegan|vegetarian|halal|kosher)\b",
    r"\b(?:do not|don'?t) ever (?!forget|quit|give|lose|stop|change|doubt)\w+",
)

_REMEMBER = (
    r"^(?:(?:please|and|so|also|but|ok|okay|just|always)[, ]+)*remember "
    r"(?:that |this\b|this:|: ?|my |i |i'?m |i'?ve |never |not to )"
    r"(?!(?:day|time|one|song|moment|night|place|photo|when|sometimes|staying|being|life|there|you'?re|you are|you can"
    r"|epic)\b)"
    r"[^?]*$",
    r"\b(?:please|can you|could you|must|will you|need you to) remember (?:that|this|my|i|to)\b",
    r"^(?:(?:please|and|so|also|but|just)[, ]+)*(?:don'?t|do not|never) forget (?:that i|my|i|i'?m|this)\b",
    r"^(?:(?:please|and|so|also|but|just)[, ]+)*(?:keep in mind|bear in mind|take note|make a note|note) that\b",
    r"\b(?:please|you must|must|need you to) (?:keep|bear) in mind\b|\bfor the record[,:]",
    r"^important:",
)

_TRIVIAL_WORDS = frozenset(
    (
        "a absolutely agreed ah aha ahh all alright amazing and anytime awesome aww aw awww bet bye care catch cheers "
        "cool congrats congratulations course dear definitely did do enjoy evening everyone exactly excellent "
        "fantastic fine for fun friend glad good goodbye goodnight gotcha got great guys ha haha hahaha happy have "
        "hear hello hey hi hmm hooray how i is it it's just k kidding know lol long lot lovely luck man me mhm mm mmm "
        "morning much my nah nice night no nope of oh ok okay omg ooh one oops perfect please pleasure problem really "
        "right same see seriously so soon sorry sounds splendid sure sweet take talk thank thanks that that's thats "
        "the then there they this thx to today tonight too totally true ty u uh uhh um very wait welcome well what's "
        "whatever wonderful worries wow yay yeah yep yes you you're your yup cute gorgeous incredible beautiful later "
        "again afternoon day been are doing going we'll i'll let's be there"
    ).split()
)
_GREETING = frozenset("hey hi hello bye thanks wow yeah congrats morning goodnight".split())
_WORD = re.compile(r"\w+(?:['’]\w+)*")


def _any(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{p})" for p in patterns), re.IGNORECASE)


_FIGURE_RE, _GENERIC_RE = _any(_FIGURES), _any(_GENERIC)
_MEDICAL_RE = _any(_MEDICAL)
_ORDER_RE = _any(_EMERGENCY + _CONSTRAINT + _REMEMBER)
_NEAR_DEATH_RE = re.compile(r"\b(?:nearly|almost) (?:died|killed)\b|\bhad a reaction\b", re.IGNORECASE)
_DANGER_RE, _HARM_RE = _any(_DANGER), _any(_HARMS)
_SUBSTANCE_RE = _any([rf"\b{name}\b" for name in SUBSTANCES])


@dataclass(frozen=True, slots=True)
class KeywordImportance:
    """Importance by the lexicon of this module; a few microseconds a clause, no state."""

    def classify(self, turn: Turn) -> Importance:
        """The class of a turn's words; a turn without words is TRIVIAL."""
        return classify_text(turn.text)


@dataclass(frozen=True, slots=True)
class ConstantImportance:
    """One class for every turn; TRIVIAL is what the paper's code does without a client."""

    value: Importance = Importance.TRIVIAL

    def classify(self, turn: Turn) -> Importance:
        """The constant, whatever the turn says."""
        return self.value


def decide(probabilities: Sequence[Sequence[float]], threshold: float) -> list[Importance]:
    """The classes a head gives: CRITICAL from the threshold on, else the likelier of the other two.

    Args:
        probabilities: (n, 3), columns in the order of `Importance`.
        threshold: of the probability of CRITICAL.
    """
    return [
        Importance.CRITICAL
        if critical >= threshold
        else Importance.RELEVANT
        if relevant >= trivial
        else Importance.TRIVIAL
        for trivial, relevant, critical in probabilities
    ]


def with_keywords(classes: Sequence[Importance], turns: Sequence[Turn]) -> list[Importance]:
    """The classes, CRITICAL also where the keyword rule says so: what a head misses the lexicon may know."""
    return [
        Importance.CRITICAL if classify_text(turn.text) is Importance.CRITICAL else given
        for given, turn in zip(classes, turns, strict=True)
    ]


def classify_text(text: str) -> Importance:
    """The class of one text."""
    clauses = [c.strip() for c in _CLAUSE.findall(text.replace("’", "'"))]
    if any(_is_critical(clause) for clause in clauses) or any(map(_is_told_in_two, clauses, clauses[1:])):
        return Importance.CRITICAL
    if all(_is_trivial(clause) for clause in clauses) and "?" not in text:
        return Importance.TRIVIAL
    return Importance.RELEVANT


def _is_critical(clause: str) -> bool:
    lowered = clause.lower()
    if not any(key in lowered for key in _KEYS):
        return False
    literal = _FIGURE_RE.sub(" ", clause)
    if _ORDER_RE.search(literal):
        return True
    if _GENERIC_RE.search(literal):
        return False
    return bool(_MEDICAL_RE.search(literal)) or _is_danger(literal)


def _is_danger(clause: str) -> bool:
    """Whether a clause, which must be no question, says that something harms somebody."""
    if "?" in clause:
        return False
    return bool(_DANGER_RE.search(clause) or (_HARM_RE.search(clause) and _SUBSTANCE_RE.search(clause)))


def _is_told_in_two(first: str, second: str) -> bool:
    """Whether two clauses together say it: what it is in the first, what it nearly did in the second."""
    return bool(_NEAR_DEATH_RE.search(second) and _SUBSTANCE_RE.search(first)) and "?" not in first + second


def _is_trivial(clause: str) -> bool:
    words = _WORD.findall(clause)
    unknown = [w for w in words if w.lower() not in _TRIVIAL_WORDS]
    if not unknown:
        return True
    greeted = len(words) <= 5 and words[0].lower() in _GREETING
    return greeted and len(unknown) == 1 and unknown[0][:1].isupper()
