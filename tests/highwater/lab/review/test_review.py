"""A mode against another one: what is found, and the page of it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from highwater.lab.review import page
from highwater.lab.review import review as reviewing
from highwater.lab.review.conformance import Conformance
from highwater.lab.review.pace import FEWEST, Pace, PacedRun
from highwater.lab.review.result import HARMLESS, LOSES, OFTENER, UNANSWERED, WAITS, SeedCounts, StoryEnd
from highwater.lab.review.review import DOWNGRADE, UPGRADE, review
from reports.document.blocks import Commands, Table
from reports.document.markdown import to_markdown
from reports.document.page import to_html
from scenarios.format import catalogue, plugins
from scenarios.format.catalogue import mode
from scenarios.single.run import run_row
from scenarios.sweep import local
from sim import exit_codes
from sim.errors import InputError
from sim.protocol.decisions import VALUES
from sim.protocol.modes import MODES
from tests.places import ROOT
from tests.scenarios.sweep.here import Here

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from highwater.lab.review.result import Review
    from sim.protocol.modes import Mode
    from tests.conftest import Call

SEEDS = 12
EXAMPLE = str(ROOT / "tests" / "fixtures" / "max_of_both.py")


@pytest.fixture(scope="module")
def losing(tmp_path_factory: pytest.TempPathFactory) -> Review:
    """Truncation to the high watermark, after KIP-279 had replaced it."""
    mine = mode("kip279+follower_truncation=high-watermark")
    folder = tmp_path_factory.mktemp("losing")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "LocalBackend", lambda _: Here())
        return review(
            mine,
            MODES["kip279"],
            folder,
            claim="This is safe.",
            claim_kind="committed-loss",
            seeds=SEEDS,
            scenarios=["power"],
            conforms=False,
        )


@pytest.mark.world
def test_a_mode_that_loses_is_found(losing: Review) -> None:
    assert losing.rules == [("follower_truncation", "leader-epoch-rounds", "high-watermark")]
    assert (losing.verdict, losing.is_worse) == (LOSES, True)
    stories = {story.scenario: story for story in losing.stories}
    canary = stories["canary"]
    assert (canary.base, canary.worse) == ("ok", True)
    assert canary.mode.startswith("committed-loss (inside)")
    (power,) = losing.swept
    rows = [
        [run_row(catalogue.load("power"), one, seed) for seed in range(SEEDS)] for one in (losing.base, losing.mode)
    ]
    only = Counter(
        kind
        for base, mine in zip(*rows, strict=True)
        for kind in {*mine["violations_inside"].split(",")} - {*base["violations_inside"].split(",")}
        if kind
    )
    assert {kind: counts.only_mode for kind, counts in power.inside.items() if counts.only_mode} == only
    assert power.touched == power.effects["follower_truncation"] > 0
    assert {scenario.name for scenario in losing.moved} == {
        name + end for name in ("rolling", "power") for end in (UPGRADE, DOWNGRADE)
    }
    assert losing.skipped == []


@pytest.mark.world
def test_the_page_has_each_part_and_its_commands(losing: Review) -> None:
    document = page.document(losing)
    text = to_markdown(document)
    assert text.startswith(
        "# Review of kip279+follower\\_truncation=high-watermark against kip279\n\n> This is safe.\n"
    )
    for heading in (
        "What is proposed",
        "The claim",
        "Violations inside the promise",
        "Lost records",
        "Upgrade and downgrade",
        "Liveness",
        "Availability",
    ):
        assert f"\n## {heading}" in text
    commands = [line for block in document.blocks if isinstance(block, Commands) for line in block.lines]
    shows = "highwater show canary --mode kip279 --against kip279+follower_truncation=high-watermark"
    assert f"{shows} --output canary.html" in commands
    assert "The claim does not hold" in text
    assert any(line.startswith("highwater sweep power --modes kip279,kip279+follower") for line in commands)
    html = to_html(document)
    assert html.count("<h2>") == text.count("\n## ")
    assert re.findall(r"<(script|link|img)", html) == []


@pytest.mark.world
def test_a_change_about_which_kafka_s_tests_say_nothing(losing: Review) -> None:
    text = to_markdown(page.document(replace(losing, conformance=Conformance(0, (), ()))))
    _, part = text.split("## Kafka's own tests, and answers of its classes\n\n")
    assert part.startswith("None says anything about this change: each is of a release whose rules differ from those ")


def test_a_claim_without_a_kind_is_said_to_be_untested(losing: Review) -> None:
    said = list(page.answer(replace(losing, claim_kind="", skipped=["x"])))
    assert "The claim was not tested: --claim-kind names the kind of violation that would contradict it." in said
    assert "Not everything was tried: see 'What was tested, and what was not'." in said
    assert not any(line.startswith("The claim was not tested") for line in page.answer(losing))


def test_downgraded_brokers_begin_in_the_mode(losing: Review) -> None:
    downgrade = next(scenario for scenario in losing.moved if scenario.name == f"rolling{DOWNGRADE}")
    assert downgrade.pair.b == "back"
    assert f"--modes {losing.base.name}," in downgrade.command


def test_what_cannot_be_reviewed_is_refused(tmp_path: Path) -> None:
    kip320 = MODES["kip320"]
    with pytest.raises(InputError, match="have the same rules"):
        review(replace(kip320, name="mine"), kip320, tmp_path)
    with pytest.raises(InputError, match="different control planes"):
        review(MODES["kraft"], kip320, tmp_path)
    with pytest.raises(InputError, match="canary is no random scenario that kip320 can run"):
        review(MODES["kip320-2.6.1"], kip320, tmp_path, scenarios=["canary"])
    with pytest.raises(InputError, match=r"--scenarios \./mine\.toml: names of scenarios are needed, not files"):
        review(MODES["kip320-2.6.1"], kip320, tmp_path, scenarios=["./mine.toml"])
    with pytest.raises(InputError, match="'comitted-loss' is no kind of violation"):
        review(MODES["kip320-2.6.1"], kip320, tmp_path, claim_kind="comitted-loss")


@pytest.mark.world
@pytest.mark.usefixtures("sweeps_here")
def test_the_command_writes_both_pages(highwater: Callable[..., Call], tmp_path: Path) -> None:
    words = ["review", "kip320+stop_replica=unchecked", "--against", "kip320", "--scenarios", "power", "--seeds", 2]
    call = highwater(*words, "--output", tmp_path / "out")
    assert call.code == exit_codes.INCONCLUSIVE  # These seeds never ask the rule.
    last = call.out.splitlines()[-1]
    assert last.startswith("Inconclusive: the proposal and kip320 have the same history on each seed")
    text = (tmp_path / "out" / "review.md").read_text()
    assert text.startswith("# Review of kip320")
    assert "Rules without an effect in random scenarios: stop\\_replica; nothing here tests them." in text
    assert "Highwater review" in (tmp_path / "out" / "review.html").read_text()
    assert highwater(*words, "--output", tmp_path / "out").code == exit_codes.INCONCLUSIVE
    wrong = highwater("review", "kip32", "--against", "kip320", "--output", tmp_path / "other")
    assert (wrong.code, "did you mean 'kip320'" in wrong.err) == (2, True)
    wrong = highwater("review", "kip320", "--against", "kip320", "--output", tmp_path / "other")
    assert (wrong.code, "have the same rules" in wrong.err) == (2, True)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("counts", "sure"),
    [
        (SeedCounts(0, 0, 1, (0, 20, 24)), True),
        (SeedCounts(0, 0, 1, (3, 4, 24)), False),
        (SeedCounts(0, 0, 9), True),
        (SeedCounts(5, 1, 9), False),
        (SeedCounts(5, 0, 9), True),
        (SeedCounts(5, 9, 0), False),
    ],
)
def test_what_only_the_mode_shows_may_be_chance(counts: SeedCounts, *, sure: bool) -> None:
    assert counts.is_sure == sure


@pytest.mark.parametrize(
    ("counts", "new"),
    [
        (SeedCounts(89, 2, 18), True),
        (SeedCounts(89, 2, 18, known=("resubmitted_reassignment=replaces-marks", 18)), False),
        (
            SeedCounts(89, 2, 18, known=("resubmitted_reassignment=replaces-marks", 12)),
            False,
        ),  # 6 more than 2 are chance.
        (SeedCounts(89, 2, 18, known=("resubmitted_reassignment=replaces-marks", 1)), True),
        (SeedCounts(0, 0, 9), True),
        (SeedCounts(5, 9, 0), False),
    ],
)
def test_a_cause_that_the_base_has_is_not_new(counts: SeedCounts, *, new: bool) -> None:
    assert counts.is_new == new


def test_the_cause_is_one_that_a_rule_prevents_in_the_base(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its value prevents the violation on seeds of the base, and of those that only the mode shows."""
    base, mine = MODES["elr-4.3"], mode("elr-4.3+reassignment_completes=targets-in-isr")
    repair = ("resubmitted_reassignment", "replaces-marks")
    other = ("isr_floor", "min-isr")

    def row(_: object, of: Mode, seed: int, rules: dict[str, str]) -> dict[str, str]:
        prevented = (repair[0] in rules and (of is base or seed != 9)) or (other[0] in rules and seed == 1)
        return {"verdict": "ok", "violations_inside": "" if prevented else "no-progress"}

    monkeypatch.setattr(reviewing, "run_row", row)
    rows = object.__new__(reviewing._Rows)
    rows._one = PacedRun(catalogue.load("reassignments"), (base, mine))
    rows._differing = {"reassignment_completes"}
    asked = sum(1 << VALUES.index(pair) for pair in (repair, other, ("reassignment_completes", "min-isr")))
    rows._decided = dict.fromkeys(range(10), asked)
    assert rows._known("no-progress", {1, 2}, {7, 8, 9}) == (f"{repair[0]}={repair[1]}", 2)
    rows._decided = dict.fromkeys(range(10), 0)  # No rule was asked.
    assert rows._known("no-progress", {1, 2}, {7, 8, 9}) is None


