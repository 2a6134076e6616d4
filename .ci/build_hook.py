"""Compiles what runs and searches consist of (mypyc) into the wheel, if HIGHWATER_COMPILE asks for it; plain otherwise.

With 1 it is compiled once. With `profiled`, and gcc, it is compiled, run (`.ci/training.py`) and compiled again by what
those runs did: that takes twice as long, and saves a tenth of the time of a run. Digests, rows and code version are
those of the sources; only the time that runs take differs. Needs a C compiler and the headers of Python.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGES: Final = ("sim", "faults", "scenarios", "reports", "highwater")
SINGLE: Final = ("convergence", "coverage_column", "draws", "ended_run", "execution", "result", "reuse", "rows", "run")
EXPLORE: Final = "highwater/lab/explore"
COMPILED: Final = (
    *("sim/**/*.py", "faults/**/*.py", f"{EXPLORE}/**/*.py"),
    *(f"scenarios/single/{name}.py" for name in SINGLE),
)
WORDS: Final = ("command", "modes/subject", "wording", "kraft/wording", "kraft/scripting")
NOT_COMPILED: Final = (
    *("sim/protocol/rules.py", "sim/native.py", "**/__init__.py"),
    *("faults/kinds/registry.py", "sim/protocol/mutants.py", "sim/protocol/decision_points.py"),
    "sim/protocol/probes.py",
    *(f"{EXPLORE}/{name}.py" for name in WORDS),
)
"""The rules read their own annotations, which a compiled class does not keep. A mark for the compiler stays plain.
Tables are executed once, and would become functions of thousands of lines. A compiled module takes over nothing of an
``import *``. The words of `highwater explore` take no time."""
LONGEST: Final = 5_000
"""Lines of C that a function may have: at 37,000, one took a C compiler a minute and a gigabyte."""
RECORD: Final = "scenarios/build.json"
"""Of which sources the machine code was made: see `scenarios.version`."""
TOOLS: Final = ("mypy", "setuptools")
LEVEL: Final = "1"
"""Of the C compiler's optimisation: at 2 it takes several times as long."""
DIRECT: Final = ("-fvisibility=hidden", "-fno-plt", "-fno-semantic-interposition")
"""Calls between the C files go straight to the function: 1 % of the instructions of a run."""
TAKEN_FOR_TRUE: Final = ("--always-true", "COMPILED")
"""Options of mypy: see `sim.kernel.build`."""
RUNTIME: Final = "librt"
"""The package that compiled code calls: mypyc's own library."""
PROFILED: Final = "profiled"
COUNTS: Final = ("-fprofile-generate",)
COUNTED: Final = ("-fprofile-use", "-Wno-missing-profile", "-Wno-coverage-mismatch")
TRAINING: Final = Path(__file__).with_name("training.py")


