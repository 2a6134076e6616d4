"""Runs a harness: compiles it once for each release, and keeps one Java process for each subject and release."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, Self

from highwater.lab.kafka import releases
from scenarios.sweep.java import cache_folder
from sim.errors import InputError, UnavailableError
from tests.verification.oracle.subject import Case, Seen, Subject

SOURCES: Final = Path(__file__).parent / "java"
_MARK: Final = re.compile(r" // (?:from (?P<first>[\d.]+))?(?: ?before (?P<end>[\d.]+))?$", re.MULTILINE)
FROM: Final = "from-"
TO: Final = "to-"
ANSWER_SECONDS: Final = 120
COMPILE_SECONDS: Final = 300
JAVA_OPTIONS: Final = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:-UsePerfData")


class Kafka:
    """A release's class in a Java process; a context manager.

    Args:
        subject: which class.
        release: of which release.
        build: the jars of a build that is compared in place of the release's; None: the release's.

    Raises:
        InputError: the release is not pinned, or its classes do not fit the harness.
        UnavailableError: Java or the network is missing.
    """

    def __init__(self, subject: Subject, release: str, build: Sequence[Path] | None = None) -> None:
        self._subject = subject
        self._release = release
        jars = releases.class_path(release) if build is None else list(build)
        classes = _compiled(subject, release, jars)
        path = ":".join(map(str, (classes, *jars)))
        self._work = tempfile.TemporaryDirectory(dir=_memory(), prefix="oracle-")
        command = [str(releases.java_command()), *JAVA_OPTIONS, f"-Djava.io.tmpdir={self._work.name}"]
        command += [*subject.options, "-cp", path, "highwater.Main", subject.java]
        self._log = (cache_folder() / "kafka" / f"{subject.name}-{release}.log").open("w+", encoding="utf-8")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        self._asked: SimpleQueue[str | None] = SimpleQueue()
        self._answers: SimpleQueue[str | None] = SimpleQueue()
        for task in (self._write, self._read):
            Thread(target=task, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._process.kill()
        self._asked.put(None)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        self._work.cleanup()

    def _write(self) -> None:
        assert self._process.stdin is not None
        try:
            while (lines := self._asked.get()) is not None:
                self._process.stdin.write(lines)
                self._process.stdin.flush()
            self._process.stdin.close()
        except BrokenPipeError:
            pass  # `_answer` reports that Java ended.

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(None)

    def ask(self, cases: Iterable[Case]) -> None:
        """Send cases; `answers` waits for the results."""
        self._asked.put("".join(f"{json.dumps(case, separators=(',', ':'))}\n" for case in cases) + "\n")

    def answers(self, count: int) -> list[Seen]:
        """The results of that many cases, in the order in which they were sent.

        Raises:
            UnavailableError: Java ended, or hangs.
        """
        return [self._answer() for _ in range(count)]

    def _answer(self) -> Seen:
        line = self._answers.get()
        if line is None:
            self._log.seek(0)
            said = [line for line in self._log.read().splitlines() if "rror" in line or "xception" in line]
            raise UnavailableError(f"{self._subject.name}, Kafka {self._release}: Java ended: {(said or ['?'])[0]}")
        answer = json.loads(line)
        if isinstance(answer, str):
            raise UnavailableError(f"{self._subject.name}, Kafka {self._release}: {answer}")
        found: Seen = answer
        return found

    def run(self, *cases: Case) -> list[Seen]:
        """Send cases and wait for their results."""
        self.ask(cases)
        return self.answers(len(cases))


def _memory() -> str | None:
    """A folder in memory if there is one, because old releases fsync at every step."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108


def sources(subject: Subject, release: str) -> list[Path]:
    """The harness for a release: of each folder what fits all, and of the folders in it the newest that is no newer.

    A folder ``from-R`` holds what fits all releases from R on, ``to-R`` what fits all up to R. Lines of a file may fit
    only some: `fitting`.

    Raises:
        InputError: the release is older than all.
    """
    found = list(SOURCES.glob("common/*.java"))
    for name in (subject.name.replace("-", "_"), *subject.uses):
        folder = SOURCES / name
        inside = [path for path in folder.iterdir() if path.is_dir()]
        until = [path for path in inside if path.name.startswith(TO) and _place(release) <= _place(path.name)]
        older = [path for path in inside if not path.name.startswith(TO) and _place(path.name) <= _place(release)]
        since = [path for path in older if path.name.startswith(FROM)]
        fitting = [path for path in older if path not in since]
        if not fitting:
            raise InputError(f"{subject.name} has no harness for Kafka {release}")
        newest = max(fitting, key=lambda path: _place(path.name))
        found += [file for path in (folder, newest, *since, *until) for file in path.glob("*.java")]
    return sorted(found)


def fitting(text: str, release: str) -> str:
    """A harness as a release takes it: a line may end with ``// from R``, ``// before R`` or both.

    What does not fit becomes an empty line, so that the compiler names the lines of the file.
    """
    return "".join(line if _fits(line, release) else "\n" for line in text.splitlines(keepends=True))


def _fits(line: str, release: str) -> bool:
    mark = _MARK.search(line)
    if mark is None:
        return True
    begins = mark["first"] is None or _place(mark["first"]) <= _place(release)
    return begins and (mark["end"] is None or _place(release) < _place(mark["end"]))


def _place(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.removeprefix(FROM).removeprefix(TO).split("."))


def _compiled(subject: Subject, release: str, jars: list[Path]) -> Path:
    files = sources(subject, release)
    texts = {file.name: fitting(file.read_text(encoding="utf-8"), release) for file in files}
    digest = hashlib.blake2b("".join([*texts.values(), *_foreign(jars)]).encode(), digest_size=8)
    folder = cache_folder() / "kafka" / "classes" / f"{subject.name}-{release}-{digest.hexdigest()}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        written, work = Path(place, "java"), Path(place, "classes")
        written.mkdir()
        for name, text in texts.items():
            (written / name).write_text(text, encoding="utf-8")
        command = [str(releases.java_command()), "-jar", str(releases.tool("compiler")), "-17", "-nowarn", "-proc:none"]
        command += ["-cp", ":".join(map(str, jars)), "-d", str(work), *(str(written / name) for name in texts)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False)
        if done.returncode:
            raise InputError(f"the harness of {subject.name} does not fit Kafka {release}: {_first_error(done.stderr)}")
        shutil.copytree(work, folder, dirs_exist_ok=True)
    return folder


def _foreign(jars: Iterable[Path]) -> Iterator[str]:
    """Names, sizes and times of jars that are not pinned, so that each build has compiled classes of its own."""
    for jar in jars:
        if jar.parent != releases.jar_folder():
            there = jar.stat()
            yield f"{jar} {there.st_size} {there.st_mtime_ns}\n"


def _first_error(said: str) -> str:
    """Place and text of the compiler's first error."""
    found = re.search(r"ERROR in (\S+) \(at line (\d+)\)\n(?:.*\n){1,2}?\s*\^+\n(.*)", said)
    if found is None:
        return said.strip().splitlines()[-1] if said.strip() else "the compiler says nothing"
    return f"{Path(found[1]).name}:{found[2]}: {found[3]}"


def plain(seen: Any) -> Seen:
    """The core's result as JSON has it."""
    if isinstance(seen, tuple | list):
        return [plain(part) for part in seen]
    return seen  # type: ignore[no-any-return]
