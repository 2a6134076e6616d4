"""Pictures of runs: well-formed, complete, escaped, and of the run that the command line names."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from highwater.cli.main import main
from reports.drawing.observed_run import ObservedRun, observe
from reports.drawing.perfetto import to_perfetto
from reports.drawing.picture import Picture, picture
from reports.drawing.svg import to_svg
from scenarios.format import selection
from scenarios.single.run import run
from sim.history import steps
from sim.protocol.modes import mode as mode_named

if TYPE_CHECKING:
    from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"
LOSES = ("power", "hw", 52379)
"""Loses a record that acks=all had covered."""


@cache
def observed(scenario: str = LOSES[0], mode: str = LOSES[1], seed: int = LOSES[2]) -> ObservedRun:
    return observe(selection.scenario(scenario, {}, strict=False), mode_named(mode), seed, {})


def drawn(*, everything: bool = False) -> Picture:
    return picture(observed(), ["title"], everything=everything)


@pytest.mark.parametrize(("scenario", "mode", "seed"), [LOSES, ("elr-chaos", "elr", 12), ("partitions", "kip101", 3)])
def test_watching_changes_nothing(scenario: str, mode: str, seed: int) -> None:
    unwatched = run(selection.scenario(scenario, {}, strict=False), mode_named(mode), seed, trace=True)
    seen = observed(scenario, mode, seed)
    assert seen.result.row == unwatched.row
    assert [observation.step for observation in seen.observations] == unwatched.trace


def test_what_a_pause_or_a_stalled_disk_holds_back_is_watched_as_well() -> None:
    scenario, names = selection.scenario("elr-chaos", {}, strict=False), set[str]()
    for seed in range(12):
        seen = observe(scenario, mode_named("elr"), seed, {})
        assert seen.result.row == run(scenario, mode_named("elr"), seed).row
        names |= {observation.step["step"] for observation in seen.observations}
    assert {steps.PAUSE.name, steps.DISK_STALLED.name} <= names


OF_A_CONTROLLER = ("LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown")
"""What a broker may send to itself."""


def test_messages_are_sent_before_they_arrive() -> None:
    for message in observed().messages:
        assert message.sent_us < message.arrived_us
        assert message.source != message.target or message.name.removesuffix(" response") in OF_A_CONTROLLER
        assert message.sent_in >= 0


def test_a_follower_appends_in_the_call_of_a_fetch_reply() -> None:
    names = {message.call: message.name for message in observed().messages}
    appends = [
        observation
        for observation in observed().observations
        if observation.step["step"] == "append" and observation.step["record"] == 7
    ]
    assert [names[append.call] for append in appends] == ["Produce", "Fetch response", "Fetch response"]


def test_what_is_shown_unasked_is_of_the_lost_record() -> None:
    seen, some, everything = observed(), drawn(), drawn(everything=True)
    assert len(some.rows) < len(everything.rows) / 3
    assert (
        len(everything.rows)
        == len(seen.observations) + len(seen.result.violations) + len(seen.result.warnings) - _links()
    )
    appended = [row.text for row in some.rows if row.kind is steps.APPEND]
    assert len(appended) == 3
    assert all(" appends record 7 at " in text for text in appended)
    marks = [row.kind or row.mark for row in some.rows if row.kind is steps.ACK or row.mark == "violation"]
    assert marks == [steps.ACK, "violation", "violation"]


def test_of_many_lost_records_the_first_is_drawn() -> None:
    seen = observed("elr-chaos", "elr", 50527)
    assert len(seen.concerned) > 10
    some = picture(seen, ["title"], everything=False)
    appended = [row.text for row in some.rows if row.kind is steps.APPEND]
    assert [text.partition(" appends ")[2] for text in appended] == 3 * [
        "records 14 to 16 at offset 14 in leader epoch 0."
    ]
    assert "the first: record 14" in to_svg(some)


def _links() -> int:
    """Steps of links that share a row with the one before."""
    taken = [(observation.step["step"], observation.at_us) for observation in observed().observations]
    return sum(one == other for one, other in pairwise(taken) if one[0] in ("cut", "heal"))


@pytest.mark.parametrize("mode", ["hw", "kip320", "kraft"])
def test_a_leader_that_leads_on_in_a_newer_epoch_has_a_band_for_each(mode: str) -> None:
    observed = observe(selection.scenario("reassignments", {}, strict=False), mode_named(mode), 1001, {}, trace=True)
    bands = picture(observed, [], everything=True).bands
    leaders = {(band.node, band.epoch) for band in bands if band.kind == "leader"}
    led = {(one["broker"], one["leader_epoch"]) for one in observed.result.trace or () if one["step"] == "lead"}
    assert led <= leaders


@pytest.mark.parametrize(
    ("run_of", "kind", "text"),
    [
        (("reassignments", "kraft", 0), steps.ASSIGNED, "is cancelled; the replicas are"),
        (("reassignments", "kip320", 310), steps.ASSIGNED, "The reassignment to [1, 2] begins"),
        (("reassignments", "kip320", 253), steps.REFUSED, "The producer receives NOT_ENOUGH_REPLICAS for record 17."),
        (
            ("forgotten-expansion", "kraft", 0),
            steps.METADATA_SLOWED,
            "From now on metadata reaches broker 1 with a delay of 14.000 s.",
        ),
        (("stale-log-start", "kraft", 0), steps.RETENTION, "Broker 2 deletes 3 records below offset 3"),
        (
            ("elr-chaos", "kraft", 0),
            steps.DIRECTORY_ASSIGNED,
            "The replica of broker 1 is assigned to log directory 1.",
        ),
    ],
)
def test_what_no_digest_holds_is_drawn(run_of: tuple[str, str, int], kind: steps.StepKind, text: str) -> None:
    rows = picture(observed(*run_of), [], everything=True).rows
    assert any(row.kind is kind and text in row.text for row in rows)


def test_bands_follow_elections_and_the_isr() -> None:
    leaders = [(band.node, band.epoch) for band in drawn().bands if band.kind == "leader"]
    elected = [observation.step for observation in observed().observations if observation.step["step"] == "elected"]
    assert leaders == [(step["broker"], step["leader_epoch"]) for step in elected]
    at_us = 150_000_000
    isr = {
        band.node
        for band in drawn().bands
        if band.kind == "isr" and band.since_us <= at_us and (band.until_us is None or at_us < band.until_us)
    }
    assert isr == {2, 3}


def test_the_log_of_the_broker_that_lost_its_tail_is_drawn_without_it() -> None:
    end = next(
        row for row in drawn().rows if row.kind is steps.TRUNCATE and row.node == 3 and "drops 1 batch" in row.text
    )
    assert end.log is not None
    assert end.log.batches[-1][1] == 6


@pytest.mark.parametrize("everything", [False, True])
def test_svg_is_well_formed_and_needs_nothing_from_elsewhere(everything: bool) -> None:
    text = to_svg(drawn(everything=everything))
    root = ET.XML(text)
    assert root.tag == f"{SVG}svg"
    said = " ".join(root.itertext())
    for row in drawn(everything=everything).rows:
        assert row.text.split()[0] in said
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"<(script|image|foreignObject|use|a)\b|url\((?!#)|@import|\shref", text)
    marked = [element for element in root.iter(f"{SVG}text") if element.get("class") == "violation"]
    assert marked


def test_svg_escapes_what_it_shows() -> None:
    some = drawn()
    nasty = '<script>alert("x")</script> & \x1b[31m]]>'
    text = to_svg(replace(some, title=[nasty], rows=[replace(some.rows[0], text=nasty), *some.rows[1:]]))
    assert "<script" not in text
    assert "\x1b" not in text
    ET.XML(text)


def test_no_row_reaches_into_another() -> None:
    root = ET.XML(to_svg(drawn()))
    times = [float(text.get("y", "")) for text in root.iter(f"{SVG}text") if text.get("class") == "time"]
    assert len(times) == len(drawn().rows) + 1  # The last are the logs.
    assert all(later - earlier >= 14 for earlier, later in pairwise(times))


FIELDS = {
    "name": str, "cat": str, "ph": str, "pid": int, "tid": int, "ts": int, "dur": int, "s": str, "id": int, "bp": str,
    "args": dict,
}  # fmt: skip
"""Of an event -> its type, as the Trace Event Format has them."""
REQUIRED = {"M": {"args"}, "i": {"ts", "s"}, "X": {"ts", "dur"}, "s": {"ts", "id"}, "f": {"ts", "id", "bp"}}
"""Phase -> what it must have beside what all have."""


@pytest.fixture(
    params=[(LOSES, False), (LOSES, True), (("elr-chaos", "elr", 12), True), (("partitions", "kip101", 3), True)]
)
def events(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    run_of, everything = request.param
    trace = json.loads(to_perfetto(picture(observed(*run_of), ["title"], everything=everything)))
    assert trace["displayTimeUnit"] in ("ms", "ns")
    assert trace["traceEvents"]
    return list(trace["traceEvents"])


def test_perfetto_holds_what_the_format_asks_for(events: list[dict[str, Any]]) -> None:
    """Trace Event Format (Google document 1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU): each phase with its fields."""
    named = {(event["pid"], event["name"]) for event in events if event["ph"] == "M"}
    for event in events:
        assert REQUIRED[event["ph"]] | {"ph", "name", "pid", "tid"} <= event.keys() <= FIELDS.keys()
        assert all(type(value) is FIELDS[key] for key, value in event.items())
        assert (event["pid"], "process_name") in named
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0
        assert event.get("s") in {"i": ("g", "p", "t")}.get(event["ph"], (None,))
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            assert isinstance(event["args"]["name"], str)
    threads = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    assert {(event["pid"], event["tid"]) for event in events if event["ph"] == "X"} <= threads


def test_perfetto_flows_begin_and_end_in_slices(events: list[dict[str, Any]]) -> None:
    slices: dict[tuple[int, int, int, str], int] = {}
    for event in events:
        if event["ph"] == "X":
            slices[event["pid"], event["tid"], event["ts"], event["name"]] = event["dur"]
    flows = [event for event in events if event["ph"] in "sf"]
    for event in flows:
        assert event.get("bp") == "e"
        assert (event["pid"], event["tid"], event["ts"], event["name"]) in slices
    begun = {event["id"]: event for event in flows if event["ph"] == "s"}
    ended = {event["id"]: event for event in flows if event["ph"] == "f"}
    assert ended
    assert len(begun) + len(ended) == len(flows)
    order = {(event["id"], event["ph"]): place for place, event in enumerate(flows)}
    for number, event in ended.items():  # What is handed over at once begins first in the file.
        assert (begun[number]["ts"], order[number, "s"]) < (event["ts"], order[number, "f"])
        assert (begun[number]["name"], begun[number]["cat"]) == (event["name"], event["cat"])


def test_perfetto_slices_of_a_thread_lie_in_or_beside_each_other(events: list[dict[str, Any]]) -> None:
    """Readers stack the slices of a thread, and drop what overlaps another in part."""
    threads: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for event in events:
        if event["ph"] == "X":
            threads.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    for slices in threads.values():
        open_until: list[int] = []
        for begin, end in sorted(slices, key=lambda one: (one[0], -one[1])):
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            assert not open_until or end <= open_until[-1], (begin, end, open_until)
            open_until.append(end)


# The command line.


@pytest.mark.usefixtures("sweeps_here")
def test_draw_of_a_scenario_a_store_and_a_plan_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    scenario, mode, seed = LOSES[0], LOSES[1], str(LOSES[2])
    assert main(["draw", scenario, "--seed", seed, "--mode", mode]) == 0
    assert f" messages: power-hw-{seed}.svg" in capsys.readouterr().out
    sweep = [
        "sweep",
        scenario,
        "--modes",
        mode,
        "--seeds",
        f"{seed}..{LOSES[2] + 1}",
        "--local",
        "1",
        "--output",
        "swept",
    ]
    assert main(sweep) in (0, 3)
    assert main(["draw", "swept", "--seed", seed, "--output", "store.svg"]) == 0
    assert main(["replay", "swept", "--seed", seed]) == 0
    plan = f"swept/seeds/{seed}-{mode}/plan.json"
    assert main(["draw", plan, "--output", "plan.svg"]) == 0
    first, *others = (
        re.sub(r"digest|as expected", "", (tmp_path / name).read_text()) for name in ("power-hw-52379.svg", "store.svg")
    )
    assert others == [first]
    assert (tmp_path / "plan.svg").read_text().count("<circle") == first.count("<circle")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["draw", "chaos", "--mode", "hw"], "chaos runs with any seed: choose one with --seed N"),
        (["draw", "chaos", "--seed", "1"], "choose one with --mode"),
        (["draw", "chos", "--seed", "1"], "did you mean 'chaos'"),
        (["draw", "nothing.json"], "nothing.json"),
        (
            ["draw", "chaos", "--seed", "1", "--mode", "hw", "--output", "no/where.svg"],
            "no file in a folder that exists",
        ),
        (["draw", "chaos", "--seed", "1", "--mode", "hw", "--format", "png"], "png"),
    ],
)
def test_draw_refuses_in_one_line(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    problem = capsys.readouterr().err.strip()
    assert said in problem
    assert "\n" not in problem
    assert not list(tmp_path.iterdir())
