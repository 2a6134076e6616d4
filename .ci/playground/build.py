"""`make playground`: Highwater in a browser, as static files in build/playground.

The folder has Python for WebAssembly (npm's package pyodide, pinned in pyodide.json), the wheels that
`.ci/constraints.txt` pins, the wheel of this tree, the page, and the lesson. A wheel or package of build/packages with
the right hash is not fetched again. Exits with 69 if npm is missing or something cannot be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any, Final

import markdown

from highwater.cli import in_browser
from highwater.cli import main as cli
from highwater.cli.completion import index
from scenarios.requirements import IN_BROWSER
from scenarios.sweep.archive import closure
from scenarios.version import PLAIN, build, judging_version
from sim.exit_codes import UNAVAILABLE

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
OUTPUT: Final = ROOT / "build" / "playground"
PACKAGES: Final = ROOT / "build" / "packages"
LOCK: Final = ROOT / ".ci" / "constraints.txt"
LESSON: Final = ROOT / "notebooks" / "guide" / "lesson.md"
PYTHON: Final = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
    "package.json",
)
"""Files of the package pyodide that the page loads, and its licence's name."""
PAGE: Final = ("page.js", "page.css", "worker.js", "session.py")
COLOURS: Final = ROOT / "reports" / "document" / "colours.css"
UNUSED: Final = ("markdown-it-py", "mdurl", "pygments")
"""Requirements of rich for what Highwater does not print."""
CONTENTS: Final = "contents.json"


def state() -> str:
    """Changes with anything of this tree that the folder has."""
    digest = hashlib.blake2b(judging_version().encode(), digest_size=8)
    for file in (*sorted(HERE.glob("*.*")), LOCK, LESSON, COLOURS):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def is_current() -> bool:
    """Whether the folder is there, and of this tree."""
    try:
        found = json.loads((OUTPUT / CONTENTS).read_text(encoding="utf-8"))["state"]
    except (OSError, ValueError, KeyError):
        return False
    return bool(found == state())


def main() -> int:
    """Build the folder."""
    if build() != PLAIN:
        return _refused("the compiled build is installed: make plain")
    pin = json.loads((HERE / "pyodide.json").read_text(encoding="utf-8"))
    PACKAGES.mkdir(parents=True, exist_ok=True)
    try:
        package, wheels = _pyodide(pin), _wheels(pin)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        return _refused(said.strip().splitlines()[-1])
    shutil.rmtree(OUTPUT, ignore_errors=True)
    (OUTPUT / "wheels").mkdir(parents=True)
    with tarfile.open(package) as archive:
        for name in PYTHON:
            content = archive.extractfile(f"package/{name}")
            assert content is not None
            (OUTPUT / "pyodide").mkdir(exist_ok=True)
            (OUTPUT / "pyodide" / name).write_bytes(content.read())
    for wheel in wheels:
        shutil.copyfile(wheel, OUTPUT / "wheels" / wheel.name)
    own = _own_wheel()
    for file in (*(HERE / name for name in PAGE), COLOURS):
        shutil.copyfile(file, OUTPUT / file.name)
    page = (HERE / "index.html").read_text(encoding="utf-8").replace("<!-- lesson -->", lesson())
    (OUTPUT / "index.html").write_text(page, encoding="utf-8")
    (OUTPUT / "completion.json").write_text(json.dumps(_words()), encoding="utf-8")
    names = [own, *(wheel.name for wheel in wheels)]
    about = {"version": own.split("-")[1], "python": pin["python"], "state": state(), "wheels": names}
    (OUTPUT / CONTENTS).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    size = sum(file.stat().st_size for file in OUTPUT.rglob("*") if file.is_file())
    folder = OUTPUT.relative_to(ROOT)
    sys.stdout.write(f"{folder}: {size / 1e6:.1f} MB; python3 -m http.server --directory {folder} 8000\n")
    return 0


def _refused(why: str) -> int:
    sys.stderr.write(f"no playground: {why}\n")
    return UNAVAILABLE


def _pyodide(pin: dict[str, str]) -> Path:
    """The package of npm, with the hash that is pinned."""
    package = PACKAGES / f"{pin['name']}-{pin['version']}.tgz"
    if not package.is_file() or _integrity(package) != pin["integrity"]:
        npm = shutil.which("npm")
        if npm is None:
            raise FileNotFoundError("npm is not here")
        wanted = f"{pin['name']}@{pin['version']}"
        words = [npm, "pack", "--silent", "--fetch-retries=0", wanted]
        if subprocess.run(words, cwd=PACKAGES, capture_output=True).returncode:
            raise OSError(f"npm cannot fetch {wanted}")
    if _integrity(package) != pin["integrity"]:
        raise OSError(f"{package.name} has another hash than pyodide.json")
    return package


def _integrity(file: Path) -> str:
    """A file's hash, in the form of npm."""
    return f"sha512-{base64.b64encode(hashlib.sha512(file.read_bytes()).digest()).decode()}"


def _wheels(pin: dict[str, str]) -> list[Path]:
    """Wheels of what Highwater needs there, of the locked versions, for that Python."""
    blocks = re.split(r"\n(?=[\w.-]+==)", LOCK.read_text(encoding="utf-8"))
    locked = {block.partition("==")[0].lower().replace("_", "-"): block for block in blocks}
    needed = [locked[name] for name in sorted(closure(IN_BROWSER)) if name in locked and name not in UNUSED]
    hashes = {found for block in needed for found in re.findall(r"sha256:(\w+)", block)}
    kept = _kept(hashes)
    if len(kept) != len(needed):
        requirements = PACKAGES / "requirements.txt"
        requirements.write_text("\n".join(needed) + "\n", encoding="utf-8")
        words = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        words += ["--retries=1", "--require-hashes", "--only-binary=:all:", "--implementation=cp", "--abi=none"]
        words += [f"--abi=cp{pin['python'].replace('.', '')}", f"--python-version={pin['python']}", "--platform=any"]
        words += [f"--platform={pin['platform']}", f"--dest={PACKAGES}", f"--requirement={requirements}"]
        subprocess.run(words, check=True, capture_output=True, text=True)
        kept = _kept(hashes)
    return kept


def _kept(hashes: set[str]) -> list[Path]:
    """Wheels that are here already."""
    wheels = sorted(PACKAGES.glob("*.whl"))
    return [wheel for wheel in wheels if hashlib.sha256(wheel.read_bytes()).hexdigest() in hashes]


def _own_wheel() -> str:
    """Build the wheel of this tree; its name."""
    folder = OUTPUT / "wheels"
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    environment = {**os.environ, "HIGHWATER_COMPILE": "0"}
    subprocess.run(words, cwd=ROOT, env=environment, check=True, capture_output=True)
    (wheel,) = folder.glob("highwater-*.whl")
    return wheel.name


def lesson() -> str:
    """The lesson as HTML; links to other pages, which are not in the folder, are text."""
    made = markdown.markdown(LESSON.read_text(encoding="utf-8"), extensions=["extra"])
    return re.sub(r'<a href="(?!https?:)[^"]*">(.*?)</a>', r"\1", made, flags=re.DOTALL)


def _words() -> dict[str, Any]:
    """The index of words that complete a line, without commands that do not work there."""
    found: dict[str, Any] = dict(index(cli.highwater))
    commands = found["commands"]["commands"]
    found["commands"]["commands"] = {name: commands[name] for name in commands if name in in_browser.COMMANDS}
    return found


if __name__ == "__main__":
    raise SystemExit(main())
