from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from highwater.cli import crash
from highwater.cli import main as cli
from highwater.cli.options import FORMER, HELP_GROUPS
from scenarios import requirements
from sim import exit_codes
from sim.errors import InputError, StorageError, UnavailableError
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Call

HEAVY = ("pyspark", "scipy", "pandas", "pydantic", "pyarrow", "numpy", "rich", "simpy")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Makes ``highwater modes list`` raise."""

    def fail_with(error: BaseException) -> None:
        def callback(**_: object) -> None:
            raise error

        modes = cli.highwater.get_command(click.Context(cli.highwater), "modes")
        assert isinstance(modes, click.Group)
        monkeypatch.setattr(modes.commands["list"], "callback", callback)

    return fail_with


def test_help_names_every_command_and_exit_code(highwater: Callable[..., Call]) -> None:
    call = highwater("--help")
    assert call.code == 0
    for word in (*cli.COMMANDS, "0", "1", "2", "3", "4", "69", "70", "74", "130"):
        assert re.search(rf"^  +(\d.*)?{word} ", call.out, re.MULTILINE), word


def test_no_words_show_help(highwater: Callable[..., Call]) -> None:
    assert highwater().out == highwater("-h").out


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from highwater.cli.main import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {*done.stderr.split()} & {*HEAVY}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rum"], "highwater: no such command 'rum'; did you mean 'run'?"),
        (["modes", "lst"], "highwater: no such command 'lst'; did you mean 'list'?"),
        (["run", "canry"], "highwater: unknown scenario 'canry'; did you mean 'canary'?"),
        (["run", "canary", "--mode", "hv"], "highwater: unknown mode 'hv'; did you mean 'hw'?"),
        (["run", "canary", "--rule", "isr_joins=any"], "highwater: unknown rule 'isr_joins'; did you mean 'isr_join'?"),
        (["run", "canary", "--set", "ack=1"], "highwater: unknown configuration key 'ack'; did you mean 'acks'?"),
        (["modes", "show", "kip102"], "highwater: unknown mode 'kip102'; did you mean 'kip101'?"),
        (["modes", "show", "3.9"], "highwater: unknown mode '3.9'; Kafka 3.9 is mode kraft or kraft-3.9.1"),
        (["run", "no-such/file.toml"], "highwater: no-such/file.toml: cannot be read: No such file or directory"),
        (["run", "canary", "--mode", "hw", "--all-modes"], "highwater: --all-modes and named modes exclude each other"),
        (
            ["run", "canary", "--mode", "hw", "--mode", "kip101"],
            "highwater: --mode is given twice, but takes one value, with commas between several: --mode A,B",
        ),
        (["run", "canary", "--seed=1", "--seed=1"], "highwater: --seed is given twice, but takes one value"),
        (
            ["run", "canary", "--set", "acks=1", "--set", "acks=0"],
            "highwater: --set acks is given twice, where one KEY=VALUE is taken",
        ),
        (
            ["run", "canary", "--rule", "isr_join=high-watermark", "--rule", "isr_join=high-watermark"],
            "highwater: --rule isr_join is given twice, where one NAME=VALUE is taken",
        ),
        (
            ["--color", "always", "modes", "list", "--color", "never"],
            "highwater: --color is given twice, but takes one value",
        ),
        (["run", "canary\udcff"], "highwater: 'canary\\udcff' is not UTF-8 text"),
        (["run", "a\0.toml"], "highwater: 'a\\x00.toml' is not UTF-8 text"),
    ],
)
def test_bad_input_is_one_line_with_a_hint(highwater: Callable[..., Call], words: list[str], said: str) -> None:
    call = highwater(*words)
    assert (call.code, call.out, call.err) == (2, "", said + "\n")


def test_an_unknown_option_gets_a_hint(highwater: Callable[..., Call]) -> None:
    call = highwater("run", "canary", "--sed", "1")
    assert (call.code, call.out, call.err.count("\n")) == (2, "", 1)
    assert "'--sed'" in call.err
    assert "'--seed'" in call.err


def test_a_surprise_is_one_line_and_a_file(
    highwater: Callable[..., Call], failing: Callable[[BaseException], None]
) -> None:
    failing(ZeroDivisionError("boom"))
    call = highwater("modes", "list")
    assert call.code == 70
    found = re.fullmatch(r"highwater: internal error: ZeroDivisionError: boom; traceback in (\S+)\n", call.err)
    assert found is not None
    file = Path(found[1])
    assert "in callback" in file.read_text()
    file.unlink()


def test_a_surprise_in_verbose_shows_the_traceback(
    highwater: Callable[..., Call], failing: Callable[[BaseException], None]
) -> None:
    failing(ZeroDivisionError("boom"))
    call = highwater("-v", "modes", "list")
    assert call.code == 70
    assert call.err.startswith("Traceback")


def test_ctrl_c_is_130(highwater: Callable[..., Call], failing: Callable[[BaseException], None]) -> None:
    failing(KeyboardInterrupt())
    call = highwater("modes", "list")
    assert (call.code, call.err.strip()) == (130, "interrupted")


def test_sigterm_is_ctrl_c(highwater: Callable[..., Call]) -> None:
    highwater("modes", "list")
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize("words", [["modes", "show", "hw"], ["run", "--help"]])
def test_a_reader_that_goes_away_is_no_error(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "highwater.cli.main", *words]
    done = subprocess.run(command, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("closed", "words", "code"), [(">&-", "modes list", 0), (">&-", "--help", 0), ("<&- >&- 2>&-", "modes lst", 2)]
)
def test_streams_that_are_closed_take_what_is_said(closed: str, words: str, code: int) -> None:
    command = ["sh", "-c", f"exec {sys.executable} -m highwater.cli.entry {words} {closed}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_a_file_that_ends_too_soon_is_no_interrupt(
    highwater: Callable[..., Call], failing: Callable[[BaseException], None]
) -> None:
    failing(EOFError("torn"))
    call = highwater("-v", "modes", "list")
    assert (call.code, call.err.splitlines()[-1]) == (70, "highwater: internal error: EOFError: torn")


def test_shells_complete_words(highwater: Callable[..., Call], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "_HIGHWATER_COMPLETE": "bash_complete",
        "COMP_WORDS": "highwater tri",
        "COMP_CWORD": "1",
    }.items():
        monkeypatch.setenv(name, value)
    call = highwater()
    assert (call.code, call.out) == (0, "plain,triage\n")


def test_quiet_is_taken_before_and_after_the_command(highwater: Callable[..., Call]) -> None:
    assert highwater("-q", "modes", "list").out == highwater("modes", "list", "-q").out != ""


def test_quiet_names_no_files(highwater: Callable[..., Call], tmp_path: Path) -> None:
    words = ["draw", "kip101-scenario-1", "--mode", "hw", "--output", tmp_path / "run.svg"]
    assert (str(tmp_path) in highwater(*words).out, str(tmp_path) in highwater(*words, "-q").out) == (True, False)


@pytest.mark.parametrize(("command", "name"), [("draw", "run.pdf"), ("show", "run.svg")])
def test_a_name_that_promises_another_format_is_refused(
    highwater: Callable[..., Call], tmp_path: Path, command: str, name: str
) -> None:
    call = highwater(command, "kip101-scenario-1", "--mode", "hw", "--output", tmp_path / name)
    assert (call.code, "what is written is no" in call.err, [*tmp_path.iterdir()]) == (2, True, [])


def test_an_output_that_cannot_be_created_is_74_and_one_in_no_folder_2(highwater: Callable[..., Call]) -> None:
    """/proc takes no files: its folder exists, and the system says that there is no such file."""
    run = ["kip101-scenario-1", "--mode", "hw"]
    commands = [
        ["draw", *run],
        ["show", *run],
        ["replay", *run],
        ["ticket", "kip101-scenario-1"],
        ["spark-package"],
        ["sweep", "power", "--modes", "hw", "--seeds", "0..1", "--local", "1"],
    ]
    assert [highwater(*words, "--output", "/proc/new").code for words in commands] == [74] * len(commands)
    files = commands[:2]
    assert [highwater(*words, "--output", "/proc/new/file").code for words in files] == [2, 2]


def test_no_ansi_off_a_terminal(highwater: Callable[..., Call]) -> None:
    assert "\x1b" not in highwater("modes", "show", "hw").out
    assert "\x1b" in highwater("modes", "show", "hw", "--color", "always").out


def test_a_rule_of_a_mode_has_its_values_in_the_order_of_its_text(highwater: Callable[..., Call]) -> None:
    lines = highwater("modes", "show", "kraft").out.splitlines()
    assert "late_reply = truncation-epoch    (offset, truncation-epoch, leader-epoch)" in lines


def every_command() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """The words of each command and group, whatever there will be."""
    left: list[tuple[tuple[str, ...], click.Command]] = [((), cli.highwater)]
    while left:
        words, command = left.pop()
        context = click.Context(command)
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                assert below is not None
                left.append(((*words, name), below))
        yield words, command


def test_every_command_takes_an_options_one_value_once(highwater: Callable[..., Call]) -> None:
    tried = 0
    for words, command in every_command():
        for option in command.params:
            if isinstance(option, click.Option) and not (option.is_flag or option.multiple):
                call = highwater(*words, option.opts[0], "1", option.opts[0], "1")
                named = next(name for name in option.opts if name.startswith("--"))
                how = f", with commas between several: {named} A,B" if "," in (option.metavar or "") else ""
                assert (call.code, call.err) == (2, f"highwater: {named} is given twice, but takes one value{how}\n")
                tried += 1
    assert tried > 20


def test_commands_take_json_but_for_those_that_the_page_of_commands_names() -> None:
    without = {
        " ".join(words)
        for words, command in every_command()
        if not isinstance(command, click.Group) and not any("--json" in option.opts for option in command.params)
    }
    said = re.search(
        r"`--json` prints .*?, except for (.*?),\s+which write files",
        (ROOT / "highwater" / "README.md").read_text(),
        re.DOTALL,
    )
    assert said is not None
    assert without == {*re.findall(r"`(.*?)`", said[1])}


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InputError("a", "b"), 2, "highwater: a\nhighwater: b\n"),
        (UnavailableError("no Java"), 69, "highwater: no Java\n"),
        (StorageError("no space"), 74, "highwater: no space\n"),
        (OSError(errno.ENOSPC, "No space left on device", "x"), 74, "highwater: x: No space left on device\n"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), 74, "highwater: Disk quota exceeded\n"),
        (PermissionError(errno.EACCES, "Permission denied", "x"), 74, "highwater: x: Permission denied\n"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 74, "highwater: Broken pipe\n"),
    ],
)
def test_errors_are_told_as_what_they_are(
    highwater: Callable[..., Call], failing: Callable[[BaseException], None], error: Exception, code: int, said: str
) -> None:
    failing(error)
    call = highwater("modes", "list")
    assert (call.code, call.out, call.err) == (code, "", said)


@pytest.mark.parametrize("words", [["modes", "list"], ["run", "canary", "--json"], ["--help"]])
def test_a_full_disk_behind_stdout_is_74(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "highwater.cli.entry", *words]
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (74, "highwater: No space left on device\n")


@pytest.mark.parametrize(
    ("words", "code"),
    [(["modes", "lst"], 2), (["run", "canary", "--mode", "hw", "--set", "controller.quorum.fetch.timeout.ms=1000"], 0)],
)
def test_a_full_disk_behind_stderr_changes_nothing(words: list[str], code: int) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "highwater.cli.entry", *words]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=full, text=True)
    assert (done.returncode, "digest" in done.stdout) == (code, code == 0)


def test_few_tracebacks_are_kept_and_without_secrets(
    highwater: Callable[..., Call],
    failing: Callable[[BaseException], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "highwater" / "tracebacks"
    folder.mkdir(parents=True)
    (folder / "mine.txt").touch()
    failing(ValueError("spark.ssl.keyPassword=hunter2 at spark://me:hunter2@host:7077"))
    last = ""
    for _ in range(crash.KEPT + 3):
        call = highwater("modes", "list")
        assert call.code == 70
        assert "hunter2" not in call.err
        last = call.err.split("traceback in ")[1].strip()
    files = sorted(folder.glob("traceback-*"))
    assert len(files) == crash.KEPT
    assert str(files[-1]) == last
    assert (folder / "mine.txt").exists()
    text = files[-1].read_text()
    assert "in callback" in text
    assert "hunter2" not in text
    assert files[-1].stat().st_mode & 0o077 == 0


def test_no_room_for_a_traceback_hides_no_error(
    highwater: Callable[..., Call], failing: Callable[[BaseException], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: str) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(crash, "_write", full)
    failing(ZeroDivisionError("boom"))
    call = highwater("modes", "list")
    said = (
        "highwater: internal error: ZeroDivisionError: boom; the traceback cannot be written (No space left on device)"
    )
    assert (call.code, call.err) == (70, f"{said}, -v shows it\n")


def test_an_interrupt_that_another_exception_replaced_is_one(
    monkeypatch: pytest.MonkeyPatch, highwater: Callable[..., Call]
) -> None:
    """As while a module is imported, where Python makes a RuntimeError of it."""

    class Interrupted:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyboardInterrupt

    def replaced(*_: object) -> int:
        try:
            type("Model", (), {"field": Interrupted()})
        except KeyboardInterrupt as error:  # From Python 3.12 on.
            raise RuntimeError("Error calling __set_name__") from error
        raise AssertionError

    monkeypatch.setattr(cli, "_called", replaced)
    call = highwater("modes", "list")
    assert (call.code, call.err) == (exit_codes.INTERRUPTED, "\ninterrupted\n")


@pytest.mark.parametrize("command", cli.COMMANDS)
@pytest.mark.parametrize("package", ["numpy", "scipy", "google-crc32c"])
def test_a_command_says_before_it_works_what_is_not_installed(
    highwater: Callable[..., Call], monkeypatch: pytest.MonkeyPatch, command: str, package: str
) -> None:
    monkeypatch.setitem(requirements.REQUIRED, package, "not_there")
    call = highwater(command, "power", "--output", "nowhere")
    line = f"highwater: not installed: {package}; 'pip install .' in Highwater's folder installs it\n"
    assert (call.code, call.out, call.err) == (exit_codes.UNAVAILABLE, "", line)


def test_output_has_a_short_name_and_time_limits_one_name() -> None:
    options = {
        " ".join(words): {name for param in command.params for name in param.opts} for words, command in every_command()
    }
    assert [words for words, names in options.items() if ("--output" in names) != ("-o" in names)] == []
    limited = {words for words, names in options.items() if "--budget" in names}
    assert {"shrink", "explain", "advise", "hunt", "zoo hunt", "explore", "confirm"} <= limited
    assert not {name for names in options.values() for name in names} & {*FORMER}


def test_the_help_lists_options_in_groups_each_once(highwater: Callable[..., Call]) -> None:
    for words, command in every_command():
        if isinstance(command, click.Group):
            continue
        text = highwater(*words, "--help").out.partition("\nOptions:\n")[2]
        shown = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.MULTILINE)
        first = [next(n for n in p.opts if n.startswith("--")) for p in command.params if _is_shown(p)]
        assert sorted(shown) == sorted([*first, "--help"]), words
    headings = re.findall(r"^(\S.*):$", highwater("sweep", "--help").out, re.MULTILINE)
    assert headings == ["Options", *HELP_GROUPS, "Example"]


def _is_shown(param: click.Parameter) -> bool:
    return isinstance(param, click.Option) and not param.hidden


def test_former_names_of_a_time_limit_are_understood(highwater: Callable[..., Call]) -> None:
    call = highwater("explore", "--mode", "kraft", "--time-limit", "soon")
    assert (call.code, call.err) == (2, "highwater: --budget 'soon' is not valid: give a time such as 30s or 2m\n")
    assert highwater("hunt", "--for=soon", "--kafka", "4.4.0", "--output", "x").err == call.err
    assert "no such option" in highwater("columns", "--for", "2m").err


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("run", "cannary"), 2, "unknown scenario 'cannary'; did you mean 'canary'?"),
        (("run", "canary", "--sed", "1"), 2, None),
        (("compare", "nowhere"), 2, None),
    ],
)
def test_errors_are_a_json_object_too(
    highwater: Callable[..., Call], words: tuple[str, ...], code: int, problem: str | None
) -> None:
    call = highwater(*words, "--json")
    said = json.loads(call.out)
    assert (call.code, said["exit_code"]) == (code, code)
    assert call.err == "".join(f"highwater: {one}\n" for one in said["problems"])
    assert problem is None or said["problems"] == [problem]
    assert highwater(*words).out == ""
