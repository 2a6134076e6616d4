from __future__ import annotations

import io
import json

import pytest

from highwater.cli.console import Ui
from reports.document.blocks import Heading, Items, Line, Table, Text
from reports.formatting import pairs, percent, plain, seconds

ESCAPE = "\x1b"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def shown(monkeypatch: pytest.MonkeyPatch, ui: Ui, stream: io.StringIO) -> str:
    monkeypatch.setattr("sys.stdout", stream)
    ui.show([Table(["verdict"], [["violation"]])])
    ui.line("text", style="bold")
    return stream.getvalue()


def test_a_terminal_gets_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ESCAPE in shown(monkeypatch, Ui(), Terminal())


def test_a_pipe_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ESCAPE not in shown(monkeypatch, Ui(), io.StringIO())


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_the_environment_switches_colours_off(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    assert ESCAPE not in shown(monkeypatch, Ui(), Terminal())


def test_always_and_never_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert ESCAPE in shown(monkeypatch, Ui(color="always"), io.StringIO())
    monkeypatch.delenv("NO_COLOR")
    assert ESCAPE not in shown(monkeypatch, Ui(color="never"), Terminal())


def test_text_from_outside_is_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    Ui().show([Table(["[red]a[/red]"], [["[link=x]y[/link] :smile: \x1b[31mred"]], apart=False)])
    Ui().line("[bold]\x07")
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["[red]a[/red]", r"[link=x]y[/link] :smile: \x1b[31mred", r"[bold]\x07"]


def test_lines_are_never_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    Ui().line("x" * 500)
    assert capsys.readouterr().out == "x" * 500 + "\n"


def test_a_narrow_terminal_cuts_no_words(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    words = ["committed-loss", "exposed-loss", "hw-regression"]
    Ui().show([Table(words, [[*words[:2], "long " * 20]])])
    out = capsys.readouterr().out
    assert out.split() == [*words, *words[:2], *["long"] * 20]


def test_a_dumb_terminal_cuts_no_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    monkeypatch.setattr("sys.stdout", stream)
    words = [f"column-{number:02}" for number in range(20)]
    Ui().show([Table(words, [words])])
    assert {*stream.getvalue().split()} == {*words}


def test_a_wide_table_is_shown_in_parts(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = [f"number-{place:02}" for place in range(12)]
    rows = [(name, "mode", *(str(place * 1000) for place in range(12))) for name in ("one", "two")]
    Ui().show([Table(["scenario", "mode", *numbers], rows, numbers, apart=False)])
    lines = capsys.readouterr().out.splitlines()
    parts = [part.splitlines() for part in "\n".join(lines).split("\n\n")]
    assert len(parts) == 2
    assert [word for part in parts for word in part[0].split()[2:]] == numbers
    assert all([line.split()[:2] for line in part[1:]] == [["one", "mode"], ["two", "mode"]] for part in parts)
    assert [word for part in parts for word in part[1].split()[2:]] == [*rows[0][2:]]
    assert max(map(len, lines)) <= 80
    assert lines == [line.rstrip() for line in lines]


def test_headings_are_apart_and_paragraphs_are_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    ui = Ui()
    ui.show([Heading("first"), Text("word " * 20), Items(["word " * 20])])
    ui.show([Heading("second"), Line("x" * 100), Table(["n"], [[None]], caption="table")])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    words = " ".join(["word"] * 16)
    assert lines[:5] == ["first", words, "word word word word", words, "  word word word word"]
    assert lines[5:] == ["", "second", "x" * 100, "", "table", "n", "-"]


def test_json_is_one_object_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    data = {"text": "[red]" + "x" * 300, "control": "\x1b"}
    Ui().json(data)
    assert json.loads(capsys.readouterr().out) == data


def test_notes_are_silenced_and_warnings_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    Ui(quiet=True).note("note")
    Ui(quiet=True).warn("warning")
    assert capsys.readouterr() == ("", "warning\n")


def test_words() -> None:
    assert plain("a\tb\nc\rd") == "a\tb\nc\\x0dd"
    assert pairs({"a": 1, "b": None, "c": (1, 2), "t": 3}, hide=["t"]) == "a=1 c=1,2"
    assert (seconds(1_500_000), seconds(-1), seconds(None)) == ("1.500000 s", "-", "-")
    assert (percent(0.12345), percent(3.69e-6), percent(None)) == ("12.3 %", "0.000369 %", "-")