def test_a_review_tells_what_the_base_does_as_well(losing: Review) -> None:
    (power,) = losing.swept
    known = SeedCounts(89, 2, 18, known=("elr_outside_assignment=dropped", 18))
    found = replace(losing, stories=[], moved=[], swept=[replace(power, inside={"no-progress": known})])
    assert (found.verdict, found.is_worse, found.lost) == (OFTENER, True, {})
    said = list(page.answer(found))
    assert said[0].endswith("breaks its promise on more seeds than kip279, and in no way that kip279 does not.")
    assert any(line.endswith("prevents it with kip279, and on 18 of these 18 seeds.") for line in said)


def test_no_commands_stand_where_only_the_base_violates(losing: Review) -> None:
    (power,) = losing.swept
    found = replace(losing, stories=[], swept=[replace(power, inside={"no-progress": SeedCounts(20, 2, 0)})])
    blocks = list(page.blocks(found))
    assert any(
        isinstance(block, Table) and block.rows == [("power", "no-progress", SEEDS, 20, 2, 0)] for block in blocks
    )
    assert all(block.lines for block in blocks if isinstance(block, Commands))


def test_waiting_for_an_operator_is_told_apart_from_availability(losing: Review) -> None:
    (power,) = losing.swept
    calm = replace(power, inside={}, pair=replace(power.pair, availability=()), claim=SeedCounts())
    waiting = replace(losing, stories=[], moved=[], swept=[replace(calm, stalled=SeedCounts(only_mode=7))])
    assert (waiting.verdict, waiting.is_worse) == (WAITS, False)
    said = list(page.answer(waiting))
    assert said[0].endswith(
        "keeps its promise where kip279 does, and leaves a partition waiting for an operator more often."
    )
    assert said[-3].endswith("the partition ends without a leader until an operator acts: on 7 seeds.")
    changed = f"on the {power.changed} seeds that changed."
    assert said[-2] == f"No measure of availability before the end differs beyond chance, {changed}"
    harmless = replace(waiting, swept=[replace(calm, stalled=SeedCounts(only_mode=1, only_base=1))])
    assert harmless.verdict == HARMLESS
    assert f"No measure of availability differs beyond chance, {changed}" in page.answer(harmless)


