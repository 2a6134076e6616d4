"""The program that runs scripts and JUnit tests of tickets, without Java."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from highwater.lab.kafka import releases
from sim.errors import InputError
from tests.verification import tickets
from tests.verification.confirm.interruptions import processes

if TYPE_CHECKING:
    from pathlib import Path

REPORT = """<?xml version="1.0"?><testsuite>
<testcase name="testA()" classname="org.apache.kafka.controller.ATest">
<failure message="after a start, x: y&#10;more" type="E">trace</failure></testcase>
<testcase name="testB()" classname="kafka.server.BTest"/>
<testcase name="testC()" classname="kafka.server.BTest"><error type="java.lang.Error">trace</error></testcase>
</testsuite>"""


@pytest.mark.world
def test_each_script_names_a_release_that_is_known() -> None:
    assert len(tickets.scripts()) >= 10
    for name, script in tickets.scripts().items():
        assert tickets.release_of(script) in releases.releases(), name


def test_the_class_of_a_tool_is_looked_for(tmp_path: Path) -> None:
    jar = tmp_path / "kafka.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("kafka/tools/Old.class", b"")
    assert tickets.class_of([jar], ["kafka.tools.New", "kafka.tools.Old"]) == "kafka.tools.Old"
    with pytest.raises(InputError, match=r"no jar has kafka\.tools\.New"):
        tickets.class_of([jar], ["kafka.tools.New"])


@pytest.mark.parametrize(("end", "code"), [("exit 1", 1), ("wait", -9)])
def test_nothing_of_a_script_goes_on(end: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"""sleep 60 > /dev/null & child=$!
trap 'kill -9 $child' EXIT
echo "$KAFKA_HOME"; test -d "$WORK" && echo 'LOST: m1'; {end}
"""
    monkeypatch.setenv("HIGHWATER_INTERRUPTED", str(tmp_path))
    monkeypatch.setattr(tickets, "scripts", lambda: {"story": script})
    found, said, _ = tickets.run_script("story", tmp_path, 1.0)
    assert (found, said) == (code, f"{tmp_path}\nLOST: m1\n")
    assert list(processes(str(tmp_path))) == []


def test_a_report_of_junit_is_read() -> None:
    assert list(tickets.results(REPORT)) == [
        ("ATest", "testA()", "after a start, x: y"),
        ("BTest", "testB()", ""),
        ("BTest", "testC()", "java.lang.Error"),
    ]


def test_the_table_has_the_last_run() -> None:
    script = {"script": "s", "release": "4.4.0", "seconds": 90, "code": 2, "said": [], "day": "2026-11-26"}
    test = {"junit": "ATest", "test": "a", "release": "4.3.1", "red": True, "why": "x", "day": "2026-11-26"}
    text = tickets.table(
        [script, {**script, "code": 1, "said": ["LOST: m1"]}, test, {**test, "test": "b", "red": False}]
    )
    assert "| `s` | 4.4.0 | 90 | failed as it says: LOST: m1 | 2026-11-26 |" in text
    assert text.count("`s`") == 1
    assert text.endswith("| `ATest` | 4.3.1: 1 of 2 |")
