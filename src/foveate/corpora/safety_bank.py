"""What people say when something must not be lost, and what only sounds like it: the templates of `corpora.safety`.

One template a line; {slot} is filled from SLOTS. Peanuts are left out on purpose: they are what the allergy benchmark
asks about, and nothing here may teach its sentences.
"""

from __future__ import annotations


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.strip().splitlines())


ALLERGY = _lines("""
I'm allergic to {allergen}.
I am severely allergic to {allergen} and carry an EpiPen.
I've got a bad {food1} allergy.
My allergy to {allergen} is serious, so please take it into account.
I found out last year that {allergen} give me an allergic reaction.
I came out in hives after eating {food}, the doctor says it is an allergy.
I had an anaphylactic reaction to {allergen} when I was a student.
If I touch {allergen}, my hands blister within minutes.
{Food} make my lips swell and my chest go tight.
Even a little {food1} in a sauce and I can't breathe.
{Food} are a no-go for me, I'd be in the emergency room within the hour.
I can't be anywhere near {allergen}, my throat swells.
The last time I ate {food} they had to call an ambulance for me.
They tested me and I reacted to {allergen}, quite strongly.
I break out in a rash whenever I take {allergydrug}.
{Allergydrug} nearly killed me, I swelled up like a balloon.
Never give me {allergydrug}, I go into shock.
{kin} is allergic to {allergen}.
{kin} has a life-threatening allergy to {allergen}.
{kin} ended up in hospital once because of {food} in a biscuit.
{kin} can't have {food}, an allergy that runs on my side of the family.
{kin} stops breathing when a bee gets her.
We have to read every label because {kin} reacts to {food}.
The rash is from {allergydrug}, {kin} had the same thing years ago.
Yes, {allergydrug}. I get a terrible rash.
Yes, I'm allergic to {allergydrug} and also to {allergen}.
Just {food}, as far as I know. They make me itch all over and my tongue gets thick.
I wear a medical bracelet that says {allergen}.
Do not order anything with {food} for me, I would have to use my adrenaline pen.
I'm hugely allergic to {allergen}, just being in the same room can set me off.
Put me down as allergic to {allergen}, please.
Allergies: {allergen}.
Known allergies are {allergen} and {allergydrug}.
I've been allergic to {allergen} all my life.
My {food1} allergy is the deadly kind.
It's the {food}. I can't go near them, I swell up.
I ate {food} at a wedding once and woke up in hospital.
Two years ago {food} almost finished me off, so I'm careful now.
When I was little a single bite of {food} sent me to the ER.
{Food} and I don't mix, my face puffs up and I start wheezing.
Keep {food} away from me or you will have to use my EpiPen.
I can't risk {food}, my airways close.
They make my mouth burn and my throat swells up, {food} I mean.
I am allergic, {food} mostly, a bit of {food1} too.
Is there {food1} in it? I'm allergic.
Before you pick a restaurant, I'm dangerously allergic to {food}.
The waiter swore there was no {food1} in it and I still had to inject myself.
I'd love to try everything, except that {food} would put me in intensive care.
We are four, one of us with a severe {food1} allergy.
A nurse once gave me {allergydrug} and my heart stopped.
{Allergydrug} makes me vomit and I come up in hives.
I had a bad reaction to {allergydrug} at the dentist.
Doctors must not give me {allergydrug}.
Bees. One sting and I need an injection straight away.
I'm anaphylactic to {allergen}.
{kin} gets hives from {food}.
{kin} has to carry two EpiPens because of {food}.
{kin} nearly choked after one bite of cake with {food}.
{kin} is really allergic to {allergydrug}, it says so in her file.
The kids can't have {food}, both of them are allergic.
Our guest on {weekday} has a {food1} allergy, so no {food} in anything.
""")

