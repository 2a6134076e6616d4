"""The oracle's own parts, without Java."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import pytest

from tests.places import ROOT
from tests.verification.oracle.__main__ import main
from tests.verification.oracle.comparing import signature
from tests.verification.oracle.differences import listed
from tests.verification.oracle.kafka import SOURCES, _first_error, fitting, plain, sources
from tests.verification.oracle.minimising import minimise
from tests.verification.oracle.mutants import CORE, mutants
from tests.verification.oracle.recording import branches
from tests.verification.oracle.subject import Case, Subject
from tests.verification.oracle.subjects import SUBJECTS

PAIRS = [
    pytest.param(subject, release, marks=pytest.mark.world if place else ())
    for subject in SUBJECTS.values()
    for place, release in enumerate(subject.rules)
]
EACH = 4
"""Of this many operations of a case, one is left out in turn."""


@pytest.mark.world
@pytest.mark.parametrize(("subject", "release"), PAIRS, ids=lambda value: getattr(value, "name", value))
def test_a_seed_is_a_case_and_any_part_of_it_runs(subject: Subject, release: str) -> None:
    for seed in range(12):
        case = subject.case(release, seed)
        assert case == subject.case(release, seed)
        assert len(subject.core(case, release)) == len(case)
        for place in range(seed % EACH, len(case), EACH):
            subject.core(case[:place] + case[place + 1 :], release)
    assert any(path.parent.name != "common" for path in sources(subject, release))


@pytest.mark.parametrize(
    ("release", "folders"),
    [
        ("2.0.0", {"partition", "partition/1.1.1", "partition/to-2.0.0"}),
        ("2.6.0", {"partition", "partition/2.6.0"}),
        ("3.9.0", {"partition", "partition/3.9.0"}),
        ("4.3.1", {"partition", "partition/3.9.0", "partition/from-4.0.0"}),
    ],
)
def test_a_release_takes_shared_sources_and_the_newest_that_fit(release: str, folders: set[str]) -> None:
    found = {str(path.parent.relative_to(SOURCES)) for path in sources(SUBJECTS["partition"], release)}
    assert {folder for folder in found if folder.startswith("partition")} == folders


def test_a_release_takes_the_lines_that_fit() -> None:
    text = "a();\nb(); // before 3.9.0\nb(1); // from 3.9.0 before 4.2.0\nb(2); // from 4.2.0\n// from here\n"
    found = {release: fitting(text, release) for release in ("0.10.2.2", "3.9.0", "4.1.0", "4.2.1")}
    kept = [[line.partition(" //")[0] for line in one.splitlines()] for one in found.values()]
    assert [[line for line in lines if line.startswith("b")] for lines in kept] == [
        ["b();"],
        ["b(1);"],
        ["b(1);"],
        ["b(2);"],
    ]
    assert {len(lines) for lines in kept} == {5}
    assert {(lines[0], lines[-1]) for lines in kept} == {("a();", "// from here")}


def test_every_listed_difference_differs_in_the_core_when_it_is_imitated() -> None:
    for entry in listed():
        subject = SUBJECTS[entry.subject]
        for release in entry.releases:
            ours = plain(subject.core(entry.case, release))
            assert ours != plain(subject.core(entry.case, release, [entry.name]))


def test_a_case_is_made_small() -> None:
    case: Case = [["a", 1], ["b", 7, 9], ["c"], ["b", 5, 5], ["d"]]

    def differing(cases: Sequence[Case]) -> int | None:
        found = (at for at, one in enumerate(cases) if any(o[0] == "b" and o[1] > 2 for o in one) and ["c"] in one)
        return next(found, None)

    assert minimise(case, differing) == [["b", 3, 0], ["c"]]
    assert minimise(case, differing, numbers=False) == [["b", 7, 9], ["c"]]


def test_differences_look_alike_by_the_operation_and_what_differs() -> None:
    case: Case = [["a"], ["b", 1]]
    assert signature(case, [["x", 1], ["y", 2]], [["x", 1], ["y", 3]]) == ("b", 1)


def test_branches_of_the_core_are_noticed() -> None:
    subject = SUBJECTS["epoch-cache"]
    once = branches(lambda: subject.core([["assign", 1, 1]], "3.9.0"))
    more = branches(lambda: subject.core([["assign", 1, 1], ["clear"]], "3.9.0"))
    assert once
    assert once < more


@pytest.mark.world
@pytest.mark.parametrize("subject", CORE)
def test_mutants_are_drawn_by_a_seed_and_change_what_they_say(subject: str) -> None:
    drawn = mutants(subject, 3, 1)
    assert drawn == mutants(subject, 3, 1) != mutants(subject, 3, 2)
    for mutant in drawn:
        assert mutant.before != mutant.after
        source = (ROOT / "sim" / "protocol" / mutant.file).read_text(encoding="utf-8")
        assert ast.dump(ast.parse(mutant.text)) != ast.dump(ast.parse(source))


def test_what_the_compiler_says_in_one_line() -> None:
    said = """----------
1. ERROR in /somewhere/Release.java (at line 50)
\t.setMetrics(1)
\t^^^^^^^^^^
The method setMetrics(int) is undefined
----------
"""
    assert _first_error(said) == "Release.java:50: The method setMetrics(int) is undefined"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--subject", "epoch_cache"], "SUBJECT 'epoch_cache' is none; did you mean 'epoch-cache'?"),
        (["--release", "4.2"], "release '4.2' of Kafka is not pinned; did you mean '4.2.2'?"),
        (["--subject", "epoch-cache", "--release", "0.10.2.2"], "RELEASE 0.10.2.2 has no epoch-cache; one of: 1.1.1"),
    ],
)
def test_what_is_asked_for_and_is_none(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith(f"oracle: {said}")
