// Shows one run, or two beside each other: state at each step, messages in flight, story, and violations.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("film").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const KEYFRAME = 128; // Frames between two full copies of the state.
  const CELL_MIN = 4, CELL_MAX = 18, CELL_TEXT = 10, LOG_HEIGHT = 34;
  const PLAY_MS = 450;
  // Okabe and Ito's colours and others that differ from them and from each other; grey and pale ones mean other things.
  const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b5a900", "#7a4dbf", "#8c3b2e",
    "#00686b", "#e377a2", "#4f7d1f"];
  const reduced = matchMedia("(prefers-reduced-motion: reduce)").matches;

  const html = (tag, css, text) => {
    const element = document.createElement(tag);
    if (css) element.className = css;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const draw = (parent, tag, attributes, text) => {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    parent.appendChild(element);
    return element;
  };
  const seconds = (us) => `${(us / 1e6).toFixed(6)} s`;
  const set = (list) => `[${list.join(", ")}]`;

  // The state at each frame: changes applied to the nearest full copy before it.
  class States {
    constructor(film) {
      this.film = film;
      this.copies = [];
      this.place = -1;
      this.state = { p: {}, b: {}, c: {}, acked: new Set() };
      for (const node of film.controllers) this.state.c[node] = {};
      for (const broker of film.brokers) this.state.b[broker] = { log: [] };
      film.frames.forEach((_, place) => {
        if (place % KEYFRAME === 0) this.copies.push(this.copy());
        this.apply(place);
      });
    }
    copy() {
      const b = {};
      for (const [broker, one] of Object.entries(this.state.b)) b[broker] = { ...one, log: one.log.slice() };
      const c = {};
      for (const [node, one] of Object.entries(this.state.c)) c[node] = { ...one };
      return { p: { ...this.state.p }, b, c, acked: new Set(this.state.acked) };
    }
    apply(place) {
      const delta = this.film.frames[place][4];
      Object.assign(this.state.p, delta.p || {});
      for (const [broker, fields] of Object.entries(delta.b || {})) {
        const one = this.state.b[broker];
        for (const [name, value] of Object.entries(fields)) {
          if (name === "log") one.log = one.log.slice(value[1], value[1] + value[0]).concat(value[2]);
          else one[name] = value;
        }
      }
      for (const [node, fields] of Object.entries(delta.c || {})) Object.assign(this.state.c[node], fields);
      if (delta.a !== undefined) this.state.acked.add(delta.a);
      this.place = place;
    }
    at(place) {
      if (place < this.place || place > this.place + KEYFRAME) {
        const number = Math.floor(place / KEYFRAME);
        this.state = this.copies[number];
        this.copies[number] = this.copy();
        this.place = number * KEYFRAME - 1;
      }
      while (this.place < place) this.apply(this.place + 1);
      return this.state;
    }
  }

  const epochsOf = (films) => {
    const found = new Set();
    for (const film of films)
      for (const frame of film.frames)
        for (const fields of Object.values(frame[4].b || {}))
          if (fields.log) for (const batch of fields.log[2]) found.add(batch[2]);
    return [...found].sort((a, b) => a - b);
  };
  const epochs = epochsOf(data.runs);
  const colour = (epoch) => {
    const place = epochs.indexOf(epoch);
    if (place < 0) return "#666";
    return place < COLOURS.length ? COLOURS[place] : `hsl(${(place * 137.5) % 360}, 55%, 38%)`;
  };
  const inkOn = (fill) => (["#e69f00", "#56b4e9", "#cc79a7", "#b5a900", "#e377a2"].includes(fill) ? "#000" : "#fff");

  // One run's part of the page.
  class Stage {
    constructor(film, root) {
      this.film = film;
      this.states = new States(film);
      this.times = film.frames.map((frame) => frame[0]);
      root.replaceChildren();
      if (data.runs.length > 1) root.append(html("h2", "", film.name));
      this.partition = root.appendChild(html("dl", "partition"));
      this.lanes = root.appendChild(html("div", "lanes"));
      this.rows = new Map();
      this.lane(0, film.control);
      for (const node of film.controllers) this.lane(node, `controller ${node}`);
      for (const broker of film.brokers) this.lane(broker, `broker ${broker}`);
      const busy = new Set(film.messages.flatMap((message) => [message[1], message[2]]));
      for (const [node, name] of Object.entries(film.clients)) if (busy.has(+node)) {
        this.lane(+node, name);
        if (name === "validator") document.getElementById("validator-key").hidden = false;
      }
      this.wires = draw(this.lanes, "svg", { class: "wires", "aria-hidden": "true" });
      this.now = root.appendChild(html("p", "now"));
      this.alarm = root.appendChild(html("p", "alarm"));
      this.flight = root.appendChild(html("ul", "flight"));
      this.flight.setAttribute("aria-label", "Messages in flight");
    }
    lane(node, name) {
      const row = this.lanes.appendChild(html("div", "lane"));
      const who = row.appendChild(html("div", "who"));
      who.append(html("b", "", name));
      const badges = who.appendChild(html("span", "badges"));
      row.append(html("div", "rail"));
      const log = row.appendChild(html("div", "log"));
      const cells = draw(log, "svg", { height: LOG_HEIGHT, width: "100%", "aria-hidden": "true" });
      const offsets = log.appendChild(html("div", "offsets"));
      this.rows.set(node, { row, badges, log, cells, offsets });
    }
    show(place) {
      this.place = place;
      const state = this.states.at(place), frame = this.film.frames[place];
      this.showPartition(state.p);
      this.showControllers(state.c);
      this.showBrokers(state);
      this.showWires(frame[0]);
      this.showAlarm(place);
      for (const [node, { row }] of this.rows) row.classList.toggle("acts", node === frame[1]);
      this.now.textContent = `${seconds(frame[0])}  ${frame[3]}`;
    }
    showAlarm(place) {
      const found = this.film.marks.filter((mark) => mark.frame === place);
      this.alarm.textContent = found.map((mark) =>
        `${mark.violation ? "Violation" : "Early warning"} ${mark.kind} (${mark.inside ? "inside" : "outside"} the promise): ${mark.detail}`)
        .join("; ");
    }
    who(node) {
      if (node === 0) return this.film.control;
      return this.film.clients[node] || (this.film.controllers.includes(node) ? `controller ${node}` : `broker ${node}`);
    }
    showPartition(p) {
      const moving = p.adding.length + p.removing.length;
      const pairs = [
        ["leader", p.leader ? `broker ${p.leader}` : "no leader"],
        ["leader epoch", p.leader_epoch < 0 ? "none yet" : p.leader_epoch],
        ["ISR", p.isr.length ? set(p.isr) : "empty"],
      ];
      if (this.film.has_elr) pairs.push(["ELR", set(p.elr)], ["last known ELR", set(p.last_known_elr)]);
      pairs.push(["replicas", set(p.replicas)]);
      if (moving) pairs.push(["reassignment", `adding ${set(p.adding)}, removing ${set(p.removing)}`]);
      pairs.push(["min.insync.replicas", this.film.min_isr]);
      this.partition.replaceChildren(...pairs.map(([name, value]) => {
        const pair = html("div", name === "reassignment" || value === "no leader" ? "changing" : "");
        pair.append(html("dt", "", name), html("dd", "", value));
        return pair;
      }));
    }
    showControllers(controllers) {
      for (const node of this.film.controllers) {
        const one = controllers[node], row = this.rows.get(node);
        const badges = [];
        if (one.active) badges.push([`active controller, epoch ${one.epoch}`, "leads"]);
        else if (one.state === "down" || one.state === "paused") badges.push([one.state, "bad"]);
        else badges.push([`${one.state}, epoch ${one.epoch}`, ""]);
        row.badges.replaceChildren(...badges.map(([text, css]) => html("span", css, text)));
        row.row.classList.toggle("down", one.state === "down");
        const texts = [`LEO ${one.leo}`, `flushed to ${one.flushed}`];
        if (one.hw >= 0) texts.unshift(`HW ${one.hw}`);
        texts.unshift("metadata log:");
        row.offsets.textContent = texts.join("   ");
      }
    }
    showBrokers(state) {
      const p = state.p, ends = this.film.brokers.map((broker) => state.b[broker].leo);
      const last = Math.max(...ends, 1);
      for (const broker of this.film.brokers) {
        const one = state.b[broker], row = this.rows.get(broker);
        const badges = [];
        if (one.state !== "running") badges.push([one.state, "bad"]);
        if (one.disk_stalled) badges.push(["disk stalled", "bad"]);
        if (one.fenced) badges.push([this.film.control === "ZooKeeper" ? "no session" : "fenced", "bad"]);
        if (p.leader === broker) badges.push([`leader, epoch ${p.leader_epoch}`, "leads"]);
        else if (one.leads) badges.push([`thinks it leads epoch ${one.knows_epoch}`, "bad"]);
        if (p.isr.includes(broker)) badges.push(["ISR", "isr"]);
        if (p.elr.includes(broker)) badges.push(["ELR", "elr"]);
        if (p.last_known_elr.includes(broker)) badges.push(["last known ELR", "elr"]);
        if (p.adding.includes(broker)) badges.push(["being added", "elr"]);
        else if (p.removing.includes(broker)) badges.push(["being removed", "elr"]);
        else if (!p.replicas.includes(broker)) badges.push(["no replica", ""]);
        row.badges.replaceChildren(...badges.map(([text, css]) => html("span", css, text)));
        row.row.classList.toggle("down", one.state === "down");
        this.showLog(row, one, last, state.acked);
      }
    }
    // All logs share one scale, so that one offset stands below the other.
    showLog(row, one, last, acked) {
      const width = Math.max(row.log.clientWidth - 4, 40);
      const cell = Math.max(CELL_MIN, Math.min(CELL_MAX, width / last));
      const room = Math.floor(width / cell);
      const focus = data.offset < 0 ? last : data.offset - 2;
      const first = Math.max(0, Math.min(last - room, focus));
      const x = (offset) => Math.min(Math.max((offset - first) * cell, 0), width);
      row.cells.replaceChildren();
      for (const [base, end, epoch, record] of one.log) {
        if (end < first || x(base) >= width) continue;
        const left = x(base), right = x(end + 1), fill = colour(epoch);
        const concerned = data.records.some((id) => id >= record && id <= record + end - base);
        const rect = draw(row.cells, "rect", { x: left + 0.5, y: 8, width: Math.max(right - left - 1, 1), height: 16, fill });
        if (concerned) rect.setAttribute("class", "concerned");
        draw(rect, "title", {}, `offsets ${base} to ${end}, leader epoch ${epoch}, records from ${record}`);
        if (right - left >= CELL_TEXT)
          draw(row.cells, "text", { x: (left + right) / 2, y: 20, class: "epoch", fill: inkOn(fill) }, epoch);
        if (acked.has(record)) draw(row.cells, "circle", { cx: (left + right) / 2, cy: 4, r: 2, class: "acked" });
      }
      if (one.flushed > first) draw(row.cells, "line", { x1: 0, x2: x(one.flushed), y1: 27, y2: 27, class: "flushed" });
      if (one.hw >= first) draw(row.cells, "line", { x1: x(one.hw), x2: x(one.hw), y1: 2, y2: 31, class: "hw" });
      if (one.log_start > first)
        draw(row.cells, "rect", { x: 0, y: 8, width: x(one.log_start), height: 16, class: "deleted" });
      const texts = [`HW ${one.hw}`, `LEO ${one.leo}`, `log start ${one.log_start}`, `flushed to ${one.flushed}`];
      if (first > 0) texts.push(`shown from offset ${first}`);
      row.offsets.textContent = texts.join("   ");
    }
    showWires(now) {
      this.wires.replaceChildren();
      const area = this.lanes.getBoundingClientRect();
      const middle = (node) => {
        const lane = this.rows.get(node);
        if (!lane) return null;
        const box = lane.row.getBoundingClientRect();
        return box.top - area.top + box.height / 2;
      };
      const rail = this.rows.get(0).row.querySelector(".rail").getBoundingClientRect();
      const flying = this.film.messages.filter((one) => one[3] <= now && now <= one[4]);
      const slot = Math.max(Math.min(rail.width / Math.max(flying.length, 1), 28), 4);
      this.flight.replaceChildren(...flying.map(([name, source, target, sent, arrived, lost, about], number) => {
        const way = `${this.who(source)} to ${this.who(target)}${lost ? ", will be lost" : ""}`;
        const text = `${number + 1} ${name}: ${way}${about ? `, ${about}` : ""}`;
        const from = middle(source), to = middle(target);
        if (from !== null && to !== null) {
          const x = rail.left - area.left + slot * (number + 0.5), tip = to > from ? 6 : -6;
          const done = arrived > sent ? (now - sent) / (arrived - sent) : 1;
          const line = draw(this.wires, "line", { x1: x, x2: x, y1: from, y2: to, class: lost ? "lost" : "wire" });
          draw(line, "title", {}, text);
          draw(this.wires, "path", { d: `M${x - 4} ${to - tip} L${x} ${to} L${x + 4} ${to - tip}`, class: "head" });
          const y = from + (to - from) * done;
          draw(this.wires, "circle", { cx: x, cy: y, r: slot < 14 ? 4 : 7, class: lost ? "lost" : "wire" });
          if (slot >= 14) draw(this.wires, "text", { x, y: y + 3.5, class: lost ? "lost" : "" }, number + 1);
        }
        return html("li", lost ? "lost" : "", text);
      }));
      if (!flying.length) this.flight.append(html("li", "", "No message in flight"));
    }
  }

  // Frames of both runs in the order of time: [frame of the first run, frame of the second].
  const merge = (runs) => {
    if (runs.length === 1) return runs[0].frames.map((_, place) => [place]);
    const [one, other] = runs.map((film) => film.frames), ticks = [];
    const equal = data.difference ? data.difference[0] : one.length;
    let i = 0, j = 0;
    while (i < one.length || j < other.length) {
      if (i === j && i < equal) { i++; j++; }
      else if (j >= other.length || (i < one.length && one[i][0] <= other[j][0])) i++;
      else j++;
      ticks.push([Math.max(i - 1, 0), Math.max(j - 1, 0)]);
    }
    return ticks;
  };

  const stages = data.runs.map((film, number) => new Stage(film, document.getElementById(`stage-${number}`)));
  const ticks = merge(data.runs);
  const tickOf = (frame, run) => {
    const found = ticks.findIndex((tick) => tick[run] >= frame);
    return found < 0 ? ticks.length - 1 : found;
  };
  const slider = document.getElementById("slider");
  slider.max = ticks.length - 1;
  const clock = document.getElementById("clock");
  const items = [...document.querySelectorAll("[data-frame]")];
  // The link ends with the number of a step.
  const choose = document.getElementById("choose"), choosing = choose ? choose.getAttribute("href").slice(0, -1) : "";
  const pace = document.getElementById("pace");
  let at = 0, timer = null;

  const show = (tick) => {
    at = Math.max(0, Math.min(ticks.length - 1, tick));
    ticks[at].forEach((frame, run) => stages[run].show(frame));
    const frame = data.runs[0].frames[ticks[at][0]];
    if (choose) choose.href = `${choosing}${ticks[at][0] + 1}`;
    slider.value = at;
    slider.setAttribute("aria-valuetext", `${seconds(frame[0])}, ${frame[3]}`);
    const us = Math.max(...ticks[at].map((place, run) => data.runs[run].frames[place][0]));
    clock.textContent = `${seconds(us)}, step ${at + 1} of ${ticks.length}`;
    const current = new Map();
    for (const item of items) {
      item.removeAttribute("aria-current");
      if (item.classList.contains("sentence") && +item.dataset.frame <= ticks[at][+item.dataset.run])
        current.set(item.dataset.run, item);
    }
    for (const item of current.values()) {
      item.setAttribute("aria-current", "step");
      const list = item.closest("ol");
      if (list.scrollHeight > list.clientHeight) {
        const top = item.parentElement.offsetTop - list.offsetTop;
        if (top < list.scrollTop || top + item.offsetHeight > list.scrollTop + list.clientHeight)
          list.scrollTop = top - list.clientHeight / 3;
      }
    }
    history.replaceState(null, "", `#step-${at + 1}`);
  };
  const sentence = (way) => {
    const all = items.filter((item) => item.classList.contains("sentence"))
      .map((item) => tickOf(+item.dataset.frame, +item.dataset.run)).sort((a, b) => a - b);
    const next = way > 0 ? all.find((tick) => tick > at) : all.reverse().find((tick) => tick < at);
    if (next !== undefined) show(next);
    return next !== undefined;
  };
  const play = document.getElementById("play");
  const pause = () => { clearInterval(timer); timer = null; play.textContent = "Play"; play.setAttribute("aria-pressed", "false"); };
  const toggle = () => {
    if (timer) return pause();
    play.textContent = "Pause";
    play.setAttribute("aria-pressed", "true");
    const ms = +pace.value || PLAY_MS, isOn = () => (+pace.value ? sentence(1) : at + 1 < ticks.length && (show(at + 1), true));
    timer = setInterval(() => isOn() || pause(), reduced ? 2 * ms : ms);
  };
  const go = { first: () => show(0), back: () => show(at - 1), on: () => show(at + 1), last: () => show(ticks.length - 1),
    before: () => sentence(-1), next: () => sentence(1), play: toggle };
  for (const [name, act] of Object.entries(go)) document.getElementById(name).addEventListener("click", () => {
    if (name !== "play") pause();
    act();
  });
  pace.addEventListener("change", () => { if (timer) { pause(); toggle(); } });
  slider.addEventListener("input", () => { pause(); show(+slider.value); });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || [slider, pace].includes(event.target)) return;
    const button = event.target.closest("button, summary, a, textarea, select");
    const act = { ArrowLeft: go.back, ArrowRight: go.on, Home: go.first, End: go.last, p: go.before, n: go.next }[event.key]
      || (event.key === " " && !button ? go.play : null);
    if (!act) return;
    event.preventDefault();
    if (act !== go.play) pause();
    act();
  });
  for (const item of items) item.addEventListener("click", () => {
    pause();
    show(tickOf(+item.dataset.frame, +item.dataset.run));
  });

  // Below the slider: the curve of the point of no return, and where violations and the first difference are.
  const strip = document.getElementById("strip");
  const film = data.runs[0];
  const share = (frame, run) => (100 * tickOf(frame, run)) / Math.max(ticks.length - 1, 1);
  const frameAt = (us) => Math.max(0, film.frames.findLastIndex((frame) => frame[0] <= us));
  if (film.curve && film.curve.shares.length) {
    const points = film.curve.shares.map(([us, bad, runs]) => [us < 0 ? 0 : share(frameAt(us), 0), 38 - (34 * bad) / runs]);
    points.push([100, points[points.length - 1][1]]);
    draw(strip, "polyline", { points: points.map((point) => point.join(",")).join(" "), class: "curve",
      "vector-effect": "non-scaling-stroke" });
  }
  const tick = (x, css, text) => {
    const line = draw(strip, "line", { x1: x, x2: x, y1: 2, y2: 40, class: css, "vector-effect": "non-scaling-stroke" });
    draw(line, "title", {}, text);
  };
  data.runs.forEach((one, run) => one.marks.forEach((mark) =>
    tick(share(mark.frame, run), mark.violation ? "violation" : "warning", `${mark.kind} at ${seconds(mark.at)}`)));
  if (data.difference) tick(share(data.difference[0], 0), "difference", "first difference");

  const copy = document.getElementById("copy"), markdown = document.getElementById("markdown");
  copy.addEventListener("click", async () => {
    markdown.hidden = false;
    markdown.value = data.markdown;
    markdown.select();
    let copied = false;
    try { await navigator.clipboard.writeText(data.markdown); copied = true; } catch { copied = document.execCommand("copy"); }
    document.getElementById("copied").textContent = copied ? "Copied" : "Press Ctrl-C to copy the selected text";
  });

  document.body.classList.add("scripted");
  document.getElementById("picture").open = false;
  const wanted = /^#step-([0-9]+)$/.exec(location.hash);
  const begin = items.find((item) => item.classList.contains("sentence"));
  const parts = data.choice && data.difference ? tickOf(data.difference[0], 0) : -1;
  show(wanted ? wanted[1] - 1 : parts >= 0 ? parts : begin ? tickOf(+begin.dataset.frame, +begin.dataset.run) : tickOf(film.begin, 0));
  addEventListener("resize", () => show(at));
})();