INTOLERANCE = _lines("""
I'm lactose intolerant, so no cream for me.
I can't digest {food}, I get awful cramps.
I have coeliac disease and even crumbs of bread make me ill.
Gluten makes me seriously ill, it has to be strictly gluten free.
My stomach can't take {food}, I am in bed for two days afterwards.
{kin} has a histamine intolerance.
{kin} can't tolerate {food} at all.
I react badly to {food}.
Alcohol doesn't go with my tablets, I can't have a single drop.
I must not have any caffeine, it sets off my heart.
I'm on a strict low-salt diet because of my kidneys.
Sweeteners with phenylalanine are dangerous to me, I was born with PKU.
I'm gluten intolerant, properly tested, not a fad.
Dairy wrecks me for days.
I have fructose malabsorption, so no apples and no honey.
Milk goes straight through me, I'm intolerant.
I have to avoid {food}, they give me migraines that last for days.
No wheat for me, I have coeliac disease.
{kin} is coeliac, so we need separate pans.
{kin} gets terribly ill from {food}.
If there is any {food1} in the soup I'll be sick all night.
Onions and garlic are out, my gut specialist was clear about that.
""")

MEDICATION = _lines("""
I take {dose} of {drug} every morning.
I'm on {drug}.
I have been on {drug} since the operation.
They put me on {drug} last month, {dose} twice a day.
I inject insulin before every meal.
{drug}, {dose}, and a small aspirin at night.
Just {drug} and something for my stomach.
My doctor raised my {drug} to {dose}.
I use a {drug} inhaler when I get short of breath.
I need my {drug} at eight sharp or I get sick.
I can't miss my {drug}, not even for a day.
Because of the {drug} I am not allowed to eat grapefruit.
I still take {drug} for my {condition1}.
I take a blood thinner, so small cuts are a problem.
I'm taking three things, {drug}, {drug2} and a water pill.
{kin} takes {drug} for {condition}.
{kin} is on chemotherapy until spring.
{kin} needs {dose} of {drug} with breakfast.
We keep {kin_}'s {drug} in the fridge and it must travel with us.
The psychiatrist started me on {drug}, so no alcohol.
I stopped the {drug} because it made me faint, and I may never take it again.
My meds are {drug}, {drug2} and a baby aspirin.
I take {drug} for my {condition1} and {drug2} for my {condition1}.
I'm currently taking {drug}.
Um, {drug}, and a multivitamin.
I use {drug} and it keeps my {condition1} under control.
I take one {drug} in the morning and one at night.
They switched me from {drug} to {drug2}.
I'm supposed to take {drug} with food, twice a day.
I've got a port for the chemo, so be careful with that arm.
I wear an insulin pump.
I take immune suppressants, I can't be around sick people.
I'm on oxygen at night.
I'm on methadone, my clinic is only open until {hour}.
I can't take ibuprofen because of the {drug}.
{kin} takes {drug} every day at {hour}, it can't be late.
{kin} is on {dose} of {drug}.
{kin} can't take {drug} together with {drug2}, they almost lost him.
She takes aspirin, {drug} and something for her pressure.
I never go anywhere without my nitro spray, it's for my heart.
I take birth control and {drug}.
""")

