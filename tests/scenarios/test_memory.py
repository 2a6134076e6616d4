"""Tests which exceptions mean that a process is out of memory."""

from __future__ import annotations

import pytest

from scenarios import memory


def test_an_error_of_the_interpreter_is_about_memory_only_where_none_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = SystemError("error return without exception set")
    for left, lacking in ((None, False), (4 << 20, False), (100_000, True)):
        monkeypatch.setattr(memory, "_left", lambda left=left: left)
        assert memory.is_lacking(lost) is lacking
        assert not memory.is_lacking(ValueError("wrong"))
        assert memory.is_lacking(MemoryError())
