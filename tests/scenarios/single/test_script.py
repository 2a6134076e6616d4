from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from faults.kinds.injection import Injection
from scenarios.format.catalogue import load
from scenarios.format.scenario import Pattern, ScriptLine, StoryLine
from scenarios.single.script import RulesInForce, Script, StoryError, StoryMatcher, describe, matches
from sim.hosts.client import PRODUCER
from sim.kernel.scheduler import Environment
from sim.protocol.modes import MODES
from tests.named import run, run_row
from tests.plain import needs_sources
from tests.sim.world import World

APPEND = {"t": 5, "step": "append", "broker": 2, "offset": 1, "leader_epoch": 3, "record": 7}
RULES = RulesInForce(MODES["hw"].rules, {2: MODES["kip101"].rules})


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        (Pattern("append"), True),
        (Pattern("append", broker=2, batch="m2", offset=1, leader_epoch=3), True),
        (Pattern("truncate"), False),
        (Pattern("append", broker=1), False),
        (Pattern("append", batch="m1"), False),
        (Pattern("append", batch="unsent"), False),
        (Pattern("append", offset=0), False),
        (Pattern("append", elr=()), True),
        (Pattern("append", elr=(1,)), False),
        (Pattern("append", leader_epoch=0), False),
        (Pattern("append", isr=(1,)), False),
    ],
)
def test_a_pattern_matches_in_all_that_it_names(pattern: Pattern, fits: bool) -> None:
    assert matches(pattern, APPEND, {"m1": 0, "m2": 7}) == fits


def test_an_isr_is_matched_as_a_whole() -> None:
    step = {"t": 5, "step": "isr", "isr": [1, 2], "leader_epoch": 3}
    assert matches(Pattern("isr", isr=(1, 2)), step, {})
    assert not matches(Pattern("isr", isr=(1,)), step, {})
    assert matches(Pattern("isr", isr=(2, 1)), step, {})


def test_rounds_of_a_settled_follower_are_matched() -> None:
    step = {"t": 5, "step": "settled", "broker": 1, "leader_epoch": 3, "rounds": 2}
    assert matches(Pattern("settled", rounds=2), step, {})
    assert not matches(Pattern("settled", rounds=1), step, {})


def test_patterns_are_described_in_words() -> None:
    assert describe(Pattern("append", broker=2, batch="m2", offset=1)) == "append broker=2 batch=m2 offset=1"
    assert describe(Pattern("isr", isr=(1, 2))) == "isr isr=[1, 2]"


def test_a_story_is_ticked_off_in_order() -> None:
    story = StoryMatcher((StoryLine(Pattern("kill")), StoryLine(Pattern("append"))), RULES, {})
    story.observe(APPEND)
    with pytest.raises(StoryError, match="no step 'kill' after the probes before it"):
        story.check()
    story.observe({"t": 7, "step": "kill"})
    with pytest.raises(StoryError, match="no step 'append'"):
        story.check()
    story.observe({**APPEND, "t": 9})
    story.check()
    assert story.met == [("kill", 7), ("append", 9)]


def test_story_lines_for_other_rules_are_left_out() -> None:
    epochs = {"follower_truncation": ("leader-epoch", "leader-epoch-rounds")}
    lines = (
        StoryLine(Pattern("kill"), epochs),
        StoryLine(Pattern("halt", broker=1), epochs),
        StoryLine(Pattern("append")),
    )
    assert [said for said, _ in StoryMatcher(lines, RULES, {}).met] == ["append"]


def test_story_line_is_about_the_rules_of_the_broker_that_it_names() -> None:
    line = StoryLine(Pattern("kill", broker=2), {"follower_truncation": ("high-watermark", "leader-epoch")})
    assert StoryMatcher((line,), RULES, {}).met
    other = StoryLine(Pattern("kill", broker=2), {"follower_truncation": ("high-watermark",)})
    assert not StoryMatcher((other,), RULES, {}).met