CONDITION = _lines("""
I have {condition}.
I was diagnosed with {condition} three years ago.
I've lived with {condition} since childhood.
I had a stroke last winter and my left side is still weak.
I had a heart attack in 2018 and got two stents.
I've got {condition}, which means I can't do that.
I'm pregnant, due in March.
I'm 14 weeks pregnant and high risk.
I have a pacemaker, so the scanner is out of the question.
I only have one kidney.
I'm blind in my right eye.
I use a wheelchair and can't do stairs.
I get seizures when there are flashing lights.
My immune system is very weak after the transplant.
My sugar drops suddenly and then I pass out, I always need juice near me.
I bleed for hours from a small cut, it is a clotting disorder.
My doctor told me to stay away from high altitude because of my heart.
They found {condition} at my last check-up.
I've been clean for six years, so please no wine and no rum cake.
{kin} has {condition}.
{kin} lives with {condition} and needs someone there at night.
{kin} was diagnosed with {condition} on Tuesday.
{kin} is deaf, so text, don't call.
{kin} can't be left alone, she has dementia and walks off.
With {kin_}'s {condition1} we can't be more than an hour from a hospital.
I suffer from {condition}.
I'm {condition2}.
I'm a {condition2} patient, have been for years.
Yeah, I've got {condition} and {condition}.
I was born with a hole in my heart.
I've got arthritis in both hips, I can't walk more than ten minutes.
I get panic attacks in crowds, real ones, I've passed out.
I had a kidney transplant, so raw fish is too risky for me.
They took out my spleen, every fever is an emergency for me.
I'm recovering from surgery and mustn't get the wound wet.
I have two rods in my spine.
I'm HIV positive.
I'm colour-blind, red and green look the same to me.
I have a history of blood clots, long flights are a risk.
I've struggled with an eating disorder, please no calorie counts.
I'm in early recovery, ninety days sober.
I fainted twice this month because of my heart.
Both my parents had {condition} and now I have it too.
{kin} is {condition2}.
{kin} had a seizure on {weekday}.
{kin} is in a coma since the accident.
{kin} is autistic and loud noise is torture for him.
{kin} was rushed to hospital with {condition}.
{kin} has been in hospital for weeks, it's {condition}.
It runs in the family: {condition}.
""")

CONSTRAINT = _lines("""
I must not lift anything heavier than five kilos.
I am not allowed to fly until the {weekday} after next.
Under no circumstances may you give my address to anyone.
I don't eat pork, it is against my religion.
We keep strictly kosher at home.
Everything has to be halal, no exceptions.
I'm vegan for ethical reasons, no animal products at all, ever.
My budget is a hard limit: {amount} and not a cent more.
The report has to be in by {weekday} noon or we lose the contract.
Never book anything with stairs, I can't climb them.
I can only travel with step-free access.
The tenant must be out by the {day}th, that date cannot move.
You may not contact my ex-husband, there is a restraining order.
Never ever run that script on the live database.
Do not delete the folder {code}, it holds the only copy.
I'm not legally allowed to work more than twenty hours a week on this visa.
No flights with a layover in {city}, I can't get a visa for there.
My probation forbids me to leave the county.
There must always be two adults in the room with the children.
I cannot drive at night, my eyes don't allow it.
I can't eat {food}, full stop.
I don't eat meat, fish or eggs, and that isn't going to change.
No alcohol for me, it's forbidden in my faith.
I have to be at the clinic every {weekday} at {hour}, that can't move.
The wheelchair needs a door at least eighty centimetres wide.
I need subtitles on every video, I'm hard of hearing.
We cannot go over {amount}, the bank will not lend more.
You must never leave the dog with the baby.
It has to be finished before the {day}th, otherwise there's a fine of {amount}.
I'm under a non-disclosure agreement, don't mention the project to anybody.
My visa ends on the {day}th and I must be out of the country by then.
I can't work Saturdays, it's the Sabbath.
Absolutely no photographs of my children online.
I may not be within a hundred metres of him, court order.
No needles. I mean it, I have a phobia and I pass out.
Do not ever send money without calling me first.
""")

EMERGENCY = _lines("""
I can't breathe properly and my chest hurts.
Please call an ambulance, he isn't waking up.
There's smoke coming out of the fuse box right now!
I think I took too many tablets.
I don't want to live any more.
I've been thinking about hurting myself.
{kin} fell and she can't move her legs.
{kin} swallowed cleaning fluid, what do I do?
My water just broke and I'm alone.
I've had pain down my left arm since this morning.
He hit me again and I'm scared to go home.
There is gas in the flat, we can smell it.
If anything happens to me, call {name} on {phone}.
My emergency contact is {name}, {phone}.
The baby has a fever of forty and won't drink.
My chest is tight and my arm has gone numb.
I've cut myself badly and it won't stop bleeding.
She isn't breathing!
He drank something from under the sink.
I took a whole bottle of pills an hour ago.
I want to end it all.
I have a plan to kill myself.
There's a fire in the kitchen and I can't get out.
Somebody is trying to break in right now.
My daughter has been missing since {hour}.
I can't feel my legs after the fall.
My face is drooping on one side and I can't lift my arm.
{kin} collapsed and is turning blue.
He threatened me with a knife last night.
""")

