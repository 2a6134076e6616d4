"""Messages are values: never changed, equal by what they say, and made of ids and data."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping, Sequence
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from sim.config import Value
from sim.history.records import VALIDATION_IDS
from sim.hosts import zk_messages
from sim.kernel.message import Message
from sim.kernel.values import fields_of
from sim.protocol import batch, messages
from sim.protocol.batch import Batch
from sim.protocol.kraft import alter_partition_manager, quorum_messages
from sim.protocol.kraft.alter_partition_manager import AlterPartitionItem
from sim.protocol.messages import AbstractControlRequest, LeaderAndIsr
from sim.protocol.zookeeper import zk_operations
from sim.protocol.zookeeper.election import BrokerInfo
from sim.protocol.zookeeper.zk_operations import Operation
from tests.plain import needs_sources

MODULES = (messages, quorum_messages, zk_messages)
OPERATIONS = tuple(
    var
    for var in vars(zk_operations).values()
    if inspect.isclass(var) and issubclass(var, Operation) and var is not Operation
)
PARTS = (
    *(AbstractControlRequest, Batch, BrokerInfo, AlterPartitionItem, LeaderAndIsr, messages.Incremental, Operation),
    *OPERATIONS,
)
"""What is a part of messages, and a value itself."""
SCALARS = (int, str, bool, float, type(None))
NAMES = {**vars(messages), **vars(quorum_messages), **vars(alter_partition_manager), **vars(batch), "Mapping": Mapping}
NAMES |= {"Sequence": Sequence, "BrokerInfo": BrokerInfo, "Value": Value, "LeaderAndIsr": LeaderAndIsr}
NAMES |= {"Sequence_": batch.Sequence}


def kinds() -> list[type[Message]]:
    found = [var for module in MODULES for var in vars(module).values() if inspect.isclass(var)]
    return [key for key in dict.fromkeys(found) if issubclass(key, Message) and key is not Message]


def is_data(kind: Any) -> bool:
    """Whether a type is that of ids and data, or of a value made of these."""
    if kind in SCALARS or (inspect.isclass(kind) and issubclass(kind, (Message, *PARTS))):
        return True
    if get_origin(kind) in (list, dict, set):
        return False  # These can be changed.
    arguments = [arg for arg in get_args(kind) if arg is not Ellipsis]
    return bool(arguments) and all(map(is_data, arguments))


def hints(kind: type) -> dict[str, Any]:
    owner = next(base for base in kind.__mro__ if "__init__" in vars(base))
    names = {**NAMES, **vars(sys.modules[owner.__module__])}
    return {name: one for name, one in get_type_hints(vars(owner)["__init__"], names).items() if name != "return"}


@needs_sources
@pytest.mark.parametrize("kind", [*kinds(), *PARTS], ids=lambda kind: kind.__name__)
def test_a_message_is_made_of_ids_and_data(kind: type) -> None:
    assert {name: one for name, one in hints(kind).items() if not is_data(one)} == {}


def written_outside(kind: type) -> list[str]:
    """Attributes of a class that are not declared Final where they are assigned."""
    (tree,) = ast.parse(inspect.cleandoc("\n" + inspect.getsource(kind))).body
    plain = [target for node in ast.walk(tree) if isinstance(node, ast.Assign) for target in node.targets]
    return [
        ast.unparse(attribute)
        for attribute in plain
        if isinstance(attribute, ast.Attribute) and ast.unparse(attribute.value) == "self"
    ]


@needs_sources
@pytest.mark.parametrize("kind", [*kinds(), *PARTS], ids=lambda kind: kind.__name__)
def test_a_message_is_never_changed(kind: type) -> None:
    """`mypy` refuses to assign to what is Final."""
    assert kind is Batch or written_outside(kind) == []


def made(kind: type, salt: int) -> Any:
    """An object of a class, all of it by a number; without another one of its class."""
    parts = {name: part for name, part in hints(kind).items() if kind not in get_args(part)}
    return kind(**{name: value_of(part, salt) for name, part in parts.items()})


def value_of(kind: Any, salt: int) -> Any:
    if inspect.isclass(kind) and issubclass(kind, (Message, *PARTS)):
        return made(kind, salt)
    if kind in (int, float):
        return salt
    if kind is bool:
        return bool(salt % 2)
    if kind is str:
        return f"word {salt}"
    if get_origin(kind) is tuple and Ellipsis not in get_args(kind):
        return tuple(value_of(arg, salt) for arg in get_args(kind))
    if issubclass(get_origin(kind) or object, Mapping):
        return {value_of(get_args(kind)[0], salt): value_of(get_args(kind)[1], salt)}
    if get_origin(kind) in (tuple, Sequence):
        return [value_of(get_args(kind)[0], salt)]
    return value_of(next(arg for arg in get_args(kind) if arg is not type(None)), salt)


@needs_sources
@pytest.mark.parametrize("kind", [*kinds(), *OPERATIONS])
def test_messages_are_equal_by_what_they_say(kind: type) -> None:
    one, same, other = made(kind, 1), made(kind, 1), made(kind, 2)
    assert one == same
    assert one is not same
    assert one != other or not hints(kind)
    assert set(fields_of(kind)) == set(hints(kind))


def test_kinds_of_messages_are_different() -> None:
    assert messages.MetadataRequest(1, "p") != quorum_messages.GetReplicaLogInfoRequest(1, "p")


def test_subject_of_a_request_for_the_offset_of_any_record_fits_into_a_word() -> None:
    """In a compiled build, `sim.kernel.mixing` takes numbers of 64 bits."""
    timestamps = [0, 5, VALIDATION_IDS + 7, VALIDATION_IDS + 8, -1, -2]
    subjects = {messages.ListOffsetsRequest(1, -1, "t", timestamp, 3).about() for timestamp in timestamps}
    assert len(subjects) == len(timestamps)
    assert all(abs(subject) < 1 << 62 for subject in subjects)
