"""KAFKA-19975: a reassignment completes without the target replicas that were unhealthy before it.

The pull request (apache/kafka#21114, 4.3.0) says: "This is safe because completing the reassignment would not decrease
the ISR size." The mode is Kafka 4.1 with that change, the checker tests the sentence, and the scenario is the second
example of the pull request, moved back.
"""

from __future__ import annotations

from typing import Final

from highwater.plugin import Checker, Plugin, steps, warning

API_VERSION = 1

MODE: Final = """
schema = 1
name = "kafka-19975"
title = "a reassignment completes once the replicas that it adds are in the ISR, if it adds as many as it removes"
base = "elr"
description = '''
Up to 4.2, a reassignment waits until all target replicas are in the ISR. The proposal no longer waits for target
replicas that are not added, unless the assignment gets smaller: "This is safe because completing the reassignment would
not decrease the ISR size."
'''
sources = ["KAFKA-19975", "apache/kafka#21114"]

[rules]
reassignment_completes = "targets-if-fewer"
"""

SCENARIO: Final = """
schema = 1
name = "kafka-19975-moved-back"
title = "KAFKA-19975: the second example of its pull request, and the move is undone"
description = '''
Replicas are brokers 1, 2 and 3, min.insync.replicas is 2; all have m1, which was acknowledged with acks=all. Brokers 2
and 3 are stopped for a while, in a controlled way: the ISR is broker 1. An operator moves the replica of broker 1 to
broker 4: from [1, 2, 3] to [2, 3, 4]. With KAFKA-19975 that completes as soon as broker 4 is in the ISR. The ISR had
one member, and has one member: its size does not decrease. Broker 1 deletes its log, but the controller puts it into
the ELR, because it was in the ISR. The operator undoes the move. Before broker 1 has fetched anything, broker 4 is
stopped, in a controlled way as well. Broker 1, with an empty log, is elected as a member of the ELR. Brokers 2 and 3
return and truncate m1.

Without KAFKA-19975 the reassignment waits for brokers 2 and 3, and broker 1 keeps its log. Brokers of 4.3.1 did as the
simulation does.
'''
brokers.count = 4
control = "real"

[config]
default.replication.factor = 3
min.insync.replicas = 2
replica.socket.timeout.ms = 2000
auto.leader.rebalance.enable = false

[[script]]
when = { step = "follow", broker = 3 }
do = "produce"
batch = "m1"

[[script]] # By then all know that m1 is committed.
when = { step = "hw", broker = 3, offset = 1 }
after_ms = 1000
do = "controlled-restart"
broker = 2

[[script]]
when = { step = "shutdown", broker = 2 }
after_ms = 1000
do = "controlled-restart"
broker = 3

[[script]]
when = { step = "shutdown", broker = 3 }
after_ms = 1000
do = "reassignment"
replicas = [2, 3, 4]

[[script]] # Broker 1 has deleted its log.
when = { step = "deleted", broker = 1 }
do = "wait"
rules = { reassignment_completes = "targets-if-fewer" }

[[script]]
after_ms = 10000
do = "cut"
from = 1
to = 4

[[script]]
do = "reassignment"
replicas = [1, 2, 3]

[[script]]
after_ms = 2000
do = "controlled-restart"
broker = 4

[[script]]
when = { step = "shutdown", broker = 4 }
after_ms = 1000
do = "start"
broker = 2

[[script]]
when = { step = "unfenced", broker = 2 }
after_ms = 1000
do = "start"
broker = 3

[[script]]
when = { step = "unfenced", broker = 3 }
after_ms = 5000
do = "heal"

[[script]]
do = "start"
broker = 4

[[story]]
step = "ack"
batch = "m1"

[[story]]
step = "shutdown"
broker = 3

[[story]]
step = "isr"
isr = [4]
rules = { reassignment_completes = "targets-if-fewer" }

[[story]]
step = "deleted"
broker = 1
rules = { reassignment_completes = "targets-if-fewer" }

[[story]]
step = "shutdown"
broker = 4

[[story]]
step = "lead"
broker = 1
offset = 0
rules = { reassignment_completes = "targets-if-fewer", elr_outside_assignment = "kept" }

[[story]]
step = "truncate"
broker = 2
offset = 0
rules = { reassignment_completes = "targets-if-fewer", elr_outside_assignment = "kept" }

[expect]
elr = "clean:committed-loss"
kafka-19975 = "violates:committed-loss"
"elr-4.3" = "violates:committed-loss"
elr-repaired = "clean:committed-loss"

[broken_by]
elr = { reassignment_completes = "targets-if-fewer" }
elr-repaired = { reassignment_completes = "targets-if-fewer", elr_outside_assignment = "kept" }

[[also]]
kind = "exposed-loss"
modes = ["kafka-19975", "elr-4.3"]
label = "inside"
reason = "the consumer was shown m1"
"""


class CompletionShrinksIsr(Checker):
    """Tests the sentence: a completed reassignment leaves as many ISR members as there were before, or as there are
    replicas.
    """

    FINDINGS = (warning("completion-shrinks-isr"),)

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self._before: steps.PartitionChanged | None = None

    def on_partition_changed(self, step: steps.PartitionChanged) -> None:
        """See `Listener`."""
        before, self._before = self._before, step
        if before is None or not (before.state.adding or before.state.removing):
            return
        state, replicas = step.state, before.state.replicas
        target = [broker for broker in replicas if broker not in before.state.removing]
        former = [broker for broker in replicas if broker not in before.state.adding]
        if state.adding or state.removing or set(state.replicas) != set(target) or target == former:
            return  # In progress, or cancelled: then the former replicas are left, which may be those of the target.
        self.decided = True
        was, size = len(before.state.isr), len(state.isr)
        if size < min(was, len(target)):
            detail = f"the reassignment to {target} completes: the ISR had {was} members, and has {size}"
            self._warns("completion-shrinks-isr", step.at_us, detail)


PLUGIN: Final = Plugin(modes=[MODE], checkers=[CompletionShrinksIsr], scenarios=[SCENARIO])
