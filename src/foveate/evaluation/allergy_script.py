"""The texts of the allergy benchmark: paraphrases of the peanut allergy, distractor exchanges, the final question.

A reconstruction. The paper (AFM section 4.2) quotes two user lines of its script and its benchmark scripts were not
released; what is here is written anew to the same plan: the user states a peanut allergy once, other talk follows, the
last question is about food in Thailand and does not name the allergy.

None of these sentences, nor a part of eight words, may occur in what trains a scorer or an importance head: a test
compares them with the template bank and with the shipped synthetic conversations.
"""

from __future__ import annotations

PREAMBLE = "You are a friendly travel assistant. Answer briefly."
QUESTION = "The street food looks amazing and I want to taste everything. Which dishes should I try first in Thailand?"
REPLY = "Thanks for telling me, that helps with the planning."

PARAPHRASES: tuple[str, ...] = (
    # with both words: metric (a), retention, can see these
    "I have a severe peanut allergy, so please plan around that.",
    "I'm deathly allergic to peanuts.",
    "Before we start: peanuts are off the table for me, life-threatening allergy.",
    "Quick heads-up, my peanut allergy is really bad. Like hospital bad.",
    "hi, planning bangkok + chiang mai for two weeks. im allergic to peanuts btw, anaphylaxis",
    "My doctor confirmed last year that I'm allergic to peanuts and anything fried in peanut oil.",
    "We're off to Thailand in May, three of us. I love heat, I love noodles, I can take any amount of chilli, but I am "
    "very allergic to peanuts and even a trace sets me off. What should I book first?",
    "Allergies: peanuts (severe). Blood type: O+. Travelling with one carry-on.",
    "Since I was four I've had a peanut allergy that can kill me.",
    "It's a bit boring to say it again, but I've got a peanut allergy, a serious one.",
    "Peanut allergy here. Not an intolerance, an actual allergy.",
    "Could you help me plan a trip? One thing matters more than the rest, I am highly allergic to peanuts.",
    "i get a horrible allergic reaction from peanuts, even the dust",
    "Speaking as somebody whose allergy to peanuts is life-threatening, I worry a little about Thai food.",
    "I carry two adrenaline pens because of my allergy to peanuts.",
    "Peanuts. I'm allergic. Badly. Everything else is fine.",
    "My allergist said peanuts could be fatal for me.",
    "Fun fact about me: allergic to peanuts, in love with beaches, terrible at packing.",
    "No, we have not booked the flights yet, and yes, I still have that awful peanut allergy.",
    "I was told to avoid peanuts for life after an allergic shock in 2019.",
    "Everyone thinks I'm picky, but it's an allergy: one peanut and I need an ambulance.",
    "I have several food allergies; the one that scares me is peanuts.",
    "im alergic to peanut, very very alergic to peanut, allergy card is in my wallet",
    "Two travellers, one of them (me) with a peanut allergy.",
    "Please be careful with peanuts when you suggest food, I'm allergic.",
    # without the word allergy
    "Peanuts could kill me.",
    "If I eat even a crumb of peanut my throat closes up and I stop breathing.",
    "I can't have peanuts, not even a trace, or I end up in the emergency room.",
    "One bite of anything with peanuts and I go into anaphylactic shock.",
    "I carry an EpiPen everywhere because of peanuts.",
    "Peanuts make my face swell and my airways shut.",
    "I react very badly to peanuts, last time I spent three days in intensive care.",
    "My body can't handle peanuts at all, it is a medical thing and it is dangerous.",
    "Please keep peanuts far away from anything you recommend to me, they are dangerous to my health.",
    "Peanuts are poison to me, literally, I nearly died from a cookie once.",
    "We fly on the 14th and stay near the river. Oh, and I must never eat peanuts, doctor's orders.",
    "Anything with peanuts is strictly forbidden for me for medical reasons.",
    "Peanuts = hospital for me.",
    "Eating peanuts would be the end of me, and I mean that medically.",
    "I have to stay clear of peanuts. Last exposure, I needed two shots of epinephrine.",
)

