"""``python -m tests.verification.confirm.kafka_20539 RELEASE``: scenario `kafka-20539`, with Kafka's clients.

`confirm` has a consumer of its own, which knows its partition from the start, so this starts a broker and the program
beside it: a consumer of each group protocol of the release, with auto.offset.reset=latest and =earliest. A partition is
added, its producer writes m2 (5 records, acks=all) at once, and m3 when the consumer has the partition and a position
in it. Nothing in Kafka is changed.
"""

from __future__ import annotations

import sys
from itertools import product
from typing import Final

from tests.verification.confirm.beside_broker import ClientStory

RESETS: Final = {"latest": "read 0 of 5", "earliest": "read 5 of 5"}
"""Value of ``auto.offset.reset`` -> what the consumer reads of m2."""


def cases(release: str) -> dict[tuple[str, ...], str]:
    """Each group protocol that brokers have by default, and value of ``auto.offset.reset`` -> what is read."""
    protocols = ("classic", "consumer") if int(release.partition(".")[0]) >= 4 else ("classic",)
    return {(protocol, reset): RESETS[reset] for protocol, reset in product(protocols, RESETS)}


STORY: Final = ClientStory(__doc__, "AddedPartition", cases)

if __name__ == "__main__":
    sys.exit(STORY.main())