STANDING_ORDER = _lines("""
From now on always answer me in {language}, I don't read anything else.
Remember that my locker code is {code}.
Please remember that I work nights and must not be called before two.
Always check with {name} before you confirm anything.
Keep in mind that {name} may not know about the party.
For the record: all payments above {amount} need my signature.
Don't forget that my passport runs out on the {day}th.
Make a note that the alarm code has changed to {code}.
Whatever you do, don't tell {name} about the diagnosis.
Never use my real name in anything you send out.
Please bear in mind that I cannot sign anything without my lawyer.
Important: the spare key is with {name}, flat {day}.
Note that deliveries are only allowed before {hour}.
Always use metric units with me, mixing them up cost us a shipment once.
Remember this for every trip: aisle seat, ground floor, no lifts.
Whenever I ask for a route, avoid motorways, I don't drive on them.
Every reply has to be in {language}, please.
Never call me at work.
Don't ever book with that airline for me again.
If {name} asks, you know nothing about the move, okay? That is important.
Call me by my new name, {name}, the old one must not appear anywhere.
Always leave the porch light on for {name}.
In all documents the amount has to stay below {amount}, always.
The wifi password is {code}, keep it somewhere safe.
My blood type is O negative, write that down.
Remember: the cat gets her tablet at {hour}.
Please always ask me before you spend more than {amount}.
""")

# Sounds like it, is not: RELEVANT.
QUESTION = _lines("""
Do you have any allergies?
Is anybody in your group allergic to {food}?
What medication are you taking at the moment?
Are you allergic to {allergydrug}?
Any other conditions I should know about?
Can you buy {drug} without a prescription?
Is {condition} hereditary?
How many people have {condition} these days?
Does {drug} make you sleepy?
Have you ever had an allergic reaction?
What are the symptoms of a {food1} allergy?
Do they serve {food} there?
Have you ever had a stroke or a heart attack?
Did the doctor prescribe you anything?
Are you on any blood thinners?
What should a first-aid kit contain?
Who do we call in an emergency?
Does your mother have high blood pressure?
Do you take anything for that?
Do you have asthma or diabetes?
What are you allergic to?
Does anyone in your family have {condition}?
Are there any foods you can't eat?
Did they give you {drug} at the hospital?
Which hospital is closest to the station?
How does an EpiPen work?
Is {food1} one of the fourteen allergens?
What's the difference between an allergy and an intolerance?
How long does {drug} stay in the body?
""")

NEGATION = _lines("""
No allergies here.
I don't have any allergies.
No, I'm not allergic to anything.
No known drug allergies.
None that I know of.
Not that I'm aware of.
I don't take any medication.
No, no medical conditions, I'm as fit as a fiddle.
Nope, nothing, I can eat everything.
We checked, and luckily nobody is allergic to {food}.
They tested me for {condition} and it came back clean.
No, I have never had a heart attack or anything like it.
I'm not on any medicine right now.
It turned out not to be {condition}, thank goodness.
I have no dietary restrictions at all.
She doesn't have any allergies that we know of.
My blood pressure is fine, everything was normal.
I stopped needing tablets years ago and feel great.
No, no allergies that we know of.
Correct, no allergies.
No, nothing, just vitamins sometimes.
I'm not taking anything.
I've never been in hospital in my life.
Nobody in our family has ever had {condition}.
No chest pain, no trouble breathing, nothing like that.
I'm not pregnant, just full of cake.
It wasn't a seizure after all, I simply tripped.
I can eat {food} without any problem.
No restrictions, no deadline, take all the time you like.
""")

