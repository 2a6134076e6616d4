"""A Java program with Kafka's clients, which gets orders line by line and says line by line what came of them."""

from __future__ import annotations

import subprocess
import threading
from typing import TYPE_CHECKING

from tests.verification.confirm.beside_broker import java

if TYPE_CHECKING:
    from pathlib import Path


class JavaClient:
    """A process of the program.

    Args:
        class_path: with the compiled program.
        program: name of its class.
        servers: ``bootstrap.servers``.
        log: file for what Kafka's clients log.

    Attributes:
        said: its lines so far.
    """

    def __init__(self, class_path: str, program: str, servers: str, log: Path) -> None:
        self.said: list[str] = []
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                java("-Xmx128m", "-cp", class_path, program, servers),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        threading.Thread(target=self._read, daemon=True, name=program).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.said.append(line.strip())

    def order(self, *words: object) -> None:
        """Give an order."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()

    def answer(self, *words: object) -> str:
        """The rest of the last line that begins with these words; empty: there is none."""
        begin = " ".join(map(str, words)) + " "
        return next((line[len(begin) :] for line in reversed(self.said) if line.startswith(begin)), "")

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
