from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.places import ROOT
from tests.verification import counts
from tests.verification.counts import Sources

STEPS = 'KILL = StepKind("kill", 1)\nINTERNAL = StepKind("min_isr", 2)\n'
MESSAGES = """
Position = tuple[str, int]
class Message: pass
class Request(Message):
    def __init__(self, node: int, positions: abc.Sequence[Position], *, batch: Batch | None) -> None: ...
class Reply(Message):
    def __init__(self, request: Request, partition: Partition, isr: list[int]) -> None: ...
"""
HOST = '''
"""What on_fetch does."""
class Host:
    __slots__ = ("_ping",)
    def on_fetch(self): return isinstance(self, Host)
    def _ping(self):
        self.reached(3)
        return call.name in ("on_fetch", "other", "_ping")
'''
READER = '''
# A comment.

def tell(step, name):
    """What is told."""
    if step["step"] in ("kill", "other"): return {"step": "kill", "kill": 1}
    if name == "kill" or step.name == "kill": return 2
    return getattr(self, f"_{step}")() or getattr(self, name)
'''


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    files = {
        "sim/history/steps/base.py": STEPS,
        "sim/protocol/messages.py": MESSAGES,
        "sim/hosts/host.py": HOST,
        "reports/reader.py": READER,
        "reports/one.py": "import reports.two\n",
        "reports/two.py": "if TYPE_CHECKING:\n    from reports.one import X\n",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return Sources(tmp_path)


def words(places: list[str]) -> list[str]:
    return [place.partition(" ")[2] for place in places]


def test_names_of_handlers_are_found_where_no_docstring_or_slot_is(sources: Sources) -> None:
    assert words(counts.handlers(sources)) == ["on_fetch", "_ping"]


def test_names_of_steps_are_found_where_a_step_is_asked_for_or_made(sources: Sources) -> None:
    assert counts.step_names(sources) == {"kill"}
    assert counts.steps(sources) == ["reports/reader.py:6 kill", "reports/reader.py:6 kill"]


def test_live_objects_are_found_by_the_types_of_fields(sources: Sources) -> None:
    assert words(counts.live(sources)) == ["Reply.partition: Partition", "Reply.isr: list[int]"]


def test_a_method_looked_up_by_a_name_put_together_is_found(sources: Sources) -> None:
    assert words(counts.dispatched(sources)) == ["getattr(self, f'_{step}')"]


def test_circles_are_told_from_those_of_types(sources: Sources) -> None:
    assert counts.in_circles(sources, types_too=False) == set()
    assert counts.in_circles(sources, types_too=True) == {frozenset({"reports.one", "reports.two"})}


def test_code_is_counted_without_comments_and_docstrings(sources: Sources) -> None:
    assert counts.code_lines(sources.files["reports/reader.py"]) == 4
    found = counts.counted(sources)
    assert found["lines of reports"] == "11 (7 of code)"
    assert (found["calls of reached()"], found["calls of isinstance()"], found["calls of getattr()"]) == ("1", "1", "2")
    assert found["class with the most methods"] == "2: sim/hosts/host.py Host"


@cache
def own() -> Sources:
    return Sources(ROOT)


def test_no_fact_of_the_product_travels_as_a_string() -> None:
    assert counts.handlers(own()) == []
    assert counts.steps(own()) == []
    assert counts.dispatched(own()) == []


def test_messages_of_the_product_hold_no_live_object() -> None:
    assert counts.live(own()) == []


def test_program_prints_a_column_for_each_checkout(sources: Sources, tmp_path: Path) -> None:
    assert sources.files
    command = [sys.executable, "-m", "tests.verification.counts", str(tmp_path), str(tmp_path), "--places"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert "names of handlers as strings: 2; 2\n" in done.stdout
    assert "  sim/hosts/host.py:8 on_fetch\n" in done.stdout
