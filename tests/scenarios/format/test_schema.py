from __future__ import annotations

import pytest

from faults.bounds import FaultBounds
from scenarios.format.actions import ACTIONS
from scenarios.format.scenario import (
    AlsoOccurs,
    Bursts,
    Expectation,
    FinalLog,
    Pattern,
    Scenario,
    ScriptLine,
    StoryLine,
)
from scenarios.format.schema import read
from scenarios.format.values import PARAMS
from sim.config import NEVER
from sim.errors import InputError

HEAD = """
schema = 1
name = "a"
title = "t"
brokers.count = 3
control = "scripted"
config.default.replication.factor = 3
"""
SENDS = """
[[script]]
do = "produce"
batch = "m1"
"""
EXPECT = """
[expect]
hw = "violates:committed-loss"
"""
DRAWN = """
schema = 1
name = "drawn"
title = "t"
brokers = 2
control = "real"
[draw]
min.insync.replicas = [1, 2]
"log.flush.interval.messages" = ["never", 10]
[workload]
bursts = [8, 12]
batches = [3, 6]
gap_ms = [100, 400]
records = [1, 5]
acks_one_every = 5
[faults]
horizon_ms = 150000
count = [3, 8]
kinds = ["kill", "cut"]
restart_ms = [1000, 20000]
cut_ms = [1000, 40000]
[expect]
hw = "may-violate"
kip101 = "clean"
"""


def problems(text: str) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        read(text, "x.toml")
    return tuple(problem.removeprefix("x.toml: ") for problem in caught.value.problems)


def line(text: str) -> ScriptLine:
    return read(f"{HEAD}{SENDS}[[script]]\n{text}{EXPECT}", "x.toml").script[1]


def test_a_scripted_scenario_is_read_in_full() -> None:
    text = """
    schema = 1
    name = "full.one-1"
    title = "t"
    description = "d"
    brokers.count = 2
    brokers.first = 2
    control = "scripted"
    settle_ms = 7
    [config]
    default.replication.factor = 2
    unclean.leader.election.enable = true
    [brokers.2]
    mode = "kip101"
    log.flush.interval.messages = "never"
    [[script]]
    do = "produce"
    batch = "m1"
    records = 3
    acks = -1
    [[script]]
    when = { step = "ack", batch = "m1" }
    after_ms = 2
    after_us = 5
    do = "cut"
    from = 1
    to = "control"
    rules = { fetch_fencing = "no" }
    [[story]]
    step = "isr"
    isr = [1, 2]
    leader_epoch = 4
    [[story]]
    step = "elr"
    elr = [2]
    last_known_elr = []
    [[story]]
    step = "truncate"
    broker = 1
    offset = 1
    rules = { follower_truncation = "high-watermark", isr_join = ["high-watermark", "leader-epoch-start"] }
    [[final]]
    broker = 2
    batches = ["m1"]
    leo = 3
    rules = { append_check = "first-offset" }
    [expect]
    hw = "violates:stuck-replica|divergence"
    kip101 = "clean:divergence"
    [broken_by]
    kip101 = { follower_truncation = "high-watermark" }
    [[also]]
    kind = "exposed-loss"
    modes = ["hw"]
    label = "outside"
    reason = "r"
    """
    assert read(text, "x.toml") == Scenario(
        name="full.one-1",
        title="t",
        description="d",
        brokers=2,
        control="scripted",
        first=2,
        config={"default.replication.factor": 2, "unclean.leader.election.enable": True},
        broker_config={2: {"log.flush.interval.messages": NEVER}},
        broker_modes={2: "kip101"},
        script=(
            ScriptLine("produce", params={"batch": "m1", "records": 3, "acks": "all"}),
            ScriptLine(
                "cut",
                Pattern("ack", batch="m1"),
                2005,
                {"from": 1, "to": "control", "both_ways": True},
                {"fetch_fencing": ("no",)},
            ),
        ),
        story=(
            StoryLine(Pattern("isr", isr=(1, 2), leader_epoch=4)),
            StoryLine(Pattern("elr", elr=(2,), last_known_elr=())),
            StoryLine(
                Pattern("truncate", broker=1, offset=1),
                {
                    "follower_truncation": ("high-watermark",),
                    "isr_join": ("high-watermark", "leader-epoch-start"),
                },
            ),
        ),
        final=(FinalLog(2, ("m1",), 3, {"append_check": ("first-offset",)}),),
        expect={
            "hw": Expectation("violates", ("stuck-replica", "divergence")),
            "kip101": Expectation("clean", ("divergence",)),
        },
        broken_by={"kip101": {"follower_truncation": "high-watermark"}},
        also=(AlsoOccurs("exposed-loss", ("hw",), "outside", "r"),),
        settle_us=7000,
    )