def test_scripted_losses_whose_steps_do_not_occur_are_told(losing: Review) -> None:
    ends = "committed-loss (inside)", "no violation; not as told: x"
    gone = StoryEnd("moved", *ends, "", worse=False, better=False, gone=("a",), lacks_step=True)
    said = list(page.answer(replace(losing, stories=[gone])))
    (told,) = [line for line in said if line.startswith("1 scripted scenario does not play to the end with ")]
    assert "(see the table); kip279 breaks its promise in 1 of them: that " in told
    assert told.endswith(" prevents this is not shown.")


def test_a_script_whose_client_gets_no_answer_is_no_sign_of_harmlessness(losing: Review) -> None:
    (power,) = losing.swept
    calm = replace(power, inside={}, pair=replace(power.pair, availability=()), claim=SeedCounts())
    ends = "ok", "no violation; not as told: script line 5 waited in vain for 'ack batch=m2'"
    silent = StoryEnd("silent", *ends, "", worse=False, better=False, lacks_step=True, unanswered=True)
    found = replace(losing, stories=[silent], moved=[], swept=[calm])
    assert (found.verdict, found.is_worse) == (UNANSWERED, False)
    said = list(page.answer(found))
    assert said[0].endswith("keeps its promise where kip279 does, and does not answer clients in scripted scenarios.")
    assert any(
        line.endswith("that kip279 answers has no answer with " + page.label(found) + ": silent.") for line in said
    )


