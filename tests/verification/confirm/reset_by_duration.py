"""``python -m tests.verification.confirm.reset_by_duration RELEASE``: scenario `reset-by-duration`, Kafka's clients.

`confirm` has a consumer of its own, so this starts a broker and the program beside it: a consumer of each group
protocol, with the scenario's duration and with one that is longer than request.timeout.ms. Nothing in Kafka is changed.
"""

from __future__ import annotations

import sys
from itertools import product
from typing import Final

from tests.verification.confirm.beside_broker import ClientStory

PROTOCOLS: Final = ("classic", "consumer")
DURATIONS: Final = {"by_duration:PT6S": "read 0 of 5", "by_duration:PT45S": "read 5 of 5"}
"""Value of ``auto.offset.reset`` -> what the consumer reads of m2."""


def cases(_: str) -> dict[tuple[str, ...], str]:
    """Each group protocol and duration -> what is read."""
    return {(protocol, duration): DURATIONS[duration] for protocol, duration in product(PROTOCOLS, DURATIONS)}


STORY: Final = ClientStory(__doc__, "ResetByDuration", cases)

if __name__ == "__main__":
    sys.exit(STORY.main())
