// Runs Python beside the page, so that the page can show output as it comes, and end a command by ending this worker.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const say = (kind, about = {}) => postMessage({ kind, ...about });

async function bytes(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: ${answer.status} ${answer.statusText}`);
  return answer.arrayBuffer();
}

// Output arrives in pieces that may end within a character.
function streamed(name) {
  const decoder = new TextDecoder();
  return { isatty: false, write: (piece) => { say("text", { name, text: decoder.decode(piece, { stream: true }) }); return piece.length; } };
}

async function begin() {
  const began = performance.now();
  say("progress", { text: "Loading Python (12 MB)…" });
  const contents = await (await fetch("contents.json")).json();
  const coming = contents.wheels.map((name) => bytes(`wheels/${name}`));
  const env = { HOME: "/home/pyodide", FORCE_COLOR: "1", TERM: "xterm" };
  const python = await loadPyodide({ env });
  const folder = python.runPython("import site; site.getsitepackages()[0]");
  for (const [place, wheel] of coming.entries()) {
    say("progress", { text: `Unpacking package ${place + 1} of ${coming.length}…` });
    python.unpackArchive(await wheel, "wheel", { extractDir: folder });
  }
  say("progress", { text: "Starting Highwater…" });
  python.FS.writeFile(`${folder}/session.py`, new Uint8Array(await bytes("session.py")));
  python.globals.set("index", await (await fetch("completion.json")).text());
  python.setStdin({ stdin: () => null });
  python.runPython(`
import sys
from session import Session
from highwater.cli.main import main
session = Session("/home/pyodide/files", index)
main(["run", "canary", "--mode", "hw", "--color", "never", "-q"])  # Imports what commands need.
sys.stdout.flush()
`);
  python.setStdout(streamed("stdout"));
  python.setStderr(streamed("stderr"));
  python.runPython("sys.stdout.reconfigure(line_buffering=True); sys.stderr.reconfigure(line_buffering=True)");
  const answer = python.runPython("session.answer");
  onmessage = ({ data: { number, ...request } }) => {
    const start = performance.now();
    try {
      const found = JSON.parse(answer(JSON.stringify(request)));
      say("answer", { ...found, number, ms: performance.now() - start });
    } catch (error) {
      say("broken", { text: String(error.message ?? error) });
    }
  };
  say("ready", { ms: performance.now() - began, version: contents.version, python: contents.python });
}

begin().catch((error) => say("broken", { text: String(error.message ?? error) }));
