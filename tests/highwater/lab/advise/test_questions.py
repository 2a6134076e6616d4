"""At a terminal, ``highwater advise`` asks the questions that have no answer yet."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time

from tests.places import ROOT

LIMIT_S = 300
WORDS = ("--seeds", "1", "--racks", "1", "--together", "nothing", "--flush", "never", "--moves", "0")
"""The other four questions are asked."""


def talk(words: tuple[str, ...], replies: list[tuple[str, str]]) -> tuple[int, str]:
    """Run the command at a pseudo-terminal, and answer each question once it is asked; exit code and all output."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "highwater.cli.entry", "advise", *words]
    process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, cwd=ROOT, close_fds=True)
    os.close(follower)
    said, waiting, seen = "", list(replies), 0
    end_s = time.monotonic() + LIMIT_S
    try:
        while time.monotonic() < end_s:
            if select.select([leader], [], [], 1)[0]:
                try:
                    part = os.read(leader, 4096)
                except OSError:  # Linux: the other end is closed.
                    break
                if not part:
                    break
                said += part.decode()
            if waiting and waiting[0][0] in said[seen:]:
                question, reply = waiting.pop(0)
                seen = said.index(question, seen) + len(question)
                os.write(leader, f"{reply}\n".encode())
        return process.wait(LIMIT_S), said
    finally:
        process.kill()
        os.close(leader)


def test_questions_are_asked_until_the_answer_is_valid() -> None:
    code, said = talk(
        WORDS,
        [
            ("How many replicas has a partition? [3]", "many"),
            ("How many replicas has a partition? [3]", "2"),
            ("After how many seconds is a machine back that went down? [60]", ""),
            ("How many planned restarts has a broker a week (0.25: one in four)? [1]", "0"),
            ("May a replica outside the ISR be elected (true or false)? [false]", "true"),
            ("Is the feature eligible.leader.replicas.version on", "off"),
        ],
    )
    assert code == 0, said
    assert "replicas = 'many' is not valid: a whole number of at least 1 and at most 7 is needed" in said
    answers = next(line for line in said.splitlines() if line.startswith("Answers: "))
    assert re.search(r"replicas = 2, racks = 1, .*return_s = 60, .*restarts = 0, moves = 0, unclean = true", answers)
    assert "not answered" not in said
    assert "eligible.leader.replicas.version = 0, " in said
    assert "is assumed" not in said
