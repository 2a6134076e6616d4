"""``auto.offset.reset=by_duration:PT1H``: where a consumer begins that has no position (KIP-1106, Kafka 4.0).

Its durations are those of java.time.Duration. Kafka: AutoOffsetResetStrategy (4.1-4.4).
"""

from __future__ import annotations

import re
from typing import Final

FORM: Final = "by_duration:PnDTnHnMn.nS"
PATTERN: Final = (
    r"by_duration:P(?=.)(?:(?P<days>[0-9]{1,6})D)?"
    r"(?:T(?=.)(?:(?P<hours>[0-9]{1,6})H)?(?:(?P<minutes>[0-9]{1,9})M)?(?:(?P<seconds>[0-9]{1,9}(?:\.[0-9]{1,6})?)S)?)?"
)
"""What `FORM` stands for, as far as Kafka's own durations are written in capitals and are not negative."""
NO_DURATION: Final = -1
_US: Final = {"days": 86_400_000_000, "hours": 3_600_000_000, "minutes": 60_000_000, "seconds": 1_000_000}


def duration_us(policy: str) -> int:
    """The duration of a policy; `NO_DURATION` if it is another one."""
    found = re.fullmatch(PATTERN, policy)
    if found is None:
        return NO_DURATION
    return sum([round(float(found[unit]) * us) for unit, us in _US.items() if found[unit]])
