"""Compares another implementation with the recorded answers of Kafka's released classes.

    python3 -m tests.verification.conformance.kit SUBJECT RELEASE -- PROGRAM [ARGUMENT...]

README.md, in this folder, describes the lines that are exchanged, the operations and the answers. This file needs the
vectors and Python 3.10, and no package.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

VECTORS: Final = Path(__file__).resolve().parent.parent / "vectors"
SCHEMA_VERSION: Final = 1
EQUAL, DIFFERS, BAD_INPUT, UNAVAILABLE, INTERRUPTED = 0, 1, 2, 69, 130
LONGEST_LINE: Final = 1_000_000
MOST_LINES: Final = 100
END_SECONDS: Final = 5.0

OPTIONS: Final = ("--list", "--all", "--case", "--seconds", "--vectors")

Operation = list[Any]
Case = tuple[list[Operation], list[Any]]
"""The operations, and Kafka's answer after each."""


class BadInputError(Exception):
    """What the user asked for cannot be done."""


class UnavailableError(Exception):
    """The program does not start, ends, or does not answer as README.md says."""


class Difference(NamedTuple):
    """The first wrong answer in a case.

    Attributes:
        number: the case, from 1.
        operations: the operations up to and including the one whose answer is wrong.
        expected: what Kafka answered to the last of them.
        given: what the program answered to it.
        before: number of operations before shortening.
    """

    number: int
    operations: list[Operation]
    expected: Any
    given: Any
    before: int


class States(NamedTuple):
    """A subject whose answers show its whole state, so that operations which left it unchanged can be dropped.

    Attributes:
        initial: the state when a case begins.
        after: state before an operation, Kafka's answer -> state after it.
        resets: operations after which the state does not depend on the state before.
    """

    initial: Any
    after: Callable[[Any, Any], Any]
    resets: tuple[str, ...] = ()


STATES: Final = {
    "epoch-cache": States([], lambda _, answer: answer[1], ("clear",)),
    "partition-change": States(
        [0, 0, [1, 2, 3], [], [], 0, [1, 2, 3], [], [], False],
        lambda state, answer: state if answer == "refused" else answer,
        ("state",),
    ),
    "zk-election": States(None, lambda *_: None),
}


class Program:
    """The other implementation in a process of its own; a context manager.

    Args:
        command: the program and its arguments.
        seconds: how long it may take for an answer.

    Raises:
        UnavailableError: it does not start.
    """

    def __init__(self, command: list[str], seconds: float) -> None:
        self._seconds = seconds
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
        except (OSError, ValueError) as error:
            raise UnavailableError(
                f"{command[0]} does not start: {getattr(error, 'strerror', None) or error}"
            ) from None
        self._lines: queue.Queue[bytes] = queue.Queue(MOST_LINES)
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Program:  # noqa: PYI034 - Self is of Python 3.11
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._stdin().close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS if kind is None else 0)
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _stdin(self) -> Any:
        return self._process.stdin

    def _read(self) -> None:
        """Queue the lines of the program; an empty one is its end."""
        stdout: Any = self._process.stdout
        line = b"-"
        while line:
            line = stdout.readline(LONGEST_LINE + 1)
            self._lines.put(line)

    def send(self, message: dict[str, Any]) -> None:
        """Write one line.

        Raises:
            UnavailableError: the program ended, or wrote a line that was not asked for.
        """
        if not self._lines.empty():
            line = self._lines.get()
            raise UnavailableError(f"writes a line too many: {_short(line)}" if line else self._end())
        try:
            self._stdin().write(_text(message).encode() + b"\n")
            self._stdin().flush()
        except OSError:
            raise UnavailableError(self._end()) from None

    def answer(self) -> Any:
        """The answer to the last operation.

        Raises:
            UnavailableError: there is none, or it is not as README.md says.
        """
        try:
            line = self._lines.get(timeout=self._seconds)
        except queue.Empty:
            raise UnavailableError(f"does not answer within {self._seconds:g} s") from None
        if not line:
            raise UnavailableError(self._end())
        if len(line) > LONGEST_LINE:
            raise UnavailableError(f"writes a line of more than {LONGEST_LINE:,} bytes")
        try:
            message = json.loads(line.decode(), parse_constant=_no_number)
        except (ValueError, RecursionError):
            raise UnavailableError(f"answers no JSON: {_short(line)}") from None
        if not isinstance(message, dict) or list(message) != ["answer"]:
            raise UnavailableError(f'answers no object {{"answer": ...}}: {_short(line)}')
        return message["answer"]

    def _end(self) -> str:
        try:
            code = self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            return "closes its output"
        return f"ends with exit code {code}" if code >= 0 else f"is ended by signal {-code}"


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")


