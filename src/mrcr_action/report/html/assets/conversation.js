// Where in its prompt the needles of a sample stand: a strip, and the same in words.
"use strict";
// make: elements whose texts are harmless; number: with separators.
const conversationOf = (make, number) => {
  const WIDTH = 720, LEFT = 10, INNER = 700;
  const SPEAKERS = { s: "system", u: "user", a: "assistant", m: "several" };
  const CROWDED = 14; // units between two numbers, below which one of them moves up
  const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;

  function drawing(height, label, title, children) {
    return make(
      "div",
      { class: "scroll", role: "region", "aria-label": title, tabindex: "0" },
      make("svg:svg", { viewBox: `0 0 ${WIDTH} ${height}`, class: "strip", role: "img", "aria-label": label }, children),
    );
  }

  const near = (at) => (at > WIDTH / 2 ? { x: at - 6, "text-anchor": "end" } : { x: at + 6 });

  // A line from the bar down to words about a place in it.
  function told(share, words, kind, y) {
    const at = LEFT + INNER * Math.min(1, Math.max(0, share));
    return [
      make("svg:rect", { x: at - 1, y: 30, width: 2, height: y - 30, class: kind }),
      make("svg:text", { ...near(at), y }, words),
    ];
  }

  function ends(row, y, whole) {
    const last = row.prompt ? `${number(row.prompt)} tokens` : whole;
    return [
      make("svg:text", { x: LEFT, y, class: "quiet" }, "beginning of the prompt"),
      make("svg:text", { x: LEFT + INNER, y, class: "quiet", "text-anchor": "end" }, last),
    ];
  }

  const token = (row, share) => (row.prompt ? `, token ${number(Math.round(row.prompt * share))}` : "");

  function firstWrong(row, y) {
    const wrong = row.seen && row.seen.first_wrong;
    if (!wrong || !wrong.place || wrong.place.token === null || !row.prompt) return [];
    const { turn, token: at } = wrong.place;
    return told(at / row.prompt, `first wrong character, turn ${turn}, token ${number(at)}`, "wrong", y);
  }

  // By the diagnosis alone, where the file has no outline of the conversation.
  function prompt(row) {
    const seen = row.seen;
    if (!seen || !seen.wanted || !row.prompt) return null;
    const { ordinal, of, turn, depth } = seen.wanted;
    const words = `wanted: needle ${ordinal} of ${of}, turn ${turn}, at ${percent(depth)}`;
    return drawing(98, `The prompt, ${number(row.prompt)} tokens; ${words}`, "Where in the prompt", [
      make("svg:rect", { x: LEFT, y: 30, width: INNER, height: 14, rx: 3, class: "prompt" }),
      told(depth, words + token(row, depth), "wanted", 60),
      firstWrong(row, 77),
      ends(row, 94),
    ]);
  }

  // The pieces with where they begin: [speaker, characters, turns, needle].
  function placed(pieces) {
    const total = Math.max(1, pieces.reduce((sum, piece) => sum + piece[1], 0));
    let before = 0, turn = 0;
    return pieces.map(([speaker, chars, turns, needle]) => {
      const found = { speaker, chars, turns, needle, turn, from: before / total, share: chars / total };
      before += chars;
      turn += turns;
      return found;
    });
  }

  function conversation(row, pieces) {
    const parts = placed(pieces);
    const question = parts[parts.length - 1];
    const wanted = parts.find((part) => row.seen && row.seen.wanted && part.needle === row.seen.wanted.ordinal);
    const came = row.came === undefined ? undefined : parts.findLast((part) => part.turn <= row.came);
    const chars = parts.reduce((sum, part) => sum + part.chars, 0);
    const back = row.kind === "garbled" ? "its end came from" : "came back";
    const called = (part, turn) => (part.needle ? `needle ${part.needle}` : `turn ${turn}, no needle`);
    const says = (part) =>
      [
        part.needle && `needle ${part.needle}`,
        part === wanted && "wanted",
        part === came && (part.needle ? back : `turn ${row.came} ${back}`),
        part === question && "the question",
      ].filter(Boolean).join(", ");
    const whole = `${number(question.turn + 1)} turns, ${number(chars)} characters`;
    const needles = parts.filter((part) => part.needle);
    const marks = needles.map((part) => `needle ${part.needle} at ${percent(part.from)}`);

    let last = -WIDTH, high = false;
    const bars = parts.map((part) => {
      const x = LEFT + INNER * part.from, width = INNER * part.share;
      const kind = part === wanted ? "wanted" : part === came ? "came" : part.needle ? "needle" : part.speaker;
      if (!part.needle) return make("svg:rect", { x, y: 30, width, height: 14, class: `part-${kind}` });
      high = x - last < CROWDED && !high;
      last = x;
      return [
        make("svg:rect", { x, y: 26, width: Math.max(3, width), height: 22, class: `part-${kind}` }),
        make("svg:text", { x, y: high ? 9 : 21 }, String(part.needle)),
      ];
    });
    const inside = came && came.turns > 1 ? (row.came - came.turn) / came.turns : 0;
    const cameAt = came && came.from + came.share * inside;
    const strip = drawing(
      118,
      `The conversation, ${whole}: ${marks.join(", ")}`,
      "Where in the conversation",
      [
        make("svg:rect", { x: LEFT, y: 30, width: INNER, height: 14, class: "prompt" }),
        bars.flat(),
        wanted && told(wanted.from, `wanted: needle ${wanted.needle}${token(row, wanted.from)}`, "wanted", 63),
        came && told(cameAt, `${back}: ${called(came, row.came)}${token(row, cameAt)}`, came === wanted ? "wanted" : "came", 80),
        firstWrong(row, 97),
        ends(row, 114, whole),
      ].flat(),
    );
    const rows = parts.map((part) =>
      make(
        "tr",
        { class: part.needle ? "named" : null },
        make("th", { scope: "row" }, part.turns > 1 ? `${part.turn}–${part.turn + part.turns - 1}` : String(part.turn)),
        make("td", null, SPEAKERS[part.speaker] ?? "?"),
        make("td", { class: "figure" }, number(part.chars)),
        make("td", { class: "figure" }, percent(part.from)),
        make("td", null, says(part)),
      ),
    );
    const head = ["turn", "who", "characters", "begins at", "what"].map((name, at) =>
      make("th", { scope: "col", class: at === 2 || at === 3 ? "figure" : null }, name),
    );
    const table = make(
      "table",
      null,
      make("caption", null, "The conversation without its words; turns count from 0"),
      make("thead", null, make("tr", null, head)),
      make("tbody", null, rows),
    );
    return [
      strip,
      make(
        "ul",
        { class: "needles", "aria-label": "Needles" },
        needles.map((part) =>
          make(
            "li",
            { class: part === wanted ? "wanted" : part === came ? "came" : null },
            `${says(part)}: turn ${part.turn}, ${number(part.chars)} characters, at ${percent(part.from)}`,
          ),
        ),
        came && !came.needle ? make("li", { class: "came" }, `${back}: turn ${row.came}, at about ${percent(cameAt)}`) : null,
        make("li", null, `question: turn ${question.turn}, ${number(question.chars)} characters, at ${percent(question.from)}`),
      ),
      make(
        "details",
        null,
        make("summary", null, `Turn by turn: ${whole}`),
        make("div", { class: "scroll", role: "region", "aria-label": "Turns of the conversation", tabindex: "0" }, table),
      ),
    ];
  }

  return { prompt, conversation };
};
