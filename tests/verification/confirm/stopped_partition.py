"""``python -m tests.verification.confirm.stopped_partition RELEASE``: scenario `stopped-partition`, Kafka's producer.

`confirm` has a producer of its own for each partition, so this starts two brokers and the program beside them: a
producer with idempotence, which is Kafka's default, and one without. Nothing in Kafka is changed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.verification.confirm.few_brokers import few_brokers

PROGRAM: Final = "StoppedPartition"
LATE_MS: Final = 5_000
"""A batch for a leader that is well is answered in milliseconds."""


def main() -> int:
    """Print how long the batch for the other partition waited; exits with 1 if it is not what the scenario says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", nargs="+")
    parser.add_argument("--repeat", type=int, default=1)
    asked = parser.parse_args()
    is_shown = True
    for release in asked.releases:
        for _ in range(asked.repeat):
            for idempotence in ("true", "false"):
                with tempfile.TemporaryDirectory() as folder, few_brokers(release, Path(folder), 2) as brokers:
                    said = brokers.run(PROGRAM, idempotence, str(brokers.processes[2].pid))
                sys.stdout.write(f"{release}, enable.idempotence={idempotence}: {said}\n")
                sys.stdout.flush()
                is_late = int(said.split()[0]) > LATE_MS
                is_shown = is_shown and is_late is (idempotence == "true")
    return 0 if is_shown else 1


if __name__ == "__main__":
    sys.exit(main())
