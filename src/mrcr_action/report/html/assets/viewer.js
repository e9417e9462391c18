// The viewer of samples. Everything that is foreign reaches the page through textContent alone.
"use strict";
(() => {
  const SHOWN = 100; // rows at a time
  const LIKE = 0.4; // share of a text that two have in common, below which they are unlike
  const MOST_EDITS = 4000; // words, beyond which two texts count as unlike
  const rows = JSON.parse(document.getElementById("rows").textContent);
  const protocol = document.getElementById("rows").dataset.protocol;
  const byAsk = new Map(rows.map((row) => [row.ask, row]));
  const get = (id) => document.getElementById(id);
  const fields = ["kind", "outcome", "pass", "needles", "bin"];
  const valueOf = {
    kind: (row) => row.kind,
    outcome: (row) => row.outcome,
    pass: (row) => row.round,
    needles: (row) => String(row.needles),
    bin: (row) => row.bin,
  };
  let found = rows;
  let limit = SHOWN;
  let opened = null;

  // Controls, direction marks, and halves of pairs; joiners are part of scripts and emoji.
  const HIDDEN = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
  const code = (char) => char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
  const visible = (text) => text.replace(HIDDEN, (char) => `[U+${code(char)}]`);

  function make(name, attributes, ...children) {
    const svg = name.startsWith("svg:");
    const made = svg
      ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4))
      : document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined) made.setAttribute(key, value);
    }
    for (const child of children.flat(Infinity)) {
      if (child === null || child === undefined) continue;
      made.append(typeof child === "string" ? document.createTextNode(visible(child)) : child);
    }
    return made;
  }
  const number = (value) => value.toLocaleString("en-US");
  const draw = conversationOf(make, number);
  const ratio = (value) => (value === null || value === undefined ? "–" : value.toFixed(4));

  // The list and its filters.

  function worstFirst(a, b) {
    return (a.ratio ?? -1) - (b.ratio ?? -1) || a.ask - b.ask;
  }
  const orders = {
    worst: worstFirst,
    plan: (a, b) => a.ask - b.ask,
    longest: (a, b) => b.tokens - a.tokens || a.ask - b.ask,
    slowest: (a, b) => b.seconds - a.seconds || a.ask - b.ask,
  };

  function fill(field) {
    const values = [...new Set(rows.map(valueOf[field]))];
    const select = get(`filter-${field}`);
    if (field === "needles") values.sort((a, b) => a - b);
    if (field === "bin") {
      const shortest = (bin) => Math.min(...rows.filter((r) => r.bin === bin).map((r) => r.tokens));
      const lengths = new Map(values.map((bin) => [bin, shortest(bin)]));
      values.sort((a, b) => lengths.get(a) - lengths.get(b));
    }
    if (field === "kind") select.append(make("option", { value: "not exact" }, "not exact"));
    for (const value of values) {
      if (value) select.append(make("option", { value }, value));
    }
    select.addEventListener("change", filter);
  }

  function fits(row, text) {
    for (const field of fields) {
      const wanted = get(`filter-${field}`).value;
      if (!wanted) continue;
      const value = valueOf[field](row);
      if (wanted === "not exact" ? value === "exact" : value !== wanted) return false;
    }
    return !text || `${row.sample} ${row.kind} ${row.told} ${row.sha256}`.toLowerCase().includes(text);
  }

  function filter() {
    const text = get("search").value.trim().toLowerCase();
    found = rows.filter((row) => fits(row, text)).sort(orders[get("order").value]);
    limit = SHOWN;
    show();
  }

  function show() {
    const some = found.slice(0, limit);
    get("count").textContent =
      `${number(found.length)} of ${number(rows.length)} requests` +
      (some.length < found.length ? `, the first ${number(some.length)} listed` : "");
    get("list").replaceChildren(...some.map(line));
    get("more").hidden = some.length >= found.length;
  }

  function line(row) {
    const bad = row.kind === "exact" ? null : "bad";
    const button = make("button", { type: "button", class: "opener", id: `row-${row.ask}` }, row.sample);
    const made = make(
      "tr",
      { "data-ask": row.ask, class: row === opened ? "open" : null },
      make("th", { scope: "row" }, button),
      make("td", { class: bad }, row.kind),
      make("td", { class: "figure" }, ratio(row.ratio)),
      make("td", { class: "figure" }, String(row.needles)),
      make("td", { class: "figure" }, number(row.tokens)),
      make("td", null, row.round),
      make("td", { class: "figure" }, `${row.seconds.toFixed(1)} s`),
    );
    if (row === opened) button.setAttribute("aria-current", "true");
    return made;
  }

  function select(wanted) {
    get("search").value = "";
    for (const field of fields) get(`filter-${field}`).value = wanted[field] ?? "";
    filter();
    get("samples").scrollIntoView();
    get("samples-title").focus({ preventScroll: true });
  }

  // One sample.

  function open(row, focus) {
    opened = row;
    for (const other of get("list").children) {
      const own = Number(other.dataset.ask) === row.ask;
      other.classList.toggle("open", own);
      const button = other.querySelector("button");
      if (own) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
    const texts = make("div", { class: "texts" });
    const where = make("div", { class: "where" }, draw.prompt(row));
    const title = make("h3", { tabindex: "-1", id: "viewer-title" }, row.sample);
    get("viewer").replaceChildren(
      title,
      steps(row),
      make("p", { class: "said" }, make("strong", null, row.kind), row.told === row.kind ? "" : `: ${row.told}`),
      make("dl", { class: "facts-of-sample" }, facts(row)),
      where,
      texts,
    );
    try {
      history.replaceState(null, "", `#ask-${row.ask}`);
    } catch {
      // A page in a sandbox has no history; the sample is shown all the same.
    }
    if (focus) {
      title.focus({ preventScroll: true });
      get("viewer").scrollIntoView({ block: "nearest" });
    }
    return Promise.all([showWhere(row, where), showTexts(row, texts)]);
  }

  function steps(row) {
    const at = found.indexOf(row);
    const step = (label, to) => {
      const button = make("button", { type: "button", class: "plain" }, label);
      button.disabled = at < 0 || !found[to];
      button.addEventListener("click", () => open(found[to], true));
      return button;
    };
    const back = make("button", { type: "button", class: "plain" }, "Back to the list");
    back.addEventListener("click", backToList);
    return make("div", { class: "bar-of-buttons" }, step("Previous", at - 1), step("Next", at + 1), back);
  }

  function backToList() {
    const button = opened && get(`row-${opened.ask}`);
    (button || get("search")).focus();
  }

  function facts(row) {
    const seen = row.seen || {};
    const tokens = [
      row.prompt && `${number(row.prompt)} prompt`,
      row.completion && `${number(row.completion)} answered`,
      row.thought && `${number(row.thought)} characters of reasoning`,
    ].filter(Boolean);
    const all = {
      outcome: row.finish ? `${row.outcome} (${row.finish})` : row.outcome,
      [`ratio, ${protocol}`]: ratio(row.ratio),
      [`ratio, ${protocol === "openai" ? "vllm" : "openai"}`]: ratio(row.other),
      needles: String(row.needles),
      length: `${number(row.tokens)} o200k tokens`,
      bin: row.bin,
      pass: row.round,
      "server's tokens": tokens.join(", "),
      "from the cache": row.cached === undefined ? "" : `${number(row.cached)} tokens`,
      "first token": row.first === undefined ? "" : `${row.first.toFixed(2)} s`,
      "whole answer": `${row.seconds.toFixed(2)} s`,
      attempts: row.attempts ? String(row.attempts) : "",
      "logit margin": row.margin === undefined ? "" : `${row.margin.toFixed(3)} nats`,
      nonce: row.nonce || "",
      "like the others": (seen.siblings || []).map((s) => `${s.ordinal}: ${s.ratio.toFixed(2)}`).join(", "),
      hash: row.sha256,
    };
    return Object.entries(all)
      .filter(([, value]) => value)
      .map(([name, value]) => make("div", null, make("dt", null, name), make("dd", null, value)));
  }

  // The texts, unpacked when they are asked for.

  const blocks = new Map();
  function block(at) {
    if (!blocks.has(at)) blocks.set(at, unpack(get(`texts-${at}`).textContent));
    return blocks.get(at);
  }
  async function unpack(packed) {
    const bytes = Uint8Array.from(atob(packed), (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).json();
  }

  const canUnpack = typeof DecompressionStream !== "undefined";
  const text = async (place) => (await block(place[0]))[place[1]];

  async function showWhere(row, place) {
    if (!row.outline || !canUnpack) return;
    const pieces = JSON.parse(await text(row.outline));
    if (row === opened) place.replaceChildren(...draw.conversation(row, pieces));
  }

  async function showTexts(row, place) {
    const excerpt = row.seen && row.seen.excerpt;
    let wanted, returned, aside;
    if (row.wanted && canUnpack) {
      wanted = await text(row.wanted);
      returned = row.returned ? await text(row.returned) : null;
      const cut = row.wanted[2] + (row.returned ? row.returned[2] : 0);
      if (cut) aside = `${number(cut)} characters are left out here; samples.jsonl has them.`;
    } else {
      aside = row.wanted
        ? "This browser cannot unpack the texts (it has no DecompressionStream)."
        : "The texts of this request are not in this file.";
      aside += " They are in samples.jsonl, beside this report.";
      if (excerpt) [wanted, returned] = [excerpt.wanted, excerpt.returned];
    }
    if (row !== opened) return;
    if (wanted !== undefined) {
      const around = row.wanted ? "" : ` (around character ${number(excerpt.offset)})`;
      const [left, right] = compare(wanted, returned);
      place.append(
        pane("wanted", `Wanted${around}: what is missing is underlined with dots`, left),
        pane("returned", `Returned${around}: what does not belong is underlined`, right),
      );
    }
    if (aside) place.after(make("p", { class: "note" }, aside));
    place.dataset.ask = row.ask;
  }

  function pane(name, title, parts) {
    const heading = make("h4", { id: `pane-${name}` }, title);
    const text = make("pre", { tabindex: "0", role: "region", "aria-labelledby": `pane-${name}`, id: name }, parts);
    return make("div", null, heading, text);
  }

  function compare(wanted, returned) {
    if (returned === null || returned === undefined) return [[wanted], ["(no response)"]];
    if (returned === "") return [[make("del", null, wanted)], ["(empty)"]];
    const changes = Diff.diffWordsWithSpace(wanted, returned, { maxEditLength: MOST_EDITS, timeout: 1500 });
    if (!changes) return apart(wanted, returned);
    // Texts with little in common share words by chance; to mark those says nothing.
    const same = changes.filter((c) => !c.added && !c.removed).reduce((sum, c) => sum + c.value.trim().length, 0);
    if (same < LIKE * Math.max(wanted.length, returned.length)) return apart(wanted, returned);
    const left = [], right = [];
    for (const change of changes) {
      if (change.added) right.push(make("ins", null, change.value));
      else if (change.removed) left.push(make("del", null, change.value));
      else {
        left.push(change.value);
        right.push(change.value);
      }
    }
    return [left, right];
  }

  function apart(wanted, returned) {
    let same = 0;
    while (same < wanted.length && wanted[same] === returned[same]) same++;
    const side = (name, text) => [text.slice(0, same), make(name, null, text.slice(same))];
    return [side("del", wanted), side("ins", returned)];
  }

  // What a person does.

  function keys(event) {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      get("search").focus();
    }
    if (event.key === "Escape" && get("viewer").contains(event.target)) backToList();
    const line = event.target.closest && event.target.closest("#list tr");
    if (!line) return;
    const ends = { Home: get("list").firstElementChild, End: get("list").lastElementChild };
    const to = { ArrowDown: line.nextElementSibling, ArrowUp: line.previousElementSibling, ...ends }[event.key];
    if (to) {
      event.preventDefault();
      to.querySelector("button").focus();
    }
  }

  function fromAddress() {
    const named = /^#ask-(\d+)$/.exec(location.hash);
    const row = named && byAsk.get(Number(named[1]));
    if (row) open(row, true);
  }

  for (const field of fields) fill(field);
  get("search").addEventListener("input", filter);
  get("order").addEventListener("change", filter);
  get("reset").addEventListener("click", () => select({}));
  get("more").addEventListener("click", () => {
    const next = limit;
    limit += SHOWN;
    show();
    get("list").children[next]?.querySelector("button").focus();
  });
  get("list").addEventListener("click", (event) => {
    const line = event.target.closest("tr");
    if (line) open(byAsk.get(Number(line.dataset.ask)), true);
  });
  document.addEventListener("keydown", keys);
  for (const button of document.querySelectorAll(".opener[data-pass], .opener[data-kind]")) {
    button.addEventListener("click", () => select(button.dataset));
  }
  window.addEventListener("hashchange", fromAddress);
  get("viewing").hidden = false;
  filter();
  fromAddress();
})();
