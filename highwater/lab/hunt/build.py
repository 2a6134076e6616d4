"""The classes of a build of Kafka beside the mode, by the oracle's quick form.

The oracle is in the source tree, which has the harnesses; the installed package lacks it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from highwater.lab.kafka import releases
from sim.errors import InputError, UnavailableError

ROOT: Final = Path(__file__).parents[3]
PATIENCE_S: Final = 20.0
"""Seconds that the oracle's program has to end."""
PROGRAM: Final = "tests.verification.oracle.build"


def subjects(folder: str) -> list[str]:
    """The subjects that can be compared with a build; none where the oracle is not.

    Raises:
        InputError: there is no Java.
    """
    try:
        releases.java_command()
    except UnavailableError as error:
        raise InputError(
            f"--kafka {folder}: a build's classes are compared with the mode first: {error.problems[0]}"
        ) from None
    if not (ROOT / PROGRAM.replace(".", "/")).with_suffix(".py").is_file():
        return []
    found: list[str] = _run(folder)["subjects"]
    return found


def compared(folder: str, name: str) -> dict[str, Any]:
    """What differs of a subject, or why that is not known."""
    try:
        return _run(folder, name)
    except UnavailableError as error:
        told: dict[str, Any] = {"subject": name, "release": "", "cases": 0, "differ": 0, "smallest": "", "lines": []}
        return {**told, "explained": [], "problem": error.problems[0]}


def _run(*words: str) -> dict[str, Any]:
    """Run the oracle's program, which ends with this process: it has its standard input from here.

    Raises:
        UnavailableError: it fails; the message is its last line.
    """
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        process = subprocess.Popen(  # noqa: S603 - words of the same command line
            [sys.executable, "-m", PROGRAM, *words],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                text = process.stdout.read()
            except BaseException:
                _end(process)
                raise
        if process.returncode:
            said.seek(0)
            last = said.read().strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
            raise UnavailableError(f"the oracle could not be run: {last[0]}")
    found: dict[str, Any] = json.loads(text)
    return found


def _end(process: subprocess.Popen[str]) -> None:
    """End the oracle's program by the end of its input, so that it ends Java and removes its folder."""
    try:
        assert process.stdin is not None
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_S)
    finally:
        process.kill()
