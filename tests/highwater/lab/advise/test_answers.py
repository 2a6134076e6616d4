"""Answers come from files, options and settings, and are checked."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import pytest

from highwater.lab.advise.answers import QUESTIONS, Answers, complete, in_words, of_file, of_settings, read
from sim.config import NEVER
from sim.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def test_each_answer_has_a_question() -> None:
    assert [field.name for field in fields(Answers)] == list(QUESTIONS)


def test_later_answers_win(tmp_path: Path) -> None:
    file = tmp_path / "answers.toml"
    file.write_text('replicas = 5\ntogether = "rack"\nunclean = true\nflush = "never"\n')
    settings = of_settings({"default.replication.factor": 3, "log.flush.interval.messages": 1, "acks": "all"})
    found = complete(settings, of_file(file), {"replicas": read("replicas", "4")})
    assert found == Answers(replicas=4, together="rack", unclean=True, flush=NEVER)
    assert settings == {"replicas": 3, "flush": 1}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("replica = 3", "unknown key 'replica'; did you mean 'replicas'?"),
        ("replicas = 0", "replicas = 0 is not valid: a whole number of at least 1 and at most 7 is needed"),
        ("replicas = true", "replicas = True is not valid"),
        ("return_s = 1.5", "return_s = 1.5 is not valid"),
        ("moves = -1", "moves = -1 is not valid: a number of at least 0 and at most 10000 is needed"),
        ("restarts = true", "restarts = True is not valid"),
        ("restarts = nan", "restarts: nan is no number"),
        ("restarts = 10000.5", "restarts = 10000.5 is not valid"),
        ('together = "racks"', "together = 'racks' is not valid; did you mean 'rack'?"),
        ('unclean = "maybe"', "unclean = 'maybe' is not valid; one of: true, false"),
        ('flush = "nver"', "flush = 'nver' is not valid: a whole number of at least 1, or 'never', is needed"),
        ("replicas =", "not TOML"),
    ],
)
def test_bad_answers_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "answers.toml"
    file.write_text(text)
    with pytest.raises(InputError) as refused:
        of_file(file)
    (found,) = refused.value.problems
    assert problem in found
    assert found.startswith(str(file))


def test_restarts_and_moves_may_be_fractions() -> None:
    assert [read("restarts", given) for given in ("0.25", 0.25, "2", 2.0, "1.0")] == [0.25, 0.25, 2, 2, 1]
    assert [in_words(answer) for answer in (0.25, 3, True, "rack")] == ["0.25", "3", "true", "rack"]


def test_racks_of_several_brokers_are_an_answer() -> None:
    assert [of_settings({}, racks) for racks in (0, 1, 2)] == [{}, {}, {"racks": 2}]


def test_one_rack_does_not_lose_power_alone() -> None:
    with pytest.raises(InputError, match="together = 'rack' is not valid with racks = 1"):
        complete({"together": "rack", "racks": 1})
