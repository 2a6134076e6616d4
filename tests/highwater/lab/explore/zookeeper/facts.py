"""Claims about ZooKeeper modes at small scale, each with the fault model under which it holds.

Each fact says which kinds of violation can happen within its bounds; all others cannot, in any order of events. Facts
that are `strict` say the same about early warnings. Common to all: no log loses anything in a crash, elections are
clean, batches hold one record.

- Two replicas, three records after a common one, three epochs, one restart that the controller does not notice, as
  KIP-101 and KIP-279 tell their scenarios. `hw` loses and diverges, `kip101` diverges and does not lose, the others
  do neither. `kip101` diverges without a restart, too (`TWO_STANDING`).
  It takes two restrictions to keep `kip279` silent, and both are Kafka's own gaps, not the world's. Without a common
  record there is no common epoch, and 2.0.0 then truncates to the leader's end offset as before KIP-279
  (`EMPTY`, AbstractFetcherThread.getOffsetTruncationState). And where a request may arrive in a later leader epoch
  than it was sent in, a broker fetches records of an epoch that it has not heard of, leads in an older one, and its
  cache ignores what it appends then (`STRAYS`). KAFKA-7415 repairs the second.
- Three replicas, two records, three epochs, one follower that lags for once, decisions that everybody hears at once:
  `hw`, `kip101`, `kip279` lose, `kip320` does not, nor do the others with the join rule of KAFKA-7128 alone.
- Four epochs are more than `kip279` bears even with two replicas (`FOUR`): a leader that has appended nothing does not
  know its own epoch, has no answer to a later question, and the follower truncates to its HW. KAFKA-7415 repairs it.
- Four epochs, and requests that arrive in any of them, tell the drafts of KIP-320 from KIP-320 (`FENCED`): a fetch sent
  before a truncation counts after it, where only the last record's epoch is compared (`kip320-first-try`), or where
  only the first fetch of a session is fenced (`kip320-2.1`, KAFKA-9338).
- Where a leader deletes records and processes end, even `kip320-repaired` diverges (`DELETING_AND_ENDING`): the finding
  stale-log-start, which no rule repairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from highwater.lab.explore.search import search
from highwater.lab.explore.zookeeper.cluster import (
    DIVERGENCE,
    INCOMPLETE,
    LOSS,
    WARNINGS,
    ZooKeeperBounds,
    ZooKeeperCluster,
)
from sim.protocol.modes import mode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from highwater.lab.explore.search import Found

TWO: Final = ZooKeeperBounds(brokers=2, prefix=1, records=3, epochs=3, crashes=1, bounces=True, strays=False)
TWO_SMALL: Final = ZooKeeperBounds(brokers=2, prefix=1, records=2, epochs=3, crashes=1, bounces=True, strays=False)
TWO_STANDING: Final = ZooKeeperBounds(brokers=2, prefix=1, records=3, epochs=3, strays=False)
EMPTY: Final = ZooKeeperBounds(brokers=2, records=3, epochs=3, strays=False)
STRAYS: Final = ZooKeeperBounds(brokers=2, prefix=1, records=3, epochs=3)
THREE: Final = ZooKeeperBounds(brokers=3, records=2, epochs=3, lags=1, strays=False, prompt=True)
THREE_SMALL: Final = ZooKeeperBounds(brokers=3, records=1, epochs=3, lags=1, strays=False, prompt=True)
THREE_DELAYED: Final = ZooKeeperBounds(brokers=3, records=1, epochs=3, lags=1, strays=False)
FOUR: Final = ZooKeeperBounds(brokers=2, prefix=1, records=3, epochs=4, strays=False)
FENCED: Final = ZooKeeperBounds(brokers=2, records=1, epochs=4)
DELETING: Final = ZooKeeperBounds(brokers=2, records=2, epochs=3, deletions=1)
DELETING_AND_ENDING: Final = ZooKeeperBounds(brokers=2, records=3, epochs=3, crashes=2, deletions=1)
FENCED_THREE: Final = ZooKeeperBounds(brokers=3, records=1, epochs=4, prompt=True)
JOIN: Final = (("isr_join", "leader-epoch-start"),)
ELECTION: Final = (("epoch_recorded_at", "election"),)


@dataclass(frozen=True, slots=True)
class Fact:
    """A claim.

    Attributes:
        mode: of all brokers.
        bounds: what may happen.
        kinds: the kinds of violation that can happen; no others can.
        rules: values of rules that differ from the mode's.
        strict: the kinds include early warnings.
        quick: checked with every test run; all others by ``make explore``.
    """

    mode: str
    bounds: ZooKeeperBounds
    kinds: frozenset[str] = frozenset()
    rules: tuple[tuple[str, str], ...] = ()
    strict: bool = False
    quick: bool = True

    @property
    def name(self) -> str:
        """For readers."""
        given = [f"{rule}={value}" for rule, value in self.rules]
        return " ".join([self.mode, *given, self.bounds.sentence])

    def claimed(self, kinds: Iterable[str]) -> set[str]:
        """Those of the kinds that the fact says something about."""
        return {kind for kind in kinds if self.strict or kind not in WARNINGS}

    def check(self, *, max_states: int | None = None, seconds: float | None = None) -> Found[int]:
        """Search until all possible kinds are found, to the end if some are impossible, or to a limit (`search`)."""
        rules = mode(self.mode).rules.override(dict(self.rules))
        until = (LOSS, DIVERGENCE) if self.bounds.brokers == 2 else self.kinds
        world = ZooKeeperCluster(rules, self.bounds)
        return search(world, until=until, every=True, ends=(LOSS,), most_states=max_states, time_limit=seconds)


LATE_JOIN: Final = (("isr_join", "high-watermark"),)
_LOSS: Final = frozenset({LOSS})
_INCOMPLETE: Final = frozenset({INCOMPLETE})
_DIVERGENCE: Final = frozenset({DIVERGENCE})
FACTS: Final = (
    Fact("hw", TWO, _LOSS | _DIVERGENCE),
    Fact("kip101", TWO, _DIVERGENCE, quick=False),
    Fact("kip279", TWO, quick=False),
    Fact("kip320", TWO, quick=False),
    Fact("kip320", TWO_SMALL, strict=True),
    Fact("kip101", TWO_STANDING, _DIVERGENCE),
    Fact("kip279", TWO_STANDING),
    Fact("kip320", TWO_STANDING),
    Fact("kip279", EMPTY, _DIVERGENCE),
    Fact("kip320", EMPTY),
    Fact("kip279", STRAYS, _DIVERGENCE),
    Fact("kip279", STRAYS, rules=ELECTION),
    Fact("kip320", STRAYS),
    Fact("kip101", FOUR, _LOSS | _DIVERGENCE),
    Fact("kip279", FOUR, _LOSS),
    Fact("kip279", FOUR, rules=ELECTION),
    Fact("kip320", FOUR),
    Fact("kip320-first-try", FENCED, _LOSS),
    Fact("kip320-2.1", FENCED, _LOSS),
    Fact("kip320", FENCED, strict=True),
    Fact("kip320-repaired", DELETING, strict=True),
    Fact("kip320-repaired", DELETING_AND_ENDING, _DIVERGENCE | _INCOMPLETE, strict=True, quick=False),
    Fact("hw", THREE, _LOSS, quick=False),
    Fact("kip101", THREE, _LOSS, quick=False),
    Fact("kip279", THREE, _LOSS),
    Fact("kip320", THREE, quick=False),
    Fact("kip320", THREE_SMALL, strict=True, quick=False),
    Fact("kip320-repaired", THREE_SMALL, strict=True, quick=False),
    Fact("kip320-repaired", THREE_SMALL, _INCOMPLETE, rules=LATE_JOIN, strict=True),
    Fact("kip101", THREE_SMALL, rules=JOIN, quick=False),
    Fact("kip279", THREE_SMALL, rules=JOIN, quick=False),
    Fact("kip279", THREE, rules=JOIN, quick=False),
    Fact("kip101", THREE, rules=JOIN, quick=False),
    Fact("kip101", THREE_DELAYED, _LOSS, quick=False),
    Fact("kip279", THREE_DELAYED, _LOSS, quick=False),
    Fact("kip101", THREE_DELAYED, rules=JOIN, quick=False),
    Fact("kip279", THREE_DELAYED, rules=JOIN, quick=False),
    Fact("kip320", THREE_DELAYED, quick=False),
    Fact("kip320-first-try", FENCED_THREE, _LOSS, quick=False),
    Fact("kip320", FENCED_THREE, quick=False),
)
