"""References to Kafka's classes and methods, without its jars."""

from __future__ import annotations

import ast
import re
import struct
from pathlib import Path
from zipfile import ZipFile

import pytest

from highwater.lab.kafka import releases
from tests.places import ROOT
from tests.verification.oracle import class_files, names


def test_every_reference_can_be_read_and_is_on_the_page() -> None:
    found = names.references()
    assert {reference.path.split("/")[1] for reference in found} >= {"protocol", "environment", "hosts"}
    rows = re.findall(r"^\| `(.+?)` \| (.+?) \| (.+) \|$", names.page(found), re.MULTILINE)
    assert {kafka for kafka, _, _ in rows} == {reference.kafka for reference in found}
    assert sum(here.count("](../sim/") for _, _, here in rows) == len(found)


def test_docstrings_name_kafkas_methods_in_no_other_form() -> None:
    known = {reference.kafka.replace("#", ".") for reference in names.references() if "#" in reference.kafka}
    prose = re.compile(r"(?<![`\w.])[A-Z]\w+\.[a-z]\w+|Kafka class(?:es)?:")
    for path in (ROOT / "sim").rglob("*.py"):
        for ours, text in names.docstrings(ast.parse(path.read_text(encoding="utf-8"))):
            found = {*prose.findall(text)}
            assert not found & {*known, "Kafka class:", "Kafka classes:"}, (path, ours)


def test_a_docstring_may_have_several_references_over_lines() -> None:
    text = """What it does (KIP-1).

    Kafka: Partition#makeLeader, log.Log.Inner#append (0.10.2-2.6),
    UnifiedLog (4.1).

    Args: none.
    """
    assert [(reference.kafka, reference.first, reference.last) for reference in names.read(text)] == [
        ("Partition#makeLeader", "0.10.2", "4.4"),
        ("log.Log.Inner#append", "0.10.2", "2.6"),
        ("UnifiedLog", "4.1", "4.1"),
    ]


def test_range_left_out_is_that_of_the_control_plane() -> None:
    (one,) = names.read("Kafka: QuorumController#renounce.", "sim/protocol/kraft/some.py", "some")
    assert one.releases == ["3.9.0", "4.1.0", "4.1.2", "4.2.1", "4.2.2", "4.3.1", "4.4.0"]


@pytest.mark.parametrize(
    "text",
    [
        "Kafka: Partition.makeLeader()",
        "Kafka: Partition#makeLeader",
        "Kafka: Partition#makeLeader (3.8-4.3).",
        "Kafka: Partition#makeLeader (4.3-3.9).",
        "Kafka: Partition#makeLeader, .",
        "Kafka: as it is.",
    ],
)
def test_reference_in_another_form_is_refused(text: str) -> None:
    with pytest.raises(names.UnreadableError):
        names.read(text)


def class_file(fields: tuple[str, ...], methods: tuple[str, ...]) -> bytes:
    """A class file with these members, an attribute at each, and one constant of each length."""
    texts = [*fields, *methods, "Code"]
    pool = b"".join(b"\x01" + struct.pack(">H", len(text)) + text.encode() for text in texts)
    pool += b"\x05" + bytes(8) + b"\x0f" + bytes(3) + b"\x07" + bytes(2) + b"\x0c" + bytes(4)
    count = len(texts) + 2 + 3

    def table(members: tuple[str, ...]) -> bytes:
        entries = (struct.pack(">HHHHHI", 1, texts.index(name) + 1, 1, 1, len(texts), 3) + b"abc" for name in members)
        return struct.pack(">H", len(members)) + b"".join(entries)

    head = struct.pack(">IHHH", 0xCAFEBABE, 0, 61, count + 1)
    return head + pool + struct.pack(">HHHHH", 1, 1, 1, 1, 1) + table(fields) + table(methods)


def test_members_of_a_class_file_are_read() -> None:
    data = class_file(("isr",), ("makeLeader", "kafka$cluster$Partition$$maybeShrink"))
    assert class_files.members(data) == {"isr", "makeLeader", "maybeShrink"}
    with pytest.raises(ValueError, match="not a class file"):
        class_files.members(b"PK\x03\x04 and so on")


def test_names_are_looked_up_in_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = tmp_path / "org.apache.kafka__core.jar"
    with ZipFile(jar, "w") as archive:
        archive.writestr("kafka/log/Log.class", class_file((), ("append",)))
        archive.writestr("kafka/log/Log$.class", class_file((), ("LogFileSuffix",)))
        archive.writestr("kafka/log/Log$Inner.class", class_file((), ("run",)))
        archive.writestr("kafka/old/Log.class", class_file((), ()))
        archive.writestr("kafka/log/notes.txt", "Log")
    monkeypatch.setattr(releases, "class_path", lambda _: [jar, tmp_path / "scala.jar"])

    def wrong(text: str) -> list[str]:
        return [line.partition(": ")[2] for line in names.wrong(names.read(f"Kafka: {text}.", "a.py", "f"), "2.6.0")]

    assert wrong("Log#append (0.10.2-2.6), Log#LogFileSuffix, Log.Inner#run, old.Log") == []
    assert wrong("Log#read (2.0-2.6)") == ["Log#read: not in 2.6.0"]
    assert wrong("UnifiedLog (2.0-2.6)") == ["UnifiedLog: not in 2.6.0"]
    assert wrong("Log#append (3.9-4.3)") == ["Log#append: in 2.6.0, too"]
    assert wrong("Log#append (1.1-2.6), Log#append (4.1-4.3)") == []
    assert wrong("Log") == ["Log: several in 2.6.0: kafka.log.Log, kafka.old.Log"]
    assert wrong("UnifiedLog (3.9-4.3)") == []


def test_sources_of_rules_are_looked_up_in_all_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"Partition#makeFollower", "LogManager#shutdown"} <= set(names.sources())
    monkeypatch.setattr(names, "declared", lambda wanted, release: {kafka: [release] for kafka in wanted})
    assert names.wrong_sources() == []
    monkeypatch.setattr(
        names, "declared", lambda wanted, _: {kafka: ["any"] if "#make" in kafka else [] for kafka in wanted}
    )
    found = names.wrong_sources()
    assert "rule clean_shutdown_file: LogManager#shutdown: in no release" in found
    assert not any("#make" in line for line in found)
