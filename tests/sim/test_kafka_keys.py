from __future__ import annotations

import pytest

from sim.config import KEYS, parse
from sim.errors import InputError
from sim.kafka_keys import NOT_MODELLED, SYNONYMS


def test_no_key_is_both_modelled_and_not() -> None:
    assert not NOT_MODELLED & {*KEYS, *SYNONYMS}
    assert not {*SYNONYMS} & {*KEYS}
    assert {*SYNONYMS.values()} <= {*KEYS}


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("retention.ms", "'retention.ms' is a key of Kafka that is not modelled"),
        ("segment.bytes", "'segment.bytes' is called 'log.segment.bytes' here"),
        ("min.insync.replica", "unknown configuration key 'min.insync.replica'; did you mean 'min.insync.replicas'?"),
    ],
)
def test_what_kafka_knows_is_not_called_unknown(key: str, told: str) -> None:
    with pytest.raises(InputError) as refused:
        parse(key, "1")
    assert refused.value.problems == (told,)
