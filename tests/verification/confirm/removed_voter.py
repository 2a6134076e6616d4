"""``python -m tests.verification.confirm.removed_voter RELEASE``: scenario `removed-voter-answers` on real controllers.

Three controllers whose voters may change, and a broker. A voter stands still; while a BeginQuorumEpoch of the leader
waits for its answer, it is removed, and then it answers. Nothing in Kafka is changed.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from highwater.lab.confirm.release import find
from tests.verification.confirm.few_brokers import CONTROLLER, FewBrokers, few_brokers

VOTERS: Final = range(CONTROLLER, CONTROLLER + 3)
ASKED_S: Final = (1.1, 2.1)
"""After that time a BeginQuorumEpoch waits for the voter that stands still: the leader sends one each second (half of
``controller.quorum.fetch.timeout.ms``), from 4.3 on only to a voter that has not fetched in that time.
"""
ANSWERS_S: Final = 0.75
"""The voter goes on so long after its removal, before ``controller.quorum.request.timeout.ms`` (2 s) ends the wait."""
ENDS_S: Final = 5.0


def main() -> int:
    """Print whether the leader's process ended, and why; exits with 1 if one did not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", nargs="+")
    parser.add_argument("--repeat", type=int, default=1)
    asked = parser.parse_args()
    is_shown = True
    for release in asked.releases:
        for _ in range(asked.repeat):
            with (
                tempfile.TemporaryDirectory() as folder,
                few_brokers(release, Path(folder), 1, len(VOTERS), is_dynamic=True) as brokers,
            ):
                said = played(brokers, ASKED_S[find(release).number >= (4, 3)])
            sys.stdout.write(f"{release}: {said or 'the leader goes on'}\n")
            sys.stdout.flush()
            is_shown = is_shown and bool(said)
    return 0 if is_shown else 1


def played(brokers: FewBrokers, asked_s: float) -> str:
    """What the leader's process said when it ended; empty if it did not."""
    with brokers.begin("RemovedVoter") as program:
        assert program.stdin is not None
        assert program.stdout is not None
        leader = int(program.stdout.readline())
        removed = next(voter for voter in reversed(VOTERS) if voter != leader)
        time.sleep(1)
        brokers.processes[removed].send_signal(signal.SIGSTOP)
        time.sleep(asked_s)
        program.stdin.write(f"{removed}\n")
        program.stdin.flush()
        time.sleep(ANSWERS_S)
        brokers.processes[removed].send_signal(signal.SIGCONT)
        time.sleep(ENDS_S)
        program.kill()
    if brokers.processes[leader].poll() is None:
        return ""
    log = (brokers.folder / f"{leader}.log").read_text(encoding="utf-8", errors="replace")
    found = re.findall(r"^\S*Exception: .*$", log, re.MULTILINE)
    return f"leader {leader} ended when controller {removed} answered: {found[0] if found else 'no exception'}"


if __name__ == "__main__":
    sys.exit(main())