NEWS = _lines("""
I read an article about {food1} allergies on the train.
There was a documentary about {condition} last night.
Scientists have found a new treatment for {condition}.
The school sent a letter about {food1}-free lunches.
My novel is about a doctor who discovers {drug}.
They are building a new hospital next to the {city} road.
The price of {drug} went up again, it was on the news.
A study says coffee lowers the risk of {condition}.
The airline changed its rules on {food1} snacks.
I'm writing an essay on how {allergydrug} was discovered.
The film is about a nurse in a big emergency room.
Our charity run raised {amount} for research on {condition}.
I watched a video on how adrenaline pens are made.
My favourite podcast did an hour on {food1} allergies.
The museum has a show about medicine in the old days.
They recalled a batch of {drug} in {city}, says the paper.
Our biology homework is about {condition}.
A colleague gave a talk on {condition} at the conference.
In the book the hero is allergic to silver.
The new law says every school needs a first-aid room.
I translated a leaflet about {drug} for a client.
""")

ADVICE = _lines("""
If you have a {food1} allergy, ask the waiter.
People with {condition} should talk to a doctor before they travel.
Always read the label if you are sensitive to {food}.
Anyone with allergies can ask for the list of ingredients.
In case of an emergency, use the stairs.
It is wise to carry a list of your medicines when you travel.
Restaurants must list the fourteen allergens on the menu.
You should drink more water when it is this hot.
Remember to stretch before a run.
Don't forget to bring your sunscreen!
You must see that film.
You have to try the {treat} at the corner place.
Never give up, you're nearly there.
Please call me when you get home.
Keep in touch and keep smiling.
Be careful on the icy steps.
You could ask the chef whether there is {food1} in it.
Many people carry an EpiPen when they travel.
Take a jacket, it gets cold in the evening.
You must never mix plaids and stripes, haha.
Drink some tea and get some rest.
Remember to breathe and enjoy the view.
Wash {food} before you cook them.
If you feel dizzy in the heat, sit down for a moment.
Travellers with {condition} should bring a doctor's letter.
""")

FIGURE = _lines("""
I'm allergic to {chore}.
My whole team is allergic to {chore}, I swear.
This {nuisance} is killing me.
I'd kill for a {treat} right now.
I nearly had a heart attack when the cat jumped on the piano.
I'm dying to see the new exhibition.
I'm so sick of this {nuisance}.
That joke almost killed me.
You're a life saver, thank you for the lift.
The suspense will be the death of me.
I'm addicted to this series.
It's an emergency, we're out of coffee!
A fashion emergency: the zip of my dress broke.
My heart stopped when they played our song.
My phone is dead and I feel naked.
I can't live without my morning {treat}.
He broke my heart, the rascal, he finished the {treat}.
That was a shot in the arm for the whole team.
My laptop has a fever, it's so hot.
Their prices are insane, I nearly fainted.
We laughed until we couldn't breathe.
I've got a terrible case of Monday.
That goal was criminal.
Over my dead body will I paint it beige, haha.
I almost died laughing.
She's a pain in the neck.
My wallet is bleeding after that trip.
I'm drowning in emails.
The wifi is on life support again.
I've got butterflies in my stomach.
This song gives me chills.
My plants are dying of thirst and neglect.
I have a crippling addiction to {treat}.
That {nuisance} will be the end of me, I tell you.
It hit me like a shock, what a plot twist!
I was green with envy.
I'm blind without my glasses, and I left them on the bus!
""")

FOOD_TALK = _lines("""
I love {food}.
We had {food} for dinner and it was delicious.
I can't get enough of {food} lately.
I made a salad with {food} and orange.
{Food} were on sale, so I bought too many.
My favourite snack is {treat}.
The kids wanted {treat} for breakfast, of course.
I prefer {food} to meat.
We tried a new place and the {treat} was amazing.
I never liked olives much.
I don't usually drink coffee after six.
They serve {food} with lemon and a lot of butter.
My grandmother's recipe needs {food} and patience.
I could eat {food} every day.
Do you prefer {food} or {treat}?
We picked {food} at my uncle's farm.
The cake with {food} was a hit at the party.
I had {food} for lunch, a bit heavy but good.
Shall I bring {food} or wine?
The {treat} at the station is the best in {city}.
I'm not a big fan of {food}, but I eat them.
""")