HELD_OUT: tuple[str, ...] = (
    "A heads-up about my diet: allergic to peanuts, everything else goes.",
    "Peanuts give me hives and then I can't get any air.",
    "My mum is coming along, and her peanut allergy is worse than mine.",
    "I lost consciousness the last time somebody slipped peanuts into my food.",
    "As a child I was rushed to hospital over a peanut bar, and it has not got better.",
    "Food-wise I'm easy, as long as there are no peanuts anywhere near my plate. Anaphylaxis.",
    "For the food part, remember I'm the one who can't eat peanuts.",
    "Peanut traces are enough to make my tongue swell.",
    "i have peanut allergy, level 6 on the blood test",
    "Don't laugh, but I have to ask about peanuts everywhere because one could end my life.",
    "Peanuts: never. My immune system overreacts to them.",
    "I keep two auto-injectors on me, peanuts are my enemy.",
    "We'd like to eat at stalls, although I am severely peanut allergic.",
    "My travel insurance asked for a note about my peanut allergy, so I guess you should know as well.",
    "Peanut oil, peanut butter, peanut anything makes me terribly ill.",
    "I had three anaphylactic episodes, all of them from peanuts.",
    "Peanuts are a medical no for me.",
    "You should know that I'm highly sensitive to peanuts, I collapsed on a plane once.",
    "It isn't a preference: peanuts trigger an asthma attack in me.",
    "If I so much as kiss someone who ate peanuts, my lips blow up.",
)
"""Written once the keyword rule was done with the others, and never used to mend it: what it does with these is what it
would do with somebody's own words."""

# Exchanges of a user and an assistant; {slot} is filled from SLOTS, with the same value on both sides.
TRAVEL: tuple[tuple[str, str], ...] = (
    ("How many days should I spend in {place}?", "{days} days are enough for {place} if you start early."),
    ("Is {place} worth the detour from {other}?", "Yes, {place} is quieter than {other} and the road is good."),
    (
        "What is the best way to get from {place} to {other}?",
        "The night train from {place} to {other} costs about {price} baht; book a lower berth.",
    ),
    ("Do I need cash in {place}?", "Most stalls in {place} want cash. Machines charge {fee} baht for each withdrawal."),
    (
        "What's the weather like in {place} in {month}?",
        "In {month} expect {degrees} degrees in {place} and a short shower most afternoons.",
    ),
    (
        "Can you tell me about temple manners before I visit {place}?",
        "Cover shoulders and knees, take off your shoes, and never point your feet at a Buddha image.",
    ),
    (
        "I read about Muay Thai fights in {place}. Are they any good?",
        "The stadium in {place} has fights on {weekday} nights; seats start at {price} baht.",
    ),
    (
        "We booked a small hotel near the river in {place} for {days} nights.",
        "Lovely choice, the boats in {place} run until nine in the evening.",
    ),
    ("Which island would you pick in {month}?", "In {month} the east coast is calm, so I would go to {island}."),
    (
        "How do the ferries to {island} work?",
        "Ferries to {island} leave every {days} hours from the pier; buy the ticket on the day.",
    ),
    ("Should I rent a scooter on {island}?", "Only with a licence and a helmet. On {island} it is {fee} baht a day."),
    (
        "My friend wants to dive near {island}. What does a course take?",
        "The basic course on {island} takes {days} days and costs around {price} baht.",
    ),
    ("How much should I tip in {place}?", "Rounding up is fine in {place}; {fee} baht for a guide is generous."),
    (
        "Is the night market in {place} open on {weekday}s?",
        "Yes, it opens at five on {weekday}s and the northern end is the less crowded one.",
    ),
    (
        "I'd like to see elephants near {place} without a riding camp.",
        "There is a sanctuary outside {place} that allows {fee} visitors a day, without rides or shows.",
    ),
    ("What plug do I need?", "Type A and C work nearly everywhere; bring a small adapter for older rooms in {place}."),
)
SMALL_TALK: tuple[tuple[str, str], ...] = (
    (
        "I finally finished {book} last night.",
        "Nice! What did you think of the ending of {book}?",
    ),
    ("It has been raining here since {weekday}.", "A good excuse for a film. Did you see anything worth watching?"),
    ("My neighbour has started to learn the {instrument}.", "Thin walls and a {instrument}, I feel for you."),
    (
        "We adopted a {pet} called {name}.",
        "{name} is a wonderful name for a {pet}. How are the first days?",
    ),
    ("I ran {days} kilometres this morning and my legs hate me.", "Well done. A slow walk tonight will help."),
    ("Haha, I burnt the rice again.", "It happens to the best of us. Lower heat and a lid, next time."),
    ("{name} is visiting us on {weekday}.", "Sounds like a full house. Anything planned?"),
    (
        "I'm so sick of the building site next door, they drill from {hour} on.",
        "That would drive me mad. Perhaps the library opens by {hour}?",
    ),
    ("Did you know that octopuses have three hearts?", "I did, and two of them rest while it swims."),
    ("I painted the kitchen {colour} at last.", "{colour} is brave. Does the light reach it in the morning?"),
    ("My sister says I talk too much about {instrument} music.", "There are worse habits. Which piece is it now?"),
    ("Good morning!", "Good morning! What shall we look at today?"),
    ("ok thanks", "You're welcome!"),
    ("{name} beat me at chess again.", "A rematch on {weekday}, then."),
)
WORK: tuple[tuple[str, str], ...] = (
    (
        "Our release slipped to the {day}th of {month}.",
        "Then there is time for one more round of tests before the {day}th.",
    ),
    (
        "{name} from accounting wants the numbers by {weekday}.",
        "I can draft a table with the totals for {name}; send me the sheet.",
    ),
    (
        "How do I tell a colleague that the meeting at {hour} is useless?",
        "Suggest a written update instead and offer to try it for {days} weeks.",
    ),
    ("Can you shorten this mail to {name}?", "Sure, paste it here and tell me what {name} must take away from it."),
    ("The client from {other_city} asked for a discount of {percent} percent.", "You could offer half of it."),
    (
        "I have my yearly review with {name} on {weekday} at {hour}.",
        "Bring three results and one wish; {name} will remember the first of them.",
    ),
    ("We are hiring {days} people for the support team.", "Write down what the first month should look like."),
    ("The projector in room {day} is broken again.", "Ask for the portable one, it is usually free before noon."),
    (
        "I moved the workshop in {other_city} to {month}.",
        "Noted. Do you want me to list hotels in {other_city} for {month}?",
    ),
    ("What is a polite way to decline a call at {hour}?", "Say that you are booked and propose two other times."),
    ("My laptop takes {fee} minutes to start.", "Check what loads at login; that is the usual reason."),
    (
        "{name} gave notice, so I am taking over the {other_city} account.",
        "Congratulations, or my sympathy? Ask for a handover list first.",
    ),
)