@pytest.mark.world
def test_scripts_that_lack_a_step_and_lose_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that never truncates below the HW: a step of the scripts is missing, and records are lost."""
    monkeypatch.setattr(reviewing, "_fitting", lambda _: map(catalogue.load, SHORT))
    monkeypatch.setattr(reviewing, "_moves", lambda *_: [])
    with plugins.loaded(EXAMPLE):
        base = mode("elr-4.3")
        mine = mode("elr-4.3+follower_truncation=max-of-both")
        found = review(mine, base, tmp_path, seeds=1, scenarios=[], conforms=False)
    stories = {story.scenario: story for story in found.stories}
    assert stories.keys() == {*SHORT}
    for story in stories.values():
        assert story.lacks_step
        assert story.worse
        assert not story.gone
    loss = stories["leo-of-skipped-epoch-paused"].mode
    assert loss.startswith("committed-loss (inside), stuck-replica (inside); not as told: ")
    assert stories["kip101-appendix"].mode.startswith("divergence (inside); not as told: ")
    assert found.verdict == LOSES
    said = "\n".join(page.answer(found))
    assert "Scripted scenarios that end worse: " in said
    assert "that far" not in said
    assert "not play to the end" not in said


SHORT = ("kip101-appendix", "leo-of-skipped-epoch-paused", "returning-leader")


def test_scripted_scenarios_that_end_neither_worse_nor_better_are_told(losing: Review) -> None:
    lost = StoryEnd("lost", "ok", "committed-loss", "", worse=False, better=False)
    stopped = StoryEnd("stopped", "ok", "no violation; not as told: x", "", worse=False, better=False, lacks_step=True)
    said = list(page.answer(replace(losing, stories=[lost, stopped])))
    assert any(line.startswith("1 scripted scenario does not play to the end with ") for line in said)
    assert any(line.endswith("violates something, outside its promise: lost.") for line in said)
    assert not any("lost" in line or "stopped" in line for line in page.answer(replace(losing, stories=[])))


def test_the_time_is_spent_where_the_rules_have_an_effect() -> None:
    now = [0.0]
    pace = Pace(1_000.0, 2, lambda: now[0])
    kip320 = MODES["kip320"]
    runs = [PacedRun(catalogue.load("power"), (kip320, kip320), 0.1, touched) for touched in (0.0, 0.5, 0.5, 0.0)]
    ahead, numbers = pace.in_order(runs), []
    assert ahead[0].touched == 0
    while ahead:
        numbers.append(pace.seeds(ahead))
        took_s = 2 + numbers[-1] * 0.1 / 2 * 1.5  # Half as long again as the pilots told.
        now[0] += took_s
        pace.learn(ahead[0], numbers[-1], took_s)
        del ahead[0]
    assert min(numbers[1:3]) > 2 * numbers[0]
    assert 900 < now[0] <= 1_000


def test_a_review_ends_when_its_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "LocalBackend", lambda _: Here())
    monkeypatch.setattr(reviewing, "_run_stories", lambda _: None)
    mine = mode("kip279+follower_truncation=high-watermark")
    scenarios = ["power", "sessions"]
    found = review(mine, MODES["kip279"], tmp_path, budget_s=0.01, scenarios=scenarios, conforms=False)
    (swept,) = found.swept
    assert swept.pair.n == FEWEST
    (other,) = {*scenarios} - {swept.name}
    assert any(line.startswith("Not run, because the time was over: ") and other in line for line in found.skipped)
