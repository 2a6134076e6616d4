from __future__ import annotations

from typing import TYPE_CHECKING

from reports.commands import doctor

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.reports.conftest import Call


def test_runs_are_deterministic_here_and_in_a_fresh_process(highwater: Callable[..., Call]) -> None:
    call = highwater("doctor", "--json")
    assert call.code == call.json["exit_code"] == 0
    assert call.json["digests"].keys() == {"here", "here again", "fresh process"}
    assert len(set(call.json["digests"].values())) == 1
    assert call.json["packages"]["simpy"] is not None


def test_another_digest_is_4(highwater: Callable[..., Call], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_digest_elsewhere", lambda: "f00")
    call = highwater("doctor")
    assert call.code == 4
    assert "DIFFERS: here " in call.out
    assert "fresh process f00" in call.out


def test_missing_java_is_said_and_no_failure(highwater: Callable[..., Call], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    call = highwater("doctor")
    assert call.code == 0
    assert "java: " in call.out
