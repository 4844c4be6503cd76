"""The keyword classifier: what it must catch, and the small talk it must not."""

import pytest

from foveate.core.schema import Turn
from foveate.core.tiers import Importance
from foveate.rules.importance import ConstantImportance, KeywordImportance, classify_text, decide, with_keywords

CRITICAL = [
    "I have a severe peanut allergy.",
    "By the way, I'm allergic to shellfish!",
    "my daughter is allergic to penicillin",
    "I can't have dairy, so no ice cream for me.",
    "I’m lactose intolerant",
    "My son carries an EpiPen.",
    "A single satay stick put me in hospital at nineteen.",
    "Walnuts make my throat swell.",
    "I was diagnosed with celiac disease in March.",
    "I take 20 mg of lisinopril every morning.",
    "He is on blood thinners.",
    "I have type 2 diabetes.",
    "She has high blood pressure.",
    "My wife is 20 weeks pregnant.",
    "I have chest pain and I can't breathe.",
    "Call 911!",
    "My emergency contact is Rosa, 555-0134.",
    "You must not share this address with anyone.",
    "Never call me before nine.",
    "Please never use my full name.",
    "Under no circumstances delete the backup table.",
    "Remember that my locker code is 4471.",
    "Please remember this: the gate closes at six.",
    "Don't forget my sister is vegan.",
    "Keep in mind that the client reads only Spanish.",
    "The 14th is a hard deadline.",
    "The kitchen is strictly halal.",
    "Prawns make my lips swell.",
    "Shellfish could kill him.",
    "She reacts very badly to codeine.",
    "Milk is dangerous for my daughter.",
    "Eggs, and I end up in the emergency room.",
    "No rum cake for me, for medical reasons.",
    "He spent a week in intensive care.",
    "I carry an adrenaline pen.",
    "My body can't handle gluten.",
    "No shellfish for me, I once had a reaction.",
    "The cake cannot contain eggs.",
    "Latex sends her into shock.",
    "She was hospitalised for a wasp sting.",
    "It was the sesame. I nearly died.",
    "I carry an adrenaline injector.",
]

NOT_CRITICAL = [
    "I'm so sick of this song.",
    "I visited a friend in hospital.",
    "Singing all night made my throat sore.",
    "I think I'm allergic to mornings.",
    "My allergy to mornings is acting up, ha.",
    "What a stroke of luck!",
    "Never mind, I found it.",
    "I've never been to Rome.",
    "Never saw this coming.",
    "I will never forget that night.",
    "Do you remember that bakery on Elm Street?",
    "Remember that day at the beach?",
    "I can't remember her name.",
    "If you have any allergies, ask the vendors.",
    "Ask about common allergens.",
    "Laughter is the best medicine.",
    "You nearly gave me a heart attack!",
    "I'm a typical Cancer, so moody.",
    "I'm dying to see that film.",
    "That joke killed me.",
    "This cake is to die for!",
    "I swam the backstroke today.",
    "We ate shrimp tacos and talked about the new job.",
    "I must say it was lovely.",
    "He is taking the train on Friday.",
    "Keep calm and carry on.",
    "Don't ever give up on your dreams!",
    "Note the lovely colors in this painting.",
    "I am not allergic to anything as far as I know.",
    "No, I don't have diabetes.",
    "We haven't been diagnosed with anything.",
    "Can bee stings kill her?",
    "We had fish and chips near the hospital.",
    "The stonefish is a deadly fish.",
    "I can't handle this traffic.",
    "My boss will kill me.",
    "The film was great. I nearly died laughing.",
    "No fish for me, thanks.",
    "It came as a shock.",
    "The box can't contain more than six books.",
    "Do you take any medicine for that?",
]

TRIVIAL = [
    "",
    "Hi!",
    "Hey Melanie!",
    "ok",
    "Thanks, see you soon!",
    "Sounds great!",
    "haha yes",
    "Got it.",
    "...",
    "Bye Nate!",
]

RELEVANT = [
    "I moved to Lisbon last spring.",
    "I prefer window seats.",
    "We fly to Thailand on May 7.",
    "Really?",
    "What time does it open?",
    "7",
    "私はピーナッツを食べません",
    "Ich habe gestern Anna getroffen.",
]


@pytest.mark.parametrize("text", CRITICAL)
def test_statements_that_must_not_be_lost_are_critical(text: str) -> None:
    assert classify_text(text) is Importance.CRITICAL


@pytest.mark.parametrize("text", NOT_CRITICAL)
def test_figures_of_speech_and_small_talk_are_not_critical(text: str) -> None:
    assert classify_text(text) is not Importance.CRITICAL


@pytest.mark.parametrize("text", TRIVIAL)
def test_greetings_and_acknowledgements_are_trivial(text: str) -> None:
    assert classify_text(text) is Importance.TRIVIAL


@pytest.mark.parametrize("text", RELEVANT)
def test_facts_preferences_plans_questions_and_the_unknown_are_relevant(text: str) -> None:
    assert classify_text(text) is Importance.RELEVANT


def test_a_critical_clause_survives_generic_advice_beside_it() -> None:
    assert classify_text("If you have any allergies, ask. I am allergic to eggs.") is Importance.CRITICAL


def test_classifiers_take_turns_whatever_their_content() -> None:
    empty = Turn(id="m0", role="assistant", content=None)
    assert KeywordImportance().classify(empty) is Importance.TRIVIAL
    assert ConstantImportance(Importance.RELEVANT).classify(empty) is Importance.RELEVANT


def test_a_head_and_the_rule_together_miss_less() -> None:
    classes = decide([[0.7, 0.2, 0.1], [0.1, 0.5, 0.4], [0.3, 0.2, 0.5]], threshold=0.4)
    assert classes == [Importance.TRIVIAL, Importance.CRITICAL, Importance.CRITICAL]
    texts = ("I'm allergic to bees.", "Hello!", "Hello!")
    turns = [Turn(id=str(i), role="user", content=text) for i, text in enumerate(texts)]
    assert with_keywords([Importance.TRIVIAL, Importance.CRITICAL, Importance.RELEVANT], turns) == [2, 2, 1]


def test_real_small_talk_is_hardly_ever_critical(data_root) -> None:
    from foveate.corpora import locomo

    turns = [turn for conversation in locomo.load(data_root) for turn in conversation.turns]
    share = sum(KeywordImportance().classify(turn) is Importance.CRITICAL for turn in turns) / len(turns)
    assert 0.001 < share < 0.01