def test_a_drawn_scenario_is_read_in_full() -> None:
    with pytest.raises(InputError, match="there are only 2 brokers"):
        read(DRAWN.replace("[draw]", "[draw]\ndefault.replication.factor = [1, 3]"), "x.toml")
    assert read(DRAWN, "x.toml") == Scenario(
        name="drawn",
        title="t",
        description="",
        brokers=2,
        control="real",
        draw_config={"min.insync.replicas": (1, 2), "log.flush.interval.messages": (NEVER, 10)},
        workload=Bursts((8, 12), (3, 6), (100, 400), (1, 5), 5),
        faults=FaultBounds(150_000_000, (3, 8), ("kill", "cut"), (1_000_000, 20_000_000), (1_000_000, 40_000_000)),
        expect={"hw": Expectation("may-violate"), "kip101": Expectation("clean")},
    )


def test_optional_keys_of_faults_may_be_given_or_left_out() -> None:
    more = "pause_ms = [1, 2]\nslow_ms = [3, 4]\nloss_permille = [5, 6]\ncut_ms"
    faults = read(DRAWN.replace("cut_ms", more), "x.toml").faults
    assert faults is not None
    assert (faults.pause_us, faults.slow_us, faults.loss_permille) == ((1_000, 2_000), (3_000, 4_000), (5, 6))
    assert faults.cut_us == (1_000_000, 40_000_000)


def test_shares_of_faults_and_bursts() -> None:
    text = "aimed_percent = 40\nburst_percent = 50\nchain_percent = 30\nrolling_percent = 20\ncut_ms"
    scenario = read(
        DRAWN.replace("cut_ms", text).replace("acks_one_every", "near_percent = 70\nacks_one_every"), "x.toml"
    )
    assert scenario.faults is not None
    assert scenario.workload is not None
    assert scenario.workload.near_percent == 70
    faults = scenario.faults
    assert (faults.aimed_percent, faults.burst_percent, faults.chain_percent, faults.rolling_percent) == (
        40,
        50,
        30,
        20,
    )
    more = problems(DRAWN.replace("cut_ms", text.replace("20", "21")))
    assert more == ("faults.rolling_percent = 21: with burst_percent and chain_percent that is more than 100",)
    assert "faults.aimed_percent = 101" in problems(DRAWN.replace("cut_ms", "aimed_percent = 101\ncut_ms"))[0]


def test_a_story_of_a_last_replica_needs_kinds_that_strike_brokers() -> None:
    links = DRAWN.replace('"kill", "cut"', '"slow", "cut"').replace("cut_ms", "standing_percent = 5\ncut_ms")
    assert links != DRAWN
    assert problems(links) == (
        "faults.standing_percent = 5: it needs a kind that strikes brokers, and slow, cut strike links alone",
    )
    assert read(links.replace('"slow", "cut"', '"slow", "kill"'), "x.toml").faults is not None
    assert read(links.replace("standing_percent = 5", "standing_percent = 0"), "x.toml").faults is not None


def test_faults_need_some_time() -> None:
    assert "faults.horizon_ms = 5999" in problems(DRAWN.replace("horizon_ms = 150000", "horizon_ms = 5999"))[0]
    assert read(DRAWN.replace("horizon_ms = 150000", "horizon_ms = 6000"), "x.toml").faults is not None


