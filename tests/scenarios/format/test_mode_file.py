from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scenarios.format import catalogue
from scenarios.format.mode_file import DEEPEST, read
from sim.errors import InputError, StorageError
from sim.protocol.modes import MODES

if TYPE_CHECKING:
    from pathlib import Path

HEAD = 'schema = 1\nname = "mine"\ntitle = "As I would have it"\n'


def written(folder: Path, text: str, name: str = "mine.toml") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_a_mode_file_is_its_base_with_other_rules(tmp_path: Path) -> None:
    word = written(
        tmp_path, HEAD + 'base = "elr-4.3"\nsources = ["KIP-1"]\n[rules]\nreassignment_completes = "min-isr"\n'
    )
    mode = catalogue.mode(word)
    assert mode.rules == MODES["elr-4.3"].rules.override({"reassignment_completes": "min-isr"})
    assert (mode.name, mode.source, mode.summary) == ("mine", word, "As I would have it")
    assert mode.place == (MODES["elr-4.3"].place[0], True)
    assert mode.promise == MODES["elr-4.3"].promise
    found = read(word)
    assert (found.base, found.sources, found.changed) == ("elr-4.3", ("KIP-1",), {"reassignment_completes": "min-isr"})


def test_the_promise_follows_the_rules_unless_it_is_given(tmp_path: Path) -> None:
    rules = "[rules]\nelr = 'off'\n"
    assert not read(written(tmp_path, f'{HEAD}base = "elr"\n{rules}')).mode.promise.counts_damage
    given = f'{HEAD}base = "elr"\nrelease = "9.9"\n{rules}[promise]\ncounts_damage = true\n'
    mode = read(written(tmp_path, given)).mode
    assert mode.promise.counts_damage
    assert (mode.release, mode.follows) == ("9.9", "")


def test_mode_files_may_be_based_on_one_another(tmp_path: Path) -> None:
    written(tmp_path, HEAD.replace("mine", "other") + 'base = "kip320"\n[rules]\nhw_needs_epoch = "no"\n', "other.toml")
    mode = read(written(tmp_path, f'{HEAD}base = "./other.toml"\n[rules]\nisr_join = "high-watermark"\n')).mode
    expected = {"hw_needs_epoch": "no", "isr_join": "high-watermark"}
    assert mode.rules == MODES["kip320"].rules.override(expected)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f'{HEAD}base = "elr-4.9"\n', "base = 'elr-4.9': no such mode; did you mean 'elr-4.3'?"),
        (HEAD.replace("would", r"w\nould") + 'base = "elr"\n', "one line without control characters is needed"),
        (f'{HEAD}base = "mine.toml"\n', "is based on itself: mine.toml -> mine.toml"),
        (f'{HEAD}base = "none.toml"\n', "none.toml: cannot be read"),
        (f'{HEAD}base = "elr"\n[rules]\nelr = true\n', "rule elr has no value 'true'; one of: off, on"),
        (f'{HEAD}base = "elr"\n[rules]\nelr = "maybe"\n', "rule elr has no value 'maybe'; one of: off, on"),
        (f'{HEAD}base = "elr"\n[rules]\nelrs = "on"\n', "unknown rule 'elrs'; did you mean 'elr'?"),
        (f'{HEAD}base = "elr"\nrule = 1\n', "unknown key 'rule'; did you mean 'rules'?"),
        (f'{HEAD}base = "elr"\n[promise]\nnever_diverge = true\n', "did you mean 'never_diverges'?"),
        (f'{HEAD}base = "elr"\nrelease = "next"\n', "release 'next' is no release"),
        (HEAD.replace("mine", "elr") + 'base = "elr"\n', "name = 'elr' is a mode of Highwater"),
        (HEAD.replace("mine", "../x") + 'base = "elr"\n', "name"),
        (HEAD.replace("= 1", "= 2") + 'base = "elr"\n', "schema"),
        (HEAD, "base"),
        ("schema = ", "mine.toml"),
    ],
)
def test_what_is_wrong_with_a_mode_file_is_named(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        catalogue.mode(written(tmp_path, text))
    assert problem in caught.value.problems[0]
    assert caught.value.problems[0].startswith(str(tmp_path))


def test_a_mode_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        catalogue.mode(str(tmp_path / "nothing.toml"))
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises((InputError, StorageError), match="cannot be read"):
        catalogue.mode(str(tmp_path / "folder.toml"))
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8 text"):
        catalogue.mode(str(tmp_path / "bytes.toml"))


def test_a_chain_of_mode_files_is_bounded(tmp_path: Path) -> None:
    for number in range(DEEPEST + 1):
        base = f"{number + 1}.toml" if number < DEEPEST else "elr"
        written(tmp_path, HEAD.replace("mine", f"mine-{number}") + f'base = "{base}"\n', f"{number}.toml")
    assert read(str(tmp_path / "1.toml")).mode.rules == MODES["elr"].rules
    with pytest.raises(InputError, match=f"more than {DEEPEST} files"):
        read(str(tmp_path / "0.toml"))