HEALTH_TALK = _lines("""
I have a dentist appointment on {weekday}.
I visited my aunt at the clinic and brought her flowers.
I had a cold last week but I'm fine now.
I've got a bit of a headache from the noise.
The new pharmacy on the corner opens at {hour}.
I started yoga for my back and it helps.
My legs are sore from the hike.
I slept badly, the neighbours had a party.
I went for a check-up and the waiting room was packed.
My sister is studying to be a nurse.
I'm trying to eat less sugar.
I should really get new glasses.
{kin} ran a half marathon on {weekday}.
{kin} works at a hospital in {city}.
I got my flu shot at work today.
The physio says I sit too much.
I broke a nail, tragedy of the week.
The doctor's office moved to {city} Street.
I took the day off, my throat was a bit scratchy.
My knee hurt after football but it's gone.
My dad retired from the hospital after thirty years.
We gave blood at the office on {weekday}.
I'm learning first aid on {weekday} evenings.
I had an eye test and I don't even need glasses.
My daughter lost her first tooth.
""")

PLAIN = _lines("""
I moved to {city} last spring.
The meeting is on {weekday} at {hour}.
I paid {amount} for the tickets.
{name} is coming over on {weekday}.
We are thinking of painting the hall.
I'd rather take the train than drive.
I prefer a window seat.
I've never been to {city}.
I might go to {city} in the summer.
My brother plays the trumpet in a band.
The report needs one more chart.
Do you remember that little bakery in {city}?
Remember when we got lost in {city}?
I forgot my umbrella on the bus.
I never knew you could cook!
I must say, the concert was lovely.
I can't wait for the weekend.
I can't find my keys again.
You can't miss it, it's the blue door.
We are not allowed to bring dogs to the office, sadly.
How do I get wine stains out of a carpet?
Which phone should I buy for {amount}?
The kids have a school play on {weekday}.
We signed the lease yesterday.
I got a promotion!
I'm reading a book about bees.
My flight lands at {hour}.
I have two brothers and a dog.
The garden is full of tomatoes this year.
We watched the match with {name} and it was a thriller.
You should never have told me the ending!
I can't believe it's already {weekday}.
I must have left my scarf at your place.
I need to finish my essay tonight.
""")

INSTRUCTION = _lines("""
Book the lower deck if you get seasick easily; it moves less.
Reserve a seat by the window on the left for the best view of the valley.
The museum closes on Tuesdays, so keep that day for the market.
Take the express to the last stop and walk ten minutes along the river.
Change some money before you leave the airport, the rates in town are poor.
Download an offline map; the signal is weak in the mountains.
Arrive half an hour early, the queue at security is long on Mondays.
Pack layers, since evenings by the coast turn cold even in July.
A local card for your phone costs little and works everywhere.
Share a taxi with the others and agree on the fare first.
The boat runs only when the sea is calm, so have a second plan.
Validate your ticket in the yellow machine before you get on.
Hand in your notice a month ahead and ask for a reference.
Start with a short summary and put your results on the first page.
Practise the talk aloud twice and time yourself.
Ask for the range before you name a number.
Send a short note of thanks the day after.
Back up the folder, then restart the router and wait a minute.
Hold the power button for ten seconds and try once more.
Update the driver first; if the screen still flickers, swap the cable.
Use a longer password and turn on the second factor.
Export the table as plain text and open it in the other program.
Clear the cache, sign out and sign in again.
Heat the pan well before the batter goes in.
Let the dough rest overnight in the fridge.
Salt the water generously and keep a cup of it for the sauce.
Simmer on a low flame for forty minutes and stir now and then.
Roast the vegetables on one tray and the potatoes on another.
Whip the cream last, or it will fall.
Water the seedlings in the morning and keep them out of the wind.
Cut the roses back in late winter, just above a bud.
Turn the compost every second week.
Sand the board lightly, wipe the dust off and paint two thin coats.
Drill a small hole first so that the wood does not split.
Measure twice and leave a gap of two millimetres.
Start with three short runs a week and one day of rest between them.
Warm up for five minutes and keep the pace easy.
Stretch after training and drink enough water.
Increase the weight slowly, one step a week.
Learn ten words a day and repeat yesterday's before you begin.
Read the chapter once quickly and once with a pencil.
Put aside a tenth of your pay on the first of the month.
Compare two offers and read what is written small.
Keep the receipts in one envelope a year.
Split the bill by what each of you had.
Write the guest list first, then choose the room.
Send the invitations six weeks ahead.
Ask the neighbours whether the noise would bother them.
Label the boxes by room and load the heavy ones first.
Read the meter with the landlord and take a picture.
Tune the lowest string first and work upwards.
Play it slowly with the metronome until it is clean.
Choose a quiet hour, the light is best just before sunset.
Give the puppy a corner of its own and a fixed hour for food.
You could try the new place behind the station; people praise the noodles.
There are three ways to get there, and the slow train is the prettiest.
Two nights are enough for the old town; a third one is for the islands.
The night market opens at six and is at its best after eight.
The pass pays off if you take more than four rides a day.
A blog post about your trip would be a nice start; keep it under a thousand words.
Sure, I can draft that for you. Should it sound formal or friendly?
Here is a plan for three days: temples first, then the canal, then a day by the sea.
Good choice. The view from the tower is wonderful in the morning.
I would put the budget on one sheet and the schedule on another.
That depends on the season: in spring it is full, in autumn you have it to yourself.
""")