def _short(line: bytes) -> str:
    text = line.decode(errors="backslashreplace").rstrip("\r\n")
    return repr(text if len(text) <= 80 else f"{text[:80]}...")


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def plain(value: Any) -> Any:
    """Numbers without fraction as integers, because some languages write 1 as 1.0."""
    if isinstance(value, list):
        return [plain(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def equal(expected: Any, given: Any) -> bool:
    """Whether two answers are equal; 1 is not true, as it is in Python."""
    return _text(expected) == _text(plain(given))


def differing_part(expected: Any, given: Any, path: str = "answer") -> str:
    """Path of the first part in which two answers differ."""
    if isinstance(expected, list) and isinstance(given, list) and len(expected) == len(given):
        for place, (one, other) in enumerate(zip(expected, given)):  # noqa: B905 - of one length
            if not equal(one, other):
                return differing_part(one, other, f"{path}[{place}]")
    return path


def compare(program: Program, head: dict[str, Any], number: int, case: Case) -> Difference | None:
    """Run a case up to the first wrong answer.

    Raises:
        UnavailableError: see `Program`.
    """
    operations, answers = case
    program.send({"case": number, **head})
    for place, (operation, expected) in enumerate(zip(operations, answers)):  # noqa: B905 - of one length
        try:
            program.send({"operation": operation})
            given = program.answer()
        except UnavailableError as error:
            where = f"case {number}, operation {place + 1}, {_text(operation)}"
            raise UnavailableError(f"{error} ({where})") from None
        if not equal(expected, given):
            return Difference(number, operations[: place + 1], expected, plain(given), place + 1)
    return None


def shortened(subject: str, case: Case) -> Case:
    """The case without operations on which the last answer does not depend.

    Where answers show the whole state, operations that lead from a state back to the same one can be dropped, and so
    can everything before an operation that sets the whole state.
    """
    states = STATES.get(subject)
    if states is None:
        return case
    operations, answers = case
    seen, kept = [states.initial], list[int]()
    for place, (operation, answer) in enumerate(zip(operations[:-1], answers)):  # noqa: B905 - without the last
        after = states.after(seen[-1], answer)
        if operation[0] in states.resets:
            seen, kept = [states.initial], []
        if any(equal(after, one) for one in seen):
            first = next(index for index, one in enumerate(seen) if equal(after, one))
            seen, kept = seen[: first + 1], kept[:first]
        else:
            seen.append(after)
            kept.append(place)
    if operations[-1][0] in states.resets:
        kept = []
    places = [*kept, len(operations) - 1]
    return [operations[place] for place in places], [answers[place] for place in places]


def shrunk(program: Program, head: dict[str, Any], found: Difference, case: Case) -> Difference:
    """The difference in a shorter case, if the program answers wrongly there, too; otherwise as it is."""
    until = len(found.operations)
    short = shortened(head["subject"], (case[0][:until], case[1][:until]))
    if len(short[0]) == until:
        return found
    again = compare(program, head, found.number, short)
    return again._replace(before=found.before) if again is not None else found


def _numbers(release: str) -> list[int]:
    return [int(part) for part in release.split(".")]


def available(folder: Path) -> dict[str, list[str]]:
    """Subject -> its releases, oldest first.

    Raises:
        BadInputError: the folder holds no vectors.
    """
    found: dict[str, list[str]] = {}
    for file in sorted(folder.glob("*-*.json")):
        subject, _, release = file.stem.rpartition("-")
        if all(part.isdigit() for part in release.split(".")):
            found.setdefault(subject, []).append(release)
    if not found:
        raise BadInputError(f"--vectors {folder}: holds no file SUBJECT-RELEASE.json")
    return {subject: sorted(releases, key=_numbers) for subject, releases in found.items()}


def _known(kind: str, name: str, names: list[str]) -> str:
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, 1, 0)
    raise BadInputError(f"{kind} {name!r} is unknown; nearest: {near[0]} (of {', '.join(names)})")


def read(folder: Path, subject: str, release: str) -> list[Case]:
    """The cases of a subject and a release.

    Raises:
        BadInputError: there are none, or this version does not read them.
    """
    names = available(folder)
    _known("subject", subject, list(names))
    _known("release", release, names[subject])
    file = folder / f"{subject}-{release}.json"
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        version, vectors = content["schema_version"], content["vectors"]
        cases = [(operations, answers) for operations, answers in vectors]
        whole = (content["subject"], content["kafka"]) == (subject, release)
        whole = whole and all(operations and len(operations) == len(answers) for operations, answers in cases)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInputError(f"{file}: cannot be read: {type(error).__name__}: {error}") from None
    if version != SCHEMA_VERSION:
        raise BadInputError(f"{file}: schema_version {version!r} is not read here, only {SCHEMA_VERSION}")
    if not whole:
        raise BadInputError(f"{file}: holds another subject or release, or a case without an answer to each operation")
    return cases


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadInputError(message)


def _parser() -> _Parser:
    parser = _Parser(
        allow_abbrev=False,
        prog="kit",
        description="Compare another implementation with the recorded answers of Kafka's classes.",
        usage="kit [options] SUBJECT RELEASE -- PROGRAM [ARGUMENT...]",
        epilog="Exit codes: 0 equal, 1 differs, 2 bad input, 69 the program does not start, ends or does not answer.",
    )
    parser.add_argument("subject", nargs="?", metavar="SUBJECT", help="such as epoch-cache")
    parser.add_argument("release", nargs="?", metavar="RELEASE", help="such as 4.3.1")
    parser.add_argument("--list", action="store_true", help="print subjects and releases")
    parser.add_argument("--all", action="store_true", help="run all cases, count those that differ, print the shortest")
    parser.add_argument("--case", type=int, metavar="N", help="run only this case, from 1")
    parser.add_argument("--seconds", type=float, default=10.0, metavar="S", help="longest wait for an answer (10)")
    parser.add_argument("--vectors", type=Path, default=VECTORS, metavar="DIR", help="folder of the vectors")
    return parser


def report(head: dict[str, Any], found: Difference) -> str:
    """A difference for a reader."""
    operations = found.operations
    short = f", shortened to {_count(len(operations), 'operation')}" if len(operations) < found.before else ""
    lines = [f"{head['subject']} {head['kafka']}: case {found.number} differs at operation {found.before}{short}:"]
    lines += [f"  {_text(operation)}" for operation in operations]
    lines += [f"expected  {_text(found.expected)}", f"given     {_text(found.given)}"]
    path = differing_part(found.expected, found.given)
    if path != "answer":
        lines.append(f"first difference: {path}")
    return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def run(cases: dict[int, Case], head: dict[str, Any], program: Program, *, all_cases: bool) -> tuple[str, int]:
    """Compare the cases; returns text for stdout and an exit code.

    Raises:
        UnavailableError: see `Program`.
    """
    differences = []
    for number, case in cases.items():
        found = compare(program, head, number, case)
        if found is not None:
            differences.append(shrunk(program, head, found, case))
            if not all_cases:
                break
    if not differences:
        operations = sum(len(case[0]) for case in cases.values())
        name = f"{head['subject']} {head['kafka']}"
        return f"{name}: {_count(len(cases), 'case')}, {_count(operations, 'operation')}: equal", EQUAL
    text = report(head, min(differences, key=lambda found: len(found.operations)))
    if all_cases:
        text += f"\n{len(differences):,} of {_count(len(cases), 'case')} differ; this is the shortest"
    return text, DIFFERS


def answer(arguments: list[str]) -> tuple[str, int]:
    """Text for stdout and an exit code.

    Raises:
        BadInputError: the arguments or the vectors are wrong.
        UnavailableError: see `Program`.
    """
    place = arguments.index("--") if "--" in arguments else len(arguments)
    options, others = _parser().parse_known_args(arguments[:place])
    if others:
        _known("argument", others[0], [*OPTIONS, "-- PROGRAM"])
    command = arguments[place + 1 :]
    if options.list:
        return "\n".join(f"{name}  {' '.join(found)}" for name, found in available(options.vectors).items()), EQUAL
    if options.subject is None or options.release is None:
        raise BadInputError("SUBJECT and RELEASE are missing; --list prints them")
    cases = dict(enumerate(read(options.vectors, options.subject, options.release), 1))
    if not 0 < options.seconds <= threading.TIMEOUT_MAX:
        raise BadInputError(f"--seconds {options.seconds:g}: a positive number is needed")
    if options.case is not None:
        if options.case not in cases:
            raise BadInputError(f"--case {options.case}: there are cases 1 to {len(cases)}")
        cases = {options.case: cases[options.case]}
    if not command:
        raise BadInputError("the program is missing: add -- PROGRAM [ARGUMENT...]")
    with Program(command, options.seconds) as program:
        head = {"subject": options.subject, "kafka": options.release}
        return run(cases, head, program, all_cases=options.all)


def main() -> int:
    """Returns an exit code; errors are one line on stderr."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        text, code = answer(sys.argv[1:])
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BadInputError as error:
        sys.stderr.write(f"error: {error}\n")
        return BAD_INPUT
    except UnavailableError as error:
        sys.stderr.write(f"error: the program {error}\n")
        return UNAVAILABLE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


if __name__ == "__main__":
    sys.exit(main())
