"""Messages between brokers and the controller."""

from __future__ import annotations

from typing import NamedTuple


class Alter(NamedTuple):
    """An AlterPartition request in flight."""

    broker: int
    broker_epoch: int
    payload: int
    kind: str = "Alter"


class Altered(NamedTuple):
    """An AlterPartition response in flight."""

    broker: int
    payload: int
    kind: str = "Altered"


class Register(NamedTuple):
    """A registration request in flight."""

    broker: int
    incarnation: int
    clean_epoch: int
    kind: str = "Register"


class RegistrationAnswer(NamedTuple):
    """A registration response in flight."""

    broker: int
    incarnation: int
    broker_epoch: int
    kind: str = "Registered"