SLOTS: dict[str, tuple[str, ...]] = {
    "place": (
        "Bangkok",
        "Chiang Mai",
        "Ayutthaya",
        "Sukhothai",
        "Krabi",
        "Pai",
        "Chiang Rai",
        "Hua Hin",
        "Kanchanaburi",
    ),
    "other": ("Lampang", "Phitsanulok", "Surat Thani", "Nan", "Udon Thani", "Trang", "Ubon"),
    "island": ("Koh Tao", "Koh Lanta", "Koh Chang", "Koh Samui", "Koh Mak", "Koh Phangan"),
    "month": ("January", "February", "March", "June", "July", "September", "October", "November"),
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "days": ("two", "three", "four", "five", "six"),
    "price": ("450", "620", "780", "900", "1,150", "1,400"),
    "fee": ("20", "30", "40", "150", "220", "250"),
    "degrees": ("27", "29", "31", "33", "35"),
    "book": ("Middlemarch", "that thriller about the lighthouse", "the biography of Ada Lovelace", "Dune", "Beloved"),
    "instrument": ("trumpet", "violin", "drum", "accordion", "clarinet"),
    "pet": ("cat", "dog", "tortoise", "rabbit", "parrot"),
    "name": ("Rosa", "Idris", "Mei", "Tomas", "Farah", "Lukas", "Ines", "Kofi"),
    "hour": ("seven", "half past eight", "nine", "ten", "four"),
    "colour": ("yellow", "dark green", "terracotta", "light blue"),
    "day": ("4", "7", "12", "16", "24", "28"),
    "percent": ("5", "8", "12", "15"),
    "other_city": ("Leeds", "Porto", "Ghent", "Graz", "Malmo"),
}