def test_file_with_settings_that_no_kafka_would_start_with() -> None:
    waits = HEAD + "config.replica.fetch.wait.max.ms = 31000" + SENDS + EXPECT
    first, second = problems(waits)
    assert first == (
        "replica.fetch.wait.max.ms = 31000 with replica.socket.timeout.ms = 30000: Kafka would not start "
        "(KafkaConfig.validateValues); a follower's fetch must not wait longer than its timeout"
    )
    assert second.startswith("replica.fetch.wait.max.ms = 31000 with replica.lag.time.max.ms = 30000: Kafka would not")
    one = HEAD.replace("brokers.count", "brokers.2.replica.lag.time.max.ms = 400\nbrokers.count") + SENDS + EXPECT
    assert problems(one)[0].startswith(
        "broker 2: replica.fetch.wait.max.ms = 500 with replica.lag.time.max.ms = 400: Kafka would not start"
    )


def test_every_combination_of_drawn_settings_has_to_be_legal() -> None:
    text = DRAWN.replace(
        "[draw]", "[draw]\nreplica.lag.time.max.ms = [10000, 30000]\nreplica.fetch.wait.max.ms = [500, %s]"
    )
    assert text != DRAWN
    assert read(text % 10_000, "x.toml").draw_config["replica.fetch.wait.max.ms"] == (500, 10_000)
    assert problems(text % 10_001)[0].startswith(
        "replica.fetch.wait.max.ms = 10001 (drawn) with replica.lag.time.max.ms = 10000 (drawn): Kafka would not start"
    )


def test_modes_before_an_upgrade() -> None:
    text = DRAWN.replace("brokers = 2", 'brokers.count = 2\nbrokers.upgraded_from = ["hw", "kip101"]')
    assert read(text, "x.toml").upgraded_from == ("hw", "kip101")
    assert "did you mean 'kip101'" in problems(text.replace('"kip101"]', '"kip10"]'))[0]


def test_bare_and_quoted_keys_are_the_same() -> None:
    bare = read(HEAD + "config.min.insync.replicas = 2\nconfig.acks = '1'" + SENDS + EXPECT, "x.toml")
    quoted = read(HEAD + "config.'min.insync.replicas' = 2\nconfig.'acks' = 1" + SENDS + EXPECT, "x.toml")
    assert bare == quoted
    assert bare.config["min.insync.replicas"] == 2
    twice = HEAD + "config.min.insync.replicas = 2\nconfig.'min.insync.replicas' = 1" + SENDS + EXPECT
    assert problems(twice) == ("config: min.insync.replicas set twice, with and without quotes",)


def test_the_number_of_brokers_has_a_short_form() -> None:
    text = HEAD + SENDS + EXPECT
    assert read(text.replace("brokers.count", "brokers"), "x.toml") == read(text, "x.toml")


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ('do = "elect"\nbroker = 0\nisr = [3]', {"broker": 0, "isr": [3]}),
        ('do = "kill"\nbroker = 3', {"broker": 3}),
        ('do = "kill"\nbroker = 3\nrestart_ms = 0', {"broker": 3, "restart_ms": 0}),
        ('do = "power-loss"\nbrokers = [3, 1]', {"brokers": [3, 1]}),
        ('do = "cut"\nfrom = "control"\nto = 2\nboth_ways = false', {"from": "control", "to": 2, "both_ways": False}),
        ('do = "delete-records"\noffset = 0', {"offset": 0}),
        ('do = "heal"\nfrom = 1\nto = "control"', {"from": 1, "to": "control"}),
        ('do = "pause"\nnode = "control"\nfor_ms = 5', {"node": "control", "for_ms": 5}),
        ('do = "lossy"\nfrom = 1\nto = 2\npermille = 9', {"from": 1, "to": 2, "both_ways": True, "permille": 9}),
        ('do = "corrupt-tail"\nbroker = 1', {"broker": 1, "batches": 1}),
        ('do = "set-config"\nconfig.min.insync.replicas = 2', {"config": {"min.insync.replicas": 2}}),
        ('do = "reassignment"\nreplicas = [3, 1]', {"replicas": [3, 1]}),
        ('do = "produce"\nbatch = "m2"', {"batch": "m2", "records": 1}),
        ('do = "wait"', {}),
    ],
)
def test_parameters_of_actions(text: str, params: dict[str, object]) -> None:
    assert line(text).params == params


