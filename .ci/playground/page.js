// The page of the playground: a terminal for the commands of a worker, and what they write beside it.
const part = (id) => document.getElementById(id);
const OWN = "mine.toml";
const MEANINGS = {
  0: "as expected", 1: "not as expected", 2: "bad input", 3: "inconclusive", 4: "another digest", 69: "not possible here",
  70: "internal error", 74: "a file cannot be read or written",
};
const COLORS = { 1: "b", 2: "d", 31: "red", 32: "green", 33: "yellow", 35: "magenta" };
const COMMAND = /\bhighwater ((?:run|explain|show|draw|shrink|explore|replay|scenarios|modes|rules|zoo|ticket)\b(?: (?! )[^\s;`]+)+)/g;

const files = new Map(); // The user's, and those that commands wrote: a new worker gets them, too.
const lines = []; // Earlier ones.
let place = 0; // Among them.
let worker = null;
let ready = false;
let running = null; // The command whose output comes in.
let waiting = null; // A line to be run as soon as Python is there.
let asked = 0; // Number of the last request.
let clock = 0;

function tell(text, busy = false) {
  part("state").textContent = text;
  part("state").classList.toggle("busy", busy);
}

function start() {
  ready = false;
  worker = new Worker("./worker.js", { type: "module" });
  worker.onmessage = ({ data }) => heard[data.kind](data);
  worker.onerror = (event) => heard.broken({ text: event.message ?? "The worker cannot be loaded." });
}

const heard = {
  progress: ({ text }) => tell(text, true),
  ready({ ms, version, python }) {
    ready = true;
    part("go").disabled = false;
    tell(`Highwater ${version}, Python ${python}: ready in ${(ms / 1000).toFixed(1)} s`);
    if (waiting !== null) run(waiting);
  },
  text: ({ name, text }) => running?.write(name, text),
  answer({ number, ...about }) {
    if (about.words) complete(number, about);
    else end(about);
  },
  broken({ text }) {
    const what = text.trim().split("\n").at(-1);
    if (running) {
      end({ code: 70, files: [], ms: performance.now() - running.began, problem: what });
      restart();
    } else {
      tell(`Python does not run: ${what}`);
    }
  },
};

// Output of one command: whole lines, with colours, and commands as buttons.
class Output {
  constructor(line) {
    this.began = performance.now();
    this.rest = { stdout: "", stderr: "" };
    const box = document.createElement("div");
    this.head = document.createElement("pre");
    this.head.className = "line";
    this.head.append(...unbroken(`highwater ${line}`));
    this.pre = document.createElement("pre");
    this.last = document.createElement("p");
    this.last.className = "end";
    box.append(this.head, this.pre, this.last);
    part("screen").append(box);
    this.scroll();
  }

  write(name, text) {
    const whole = (this.rest[name] + text).split("\n");
    this.rest[name] = whole.pop();
    for (const line of whole) this.show(name, `${line}\n`);
    this.scroll();
  }

  show(name, line) {
    const row = document.createElement("span");
    row.className = line.startsWith("highwater: ") ? "problem" : name;
    let classes = new Set();
    for (const [place, piece] of line.split(/\x1b\[([0-9;]*)m/).entries()) {
      if (place % 2) {
        for (const code of piece.split(";").map(Number)) {
          if (code === 0) classes = new Set();
          else if (COLORS[code]) classes.add(COLORS[code]);
        }
      } else if (piece) {
        const words = document.createElement("span");
        words.className = [...classes].join(" ");
        words.append(...linked(piece));
        row.append(words);
      }
    }
    this.pre.append(row);
  }

  finish(text) {
    for (const [name, rest] of Object.entries(this.rest)) if (rest) this.show(name, rest);
    this.last.textContent = text;
    this.scroll();
  }

  // A long output is read from its beginning.
  scroll() {
    const screen = part("screen");
    screen.scrollTop = this.head.offsetTop - screen.offsetTop - 6;
  }
}

// The text with commands as links.
function* linked(text) {
  let from = 0;
  for (const found of text.matchAll(COMMAND)) {
    yield text.slice(from, found.index);
    yield link(found[0], found[1].replace(/[.,:]$/, ""));
    from = found.index + found[0].length;
  }
  yield text.slice(from);
}

function link(text, line) {
  const made = document.createElement("a");
  made.href = `#${encodeURI(line)}`;
  made.append(...unbroken(text));
  made.onclick = (event) => {
    event.preventDefault();
    run(line);
  };
  return made;
}

// The words of a command: a browser would break "--mode" after a hyphen.
function* unbroken(text) {
  for (const piece of text.split(/( )/)) {
    const word = document.createElement("span");
    word.className = "word";
    word.textContent = piece;
    yield piece === " " ? piece : word;
  }
}

function columns() {
  const probe = document.createElement("pre");
  const text = document.createElement("span");
  text.textContent = "0".repeat(40);
  probe.append(text);
  part("screen").append(probe);
  const width = text.getBoundingClientRect().width / 40;
  const room = probe.getBoundingClientRect().width;
  probe.remove();
  return Math.max(40, Math.min(100, Math.floor(room / width) - 1));
}

function run(line) {
  line = line.trim().replace(/^highwater\s+/, "");
  part("line").value = line;
  if (!line || running) return;
  if (!ready) {
    waiting = line;
    return;
  }
  waiting = null;
  if (lines.at(-1) !== line) lines.push(line);
  place = lines.length;
  if (part("text").value.trim()) files.set(OWN, part("text").value);
  running = new Output(line);
  part("screen").scrollIntoView({ block: "nearest" });
  part("go").disabled = true;
  part("cancel").hidden = false;
  part("words").textContent = "";
  history.replaceState(null, "", `#${encodeURI(line)}`);
  const tick = () => tell(`Running for ${((performance.now() - running.began) / 1000).toFixed(0)} s…`, true);
  tick();
  clock = setInterval(tick, 500);
  worker.postMessage({ number: ++asked, kind: "run", line, columns: columns(), files: Object.fromEntries(files) });
}

function end({ code, files: written, ms, problem }) {
  clearInterval(clock);
  if (problem) running.write("stderr", `${problem}\n`);
  const took = ms < 1000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(1)} s`;
  const output = running;
  const text = `exit code ${code}${MEANINGS[code] ? ` (${MEANINGS[code]})` : ""}, ${took}`;
  running.finish(text);
  running = null;
  part("go").disabled = !ready;
  part("cancel").hidden = true;
  tell(`Done: ${text}`);
  for (const [name, content] of written) {
    files.set(name, content);
    if (name === OWN) {
      part("text").value = content;
      part("own").open = true;
    }
  }
  const pages = written.map(([name]) => name).filter((name) => name !== OWN);
  for (const name of pages) tab(name);
  const film = pages.find((name) => type(name) !== "text/plain");
  if (film) {
    show(film);
    part("tabs").scrollIntoView({ block: innerWidth < 1000 ? "start" : "nearest" });
  }
  output.scroll();
}

function cancel() {
  clearInterval(clock);
  running?.finish("cancelled");
  running = null;
  part("cancel").hidden = true;
  restart();
}

function restart() {
  worker.terminate();
  part("go").disabled = true;
  start();
}

// Files beside the terminal: pages and pictures have a button each, all others a line of one list.
function tab(name) {
  if (part(`tab ${name}`)) return;
  const is_page = type(name) !== "text/plain";
  const made = document.createElement(is_page ? "button" : "option");
  made.id = `tab ${name}`;
  made.textContent = name;
  if (is_page) {
    made.type = "button";
    made.onclick = () => show(name);
    part("to-lesson").after(made);
  } else {
    part("others").append(made);
    part("others").hidden = false;
  }
}

function type(name) {
  return name.endsWith(".html") ? "text/html" : name.endsWith(".svg") ? "image/svg+xml" : "text/plain";
}

function show(name) {
  const chosen = name === null ? "to-lesson" : `tab ${name}`;
  for (const made of part("tabs").querySelectorAll("button")) made.setAttribute("aria-pressed", String(made.id === chosen));
  part("others").selectedIndex = Math.max(0, [...part("others").options].findIndex((option) => option.id === chosen));
  part("lesson").hidden = name !== null;
  part("result").hidden = name === null;
  if (name === null) return;
  const of = type(name);
  const save = part("save");
  if (save.href) URL.revokeObjectURL(save.href);
  save.href = URL.createObjectURL(new Blob([files.get(name)], { type: `${of};charset=utf-8` }));
  save.download = name.split("/").at(-1);
  save.textContent = `Save ${save.download}`;
  part("frame").hidden = of !== "text/html";
  part("picture").hidden = of !== "image/svg+xml";
  part("content").hidden = of !== "text/plain";
  if (of === "text/html") part("frame").src = save.href;
  else if (of === "image/svg+xml") part("image").src = save.href;
  else part("content").textContent = files.get(name);
}

// Completion.
function complete(number, { begun, words }) {
  const line = part("line");
  if (number !== asked || !line.value.endsWith(begun)) return;
  const start = line.value.slice(0, line.value.length - begun.length);
  let shared = words[0] ?? begun;
  for (const word of words) while (!word.startsWith(shared)) shared = shared.slice(0, -1);
  line.value = start + shared + (words.length === 1 && !shared.endsWith("=") ? " " : "");
  part("words").textContent = words.length > 1 ? words.join("  ") : words.length ? "" : "Nothing completes this word.";
}

part("form").onsubmit = (event) => {
  event.preventDefault();
  run(part("line").value);
};
part("line").onkeydown = (event) => {
  if (event.key === "Tab" && !event.shiftKey && part("line").value.trim() && ready && !running) {
    event.preventDefault();
    worker.postMessage({ number: ++asked, kind: "complete", line: part("line").value });
  } else if ((event.key === "ArrowUp" && place > 0) || (event.key === "ArrowDown" && place < lines.length)) {
    event.preventDefault();
    place += event.key === "ArrowUp" ? -1 : 1;
    part("line").value = lines[place] ?? "";
  }
};
part("cancel").onclick = cancel;
part("to-lesson").onclick = () => show(null);
part("others").onchange = () => show(part("others").value);
part("begin").onclick = () => {
  if (!part("text").value.trim() || confirm(`Replace the text of ${OWN}?`)) {
    part("text").value = "";
    files.set(OWN, null); // `scenarios new` replaces no file.
    run(`scenarios new ${OWN} --drawn`);
  }
};
part("open").onchange = async () => {
  const opened = [];
  for (const file of part("open").files) {
    files.set(file.name, await file.text());
    opened.push(file.name);
  }
  const first = opened[0] ?? "";
  if (first.endsWith(".py")) part("line").value = `run kip101-scenario-1 --mode hw --plugin ${first}`;
  else if (first) part("line").value = `run ${first} --mode hw`;
  part("words").textContent = `Opened: ${opened.join(", ")}`;
};
for (const made of document.querySelectorAll(".try")) {
  const line = made.textContent;
  made.replaceChildren(...unbroken(line));
  made.onclick = () => run(line);
}
for (const code of part("lesson").querySelectorAll("code")) {
  const commands = code.textContent.trim().split("\n");
  if (commands[0].startsWith("highwater ")) {
    code.replaceChildren(...commands.flatMap((line, place) => [place ? "\n" : "", link(line, line)]));
  }
}

function follow() {
  const line = decodeURIComponent(location.hash.slice(1));
  if (line === "lesson") show(null);
  else if (line) run(line);
}
addEventListener("hashchange", follow);
start();
follow();
