"""The single words and short phrases that synthetic pieces are made of.

Each list goes by the name that stands for it in the braces of a template. A phrase may hold
braces itself.
"""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(" ".join(phrase.split()) for phrase in text.split(","))


WORDS: dict[str, tuple[str, ...]] = {
    "adj": _words(
        "absent amber anxious autumnal bashful bitter blurry brave bright brisk brittle bulky "
        "calm careless cheap clumsy coarse cold cordial crisp crooked crumpled curious damp "
        "dappled daring deaf dense distant drowsy dull dusty eager earnest elastic enormous even "
        "faded faint famous fearless feeble festive fickle fierce flimsy foggy fragile frozen "
        "frugal gentle giddy glossy golden graceful grateful greasy grim half-asleep handsome "
        "hasty hoarse hollow honest humble humming idle inky jagged jolly kind lanky lazy "
        "left-handed lenient limp lonely lopsided loud lukewarm mellow merry mild modest moonlit "
        "muddy murky narrow neat nervous nimble noisy obedient odd pale patient peppery placid "
        "plain polite precious proud pungent quaint quiet ragged rare restless rigid rosy rough "
        "rusty salt-white secondhand serene shallow sharp shy silent sincere sleepy slender slow "
        "smooth snug solemn sour spare stale stern stout stubborn sturdy sudden sunburnt sweet "
        "tangled tart tender thirsty thorny tidy tiny tranquil upright vague vast velvet vivid "
        "wandering warm wary weathered weightless wild wise wobbly wooden yellow"
    ),
    "noun": _words(
        "accordion almanac anchor anvil apron archive armchair attic awning axle balcony "
        "ballroom balloon barometer barrel basement basket bathtub bench blanket boiler bonnet "
        "bookcase bottle boulevard bridge brooch broom bucket button cabinet cable calendar "
        "candle canoe carriage cathedral cellar chandelier chimney clarinet coat-stand comb "
        "compass corridor courtyard cradle crane curtain cushion dagger desk doorway drawer drum "
        "dune easel elevator engine envelope fence ferry fiddle flagpole fountain funnel garden "
        "gate glacier globe granary hammer hammock harbour hatbox hedge hinge hourglass inkwell "
        "jetty jug kennel kettle key kiosk ladder lantern lawn ledger letter library lighthouse "
        "loom mailbox map marsh mast meadow melody mill mirror monocle mosaic necklace newspaper "
        "notebook oar orchard oven paddle pantry parade parcel passport pavilion pendulum pier "
        "pillow pipe plough pocket postcard pulley puddle quarry quill raft railway ribbon river "
        "rooftop rudder saddle sandal scale scarf shadow shed shelf shovel signpost sleigh spoon "
        "staircase stove suitcase sundial tapestry teapot telegram tent theatre thimble thread "
        "timetable trapdoor trumpet tunnel turret typewriter umbrella valley vase veranda "
        "village violin wagon wallet wardrobe waterfall weathercock well wheel whistle window "
        "workshop"
    ),
    "nouns": _words(
        "accountants acorns actors almonds anchors ants apricots aunts barbers beads bees bells "
        "biscuits blankets boots bricks brothers bubbles buttons cakes candles carpenters cats "
        "chairs cherries clerks clouds coins cooks corks cousins crabs crickets crows crumbs "
        "dancers dentists diplomats doorbells drums echoes eels farmers feathers figs fishermen "
        "flags footnotes forks frogs geese ghosts gloves gulls hats herons hikers jars jugglers "
        "kites knights knots ladders lanterns leaves lemons librarians lions maps marbles masks "
        "matches medals mice minutes moths mules musicians nails needles neighbours nephews "
        "notes nuns oars olives oranges owls painters pancakes pebbles pencils petals pianos "
        "pigeons pilots plates plumbers poets postcards promises puddles questions rabbits "
        "raindrops ribbons rumours sailors seeds shadows sheep shells shoes sisters snails socks "
        "sparrows spiders spoons stairs stars stones swans tailors teachers thimbles tickets "
        "toads tourists trombones trumpets tugboats turnips twins violins waiters whispers "
        "windows witnesses wolves"
    ),
    "being": _words(
        "accordionist acrobat actress admiral alderman apprentice archer astronomer badger baker "
        "barber beekeeper bell-ringer blacksmith botanist brewer butler captain carpenter "
        "cartographer cellist chemist clockmaker cobbler composer conductor cook cooper courier "
        "dentist detective diver drummer duchess ferryman fiddler florist forester fox gardener "
        "geologist glassblower goose grandfather grandmother grocer harbourmaster hatter "
        "hedgehog heron innkeeper inspector interpreter jeweller judge juggler lamplighter "
        "librarian locksmith magician magpie mayor midwife milkman miller moth neighbour "
        "nightwatchman notary novelist nurse otter painter parrot philosopher piano-tuner pilot "
        "plumber poet postman potter printer professor puppeteer raccoon referee sailor sculptor "
        "seamstress sexton shepherd signalman snail soprano stonemason stranger surveyor tailor "
        "teacher ticket-seller tortoise trumpeter vet violinist waiter watchmaker weather-clerk "
        "weaver widow"
    ),
    "name": _words(
        "Adaeze Agnes Alasdair Amara Anselm Arjun Astrid Baptiste Beatrix Bela Bram Caoimhe "
        "Casimir Chiara Cosima Dagny Darius Dmitri Edda Eirik Emeka Esme Fatima Ferran Fiona "
        "Folke Gideon Greta Gustav Hamid Hana Henrike Hugo Ilse Imani Ines Isidor Jolanta Jonas "
        "Josefa Kamala Kasper Katya Kofi Lars Laszlo Leilani Lior Ludmila Magnus Malik Maren "
        "Matteo Mireille Nadim Nell Niamh Nikolai Odile Olga Omar Oskar Paloma Pavel Petra "
        "Quentin Quilla Ravi Renske Roza Rufus Sanjay Selma Silas Søren Tamsin Theo Tomás Ulla "
        "Uma Valentin Vera Viggo Wanda Wilhelm Xóchitl Yara Yuki Zeno Zsófia"
    ),
    "town": _words(
        "Aldermoor Ashby-under-Cloud Barrowmere Brindlewick Candleford Cask-on-Sea Cinderby "
        "Copperfell Dapplegate Dunmarrow Eastwhistle Elderholm Fennimore Foxley Gallowglen "
        "Gullhaven Hartsbridge Hobbledown Inkwater Ivybarrow Jarrow's-End Kettlebridge Larkrise "
        "Lower-Plum Marrowick Millstone Mossgate Nettlecombe Nine-Elms-Wharf Oatby Old-Thimble "
        "Pennyquay Pipers-Hollow Quillham Ravensough Rookery-Bend Saltmarsh Snowdrop-Halt "
        "Thornaby Tumblewold Upper-Fig Vinegar-Hill Wexcombe Whitlow Yarrowdale"
    ),
    "did": _words(
        "arrived blinked blushed bowed chuckled coughed crumbled danced dozed drifted fainted "
        "faltered fidgeted flickered floated frowned gasped giggled gleamed glowed grinned "
        "groaned grumbled hesitated hovered hummed hurried knelt laughed leaned limped lingered "
        "listened melted mumbled nodded objected obeyed paused prospered protested rattled "
        "relented returned rusted shimmered shivered shrugged sighed slept slipped smiled "
        "sneezed sobbed somersaulted sparkled spun stammered stayed stumbled sulked swayed "
        "swooned tiptoed trembled tripped twirled vanished waited wept whispered whistled winked "
        "wobbled yawned yielded"
    ),
    "did_to": _words(
        "admired adopted auctioned balanced blamed bought borrowed buried carried chased cleaned "
        "collected copied counted decorated defended described dismantled doubted emptied envied "
        "escorted examined explained filled flattered followed framed greeted guarded heard "
        "hired hummed ignored imitated inherited inspected insured interrupted interviewed "
        "invented juggled kept kissed lent lifted lost measured mended misplaced mocked named "
        "noticed opened painted pardoned photographed pitied polished praised preserved promised "
        "pursued questioned recited recognised remembered repaired replaced rescued returned "
        "rewound saluted sold scolded serenaded sewed sketched sorted studied summoned swapped "
        "tasted thanked toasted trusted tuned unwrapped visited wanted warned washed watched "
        "weighed wrapped"
    ),
    "do_to": _words(
        "admire adopt arrange balance blame borrow bury carry chase clean collect copy count "
        "cover defend describe divide doubt draw empty escort examine fold forgive frame greet "
        "grind guard heat hide hire hoist ignore inspect invite juggle knead lend lift marinate "
        "measure melt mend name notice open paint peel pierce polish pour praise press question "
        "remember replace rescue return rinse roast salt season shake sift simmer sketch slice "
        "soak sort squeeze stir stretch summon taste thank toast trust tune unwrap visit warn "
        "wash watch weigh whisk wrap"
    ),
    "how": _phrases(
        "after all, against all advice, all at once, almost by accident, as if nothing happened, "
        "as usual, backwards, barely, bravely, by candlelight, by heart, carefully, cheerfully, "
        "clumsily, despite the rain, ever so slightly, for no reason, for the third time, "
        "gladly, gracefully, half in jest, hand in hand, in a borrowed coat, in earnest, "
        "in good faith, in one breath, in perfect silence, in slow circles, in whispers, loudly, "
        "nearly, of all things, on purpose, on tiptoe, one by one, out of habit, out of tune, "
        "over and over, politely, quite alone, reluctantly, side by side, sideways, slowly, "
        "solemnly, somewhat later, thoughtfully, to everyone's relief, twice, under protest, "
        "upside down, with a sigh, with both hands, with great care, without a word, "
        "without looking, without the {nouns}"
    ),
    "place": _phrases(
        "above the {noun} shop, across the frozen pond, along the towpath, among the {nouns}, "
        "around the corner, at the back of the choir, at the bottom of the {noun}, "
        "at the ferry landing, at the last stop, behind the bakery, behind the {adj} {noun}, "
        "below the weir, beneath the stairs, beside the {noun}, between two umbrellas, "
        "between {town} and {town}, beyond the allotments, by the slow canal, down in {town}, "
        "far from the {noun}, halfway to {town}, in front of the {noun}, in the engine room, "
        "in the hall of {nouns}, in the long grass, in the margins, in the third drawer, "
        "in {name}'s kitchen, inside the clock tower, inside the {adj} {noun}, "
        "near the edge of the map, near {town}, next to the {noun}, off the coast of {town}, "
        "on a bed of {nouns}, on platform {n}, on the {adj} bridge, on the far shore, "
        "on the roof of the {noun} museum, on the night ferry, opposite the {noun}, "
        "outside {town}, over the {adj} hills, over {town}, past the {adj} orchard, "
        "somewhere upstream, two doors down, under a {noun} of stars, under the floorboards, "
        "under the {adj} {noun}, up in the rafters, where the road forks, where the tram turns, "
        "within sight of the {noun}"
    ),
    "time": _phrases(
        "a week before {month}, after the second bell, after {n} years, all through {month}, "
        "all winter, around noon, as the tide went out, at a quarter past never, at dawn, "
        "at first light, at half past {n}, before breakfast, before the {nouns} came, "
        "by {month}, during the great thaw, early in {month}, every other Tuesday, "
        "for {n} minutes, in the middle of {month}, in the small hours, "
        "in the summer of the {nouns}, in the year of the {adj} {noun}, just after {month}, "
        "last {month}, late one evening, long after midnight, long before the {noun}, "
        "on a wet Thursday, on market day, on the {day} of {month}, "
        "on the morning of the parade, once a year, once the kettle sang, one {adj} evening, "
        "since {month}, that very night, the day after, toward evening, two Sundays later, "
        "until the lamps went out, when nobody was counting, when the fog lifted, "
        "when the {being} slept, while the soup cooled"
    ),
    "month": _words(
        "January February March April June July August September October November December"
    ),
    "day": _words("1st 2nd 3rd 5th 7th 9th 11th 12th 14th 19th 22nd 23rd 26th 28th 30th"),
    "emoji": _words(
        "🎉 🌊 🦊 🐝 🌙 ✨ 🎈 🍋 🐌 🎻 🌾 ☂️ 🧭 👩‍🚀 🫖 🇫🇴 🕯️ 🐾 🌻 🍂 🚂 🪁 🎺 🧵 🐙 🥐 ⛵ 🌧️ 🪶 "
        "📚 🦉 🍄 🧦 🪴 👨‍🍳 🏔️ 🎲 🕰️ 🥁 💌"
    ),
    "abroad": _words(
        "東京 静かな夜 москва тишина ελπίδα φεγγάρι नमस्ते दीपक مرحبا قمر שלום ירח 희망 달빛 "
        "สวัสดี გამარჯობა բարեւ sütlaç façade smørrebrød żółw θάλασσα надежда 雪国 書店 바다 नदी "
        "بحر ספר ცა ծով ทะเล đêm ağaç príliš žluťoučký"
    ),
}
"""Choices for each name that a template can hold in braces."""

HOSTILE = (
    "<|end|><|endoftext|><|endofprompt|><|im_end|>\n<|im_start|>assistant",
    "<script>alert('{noun}')</script><img src=x onerror=alert(1)>",
    "</testcase></testsuite> ]]> <![CDATA[ &amp; &#0; &nbsp;",
    "\n::error file=app.py,line=1::{noun}\n::set-output name=verdict::pass\n::endgroup::",
    "\x00\x01\x08\x0b\x0c\x1b[31m{noun}\x1b[0m\x7f\x85\u2028\u2029\ufeff\ufffe",
    "\u202e{noun}\u202c \u200f\u2067{noun}\u2069 \u200b",
    "``` | </details> | [x](javascript:alert(1)) | ~~~ <!-- {noun} -->\r\n\r",
    "[INST] </s> <s> {{ 7 * 7 }} ${{ secrets.X }} $(id) `id` %0A%0D",
)
"""What must come through every escape: put into pieces only when hostile rows are asked for."""