def play(world: World, *lines: ScriptLine, seconds: float = 10) -> Script:
    script = Script(lines, RULES, world.cluster, Injection(world.cluster), -1, {})
    world.cluster.recorder.observe(script.observe)
    environment = Environment(world.cluster.kernel)
    environment.process(script.play(environment))
    world.run(seconds)
    if script.failure is not None:
        raise script.failure
    return script


def do(action: str, when: Pattern | None = None, after_us: int = 0, **params: Any) -> ScriptLine:
    return ScriptLine(action, when, after_us, {name.rstrip("_"): value for name, value in params.items()})


def test_lines_for_other_rules_are_skipped_and_keep_their_numbers() -> None:
    world = World().ready()
    other = replace(do("produce", batch="m1"), rules={"follower_truncation": ("leader-epoch", "on-fetch")})
    fitting = replace(do("produce", batch="m2"), rules={"follower_truncation": ("high-watermark", "on-fetch")})
    play(world, other, fitting)
    assert [step["record"] for step in world.of("append", broker=1)] == [0]
    with pytest.raises(StoryError, match="script line 2 waited in vain"):
        play(world, other, do("wait", Pattern("halt")), seconds=400)


def test_lines_are_played_in_order_when_their_steps_happen() -> None:
    world = World().ready()
    play(
        world,
        do("produce", batch="m1", records=2),
        do("produce", Pattern("ack", batch="m1"), 2_000_000, batch="m2", acks="1"),
        do("kill", Pattern("append", broker=3, batch="m2"), broker=3),
        do("start", Pattern("session-end", broker=3), broker=3),
        do("cut", Pattern("registered", broker=3), from_="control", to=2),
        do("heal", after_us=1_000),
        seconds=40,
    )
    acks = [(step["record"], step["acks"]) for step in world.of("ack")]
    assert acks == [(0, -1), (2, 1)]
    assert world.of("append", broker=1, record=2)[0]["t"] >= world.of("ack", record=0)[0]["t"] + 2_000_000
    order = [step["step"] for step in world.steps if step["step"] in ("kill", "session-end", "cut", "heal")]
    assert order == ["kill", "session-end", "cut", "cut", "heal", "heal"]
    assert {(step["source"], step["target"]) for step in world.of("cut")} == {(0, 2), (2, 0)}


def test_a_step_that_happened_since_the_line_before_counts() -> None:
    world = World().ready()
    play(
        world,
        do("produce", batch="m1"),
        do("wait", after_us=1_000_000),
        do("end-offsets", Pattern("append", broker=1)),
        seconds=5,
    )
    assert not world.of("end-offset")
    world = World().ready()
    play(world, do("produce", batch="m1"), do("end-offsets", Pattern("append", broker=1), 1_000), seconds=5)
    assert world.of("end-offset")


def test_one_link_can_be_healed() -> None:
    world = World().ready()
    play(
        world,
        do("cut", from_=1, to=2),
        do("cut", from_="control", to=3, both_ways=False),
        do("cut", from_=2, to=1, both_ways=False),
        do("heal", from_=2, to=1),
        seconds=1,
    )
    assert sorted((step["source"], step["target"]) for step in world.of("heal")) == [(1, 2), (2, 1), (2, 1)]


