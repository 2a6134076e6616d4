"""Refused: settings and batches that no Kafka client has."""

from __future__ import annotations

import pytest

from scenarios.format import selection
from scenarios.format.schema import read
from scenarios.properties import releases
from sim.errors import InputError

IDEMPOTENT = 'schema = 1\nname = "a"\ntitle = "A"\nbrokers.count = 2\ncontrol = "real"\n'


@pytest.mark.parametrize("acks", ["0", "1"])
def test_an_idempotent_producer_sends_no_batch_with_other_acks(acks: str) -> None:
    script = f'[[script]]\ndo = "produce"\nbatch = "m1"\n[[script]]\ndo = "produce"\nbatch = "m2"\nacks = "{acks}"\n'
    story = '[[story]]\nstep = "ack"\nbatch = "m1"\n[expect]\nelr = "clean:committed-loss"\n'
    assert read(IDEMPOTENT + script + story, "here").script
    with pytest.raises(InputError) as caught:
        read(IDEMPOTENT + "[config]\nenable.idempotence = true\n" + script + story, "here")
    (refused,) = caught.value.problems
    assert refused.startswith(
        f"here: script line 2: acks = '{acks}': with enable.idempotence = true, a producer sends all"
    )
    drawn = "[draw]\nenable.idempotence = [true, false]\n"
    with pytest.raises(InputError, match="script line 2"):
        read(IDEMPOTENT + drawn + script + story, "here")


def test_a_random_workload_with_some_acks_1_needs_acks_for_an_idempotent_producer() -> None:
    with pytest.raises(InputError, match="acks_one_every = 5 of sessions"):
        selection.scenario("sessions", {"enable.idempotence": True})
    both = selection.scenario("sessions", {"enable.idempotence": True, "acks": "all"})
    assert both.workload is not None
    assert both.workload.acks_one_every == 0


def test_a_producer_with_some_acks_1_is_not_idempotent_by_the_default_of_a_release() -> None:
    """ProducerConfig.postProcessAndValidateIdempotenceConfigs."""
    release = releases.find("4.1")
    assert "enable.idempotence" not in selection.scenario("sessions", {}, release=release).config
    assert selection.scenario("sessions", {"acks": "all"}, release=release).config["enable.idempotence"] is True
