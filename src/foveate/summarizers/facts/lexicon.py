"""What `facts` knows by word: numbers, months, days, units, currencies, and the words that negate.

Data only, in lower case. English is covered most fully; of the other languages there is what their commonest forms of
dates, doses and negations need.
"""

from __future__ import annotations

from collections.abc import Mapping


def _each(table: str) -> dict[str, str]:
    """{word: first word of its line} for every word."""
    lines = [line.split() for line in table.strip().splitlines()]
    return {word: line[0] for line in lines for word in line}


_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"

CARDINALS: Mapping[str, int] = {
    **{word: value for value, word in enumerate(f"{_ONES} eighteen nineteen".split())},
    **{word: 10 * value for value, word in enumerate(_TENS.split(), 2)},
}
SCALES: Mapping[str, int] = {
    "hundred": 100,
    "thousand": 1_000,
    "million": 1_000_000,
    "billion": 1_000_000_000,
    "trillion": 1_000_000_000_000,
}
SUFFIXES: Mapping[str, int] = {
    **SCALES,
    "dozen": 12,
    "k": 1_000,
    "mn": 1_000_000,
    "mio": 1_000_000,
    "millionen": 1_000_000,
    "millions": 1_000_000,
    "millones": 1_000_000,
    "bn": 1_000_000_000,
    "тыс": 1_000,
    "млн": 1_000_000,
    "万": 10_000,
    "萬": 10_000,
    "만": 10_000,
    "亿": 100_000_000,
    "億": 100_000_000,
    "억": 100_000_000,
}
SINGLE: Mapping[str, str] = {
    "dozen": "12",
    "half": "0.5",
    "twice": "2",
    "thrice": "3",
    **{word: str(value) for value, word in enumerate(_ORDINALS.split(), 3)},
}
CJK_DIGITS: Mapping[str, int] = {
    **{digit: value for value, digit in enumerate("〇一二三四五六七八九")},
    "零": 0,
    "两": 2,
    "兩": 2,
}
CJK_SCALES: Mapping[str, int] = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "萬": 10_000}

_MONTH_NAMES = """
january jan januar janvier enero gennaio janeiro januari января
february feb februar février fevrier febrero febbraio fevereiro februari февраля
march mar märz mars marzo março maart марта
april apr avril abril aprile апреля
may mai mayo maggio maio mei мая
june jun juni juin junio giugno junho июня
july jul juli juillet julio luglio julho июля
august aug août aout agosto augustus августа
september sep sept septembre septiembre settembre setembro сентября
october oct oktober octobre octubre ottobre outubro октября
november nov novembre noviembre novembro ноября
december dec dezember décembre decembre diciembre dicembre dezembro декабря
"""
MONTHS: Mapping[str, int] = {
    name: value for value, line in enumerate(_MONTH_NAMES.strip().splitlines(), 1) for name in line.split()
}
BARE_MONTHS: frozenset[str] = frozenset(line.split()[0] for line in _MONTH_NAMES.strip().splitlines())
"""Months that are dates by themselves; "May" and "March" only where they are written as names."""

_DAY_NAMES = """
monday mondays montag lundi lunes lunedì maandag понедельник
tuesday tuesdays dienstag mardi martes martedì dinsdag вторник
wednesday wednesdays mittwoch mercredi miércoles mercoledì woensdag среда среду
thursday thursdays donnerstag jeudi jueves giovedì donderdag четверг
friday fridays freitag vendredi viernes venerdì vrijdag пятница пятницу
saturday saturdays samstag samedi sábado sabato zaterdag суббота субботу
sunday sundays sonntag dimanche domingo domenica zondag воскресенье
today heute aujourd'hui hoy oggi hoje vandaag сегодня اليوم आज
tonight
tomorrow tomorrow's morgen demain mañana domani amanhã завтра غدا غدًا
yesterday yesterday's gestern ayer ieri ontem gisteren вчера أمس
"""
DAYS: Mapping[str, str] = _each(_DAY_NAMES)
PERIODS: frozenset[str] = frozenset("week weekend month year night summer winter spring autumn fall".split())
"""What "last" and "next" date: "last week"."""

