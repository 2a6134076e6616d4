from __future__ import annotations

import pytest

from sim.config import KEYS, NEVER, Value, flatten, parse, refusals, resolve, shown
from sim.errors import InputError, did_you_mean
from sim.hosts.settings import acks_number, broker_settings, client_settings, convergence_deadline_us


@pytest.mark.parametrize(
    ("key", "given", "value"),
    [
        ("min.insync.replicas", 2, 2),
        ("min.insync.replicas", "2", 2),
        ("log.flush.interval.messages", "never", NEVER),
        ("unclean.leader.election.enable", "TRUE", True),
        ("unclean.leader.election.enable", False, False),
        ("acks", -1, "all"),
        ("acks", 1, "1"),
        ("auto.offset.reset", "earliest", "earliest"),
    ],
)
def test_values_are_read_in_the_type_of_their_key(key: str, given: object, value: Value) -> None:
    assert parse(key, given) == value


@pytest.mark.parametrize(
    ("key", "given", "said"),
    [
        ("min.insync.replica", 2, "did you mean 'min.insync.replicas'"),
        ("min.insync.replicas", 0, "a whole number of at least 1 is needed"),
        ("min.insync.replicas", True, "a whole number"),
        ("min.insync.replicas", "two", "a whole number"),
        ("min.insync.replicas", 2.0, "a whole number"),
        ("sim.network.loss.permille", 1_001, "at most 1000"),
        ("sim.event.budget", "never", "at most 10000000"),
        ("unclean.leader.election.enable", 1, "one of: true, false"),
        ("acks", "most", "'most' is not valid"),
        ("acks", True, "is not valid"),
    ],
)
def test_value_that_does_not_fit_is_refused_with_a_hint(key: str, given: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse(key, given)


def test_every_default_fits_its_own_key() -> None:
    for key, spec in KEYS.items():
        assert parse(key, spec.default) == spec.default
        assert spec.meaning


def test_later_layers_win_and_the_rest_is_default() -> None:
    merged = resolve({"acks": "1", "min.insync.replicas": 2}, {"acks": "0"})
    assert list(merged) == list(KEYS)
    assert (merged["acks"], merged["min.insync.replicas"], merged["retry.backoff.ms"]) == ("0", 2, 100)


def test_some_defaults_follow_other_keys() -> None:
    pings, delivery = "sim.heartbeat.interval.ms", "delivery.timeout.ms"
    session, request = "zookeeper.session.timeout.ms", "request.timeout.ms"
    assert [resolve()[key] for key in (pings, delivery)] == [KEYS[key].default for key in (pings, delivery)]
    assert [resolve({session: timeout})[pings] for timeout in (6_000, 1, NEVER)] == [2_000, 1, NEVER // 3]
    assert resolve({session: 6_000}, {pings: 6_000})[pings] == 6_000
    assert [resolve({request: timeout})[delivery] for timeout in (500, 200_000)] == [120_000, 200_000]
    assert list(resolve({session: 6_000})) == list(KEYS)


@pytest.mark.parametrize(
    ("config", "drawn", "said"),
    [
        ({}, {}, ""),
        ({"replica.fetch.wait.max.ms": 30_000}, {}, ""),
        (
            {"replica.fetch.wait.max.ms": NEVER, "replica.lag.time.max.ms": NEVER},
            {},
            "never with replica.socket.timeout.ms",
        ),
        ({"replica.lag.time.max.ms": 499}, {}, "replica.fetch.wait.max.ms = 500 with replica.lag.time.max.ms = 499"),
        ({}, {"replica.socket.timeout.ms": (500, 499)}, "replica.socket.timeout.ms = 499 (drawn)"),
        ({"request.timeout.ms": 200_000}, {}, ""),
        (
            {"request.timeout.ms": 200_000, "delivery.timeout.ms": 199_999},
            {},
            "timeout.ms = 199999 with request",
        ),
        ({"enable.idempotence": True}, {}, ""),
        ({"enable.idempotence": True}, {"acks": ("all", "1")}, "enable.idempotence = true with acks = 1 (drawn)"),
        ({"enable.idempotence": True, "max.in.flight.requests.per.connection": 6}, {}, "connection = 6: Kafka would"),
        ({"acks": "0", "max.in.flight.requests.per.connection": 6}, {}, ""),
        ({"broker.heartbeat.interval.ms": 10_000}, {}, ""),
        ({"sim.heartbeat.interval.ms": 17_999}, {}, ""),
        ({"sim.heartbeat.interval.ms": 18_000}, {}, "timeout.ms = 18000: no ZooKeeper client does that (ClientCnxn"),
        ({"zookeeper.session.timeout.ms": 6_000}, {}, ""),
        ({"sim.heartbeat.interval.ms": 6_000}, {"zookeeper.session.timeout.ms": (9_000, 6_000)}, "= 6000 (drawn): no"),
    ],
)
def test_settings_that_kafka_would_not_start_with(
    config: dict[str, Value], drawn: dict[str, tuple[Value, ...]], said: str
) -> None:
    found = refusals(config, drawn)
    assert len(found) == bool(said)
    assert said in "".join(found)


def test_dotted_keys_that_became_tables_are_flattened() -> None:
    table = {"min": {"insync": {"replicas": 2}}, "acks": "all"}
    assert dict(flatten(table)) == {"min.insync.replicas": 2, "acks": "all"}


def test_values_are_shown_as_a_person_writes_them() -> None:
    assert [shown(value) for value in (True, NEVER, 5, "all")] == ["true", "never", "5", "all"]


def test_hints_name_the_nearest_word_or_all() -> None:
    assert did_you_mean("kip11", ["hw", "kip101"]) == "; did you mean 'kip101'?"
    assert did_you_mean("zzz", ["hw", "kip101"]) == "; one of: hw, kip101"


def test_settings_are_in_microseconds_and_min_isr_is_taken_as_it_is() -> None:
    config = resolve({"default.replication.factor": 2, "min.insync.replicas": 3})
    settings = broker_settings(config)
    # More than there are replicas is the partition's matter: rule min_isr_cap.
    assert (settings.min_insync_replicas, settings.lag_us, settings.fetch_wait_us) == (3, 30_000_000, 500_000)
    assert client_settings(config).delivery_timeout_us == 120_000_000
    assert [acks_number(word) for word in ("all", "0", "1")] == [-1, 0, 1]


def test_the_deadline_after_healing() -> None:
    """Session timeout + 1.5 x lag + metadata age + recovery + 60 s."""
    assert convergence_deadline_us(resolve(), 18_000_000) == (18_000 + 45_000 + 300_000 + 200 + 60_000) * 1_000


def test_idempotence_is_off_unless_asked_for_since_0_10_has_none() -> None:
    assert resolve({})["enable.idempotence"] is False