class CustomBuildHook(BuildHookInterface[Any]):
    """See the module; hatchling's name for a project's own hook."""

    _folder: tempfile.TemporaryDirectory[str] | None = None

    def dependencies(self) -> list[str]:
        """What compiling needs: the tools, and the packages whose types the sources use."""
        if not asked():
            return []
        core = self.metadata.core
        tools = [need for need in core.optional_dependencies["dev"] if re.split(r"\W", need)[0] in TOOLS]
        return [*tools, *core.dependencies]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the machine code to a wheel, if it is asked for."""
        if not asked():
            return
        if version == "editable":
            raise SystemExit("an editable install runs the sources as they are: HIGHWATER_COMPILE=1 goes without -e")
        self._folder = tempfile.TemporaryDirectory()
        files = build(Path(self.root), Path(self._folder.name))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["dependencies"].append(RUNTIME)
        build_data["force_include"] |= {f"{self._folder.name}/{file}": file for file in files}

    def finalize(self, *_: object) -> None:
        """Clean up."""
        if self._folder is not None:
            self._folder.cleanup()


def asked() -> bool:
    """Whether a compiled build is asked for, profiled or not."""
    return os.environ.get("HIGHWATER_COMPILE", "0") not in ("", "0")


def modules(root: Path) -> list[str]:
    """Sources that are compiled, relative to the root."""
    plain = {file for pattern in NOT_COMPILED for file in root.glob(pattern)}
    files = sorted(file for pattern in COMPILED for file in root.glob(pattern))
    return [str(file.relative_to(root)) for file in files if file not in plain]


def build(root: Path, folder: Path) -> list[str]:
    """Compile a copy of the packages.

    Args:
        root: where the sources are.
        folder: where to compile.

    Returns:
        The files that were made, the record of them included, relative to the folder.

    Raises:
        SystemExit: there is no compiler, or it failed.
    """
    for package in PACKAGES:
        shutil.copytree(root / package, folder / package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    tell = "from scenarios.version import code_version; print(code_version())"
    code = subprocess.run([sys.executable, "-c", tell], cwd=folder, check=True, capture_output=True, text=True).stdout
    profiled = os.environ["HIGHWATER_COMPILE"] == PROFILED and _is_gcc()
    record = {
        "code_version": code.strip(),
        "mypy": installed("mypy"),
        "python": f"cp{sys.version_info.major}{sys.version_info.minor}",
        "profiled": profiled,
    }
    _write(folder, record, [])  # Without one nothing that is compiled runs, not even to be profiled.
    try:
        words = [sys.executable, __file__, PROFILED if profiled else "once", *modules(folder)]
        subprocess.run(words, cwd=folder, check=True)
    except subprocess.CalledProcessError:
        raise SystemExit("not compiled: a C compiler and Python's headers are needed; the reason is above") from None
    shutil.rmtree(folder / "build")
    files = sorted(str(file.relative_to(folder)) for file in folder.rglob("*.so"))
    _write(folder, record, files)
    return [*files, RECORD]


def _write(folder: Path, record: dict[str, Any], files: list[str]) -> None:
    """The record of what was compiled."""
    content = {"schema_version": 1, **record, "files": files}
    (folder / RECORD).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _is_gcc() -> bool:
    """Whether the C compiler is gcc: others keep profiles in other ways."""
    words = [*shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"), "--version"]
    try:
        told = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    except OSError:
        return False
    return "Free Software Foundation" in told


def check_lengths(folder: Path) -> None:
    """Raises SystemExit if a function in the C files of a folder is longer than `LONGEST`."""
    for path in sorted(folder.rglob("*.c")):
        begin, head = 0, ""
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            if line.endswith(") {") and not line[0].isspace():
                begin, head = number, line
            elif line == "}" and number - begin > LONGEST and head:
                name = head.partition("(")[0].rpartition(" ")[2]
                raise SystemExit(f"{name} has {number - begin:,} lines of C: divide it, or do not compile its module")


def main() -> None:
    """Compile the modules that are named, in the current folder; in a process of its own, for mypyc's state."""
    from mypyc.build import mypycify
    from setuptools import setup
    from setuptools.command.build_ext import build_ext

    class SideBySide(build_ext):  # type: ignore[misc]
        """All cores: setuptools compiles the files of one extension one after the other."""

        def build_extensions(self) -> None:
            one_by_one = self.compiler.compile
            with ThreadPoolExecutor(os.cpu_count()) as pool:

                def compile_all(sources: list[str], *words: Any, **options: Any) -> list[str]:
                    made = pool.map(lambda source: one_by_one([source], *words, **options), sources)
                    return [file for files in made for file in files]

                self.compiler.compile = compile_all
                super().build_extensions()

    # A C file for each module: together they took twice the time, and one core.
    words = [*TAKEN_FOR_TRUE, *sys.argv[2:]]
    extensions = mypycify(words, opt_level=LEVEL, debug_level="0", multi_file=True)
    check_lengths(Path("build"))
    if _is_gcc():
        for extension in extensions:
            extension.extra_compile_args += list(DIRECT)

    def compile_with(*flags: str) -> None:
        for extension in extensions:
            extension.extra_compile_args += list(flags)
            extension.extra_link_args += list(flags)
        words = ["--quiet", "build_ext", "--inplace", "--force"]
        setup(
            name="highwater", packages=[], ext_modules=extensions, cmdclass={"build_ext": SideBySide}, script_args=words
        )
        for extension in extensions:
            for flag in flags:
                extension.extra_compile_args.remove(flag)
                extension.extra_link_args.remove(flag)

    if sys.argv[1] == PROFILED:
        compile_with(*COUNTS)
        # What was counted lies beside the objects, where the second turn looks for it.
        subprocess.run([sys.executable, str(TRAINING)], check=True, env={**os.environ, "PYTHONPATH": os.curdir})
        compile_with(*COUNTED)
    else:
        compile_with()


if __name__ == "__main__":
    main()