def test_produce_takes_what_a_batch_holds() -> None:
    assert set(ACTIONS["produce"].params) == {"batch", "records", "acks", "partition", "producer"}
    assert line('do = "produce"\nbatch = "m2"').params["records"] == 1


def test_every_kind_of_parameter_has_a_type() -> None:
    assert {param.kind for action in ACTIONS.values() for param in action.params.values()} == set(PARAMS)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('do = "kil"', "script 2: do = 'kil': no such action; did you mean 'kill'?"),
        ("broker = 1", "script 2: 'do' is missing"),
        ('do = "kill"', "script 2 (kill): 'broker' is missing"),
        ('do = "kill"\nbroker = 4', "script 2 (kill): broker = 4: the brokers are 1 to 3"),
        ('do = "kill"\nbroker = true', "script 2 (kill): broker = True: input should be a valid integer"),
        (
            'do = "kill"\nbroker = 1\nrestart = 5',
            "script 2 (kill): unknown key 'restart'; did you mean 'restart_ms'?",
        ),
        ('do = "heal"\nfrom = 1', "script 2 (heal): a link has two ends, 'from' and 'to'"),
        (
            'do = "slow"\nfrom = 1\nto = 2\nby_ms = 9223372036854775',
            "script 2 (slow): by_ms = 9223372036854775: input should be less than or equal to 4611686018427387",
        ),
        ('do = "isr"\nisr = [1, 1]', "script 2 (isr): isr = [1, 1]: a broker is named twice"),
        ('do = "isr"\nisr = [4]', "script 2 (isr): isr = 4: the replicas are on brokers 1 to 3"),
        ('do = "elect"\nbroker = 4\nisr = [1]', "script 2 (elect): broker = 4: a leader is one of 1 to 3; 0 is none"),
        (
            'do = "cut"\nfrom = 1\nto = 4',
            'script 2 (cut): to = 4: an end of a link is "control" or one of brokers 1 to 3',
        ),
        (
            'do = "produce"\nbatch = "m2"\nacks = 2',
            "script 2 (produce): acks = 2 is not valid; one of: 0, 1, all",
        ),
        (
            'do = "wait"\nwhen = { step = "ack", batch = "m7" }',
            "script 2 (wait): when.batch = 'm7': no line of the script sends it; did you mean 'm1'?",
        ),
        (
            'do = "wait"\nwhen = { step = "trunkate" }',
            "script 2 (wait): when.step = 'trunkate': no such step; did you mean 'truncate'?",
        ),
        (
            'do = "wait"\nwhen = { step = "hw", batch = "m1" }',
            "script 2 (wait): when.batch = 'm1': step 'hw' has none; steps that have one: append, ack, read",
        ),
        ('do = "wait"\nwhen = "ack"', "script 2 (wait): when = 'ack': a table is needed"),
        (
            'do = "retention"\npermille = 1001',
            "script 2 (retention): permille = 1001: input should be less than or equal to 1000",
        ),
        (
            'do = "set-config"\nconfig.acks = 1',
            (
                "script 2 (set-config): config = {'acks': 1}: acks cannot be changed while brokers run; one of: "
                "min.insync.replicas, unclean.leader.election.enable, eligible.leader.replicas.version"
            ),
        ),
        (
            'do = "set-config"\nconfig.min.insync.replicas = "x"',
            (
                "script 2 (set-config): config: min.insync.replicas = 'x' is not valid: a whole number of at least 1 "
                "is needed"
            ),
        ),
    ],
)
def test_a_wrong_script_line(text: str, problem: str) -> None:
    assert problem in problems(f"{HEAD}{SENDS}[[script]]\n{text}{EXPECT}")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('name = "a"', 'name = "A b"', "name = 'A b': string should match pattern '^[a-z0-9.-]+$'"),
        ('title = "t"', 'titel = "t"', "unknown key 'titel'; did you mean 'title'?"),
        ('title = "t"', "", "'title' is missing"),
        (
            'title = "t"',
            r'title = "t\nrm"',
            r"title = 't\nrm': one line without control characters is needed, and character 2 is '\n'",
        ),
        (
            'title = "t"',
            r'title = "\u202Et"',
            r"title = '\u202et': one line without control characters is needed, and character 1 is '\u202e'",
        ),
        ("schema = 1", "", "'schema' is missing"),
        ("schema = 1", "schema = 0", "schema = 0: input should be 1"),
        ("schema = 1", "schema = 2", "schema = 2 is newer than this version reads (1)"),
        ("schema = 1", "schema = = 1", "not TOML: Invalid value (at line 2, column 10)"),
        ("brokers.count = 3", "", "'brokers.count' is missing"),
        ("brokers.count = 3", "brokers.count = 0", "brokers.count = 0: input should be greater than or equal to 1"),
        (
            "brokers.count = 3",
            "brokers.count = 3\nbrokers.4.acks = '1'",
            "brokers.4: brokers has no such key; it holds 'count', 'first', 'upgraded_from', and sections 1 to 3",
        ),
        (
            "brokers.count = 3",
            "brokers.count = 3\nbrokers.2.min.insync.replica = 1",
            "brokers.2: unknown configuration key 'min.insync.replica'; did you mean 'min.insync.replicas'?",
        ),
        (
            "brokers.count = 3",
            "brokers.count = 3\nbrokers.2.mode = 'kip11'",
            "brokers.2.mode = 'kip11': no such mode; did you mean 'kip101'?",
        ),
        ("brokers.count = 3", "brokers.count = 3\nbrokers.2 = 5", "brokers.2 = 5: a table is needed"),
        ("factor = 3", "factor = 4", "config: default.replication.factor = 4: there are only 3 brokers"),
        ("scripted", "scribted", "control = 'scribted': no such control plane; did you mean 'scripted'?"),
        (
            "factor = 3",
            "factor = {}",
            "config: default.replication.factor = {} is not valid: a whole number of at least 1 is needed",
        ),
        (
            "brokers.count = 3",
            "brokers.count = 3\nbrokers.2.acks = {}",
            "brokers.2: acks = {} is not valid; one of: 0, 1, all",
        ),
        ("[[script]]", "[[skript]]", "unknown key 'skript'; did you mean 'script'?"),
        ("produce", "heal", "no batches are sent: a workload, or script lines with do = 'produce', are needed"),
        ("hw =", "hv =", "expect.hv: no such mode; did you mean 'hw'?"),
        (
            "violates:",
            "violate:",
            "expect.hw = 'violate:committed-loss': no such expectation; did you mean 'violates'?",
        ),
        (
            ":committed-loss",
            ":divergense",
            "expect.hw = 'violates:divergense': no such kind of violation; did you mean 'divergence'?",
        ),
        (
            "violates:committed-loss",
            "clean",
            "expect.hw = 'clean': unless faults are drawn it must name kinds, as in 'clean:committed-loss'",
        ),
        (
            "violates:committed-loss",
            "may-violate:divergence",
            "expect.hw = 'may-violate:divergence': may-violate takes no kinds",
        ),
    ],
)
def test_a_wrong_file(old: str, new: str, problem: str) -> None:
    text = HEAD + SENDS + EXPECT
    assert old in text
    assert problem in problems(text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("[8, 12]", "[12, 8]", "workload.bursts = [12, 8]: two numbers are needed, the lower bound first"),
        ("[8, 12]", "[8, 'x']", "workload.bursts = 'x': input should be a valid integer"),
        ("records =", "recods =", "workload: unknown key 'recods'; did you mean 'records'?"),
        (
            '"cut"]',
            '"cutt"]',
            "faults.kinds = 'cutt': no such fault kind; did you mean 'cut'? (a kind of a plug-in needs --plugin)",
        ),
        ("[1, 2]", "[0, 2]", "draw: min.insync.replicas = 0 is not valid: a whole number of at least 1 is needed"),
        ("[1, 2]", "1", "draw: min.insync.replicas = 1: a list of values to draw from is needed"),
        (
            "[draw]",
            "[config]\nmin.insync.replicas = 1\n[draw]",
            "draw: min.insync.replicas is drawn, and also set in config",
        ),
        ("[expect]", SENDS + "[expect]", "workload and script both send batches; only one of them may"),
        (
            "[expect]",
            '[[script]]\ndo = "isr"\nisr = [1]\n[expect]',
            "script 1 (isr): do = 'isr': it needs control = \"scripted\"",
        ),
    ],
)
def test_a_wrong_drawn_file(old: str, new: str, problem: str) -> None:
    assert old in DRAWN
    assert problem in problems(DRAWN.replace(old, new))


