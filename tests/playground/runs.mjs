// Runs of the playground's Python in node: node runs.mjs FOLDER < runs.json; one line of JSON with digests.
import fs from "node:fs";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide/pyodide.mjs`));
const python = await loadPyodide();
const { wheels } = JSON.parse(fs.readFileSync(`${folder}/contents.json`, "utf8"));
for (const name of wheels) {
  // Not as a Buffer: unpackArchive knows no such type.
  python.unpackArchive(new Uint8Array(fs.readFileSync(`${folder}/wheels/${name}`)), "wheel");
}
python.globals.set("text", fs.readFileSync(0, "utf8"));
console.log(python.runPython(`
import json, sys
from scenarios.format.catalogue import load
from scenarios.single.run import run_row
from sim.protocol.modes import MODES
found = {key: run_row(load(name), MODES[mode], int(seed))["digest"] for key in json.loads(text) for name, mode, seed in [key.split("/")]}
json.dumps({"python": sys.version.split()[0], "digests": found})
`));
