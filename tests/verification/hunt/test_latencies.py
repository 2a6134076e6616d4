from __future__ import annotations

from typing import Any

import pytest

from scenarios.format.catalogue import load
from sim.environment.network import Channel
from sim.kernel.message import Message
from tests.verification.hunt.latencies import MARK, WHATS, Kept, without

CASES = [("chaos", "kip320", 3), ("chaos", "hw", 4), ("elr-chaos", "elr", 5), ("power", "kip101", 6)]


def kept() -> Kept:
    found = Kept()
    for name, mode, seed in CASES:
        found.add(without(load(name), mode, seed))
    return found


def test_what_is_taken_out_moves_no_latency_of_the_rest() -> None:
    found = kept()
    for what in WHATS:
        same = found.same[what]
        assert same.total() > 200
        assert same[True] >= MARK * same.total(), what


def test_a_count_on_the_link_would(monkeypatch: pytest.MonkeyPatch) -> None:
    send = Channel.send

    def counted(channel: Channel[Any], message: Message) -> None:
        channel._link.key += 1
        send(channel, message)

    monkeypatch.setattr(Channel, "send", counted)
    found = kept()
    assert all(found.same[what][True] < MARK * found.same[what].total() for what in WHATS)
