from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from scenarios.sweep import claim
from scenarios.sweep.claim import FolderClaim, Owner
from scenarios.sweep.folder import Folder, open_folder
from scenarios.sweep.ownership import CLAIM_START
from sim.errors import UnavailableError

ANY = re.compile(rb"")
ELSEWHERE = Owner("elsewhere", "", 1, "1", "2026-01-01T00:00:00Z")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return open_folder(tmp_path)


def leave(folder: Folder, name: str, owner: Owner, *, state: str = "working", idle: float = 0.0) -> None:
    folder.write(f"claims/{name}.json", json.dumps({"state": state, **asdict(owner)}).encode(), CLAIM_START)
    assert folder.local is not None
    then = time.time() - idle
    os.utime(folder.local / "claims" / f"{name}.json", (then, then))


def test_a_claim_comes_and_goes(folder: Folder, tmp_path: Path) -> None:
    held = FolderClaim(folder)
    ((name, state, owner, _),) = claim.others(folder)
    assert (name, state, owner.pid) == (held.name, "working", os.getpid())
    held.check()
    held.end()
    assert not list(tmp_path.iterdir())


def test_second_driver_is_told_who_is_first(folder: Folder) -> None:
    leave(folder, "ffffffff", ELSEWHERE, idle=20)
    with pytest.raises(
        UnavailableError, match=r"another driver is at work \(process 1 on elsewhere, since .*, seen 20 s ago\)"
    ):
        FolderClaim(folder)
    assert list(folder.files()) == ["claims/ffffffff.json"]


@pytest.mark.parametrize(("name", "stays"), [("00000000", False), ("ffffffff", True)])
def test_one_of_two_that_ask_at_once_stays(folder: Folder, name: str, stays: bool) -> None:
    leave(folder, name, ELSEWHERE, state="asking")
    if stays:
        FolderClaim(folder).end()
    else:
        with pytest.raises(UnavailableError, match="at work"):
            FolderClaim(folder)


@pytest.mark.parametrize(("idle", "gone"), [(50.0, False), (70.0, True)])
def test_a_claim_that_is_not_renewed_is_stale_after_a_minute(folder: Folder, idle: float, gone: bool) -> None:
    leave(folder, "ffffffff", ELSEWHERE, idle=idle)
    assert bool(claim.dead(folder)) == gone


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at other processes in /proc")
def test_a_process_of_this_machine_that_is_gone_is_known_to_be(folder: Folder) -> None:
    here = claim._here()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        leave(folder, "ffffffff", replace(here, pid=process.pid, begun=claim._begun(process.pid)))
        assert not claim.dead(folder)
        process.kill()
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT) is None:
            time.sleep(0.01)
        # Nobody has asked for its exit status yet, so its number is still taken.
        assert claim.dead(folder) == ["ffffffff"]
    leave(folder, "ffffffff", replace(here, begun="another process had this number"))
    assert claim.dead(folder) == ["ffffffff"]


def test_a_claim_that_was_taken_away_is_noticed(folder: Folder) -> None:
    held = FolderClaim(folder)
    claim.take_over(folder, [held.name])
    with pytest.raises(UnavailableError, match="another driver has taken over"):
        held.check()
    held.end()


@pytest.mark.parametrize("text", ["{", "", "{}", "[]", '{"state": "working"}'])
@pytest.mark.parametrize("name", ["ffffffff.json", "jan.json", "0badcafe.txt"])
def test_a_file_that_is_no_claim_holds_nobody_up_and_stays(folder: Folder, name: str, text: str) -> None:
    """A claim is written at once, also to an object store."""
    folder.write(f"claims/{name}", text.encode(), ANY)
    assert folder.local is not None
    os.utime(folder.local / "claims" / name, (0, 0))
    FolderClaim(folder).end()
    assert not claim.dead(folder)
    assert not claim.others(folder)
    assert folder.read(f"claims/{name}") == text.encode()


def test_a_claim_under_another_name_or_behind_a_link_is_none(folder: Folder, tmp_path: Path) -> None:
    leave(folder, "ffffffff", ELSEWHERE, idle=100)
    place = tmp_path / "claims" / "ffffffff.json"
    place.rename(tmp_path / "claims" / "my.json")
    place.symlink_to("my.json")
    assert not claim.dead(folder)
    assert not claim.others(folder)


def test_a_claim_of_an_older_version_is_known(folder: Folder) -> None:
    """As 0.10 wrote it."""
    text = (
        '{"state": "working", "renewed": 1767225600.5, "host": "elsewhere", "space": "pid:[4026531836]", "pid": 7, '
        '"begun": "123", "since": "2026-01-01T00:00:00Z"}\n'
    )
    folder.write("claims/0badcafe.json", text.encode(), ANY)
    assert [name for name, *_ in claim.others(folder)] == ["0badcafe"]
    assert folder.local is not None
    os.utime(folder.local / "claims" / "0badcafe.json", (0, 0))
    assert claim.dead(folder) == ["0badcafe"]


def test_renewal(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim, "RENEW_SECONDS", 0.02)
    held = FolderClaim(folder)
    file = f"claims/{held.name}.json"
    first = json.loads(folder.read(file))["renewed"]
    while json.loads(folder.read(file))["renewed"] == first:
        time.sleep(0.01)
    claim.take_over(folder, [held.name])
    held._renewing.join(10)
    assert not held._renewing.is_alive()
    assert file not in folder.files()