OBLIGATION = _lines("""
I have to hand in the report by Friday noon.
I need to call the plumber before he closes.
Don't let me forget the tickets tomorrow.
We must leave by seven or we miss the ferry.
I really need to sort out my inbox this week.
I have to pick up the suit from the cleaner's.
My boss wants the slides by Monday.
I need a new charger, mine broke on the train.
We have to choose a colour for the kitchen at last.
I must water her plants while she is away.
I can't find my keys anywhere.
I can't make it on Thursday, can we move it?
I never get up before nine on a Sunday.
I always take the stairs, it keeps me awake.
I only drink tea in the afternoon.
I don't like crowded beaches.
I'd rather not drive at night in the rain.
I hate waiting in lines, so let's go early.
I won't be there before eight.
I can't stand that show, the jokes are so tired.
""")

TRIVIAL = _lines("""
Hi!
Hello there!
Hey, good morning!
Good evening!
Thanks!
Thank you so much!
Thanks a lot, that helps.
ok
Okay, great.
Sounds good.
Sounds good to me!
Got it.
Got it, thanks.
Sure.
Sure thing!
Yes please.
Yeah.
Yep, exactly.
No worries.
No problem at all.
You're welcome!
Haha.
Haha, good one!
lol
Wow!
Wow, amazing!
That's great!
That's awesome, congrats!
Cool.
Nice!
Nice one.
Perfect.
Perfect, see you then!
See you soon!
Talk to you later!
Bye!
Bye, take care!
Good night!
Have a great day!
Have a nice weekend!
Me too!
Same here.
I see.
Oh, I see.
Oh no!
Aww, so sweet.
Hmm.
Right.
Right, okay.
Alright then.
Absolutely!
Of course!
Definitely.
True.
Fair enough.
Interesting.
Really?
Oh really?
Glad to hear that!
Glad you liked it.
My pleasure.
Never mind.
Whatever you say.
Take your time.
Sorry about that.
Oops, sorry.
Cheers!
Happy to help!
Mm-hmm.
Uh-huh.
Okay, all right.
""")

LEADS = _lines("""
By the way,
Just so you know,
One thing before we go on:
Oh, and
I should have said this earlier:
I think I mentioned it, but
Not sure whether this matters, but
Sorry to be difficult, but
For what it's worth,
Quick note:
Actually,
Well,
Um, so,
Honestly,
""")

