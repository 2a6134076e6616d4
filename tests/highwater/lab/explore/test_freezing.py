from __future__ import annotations

import pytest

from highwater.lab.explore import freezing
from highwater.lab.explore.freezing import Freezer
from sim.errors import InputError
from sim.protocol.decisions import Decisions
from sim.protocol.modes import MODES


def test_a_compiled_build_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freezing, "build", lambda: "compiled (mypyc 2.4.1, cp311)")
    with pytest.raises(InputError, match="explore needs plain Python, and this build is compiled"):
        Freezer(Decisions(MODES["elr"].rules), {})
