"""Each key of a real cluster's settings is used, without effect, not modelled with a reason, or unknown."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

import pytest

from scenarios.properties import known, reasons
from scenarios.properties.classify import Status, read
from scenarios.properties.java_properties import parse
from scenarios.properties.modelled import NAMES, OF_GROUPS
from sim.config import KEYS
from sim.errors import InputError
from sim.protocol.modes import MODES
from tests.places import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

SERVERS = FIXTURES / "properties" / "servers"
EXPECTED = tomllib.loads((FIXTURES / "properties" / "expected.toml").read_text(encoding="utf-8"))
PLANES = {"kraft": "elr-4.3", "zookeeper": "kip320"}


def keys_of(file: Path) -> set[str]:
    return {entry.key for entry in parse(file.read_bytes())}


def test_there_are_twelve_real_files() -> None:
    assert {file.stem for file in SERVERS.iterdir()} == EXPECTED.keys()
    assert len(EXPECTED) == 12


@pytest.mark.parametrize("name", EXPECTED)
def test_each_key_of_a_real_file_is_classified(name: str) -> None:
    file = SERVERS / f"{name}.properties"
    found = read([file])
    found = found.in_modes([MODES[PLANES[found.control_plane]]])
    by_status = {status: {finding.key for finding in found.findings if finding.status is status} for status in Status}
    used, unknown = set(EXPECTED[name]["used"]), set(EXPECTED[name].get("unknown", ()))
    assert by_status == {
        Status.USED: used,
        Status.INERT: set(),
        Status.UNKNOWN: unknown,
        Status.NOT_MODELLED: keys_of(file) - used - unknown,
    }
    assert [finding.key for finding in found.findings if finding.status is not Status.USED and not finding.why] == []


def test_values_are_kept_of_modelled_keys_only() -> None:
    found = read(sorted(SERVERS.iterdir()))
    assert {finding.name for finding in found.findings if finding.value is not None} <= KEYS.keys()
    assert "made-up-secret" not in repr(found)
    assert any("made-up-secret" in file.read_text() for file in SERVERS.iterdir())


def test_parts_of_passwords_are_not_repeated_as_keys(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "broker.id=1\nsasl.jaas.config=PlainLoginModule required\n  username=admin\n  Pass.word1\n"
        "hunter2\nhunter.secret\n"
        "hunter2=\nlistners=PLAINTEXT://:9092\n"
    )
    found = read([file])
    unknown = {
        finding.line: (finding.key, finding.why) for finding in found.findings if finding.status is Status.UNKNOWN
    }
    hidden = ("", "no key has such a name; it is not shown, because it may be a secret")
    assert unknown == {
        3: hidden,
        4: hidden,
        6: hidden,
        7: hidden,
        8: ("listners", "no release has it; did you mean listeners?"),
    }
    assert not re.search("hunter|word1", repr(found))


def test_every_key_of_kafka_is_modelled_or_has_a_reason() -> None:
    without = [
        (scope, key)
        for scope in known.SCOPES
        for key in known.names(scope)
        if key not in NAMES[scope] and not reasons.why_not(key)
    ]
    assert without == []


def test_modelled_keys_are_keys_of_kafka() -> None:
    of_no_release = {"unclean.recovery.strategy", "unclean.recovery.timeout.ms", "eligible.leader.replicas.version"}
    for scope, names in NAMES.items():
        assert names.keys() - known.names(scope).keys() == (of_no_release if scope == "broker" else set())
    reached = {name for names in NAMES.values() for name in names.values()}
    assert reached == {key for key in KEYS if not key.startswith("sim.") and key not in OF_GROUPS}


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("flush.messages=1\nsegment.bytes=1048576\n", {"log.flush.interval.messages": 1, "log.segment.bytes": 1048576}),
        ("acks=-1\nlinger.ms=5\nrequest.timeout.ms=1000\n", {"acks": "all", "request.timeout.ms": 1000}),
        ("auto.offset.reset=earliest\ngroup.id=g\n", {"auto.offset.reset": "earliest"}),
        ("broker.id=1\neligible.leader.replicas.enable=true\n", {"eligible.leader.replicas.version": 1}),
        # A broker has a request.timeout.ms of its own.
        ("broker.id=1\nrequest.timeout.ms=1000\nflush.messages=1\nacks=1\n", {}),
        ("min.insync.replicas= 2 \n", {"min.insync.replicas": 2}),
    ],
)
def test_a_key_belongs_to_those_who_read_the_file(tmp_path: Path, text: str, settings: dict[str, object]) -> None:
    file = tmp_path / "some.properties"
    file.write_text(text)
    assert read([file]).settings == settings


def test_keys_without_effect_name_what_they_need(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("broker.id=1\nbroker.session.timeout.ms=6000\n")
    found = read([file]).in_modes([MODES["kip320"], MODES["hw"]])
    assert [(finding.status, finding.why) for finding in found.findings if finding.value] == [
        (Status.INERT, "no effect in kip320, hw: needs control_plane=kraft")
    ]
    assert read([file]).in_modes([MODES["kip320"], MODES["kraft"]]).findings[1].status is Status.USED


def test_a_key_of_controllers_says_which_scenarios_have_them(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("metadata.max.retention.ms=1000\ncontroller.quorum.fetch.timeout.ms=1000\n")
    assert [finding.why for finding in read([file]).findings] == ['only in scenarios with control = "quorum"', ""]


def test_topics_override_brokers_and_dynamic_settings_static_ones(tmp_path: Path) -> None:
    topic, static, dynamic = (tmp_path / name for name in ("topic", "static", "dynamic"))
    topic.write_text("Topic: t\tTopicId: x\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=3\n")
    static.write_text("broker.id=1\nmin.insync.replicas=1\nreplica.lag.time.max.ms=9\n")
    dynamic.write_text(
        "Dynamic configs for broker 1 are:\n"
        "  min.insync.replicas=2 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:min.insync.replicas=2}\n"
        "  unclean.leader.election.enable=true sensitive=false synonyms={}\n"
    )
    assert read([topic, dynamic, static]).settings == {
        "min.insync.replicas": 3,
        "replica.lag.time.max.ms": 9,
        "unclean.leader.election.enable": True,
    }


def test_a_repeated_key_has_its_last_value_and_a_note(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("broker.id=1\nmin.insync.replicas=1\nmin.insync.replicas=2\n")
    found = read([file])
    assert found.settings == {"min.insync.replicas": 2}
    assert found.notes == (f"{file}: min.insync.replicas is set in lines 2 and 3; the last one counts, as in Java",)


def test_a_backslash_that_swallows_a_key_is_noted(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("broker.id=1\nssl.keystore.password=\\\nmin.insync.replicas=2\nsuper.users=a;\\\nhunter2=b\n")
    (note,) = read([file]).notes
    assert note.startswith(f"{file}: line 2 goes on in line 3, which looks like min.insync.replicas: a backslash")


def test_files_that_set_a_key_differently_are_noted(tmp_path: Path) -> None:
    files = [tmp_path / "a.properties", tmp_path / "b.properties", tmp_path / "c.properties"]
    for file, size in zip(files, (1, 2, 2), strict=True):
        file.write_text(f"broker.id={size}\nmin.insync.replicas={size}\n")
    found = read(files)
    assert found.settings == {"min.insync.replicas": 2}
    where = f"1 in {files[0]}, 2 in {files[1]}"
    assert found.notes == (f"files set min.insync.replicas differently ({where}); the last one counts",)


def test_overridden_settings_are_noted(tmp_path: Path) -> None:
    static, dynamic = tmp_path / "static", tmp_path / "dynamic"
    static.write_text("broker.id=1\nmin.insync.replicas=2\n")
    dynamic.write_text("Dynamic configs for broker 2 are:\n  min.insync.replicas=1 sensitive=false synonyms={}\n")
    (note,) = read([dynamic, static]).notes
    assert note.endswith(f"(2 in {static}, 1 in {dynamic}); dynamic settings override static settings")


@pytest.mark.parametrize(
    ("line", "differs"),
    [
        ("acks=1", True),
        ("linger.ms=5", False),
        ("log.retention.hours=1", False),
    ],
)
def test_keys_that_would_change_figures_are_marked(tmp_path: Path, line: str, differs: bool) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"broker.id=1\nlog.dirs=/x\nnum.io.threads=8\n{line}\n")
    *_, last = read([file]).findings
    assert (last.status, last.changes_figures) == (Status.NOT_MODELLED, differs)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("broker.id=1\nmin.insync.replicas=two", "line 2: min.insync.replicas = 'two' is not valid"),
        ("broker.id=1\nmin.insync.replicas=1_000", "line 2: min.insync.replicas = '1_000' is not valid"),
        ("unclean.leader.election.enable=yes", "line 1: unclean.leader.election.enable = 'yes' is not valid"),
        ("# nothing", ": it sets no key"),
        ("", ": it sets no key"),
    ],
)
def test_values_that_kafka_refuses_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "server.properties"
    file.write_text(text)
    with pytest.raises(InputError) as refused:
        read([file])
    (found,) = refused.value.problems
    assert problem in found
    assert str(file) in found


@pytest.mark.parametrize(
    "line",
    [
        "min.insync.replicas=hunter2hunter2",
        "min.insync.replicas=2hunter",
        "min.insync.replicas=12345678901234567890123456",
        "min.insync.replicas=2 # hunter2",
        "unclean.leader.election.enable=hunter2",
        "eligible.leader.replicas.enable=hunter2",
        "acks=hunter2\nbootstrap.servers=x",
    ],
)
def test_a_password_on_the_wrong_line_is_not_repeated(tmp_path: Path, line: str) -> None:
    file = tmp_path / "my.properties"
    file.write_text(f"{line}\n")
    with pytest.raises(InputError) as refused:
        read([file])
    (found,) = refused.value.problems
    key, _, value = line.partition("\n")[0].partition("=")
    assert f"line 1: {key}: the value is not valid; " in found
    assert value not in found
    assert "hunter" not in found


def test_settings_that_together_do_something_else_are_noted(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("log.flush.interval.ms=1000\nmin.insync.replicas=3\ndefault.replication.factor=2\n")
    first, second = read([file]).notes
    assert first.startswith("log.flush.interval.ms flushes only once, 30 s after a start")
    assert second.startswith("min.insync.replicas = 3 is more than default.replication.factor = 2")
    file.write_text("log.flush.interval.ms=1000\nlog.flush.scheduler.interval.ms=500\nmin.insync.replicas=2\n")
    assert read([file]).notes == ()


def test_racks_of_several_brokers_are_counted(tmp_path: Path) -> None:
    files = []
    for number, rack in enumerate(("a", "b", "a", "")):
        files.append(tmp_path / f"{number}.properties")
        files[-1].write_text(f"broker.id={number}\nbroker.rack={rack}\n")
    assert [read(files[:count]).racks for count in (1, 2, 3, 4)] == [1, 2, 2, 2]
    assert read(files[3:]).racks == 0
    producer = tmp_path / "producer.properties"
    producer.write_text("bootstrap.servers=x\nacks=all\n")
    assert read([producer]).racks is None


@pytest.mark.parametrize("line", ["min.insync.replicas=-3", "min.insync.replicas=2x", "acks=alll\nbootstrap.servers=x"])
def test_a_slip_of_the_pen_is_repeated(tmp_path: Path, line: str) -> None:
    file = tmp_path / "my.properties"
    file.write_text(f"{line}\n")
    with pytest.raises(InputError) as refused:
        read([file])
    assert f"'{line.partition(chr(10))[0].partition('=')[2]}' is not valid" in refused.value.problems[0]


def test_a_value_of_a_config_provider_has_to_be_given(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("broker.id=1\nmin.insync.replicas=${env:MIN_ISR}\n")
    found = read([file])
    assert found.settings == {}
    with pytest.raises(InputError, match=r"line 2: min\.insync\.replicas: a config provider"):
        found.not_given({})
    found.not_given({"min.insync.replicas": 2})
    with pytest.raises(InputError, match=r"is not read; give it with --set$"):
        found.not_given({})
    with pytest.raises(InputError, match=r"is not read; give it in a further --server-properties FILE$"):
        found.not_given({}, {})
    with pytest.raises(InputError, match=r"is not read; give it with --isr$"):
        found.not_given({}, {"min.insync.replicas": "--isr"})
    later = tmp_path / "later.properties"
    later.write_text("broker.id=1\nmin.insync.replicas=2\n")
    read([file, later]).not_given({})
    with pytest.raises(InputError, match=r"line 2: min\.insync\.replicas"):
        read([later, file]).not_given({})