CRITICAL_FAMILIES = {
    "allergy": ALLERGY,
    "intolerance": INTOLERANCE,
    "medication": MEDICATION,
    "condition": CONDITION,
    "constraint": CONSTRAINT,
    "emergency": EMERGENCY,
    "standing order": STANDING_ORDER,
}
RELEVANT_FAMILIES = {
    "question": QUESTION,
    "negation": NEGATION,
    "news": NEWS,
    "advice": ADVICE,
    "figure": FIGURE,
    "food": FOOD_TALK,
    "health": HEALTH_TALK,
    "plain": PLAIN,
    "instruction": INSTRUCTION,
    "obligation": OBLIGATION,
}

_FOOD = (
    "hazelnuts walnuts cashews almonds prawns crabs mussels eggs soybeans sesame_seeds strawberries kiwis tomatoes "
    "lentils mangoes mushrooms"
)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.replace("_", " ") for word in text.split())


SLOTS: dict[str, tuple[str, ...]] = {
    "food": _words(_FOOD),
    "food1": _words("hazelnut walnut cashew shellfish prawn egg milk soy sesame wheat mustard kiwi fish celery"),
    "allergydrug": _words("penicillin amoxicillin sulfa_drugs codeine ibuprofen aspirin morphine iodine Augmentin"),
    "allergen": _words(_FOOD + " penicillin sulfa_drugs codeine latex bee_stings wasp_stings shellfish nickel aspirin"),
    "drug": _words(
        "warfarin metformin lisinopril levothyroxine sertraline prednisone methotrexate atorvastatin lithium apixaban "
        "carbamazepine Synthroid Coumadin Lasix Xanax tacrolimus amlodipine gabapentin omeprazole Humira albuterol"
    ),
    "drug2": _words("metoprolol Zoloft losartan Plavix digoxin furosemide Lipitor clozapine"),
    "dose": ("5 mg", "20 mg", "500 mg", "two tablets", "10 units", "half a pill", "50 micrograms", "one capsule"),
    "condition": tuple(
        (
            "type 1 diabetes, epilepsy, asthma, a heart condition, haemophilia, coeliac disease, high blood pressure, "
            "kidney failure, Crohn's disease, sickle cell disease, multiple sclerosis, Parkinson's, lupus, "
            "breast cancer, severe depression, bipolar disorder, sleep apnea, a brain tumour, "
            "atrial fibrillation, hepatitis C, COPD"
        ).split(", ")
    ),
    "condition2": _words(
        "diabetic epileptic asthmatic pregnant coeliac deaf blind anaemic haemophiliac bipolar immunocompromised"
    ),
    "condition1": _words("diabetes epilepsy asthma thyroid heart_failure angina arthritis anxiety cholesterol lupus"),
    "kin": tuple(
        (
            "My daughter, My son, My wife, My husband, My dad, My mum, My grandmother, Our youngest, My partner, "
            "My flatmate, My sister, The little one"
        ).split(", ")
    ),
    "kin_": ("my daughter", "my son", "my wife", "my husband", "my dad", "my mother", "our youngest"),
    "weekday": _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"),
    "day": _words("2 5 9 13 17 22 26"),
    "hour": _words("eight nine ten noon four"),
    "amount": _words("$80 $250 $1,200 300_euros 4,000_pounds"),
    "city": _words("Lisbon Oslo Denver Kyoto Turin Leeds Montreal Accra Hanoi"),
    "name": _words("Rosa Idris Mei Tomas Farah Lukas Ines Kofi Anya"),
    "phone": ("555-0134", "555-0177", "0161 496 0021"),
    "code": _words("4471 8820 1396 70215"),
    "language": _words("Spanish Portuguese Polish Turkish Vietnamese"),
    "treat": _words("pizza ice_cream pancakes chocolate dumplings croissants curry espresso"),
    "chore": _words("ironing small_talk homework meetings deadlines early_alarms spreadsheets parking"),
    "nuisance": _words("commute heat traffic song printer weather keyboard deadline"),
}
