"""Signals that come before anything has begun, as the installed command meets them."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scenarios import memory
from tests.places import ROOT

NEEDS_PYDANTIC = ("scenarios", "validate", "canary")
KILL = "import os, signal\nos.kill(os.getpid(), signal.{})\n"


def interrupted(folder: Path, module: str, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command with a module in the place of another's."""
    (folder / f"{module}.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))}
    command = [sys.executable, "-m", "highwater.cli.entry", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_signal_while_the_first_modules_are_imported(tmp_path: Path, name: str) -> None:
    done = interrupted(tmp_path, "click", KILL.format(name), "modes", "list")
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "interrupted")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_signal_while_a_command_imports_what_it_needs(tmp_path: Path, name: str) -> None:
    done = interrupted(tmp_path, "pydantic", KILL.format(name), *NEEDS_PYDANTIC)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "interrupted")


def test_signal_in_a_callback_that_would_swallow_it(tmp_path: Path) -> None:
    text = (
        f"class Last:\n    def __del__(self):\n        {'; '.join(KILL.format('SIGINT').splitlines())}; 1 + 1\nLast()\n"
    )
    done = interrupted(tmp_path, "pydantic", text, *NEEDS_PYDANTIC)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "interrupted")


def test_the_installed_command_begins_there() -> None:
    assert 'highwater = "highwater.cli.entry:main"' in (ROOT / "pyproject.toml").read_text()


def limited(kib: int, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command with so much address space."""
    command = ["bash", "-c", f'ulimit -v {kib} && exec "$0" "$@"', sys.executable, "-m", "highwater.cli.entry", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


@pytest.mark.world
@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_no_memory_is_one_line(tmp_path: Path) -> None:
    """While modules are imported; where exactly depends on the system. CPython itself may crash when its memory is
    used up (SIGSEGV, seen once); such a run is repeated.
    """
    words = ("run", "canary", "--mode", "hw")
    codes = []
    for kib in (24_000, 30_000, 36_000):
        tries = (limited(kib, *words) for _ in range(4))
        done = next(process for process in tries if process.returncode != -signal.SIGSEGV)
        codes.append(done.returncode)
        if done.returncode == 69:
            assert done.stderr == "highwater: out of memory: the system gives this process no more\n"
    assert 69 in codes
    assert set(codes) <= {69, 0}
    for kib in (120_000, 1_000_000):  # The lesser is less than numpy takes, which this command does not load.
        assert limited(kib, *words).returncode == 0


@pytest.mark.world
@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
@pytest.mark.parametrize("kib", [150_000, 250_000, 300_000, 400_000])
def test_too_little_memory_for_a_library_is_one_line(tmp_path: Path, kib: int) -> None:
    """Loaded into 150 MB, pyarrow aborts; into 250 MB, OpenBLAS does."""
    done = limited(kib, "sweep", "canary", "--seeds", "0..1", "--output", str(tmp_path / "store"), "--local", "2")
    assert done.returncode == 69
    told = r"highwater: out of memory: pyarrow takes 600 MB of addresses, and ulimit -v leaves \d+\n"
    assert re.fullmatch(told, done.stderr)


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
@pytest.mark.parametrize(("library", "mb"), [("numpy", 120), ("scipy", 200)])
def test_libraries_are_loaded_only_where_the_address_space_suffices(library: str, mb: int) -> None:
    code = (
        "import importlib, resource, sys\n"
        "from scenarios import memory\n"
        "limit = int(sys.argv[2]) << 20\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n"
        "memory.guard()\n"
        "memory.guard()\n"
        "assert len([one for one in sys.meta_path if isinstance(one, memory._Guard)]) == 1\n"
        "try:\n"
        "    importlib.import_module(sys.argv[1])\n"
        "except MemoryError as error:\n"
        "    memory.tell(error)\n"
    )
    for limit_mb, fits in ((mb, False), (mb + memory.NEEDS_MB[library] + 1_000, True)):
        command = [sys.executable, "-c", code, library, str(limit_mb)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0
        need = f"{library} takes {memory.NEEDS_MB[library]:,} MB of addresses"
        assert (f"highwater: out of memory: {need}, and ulimit -v leaves " in done.stderr) is not fits
        assert fits is (done.stderr == "")


def test_without_a_limit_nothing_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda _: unlimited)
    finders = [*sys.meta_path]
    memory.guard()
    assert sys.meta_path == finders


@pytest.mark.parametrize("where", ["click", "scenarios.format.catalogue"])
@pytest.mark.parametrize("error", ["MemoryError", "ImportError('x.so: failed to map segment from shared object')"])
def test_no_memory_for_a_module_is_one_line(tmp_path: Path, where: str, error: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {where!r}:\n"
        f"            raise {error}\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}
    command = [sys.executable, "-m", "highwater.cli.entry", "run", "canary"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr == "highwater: out of memory: the system gives this process no more\n"


def test_a_thread_without_memory_ends_the_process(tmp_path: Path) -> None:
    """Others may wait for what it would have done."""
    text = 'import threading\ndef fail(): raise RuntimeError("can\'t start new thread")\n'
    text += "thread = threading.Thread(target=fail); thread.start(); thread.join()\n"
    done = interrupted(tmp_path, "pydantic", text, *NEEDS_PYDANTIC)
    assert (done.returncode, done.stderr) == (
        69,
        "highwater: out of memory: the system gives this process no more\n",
    )


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_signal_while_an_error_is_told(tmp_path: Path, name: str) -> None:
    """Its secrets are being masked, say."""
    text = f"""
import os, signal, sys, types
def masked(text):
    if "unknown scenario" in text:
        os.kill(os.getpid(), signal.{name})
    return text
sys.modules["scenarios.redaction"] = types.SimpleNamespace(masked=masked)
"""
    done = interrupted(tmp_path, "sitecustomize", text, "run", "nosuch")
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "interrupted")