def test_a_batch_is_sent_once() -> None:
    assert problems(HEAD + SENDS + SENDS + EXPECT) == (
        "script 1 (produce): batch = 'm1': more than one line sends it",
        "script 2 (produce): batch = 'm1': more than one line sends it",
    )


def test_wrong_rules_of_a_story_line() -> None:
    rules = "rules = { follower_truncation = 'high-watermrk', isr_joint = 'x', fetch_fencing = 1 }"
    assert problems(f"{HEAD}{SENDS}[[story]]\nstep = 'hw'\n{rules}{EXPECT}") == (
        "story 1: rules: rule follower_truncation has no value 'high-watermrk'; did you mean 'high-watermark'?",
        "story 1: rules: unknown rule 'isr_joint'; did you mean 'isr_join'?",
        "story 1: rules: rule fetch_fencing has no value '1'; one of: no, last-epoch, leader-epoch",
    )


def test_wrong_final_logs() -> None:
    final = "[[final]]\nbroker = 4\nbatches = ['m7']\nrules = { isr_join = ['high-watermark', 'any'] }"
    assert problems(f"{HEAD}{SENDS}{final}{EXPECT}") == (
        "final 1: broker = 4: the brokers are 1 to 3",
        "final 1: batches = 'm7': no line of the script sends it; did you mean 'm1'?",
        "final 1: rules: rule isr_join has no value 'any'; one of: high-watermark, leader-epoch-start",
    )