UNITS: Mapping[str, str] = _each("""
mm millimeter millimeters millimetre millimetres 毫米
cm centimeter centimeters centimetre centimetres см 厘米 公分 センチ
m meter meters metre metres метров м 米 メートル 미터
km kilometer kilometers kilometre kilometres км 公里 千米 キロメートル 킬로미터
km/h kph kmh км/ч
mph
m/s
mile miles mi
foot feet ft
inch inches
yard yards
m² m2 sqm
acre acres
hectare hectares
mg milligram milligrams milligramm мг 毫克 ملغ ملغم
µg mcg μg microgram micrograms мкг 微克
g gram grams gramme grammes gramm г 克 グラム 그램
kg kilo kilos kilogram kilograms kilogramm кг 公斤 千克 キロ 킬로 كغ كيلو
ton tons tonne tonnes
lb lbs
pound pounds
oz ounce ounces
ml milliliter milliliters millilitre millilitres мл 毫升 ミリリットル
l liter liters litre litres л 升 リットル
gallon gallons
cup cups
tablespoon tablespoons tbsp
teaspoon teaspoons tsp
iu
unit units
mmol mmol/l
mmhg
bpm
tablet tablets tablette tabletten comprimé comprimés tableta tabletas таблетки таблетка таблеток 片 錠
pill pills capsule capsules 粒
drop drops
puff puffs
dose doses
ms millisecond milliseconds
second seconds sec secs sekunden secondes segundos секунд 秒 초
minute minutes min mins minuten minutos minuti минут минуты 分钟 分 분 دقيقة دقائق
hour hours h hr hrs stunde stunden heure heures hora horas ore час часа часов 小时 時間 시간 ساعة ساعات
day days tag tage tagen jour jours día días giorni dias дня дней день 天 日間 일 يوم أيام दिन
week weeks woche wochen semaine semaines semana semanas settimane недели недель неделю 周 星期 週間 주 أسبوع أسابيع
month months monat monate monaten mois mes meses mesi месяц месяца месяцев 个月 個月 ヶ月 か月 개월 شهر أشهر
year years yr yrs jahr jahre jahren ans año años anni anos год года лет 年 年間 년 سنة سنوات
岁 歲 歳 살
decade decades
time times mal fois veces volte раза раз 次 回 번 مرات
b byte bytes
kb
mb
gb
tb
mbps
px pixel pixels
hz
mhz
ghz
w watt watts
kw
kwh
mah
v volt volts
kcal
calorie calories cal
° degree degrees
°c celsius
°f fahrenheit
% percent pct prozent процентов
‰
""")

CURRENCIES: Mapping[str, str] = _each("""
$ us$ usd dollar dollars buck bucks
€ eur euro euros евро
£ gbp quid
¥ jpy yen 円
元 cny rmb yuan 块 塊 块钱 人民币
₹ inr rupee rupees
₽ rub ruble rubles rouble roubles рублей рубля руб
₩ krw 원
₺ try lira
₴ uah
₫ vnd
₪ ils shekels
฿ thb baht
chf franc francs franken
cent cents
peso pesos
cad ca$
aud au$
brl r$
sek nok dkk pln mxn sgd hkd aed
""")
CODES: frozenset[str] = frozenset("USD EUR GBP JPY CNY RMB INR RUB KRW CHF CAD AUD BRL SEK NOK DKK PLN MXN".split())

NEGATIONS: Mapping[str, str] = _each("""
not never no none nobody nothing nowhere neither nor without cannot dont cant wont doesnt didnt isnt wasnt arent \
werent couldnt wouldnt shouldnt havent hasnt hadnt \
nicht kein keine keinen keiner keinem keines nie niemals nichts niemand ohne weder \
ne pas jamais aucun aucune rien sans ni \
nunca jamás nada nadie ningún ninguno ninguna sin tampoco \
não nenhum nenhuma sem non nessun nessuno nessuna niente senza niet geen nooit niets zonder \
не нет ни никогда без нельзя никто ничего nie bez nigdy değil yok hiç inte ikke aldrig ingen inget utan uden \
tidak bukan tanpa jangan không chưa đừng \
لا لم لن ليس ليست لست غير بدون دون ولا ولم ولن وليس عدم לא אין בלי نیست نہیں नहीं मत बिना न
unless
except außer ausser sauf salvo excepto кроме
avoid avoids avoided avoiding vermeide vermeiden éviter evitar
stop stops stopped stopping quit quits quitting
""")
DEGREES: frozenset[str] = frozenset(
    "any all really very even actually quite ever exactly necessarily particularly longer also still yet too much "
    "more anymore get got gets one known".split()
)
"""Words that say how much is negated, not what."""