def test_messages_are_held_back_until_the_script_delivers_each() -> None:
    world = World().ready()
    held: dict[str, Any] = {"broker": 1, "message": "ProduceResponse"}
    play(
        world,
        do("hold-messages", **held),
        do("produce", batch="m1"),
        do("produce", Pattern("acknowledges", broker=1), batch="m2"),
        do("deliver-message", Pattern("acknowledges", broker=1), 1_000_000, **held, peer=PRODUCER),
        do("produce", Pattern("ack", batch="m1"), 1_000_000, batch="m3"),
        do("release-messages", Pattern("acknowledges", broker=1), 1_000_000, **held),
        do("produce", Pattern("ack", batch="m3"), batch="m4"),
        seconds=5,
    )
    sent, acked = ([step["t"] // 1_000_000 for step in world.of(kind)] for kind in ("acknowledges", "ack"))
    assert [at - sent[0] for at in sent] == [0, 0, 2, 3]
    assert [at - sent[0] for at in acked] == [1, 3, 3, 3]
    assert len(world.of("message-held")) == len(world.of("message-late")) == 3


def test_only_what_is_held_back_can_be_delivered() -> None:
    world = World().ready()
    play(world, do("hold-messages", broker=1, message="FetchRequest"))
    for action in ("deliver-message", "release-messages"):
        with pytest.raises(StoryError, match=f"{action} needs hold-messages before it, of FetchRequest of broker 2"):
            play(world, do(action, broker=2, message="FetchRequest"))


def test_what_is_taken_back_sooner_ends_nothing_that_comes_later() -> None:
    world = World().ready()
    begin_us = world.cluster.kernel.now_us
    lines = [
        (do("cut", from_=1, to=2, for_ms=2_000), do("heal", after_us=500_000)),
        (do("slow", from_=1, to=3, by_ms=1, for_ms=2_000), do("heal", after_us=500_000, from_=1, to=3)),
        (do("pause", node=3, for_ms=2_000), do("resume", after_us=500_000, node=3)),
    ]
    play(world, *(line for once, back in lines for line in (once, back, once)), seconds=6)
    for number, (begins, ends) in enumerate((("cut", "heal"), ("slow", "heal"), ("pause", "resume"))):
        again_us = begin_us + 500_000 * (number + 1)
        assert world.of(begins)[-1]["t"] == again_us
        assert world.of(ends, t=again_us + 2_000_000)


def test_a_script_can_be_the_control_plane_and_the_operator() -> None:
    world = World(scripted=True).ready()
    play(
        world,
        do("elect", broker=2, isr=[1, 2, 3]),
        do("pause-consumer"),
        do("produce", Pattern("lead", broker=2), batch="m1", records=3),
        do("delete-records", Pattern("hw", broker=2, offset=3), offset=2),
        do("isr", isr=[1, 2]),
        do("resume-consumer"),
        do("controlled-restart", after_us=1_000_000, broker=3, restart_ms=500),
        do("power-loss", after_us=1_000_000, brokers=[1, 3]),
    )
    assert world.of("log-start", broker=2)[0]["offset"] == 2
    assert [step["isr"] for step in world.of("isr")] == [[1, 2]]
    assert world.of("out-of-range")
    assert world.of("shutdown", broker=3)
    assert list(world.cluster.running) == [2]


@needs_sources
def test_a_script_can_injure_in_every_way() -> None:
    world = World().ready()
    asked: list[tuple[str, object]] = []
    vars(world.cluster.administrator)["set_config"] = lambda key, value: asked.append((key, value))
    play(
        world,
        do("produce", batch="m1", records=2),
        do("slow", Pattern("ack", batch="m1"), from_=1, to=2, by_ms=5, for_ms=1_000),
        do("lossy", from_="control", to=3, both_ways=False, permille=7),
        do("duplicate", broker=1, permille=8),
        do("heal", after_us=2_000_000),
        do("pause", node=3),
        do("resume", after_us=500_000, node=3),
        do("pause", node="control", for_ms=100),
        do("retention", permille=1_000),
        do("corrupt-tail", broker=3, batches=1),
        do("disk-replaced", broker=3, restart_ms=1_000),
        do("set-config", config={"min.insync.replicas": 2}),
    )
    link = [(step["source"], step["target"], step["value"]) for kind in ("slow", "lossy") for step in world.of(kind)]
    assert link == [(1, 2, 5_000), (2, 1, 5_000), (0, 3, 7)]
    assert {step["target"] for step in world.of("resent", value=8)} == {1}
    assert len(world.of("heal")) == 2 + 1 + len(world.of("resent"))
    assert [step["broker"] for kind in ("pause", "resume") for step in world.of(kind)] == [3, 0, 3, 0]
    assert [step["step"] for step in world.steps if step["step"] in ("corrupt-tail", "disk-replaced")] == [
        "corrupt-tail",
        "disk-replaced",
    ]
    assert world.of("log-start", broker=1)[0]["offset"] == 2
    assert world.of("start", broker=3)[-1]["t"] == world.of("disk-replaced")[0]["t"] + 1_000_000
    assert asked == [("min.insync.replicas", 2)]


def test_a_line_that_waits_in_vain_fails_the_run() -> None:
    canary = load("canary")
    lines = (ScriptLine("wait", Pattern("halt", broker=1)), *canary.script)
    row = run_row(replace(canary, script=lines), "hw", 1)
    assert row["verdict"] == "error"
    assert row["error"] == "not as told: script line 1 waited in vain for 'halt broker=1'"


def test_a_run_whose_script_ends_early_is_judged() -> None:
    canary = load("canary")
    vain = ScriptLine("wait", Pattern("halt", broker=1))
    whole = run_row(canary, "hw", 1)
    row = run_row(replace(canary, script=(*canary.script, vain, ScriptLine("wait"))), "hw", 1)
    assert row["error"] == "not as told: script line 5 waited in vain for 'halt broker=1'"
    assert (row["verdict"], row["expected"]) == ("error", False)
    assert "committed-loss" in row["violations"].split(",")
    assert (row["violations"], row["violations_inside"]) == (whole["violations"], whole["violations_inside"])
    assert row["inside"] == whole["inside"]
    first = run_row(replace(canary, script=(vain, *canary.script)), "hw", 1)
    assert (first["violations"], first["violations_inside"]) == ("", "")


def test_a_run_without_a_step_of_its_story_is_judged() -> None:
    canary = load("canary")
    whole = run_row(canary, "hw", 1)
    row = run_row(replace(canary, story=(*canary.story, StoryLine(Pattern("halt")))), "hw", 1)
    assert row["verdict"] == "error"
    assert whole["violations_inside"]
    assert (row["violations_inside"], row["inside"]) == (whole["violations_inside"], whole["inside"])
    assert row["digest"] == whole["digest"]


def test_a_missing_story_step_fails_the_run_despite_the_checkers() -> None:
    canary = load("canary")
    result = run(replace(canary, story=(*canary.story, StoryLine(Pattern("halt")))), "hw", 1)
    assert result.row["verdict"] == "error"
    assert result.row["error"].startswith("not as told: story did not happen: no step 'halt'")
    assert result.violations
    assert result.story[-1] == {"text": "halt", "met_at_us": None}


def test_deleting_records_needs_a_leader() -> None:
    world = World(scripted=True).ready()
    with pytest.raises(StoryError, match="needs a leader"):
        play(world, do("delete-records", offset=1))


def test_a_script_can_be_the_consumers_application() -> None:
    world = World("kip320").ready()
    play(
        world,
        do("produce", batch="m1", records=2),
        do("commit", Pattern("read", offset=0)),
        do("produce", batch="m2", records=2),
        do("restart-consumer", Pattern("read", offset=2)),
        do("seek", Pattern("read", offset=2), offset=1, epoch=0),
        do("offsets-for-times", Pattern("read", offset=2), batch="m2"),
        do("seek", after_us=1_000_000, offset=3),
    )
    assert [step["offset"] for step in world.of("commit")] == [2]
    assert [step["offset"] for step in world.of("restart-consumer")] == [2]
    assert [(step["offset"], step["leader_epoch"]) for step in world.of("seek")] == [(1, 0), (3, -1)]
    assert [(step["record"], step["offset"]) for step in world.of("offset-for-time")] == [(2, 2)]
    assert [(step["offset"], step["last"]) for step in world.of("read")] == [
        (0, 1),
        (2, 3),
        (2, 3),
        (1, 1),
        (2, 3),
        (3, 3),
    ]
