//! English words and sentence patterns.

use super::language::Language;

pub const ENGLISH: Language = Language {
    code: "en",
    between: " ",
    full_stop: ".",
    openings: "in Y ,
since the A days of Y ,
after a A debate ,
despite the A M ,
according to H ,
for the first time in D years ,
near the N in P ,
with the help of the B ,
early in the morning ,
as H R explained ,
beyond the A N ,
under a A agreement with the B ,
when the N closed ,
without any A M ,
in a letter to the B ,
at the edge of P ,
a year later ,
to the surprise of H ,
in spite of D complaints ,
during the A weeks of Y ,",
    clauses: "H R V the A N in P
the B V D A N s before the end of Y
a N from P V the N of the B
H and H V a A N
the A N near P had lost its M
D of the N s were V by the B in P
nobody in P V the A N
the N that H V stands beside a A N
people from P R V their N s
the B of P V neither the N nor the M
a A group of D neighbours V the N
H , who had V the N in P , asked for M
the price of a N rose by D percent
visitors V a A N and a A N
the B wants to have D N s V by Y
an old N in P was R V
H called the N a A piece of M
the A M of the N has V many in P
some D families V the N for its A M
a report of the B V the A N
the N in P needs M and a A N
H V what the B had R V
most of the N s from P are A and A
the road to P leads past a A N
only D N s were left when H came to P
a A N R V the M of P
the council of P V a plan for the N
students from P V the A N with H
M and M V the N for D years
H lives behind the A N in P
the new N has room for D N s
two A N s V the M that H remembers
the B let the A N decay
every N tells of the M in P
H R V D N s and one A N
the owner of the N V a A offer",
    links: ", and
, but
, while
, because
, although
, so that
; meanwhile
, as soon as
, before
, until
, where
; in P ,",
    titles: "H V the A N of P
D N s V in P
the B V a A N
why the A N in P has no M
a A N for P
M and M in P
how H V the N
the N that V P
P gets a A N after D years
what the A N tells of M
H and the A N
B V the N s of P",
    nouns: "harbour orchard lantern compass meadow turbine ledger glacier anvil cathedral railway \
sparrow lagoon almanac furnace quarry vineyard beacon mosaic caravan theatre citadel plateau archive \
telescope museum workshop market bridge garden tower village island factory school forest valley river \
station festival painter engineer doctor farmer sailor teacher baker mason pilot weaver clerk barn basin \
bell blanket boat bookshop bottle boulder bracket brewery brick bucket cabin cable calendar camera canal \
candle canvas carpet cart cellar chapel chimney circus clinic clock coat collar column concert contract \
corridor cottage cradle crane creek crossing cupboard curtain dam desk diary dock donkey door drain drum \
dune elevator engine envelope excavation exhibition fence field fireplace flag flood fountain frame \
freezer gallery gate generator glove grave greenhouse guitar hall hammer hangar hedge helmet hill horse \
hospital hostel hotel house instrument jacket journal kettle kiosk kitchen ladder lake lamp lane laundry \
lecture letter lighthouse loom machine magazine mansion manuscript map mast medal microscope mill mine \
mirror monument motor mountain needle newspaper notebook oak oar office organ oven paddle painting palace \
parcel park passenger path pavement pavilion pier pigeon pillar pipe platform playground plough pond \
portrait poster potter printer prison procession pump quay raft ramp reactor recipe reef registry reservoir \
restaurant roof rope saddle sail sawmill scaffold sculpture seed shed shelter ship shop signal silo sketch \
sledge sluice spade spring square stable stadium staircase statue steamer stove street studio summit \
surgeon swamp swimmer tailor tanker tavern tenant terrace ticket tile timetable tool tractor trail tram \
tunnel umbrella valve vessel viaduct violin wagon wall warehouse well wheel windmill window witness yard",
    things: "patience rain electricity dust silence trade money wood bread snow music rust courage \
water confidence paper traffic noise smoke history glass salt wool timber light grain gravel humour cotton \
steam honey copper sand clay heat advice progress luck research fog mud thunder cement software ivy \
insurance milk fuel frost equipment tourism work evidence livestock drought memory gossip justice hunger \
shade scandal chalk marble rent thunder sleep friendship caution speed tradition doubt sunlight leisure",
    adjectives: "old quiet narrow bright distant crowded empty northern southern wooden hidden famous \
modest curious patient stormy silver green broken ancient busy cold warm generous strict gentle proud rusty \
spare shallow deep round steep foggy sunny humble grand abandoned accidental affordable ambitious angry \
annual awkward bitter blue brave brief brittle careful cheap cheerful civic clumsy coastal colourful common \
complete costly crooked damp dangerous delicate dense dry dusty early eastern elegant electric endless \
expensive faded faithful false familiar fertile final flat foreign forgotten fragile free fresh frozen \
golden good great heavy honest hollow idle important industrial innocent iron joint late legal light local \
lonely long loose loud lucky medieval mild missing muddy mutual mysterious neat new noble noisy odd official \
open ordinary painted pale peculiar permanent plain pleasant polished poor popular portable private public \
rare reliable remote rich ripe rough royal rural sad safe scattered secret serious severe sharp simple \
skilful slippery slow small smooth sober soft solid sour stiff strange strong stubborn sturdy sudden suitable \
temporary thick thin tidy tiny tired traditional tropical ugly unusual urban urgent useful vacant valuable \
vast vertical violent visible weak western wet white wide wild windy young",
    verbs: "opened measured repaired painted visited described counted moved planted sold bought \
defended copied restored guarded crossed mapped praised doubted followed founded closed lost found carried \
cleaned named studied weighed rented shared photographed sealed lifted covered warned honoured remembered \
abandoned accepted admired advertised altered announced approved arranged attacked auctioned avoided \
balanced blamed blocked borrowed broadened built burned buried cancelled captured celebrated changed checked \
claimed collected combined compared completed condemned connected considered corrected criticised decorated \
delayed deleted delivered demanded demolished designed destroyed discovered discussed divided donated \
doubled drained emptied enjoyed enlarged examined exchanged expected explained explored extended financed \
finished fixed framed funded gathered greeted handled heated hired ignored imitated imported \
improved inherited inspected installed insured introduced invented investigated joined judged kept labelled \
launched leased left lengthened loaded locked loved managed mentioned missed modernised noticed obtained \
offered ordered owned packed postponed preferred prepared presented preserved produced promised protected \
proved purchased questioned raised reached rebuilt recognised recommended recorded recovered reduced refused \
registered rejected removed renamed replaced reported requested rescued respected reviewed saved searched \
shifted shortened sketched solved spoiled started stored strengthened supplied supported surrounded \
tested tolerated toured traced trained transformed transported treated uncovered unloaded used valued \
watched welcomed widened won wrapped",
    adverbs: "quietly slowly carefully often rarely suddenly finally gladly openly secretly bravely \
already calmly cheaply clearly completely curiously daily eagerly easily entirely evidently fairly firmly \
formally freely generously gradually hastily honestly hurriedly immediately jointly kindly lately legally \
neatly nearly nightly normally officially partly patiently perfectly politely possibly privately promptly \
properly proudly publicly quickly readily regularly reluctantly repeatedly seldom separately seriously \
sharply simply soon steadily strangely swiftly thoroughly twice usually wisely wrongly yearly",
    first_names: "Ada Albert Alma Anders Anita Arthur Beatrice Benno Bridget Carla Cecil Clara Conrad \
Daphne Dario Edgar Edith Elias Elsa Emil Erica Felix Fiona Frank Gerda Gilbert Grace Hanna Harold Helen \
Hugo Ida Igor Irene Ivan Jasper Joan Jonas Judith Karl Kate Laura Leo Lydia Magnus Mara Martin Matilda Mona \
Nadia Niels Nora Oscar Otto Paula Philip Quentin Rafael Rita Robert Rosa Ruth Samuel Sonia Stella Stephen \
Tamara Theo Thomas Ursula Vera Victor Walter Wanda Yara Zoe",
    name_starts: "Ald Arn Ash Bar Beck Ber Birk Black Bram Bro Cal Car Clay Cob Cor Crow Dan Dar Dun \
East Ed Elm Fair Fen Ford Gar Glen Gran Green Hal Har Haw Hol Hun In Ket Kin Lam Lang Lin Lock Mal Mar Mel \
Mor New Nor Oak Old Pem Port Ran Red Ro San Sel Shaw Stan Sut Tar Thorn Tor Ul Wal War West Whit Win Wood Yar",
    name_ends: "ley ton ford man son ner well by wood low ham croft stead berg ster den field lin more \
ger hurst kin nard ris vik sen rup dal mont vey",
    place_ends: "wick bridge mouth bury dale port stead minster haven cliff hill lake moor combe gate \
holm thorpe worth marsh firth burn pool cross",
    bodies: "ministry
city council
water board
harbour office
trade union
railway company
historical society
court of appeal
county library
fire brigade
chamber of commerce
parish
cooperative
state laboratory
football club
savings bank
planning committee
department of roads
fishing fleet
school board
local newspaper
power company
academy of sciences
forest service",
    months: "January February March April May June July August September October November December",
    menu: "Home News World Politics Business Markets Science Health Sport Football Culture Books Film \
Music Travel Food Gardens Property Cars Weather Letters Obituaries Crosswords Podcasts Jobs Archive",
    sites: "Northern Courier
Evening Lantern
Valley Review",
    series: "Tenancy notes
Passenger rights
Safety sheet
Supplier file
Plant register
Club rules",
    related: "More on this",
    most_read: "Most read",
    appeal: "Subscribe to our morning letter and never miss a story again. You can leave it at any \
time with one click, and we never hand your address on.",
    rights: "All rights reserved. No part of this page may be reproduced without the written consent \
of the publisher.",
};