def test_wrong_rules_that_break_a_mode() -> None:
    assert problems(f"{HEAD}{SENDS}{EXPECT}[broken_by]\nhv = {{}}\nkip101.isr_join = ['high-watermark']") == (
        "broken_by.hv: no such mode; did you mean 'hw'?",
        "broken_by.kip101: rule isr_join has no value \"['high-watermark']\"; did you mean 'high-watermark'?",
    )


def test_all_mistakes_are_named_at_once() -> None:
    text = HEAD.replace('"a"', '"A"').replace("factor = 3", "factors = 3") + SENDS + '[[script]]\ndo = "kil"\n'
    assert problems(text + EXPECT.replace("hw", "hv")) == (
        "name = 'A': string should match pattern '^[a-z0-9.-]+$'",
        "config: unknown configuration key 'default.replication.factors'; did you mean 'default.replication.factor'?",
        "script 2: do = 'kil': no such action; did you mean 'kill'?",
        "expect.hv: no such mode; did you mean 'hw'?",
    )


def test_values_of_unknown_keys_are_not_repeated() -> None:
    text = HEAD + "config.ssl.keystore.password = 'hunter2'\nsasl = 'hunter2'" + SENDS + EXPECT
    found = problems(text)
    assert len(found) == 2
    assert "hunter2" not in "".join(found)


def test_control_planes_do_not_mix() -> None:
    text = (HEAD + SENDS + EXPECT).replace("brokers.count = 3", "brokers.count = 3\nbrokers.2.mode = 'kraft'")
    with pytest.raises(InputError, match=r"^x\.toml: a does not run in hw: its broker 2 is in mode kraft, under KRaft"):
        read(text, "x.toml")
