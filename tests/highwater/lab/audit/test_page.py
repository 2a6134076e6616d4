"""The page of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from highwater.lab.audit.audit import audit
from highwater.lab.audit.broker_logs import read_broker_logs
from highwater.lab.audit.distance import AuditDistances
from highwater.lab.audit.page import ROWS, audit_page
from highwater.lab.audit.results import Named
from tests.highwater.lab.audit.logs import batch, begun, change, config, encoded, fenced, topic, unfenced
from tests.highwater.lab.audit.test_broker_logs import TRUNCATED
from tests.highwater.lab.audit.test_command import described
from tests.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

LOST = ROOT / "tests" / "fixtures" / "metadata" / "reassignment-back-4.3.1"


def page(path: Path, *, hides: bool = False) -> str:
    found = audit([path])
    return audit_page(found, [path], Named(found, hides=hides))


def test_a_loss_is_shown_with_its_time_line() -> None:
    text = page(LOST)
    assert "broker 1 was elected; it had left the assignment (record 66)" in text
    assert text.count('<th scope="row" class="risk">') == 4
    assert "no longer at risk" in text
    assert "http" not in text.replace("http-equiv", "")
    assert "partition-0" in text
    assert "partition-0" not in page(LOST, hides=True)


def test_names_are_escaped(tmp_path: Path) -> None:
    log = begun()
    log.batches[-1][0] = topic("<b>&</b>")
    log.add(change(leader=3, isr=[3]))
    text = page(log.segment(tmp_path))
    assert "<b>" not in text
    assert "&lt;b&gt;&amp;&lt;/b&gt;-0" in text


def test_long_time_lines_keep_their_last_records(tmp_path: Path) -> None:
    log = begun()
    for _ in range(ROWS):
        log.add(change(isr=[1, 2]), fenced(3, 5))
        log.add(unfenced(3, 5))
        log.add(change(isr=[1, 2, 3]))
    log.add(config("min.insync.replicas", "2"))
    log.add(change(isr=[], leader=-1, eligibleLeaderReplicas=[1, 2]), fenced(1, 3), fenced(2, 4))
    text = page(log.segment(tmp_path))
    assert f"{ROWS + 2} earlier records not shown" in text


def test_losses_by_brokers_logs_and_distances_are_shown(tmp_path: Path) -> None:
    found = audit([LOST])
    name = Named(found, hides=False)
    log = tmp_path / "server.log"
    log.write_text(f"{TRUNCATED}\n")
    measured = AuditDistances(found, 1)
    distances = {key: (measured.now(key), None) for key in found.image.partitions}
    text = audit_page(found, [LOST], name, distances, read_broker_logs([log]))
    assert "Committed records that were lost, by the brokers&#x27; logs" in text
    assert "truncated to offset 0, below its high watermark 2" in text
    assert "brokers log their leaders in state-change.log" in text
    assert "How far from a loss" in text
    log.write_text("started (kafka.server.KafkaRaftServer)\n")
    assert "show no loss of committed records." in audit_page(found, [LOST], name, logs=read_broker_logs([log]))


def test_a_snapshot_is_the_first_row_of_a_time_line(tmp_path: Path) -> None:
    log = begun()
    first = log.add(change(isr=[1], eligibleLeaderReplicas=[2], leader=-1))
    place = log.segment(tmp_path, first)
    earlier = batch(0, [encoded(*record) for records in log.batches[:-1] for record in records])
    (place / f"{first:020}-0000000001.checkpoint").write_bytes(earlier)
    assert '<th scope="row">snapshot</th>' in page(place)


def test_the_title_says_what_was_read(tmp_path: Path) -> None:
    topics = tmp_path / "topics.txt"
    topics.write_text("\n".join(described(1)), encoding="utf-8")
    assert "<title>Highwater: audit of the output of kafka-topics.sh</title>" in page(topics)
    assert "<title>Highwater: audit of a metadata log</title>" in page(LOST)
