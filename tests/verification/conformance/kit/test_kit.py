"""The kit: its schema, its driver, and the implementation that was written from its page."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.places import ROOT
from tests.verification.conformance.kit import __main__ as kit
from tests.verification.oracle.kafka import plain
from tests.verification.oracle.recording import FOLDER, SCHEMA_VERSION
from tests.verification.oracle.releases import LIKE
from tests.verification.oracle.subjects import SUBJECTS

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.world  # Each test starts processes, as other implementations do.

HERE: Final = Path(__file__).parent
EXAMPLE: Final = HERE / "example.py"
SCHEMA: Final = json.loads((HERE / f"vectors-{SCHEMA_VERSION}.schema.json").read_text(encoding="utf-8"))
PAGE: Final = (HERE / "README.md").read_text(encoding="utf-8")
DESCRIBED: Final = ("epoch-cache", "zk-election", "partition-change", "alter-partition-manager", "broker-lifecycle")
PAIRS: Final = [(subject, release) for subject in DESCRIBED for release in kit.available(FOLDER)[subject]]
TYPES: Final[dict[str, type]] = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "null": type(None),
    "object": dict,
    "string": str,
}


def is_valid(value: Any, schema: Any) -> bool:
    """As much of JSON Schema as the file uses; an unknown keyword is an error."""
    if isinstance(schema, bool):
        return schema
    parts = len(schema.get("prefixItems", ()))
    return all(
        KEYWORDS[keyword](value, (wanted, parts) if keyword == "items" else wanted)
        for keyword, wanted in schema.items()
    )


def _has_type(value: Any, name: str) -> bool:
    return isinstance(value, TYPES[name]) and (name != "integer" or not isinstance(value, bool))


KEYWORDS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "type": _has_type,
    "const": kit.equal,
    "enum": lambda value, some: any(kit.equal(one, value) for one in some),
    "oneOf": lambda value, some: sum(is_valid(value, one) for one in some) == 1,
    "$ref": lambda value, name: is_valid(value, SCHEMA["$defs"][name.removeprefix("#/$defs/")]),
    "minimum": lambda value, least: bool(value >= least),
    "pattern": lambda value, text: re.search(text, value) is not None,
    "minItems": lambda value, least: len(value) >= least,
    "maxItems": lambda value, most: len(value) <= most,
    "prefixItems": lambda value, some: all(is_valid(part, one) for part, one in zip(value, some, strict=False)),
    "items": lambda value, rest: all(is_valid(part, rest[0]) for part in value[rest[1] :]),
    "required": lambda value, names: set(names) <= value.keys(),
    "properties": lambda value, some: all(is_valid(value[name], one) for name, one in some.items() if name in value),
    "additionalProperties": lambda value, _: value.keys() <= SCHEMA["properties"].keys(),
    **dict.fromkeys(("title", "description", "$schema", "$defs"), lambda *_: True),
}


def content(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(file.stem for file in FOLDER.glob("*.json")))
def test_the_schema_accepts_each_file(name: str) -> None:
    assert is_valid(content(name), SCHEMA)


def _with_vector(name: str, case: Any, answers: Any) -> Any:
    return {**content(name), "vectors": [[case, answers]]}


@pytest.mark.parametrize(
    "wrong",
    [
        {**content("epoch-cache-4.3.1"), "schema_version": 2},
        {**content("epoch-cache-4.3.1"), "subject": "epoch-cash"},
        {**content("epoch-cache-4.3.1"), "more": 1},
        {**content("epoch-cache-4.3.1"), "vectors": []},
        _with_vector("epoch-cache-4.3.1", [["assign", 1]], [[None, []]]),
        _with_vector("epoch-cache-4.3.1", [["assign", 1, 2, 3]], [[None, []]]),
        _with_vector("epoch-cache-4.3.1", [["clear"]], [[None, [[1, True]]]]),
        _with_vector("zk-election-2.6.0", [["offline", [1], [1], [1]]], [1]),
        _with_vector("partition-change-4.3.1", [["state", [1], 1, [1], [], [], 2]], ["refused"]),
        _with_vector("alter-partition-manager-4.3.1", [["time", 0]], [[[], [], [], 0]]),
        _with_vector("alter-partition-manager-4.3.1", [["epoch"]], [[[], [[0, ["NONE"]]], [], 0]]),
        _with_vector("broker-lifecycle-4.3.1", [["ready"]], [[True, "STARTED", False, False, False, 0, []]]),
        _with_vector(
            "broker-lifecycle-4.3.1", [["answer", "NONE", 1, 0]], [[True, "STARTING", False, False, False, 0, []]]
        ),
        _with_vector("partition-change-4.3.1", [["cancel", [1], 1, 1, "ONLINE", 1]], ["refuse"]),
    ],
)
def test_the_schema_refuses_other_content(wrong: Any) -> None:
    assert not is_valid(wrong, SCHEMA)


def test_schema_version_is_that_of_the_recording() -> None:
    assert kit.SCHEMA_VERSION == SCHEMA_VERSION == SCHEMA["properties"]["schema_version"]["const"]


def test_page_names_described_subjects_and_like_releases() -> None:
    assert [name for name in re.findall(r"^## (.*)", PAGE, re.M) if name in SUBJECTS] == list(DESCRIBED)
    assert set(re.findall(r"`\[\"([a-z-]+)\"", PAGE)) >= {"assign", "end", "near", "load", "state", "cancel"}
    like = {
        name: release for names, release in re.findall(r"([\d. and]+) as ([\d.]+\d)", PAGE) for name in names.split()
    }
    assert {release: like.get(release) for release in LIKE} == LIKE


def run(*words: str, program: list[str] | None = None) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the kit."""
    command = [sys.executable, "-m", "tests.verification.conformance.kit", *words]
    done = subprocess.run(
        command + (["--", *program] if program else []),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr.replace("  ", "") or program
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(("subject", "release"), PAIRS)
def test_the_implementation_from_the_page_does_as_kafka(subject: str, release: str) -> None:
    code, out, err = run(subject, release, program=[sys.executable, str(EXAMPLE)])
    assert (code, err) == (0, "")
    assert re.fullmatch(rf"{subject} {release}: \d+ cases, [\d,]+ operations: equal\n", out)


DEFECTS: Final = [
    ("epoch-cache", "4.3.1", "one[0] < epoch and one[1] < start", "one[0] < epoch and one[1] <= start"),
    ("epoch-cache", "2.0.0", "start >= log[-1][1]", "start > log[-1][1]"),
    ("epoch-cache", "4.1.0", "log[place + 1][1]", "leo"),
    ("zk-election", "2.6.0", " and broker not in stopping", ""),
    ("partition-change", "3.9.0", 'removing or new["removing"]', "removing"),
    ("partition-change", "4.1.0", '(new["isr"] or new["elr"])', 'new["isr"]'),
    ("partition-change", "4.2.1", "release < (4, 2)", "release < (4, 3)"),
    ("partition-change", "4.2.1", " - set(ended)", ""),
    ("alter-partition-manager", "3.9.0", "self.time + 50", "self.time + 51"),
    ("alter-partition-manager", "4.3.1", "if self.waiting and not self.in_flight", "if self.waiting"),
    ("broker-lifecycle", "3.9.0", "release < (4, 1)", "release < (3, 1)"),
    ("broker-lifecycle", "4.3.1", "            self.urgent = True", "            pass"),
    ("partition-change", "4.3.1", "release >= (4, 3, 1)", "release >= (5,)"),
]


@pytest.mark.parametrize(("subject", "release", "was", "became"), DEFECTS)
def test_seeded_defects_are_found(tmp_path: Path, subject: str, release: str, was: str, became: str) -> None:
    source = EXAMPLE.read_text(encoding="utf-8")
    assert source.count(was) == 1
    program = tmp_path / "defect.py"
    program.write_text(source.replace(was, became), encoding="utf-8")
    code, out, err = run("--all", subject, release, program=[sys.executable, str(program)])
    assert (code, err) == (1, "")
    operations = [json.loads(line) for line in out.splitlines() if line.startswith("  ")]
    expected, given = (json.loads(re.findall(rf"^{word} +(.*)", out, re.M)[0]) for word in ("expected", "given"))
    core = plain(SUBJECTS[subject].core(operations, release))
    assert expected == core[-1] != given
    assert len(operations) <= 5 or subject not in kit.STATES
    assert re.search(r"^\d+ of \d+ cases differ; this is the shortest$", out, re.M)


def test_page_shows_what_is_printed_at_a_difference(tmp_path: Path) -> None:
    program = tmp_path / "defect.py"
    source = EXAMPLE.read_text(encoding="utf-8")
    program.write_text(source.replace(" and one[1] < start), [", "), ["), encoding="utf-8")
    code, out, _ = run("epoch-cache", "4.3.1", program=[sys.executable, str(program)])
    assert code == 1
    assert f"```text\n{out}```\n" in PAGE


@pytest.mark.parametrize(("subject", "release"), PAIRS)
def test_shortened_cases_keep_the_last_answer(subject: str, release: str) -> None:
    for operations, answers in kit.read(FOLDER, subject, release)[:40]:
        for until in range(1, len(operations) + 1):
            fewer, expected = kit.shortened(subject, (operations[:until], answers[:until]))
            assert plain(SUBJECTS[subject].core(fewer, release)) == expected


def test_other_subjects_keep_the_whole_case() -> None:
    case = kit.read(FOLDER, "follower", "4.3.1")[1]
    assert kit.shortened("follower", case) == case


ANSWERS: Final = "import sys\nfor line in sys.stdin:\n    if 'operation' in line:\n        {}\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("raise SystemExit(3)", "ends with exit code 3 (case 1, operation 1, "),
        ("import os; os.kill(os.getpid(), 9)", "is ended by signal 9 (case 1, operation 1, "),
        ("print('no', flush=True)", "answers no JSON: 'no' (case 1, operation 1, "),
        ("print('{\"answer\": NaN}', flush=True)", "answers no JSON: "),
        ("print('[' * 100_000, flush=True)", "answers no JSON: '[[["),
        ("sys.stdout.buffer.write(b'\\xff\\n'); sys.stdout.flush()", "answers no JSON: "),
        ("print('[1]', flush=True)", 'answers no object {"answer": ...}: '),
        ("print('x' * 3_000_000, flush=True)", "writes a line of more than 1,000,000 bytes"),
        ("import time; time.sleep(50)", "does not answer within 1 s (case 1, operation 1, "),
    ],
)
def test_programs_that_do_not_answer_are_told_in_one_line(tmp_path: Path, text: str, told: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(ANSWERS.format(text))
    code, out, err = run("--seconds", "1", "epoch-cache", "4.3.1", program=[sys.executable, str(program)])
    assert (code, out) == (69, "")
    assert err.startswith("error: the program ")
    assert told in err
    assert err.count("\n") == 1


def test_a_program_that_does_not_start_is_told_in_one_line(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    assert run("epoch-cache", "4.3.1", program=[missing]) == (
        69,
        "",
        f"error: the program {missing} does not start: No such file or directory\n",
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "SUBJECT and RELEASE are missing; --list prints them"),
        (("epoch-cash", "4.3.1"), "subject 'epoch-cash' is unknown; nearest: epoch-cache"),
        (("epoch-cache", "4.3.2"), "release '4.3.2' is unknown; nearest: 4.3.1"),
        (("epoch-cache", "4.3.1"), "the program is missing: add -- PROGRAM [ARGUMENT...]"),
        (("epoch-cache", "4.3.1", "--case", "0"), "--case 0: there are cases 1 to 100"),
        (("epoch-cache", "4.3.1", "--case", "one"), "argument --case: invalid int value: 'one'"),
        (("epoch-cache", "4.3.1", "--seconds", "nan"), "--seconds nan: a positive number is needed"),
        (("epoch-cache", "4.3.1", "--vectors", "sim"), "--vectors sim: holds no file SUBJECT-RELEASE.json"),
        (("epoch-cache", "4.3.1", "--al"), "argument '--al' is unknown; nearest: --all"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], told: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {told}")
    assert err.count("\n") == 1


def test_files_of_another_version_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "epoch-cache-4.3.1.json"
    file.write_text(json.dumps({**content("epoch-cache-4.3.1"), "schema_version": 2}))
    code, _, err = run("--vectors", str(tmp_path), "epoch-cache", "4.3.1", program=["true"])
    assert (code, err) == (2, f"error: {file}: schema_version 2 is not read here, only 1\n")
    file.write_text("{")
    code, _, err = run("--vectors", str(tmp_path), "epoch-cache", "4.3.1", program=["true"])
    assert (code, err.count("\n")) == (2, 1)


def test_one_file_and_the_vectors_suffice(tmp_path: Path) -> None:
    file = tmp_path / "kit.py"
    file.write_text((HERE / "__main__.py").read_text(encoding="utf-8"), encoding="utf-8")
    words = ["--vectors", str(FOLDER), "--case", "3", "epoch-cache", "4.3.1", "--", sys.executable, str(EXAMPLE)]
    command = [sys.executable, "-I", "-S", str(file), *words]  # Without the packages of the environment.
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "epoch-cache 4.3.1: 1 case, 4 operations: equal\n", "")


def test_numbers_are_compared_as_json_has_them() -> None:
    assert kit.equal([1, [0]], [1.0, [0.0]])
    assert not kit.equal([1], [True])
    assert not kit.equal([1], [1.5])
    assert kit.differing_part([1, [2, 3]], [1, [2, 4]]) == "answer[1][1]"
    assert kit.differing_part([1], [1, 2]) == "answer"
