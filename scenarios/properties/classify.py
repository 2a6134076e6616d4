"""Reads files of a real cluster's settings, and tells of each key whether a simulation depends on it.

Values are kept of modelled keys only: passwords are in none of the results.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Final

from scenarios import paths
from scenarios.properties import described, java_properties, known, reasons
from scenarios.properties.java_properties import PropertyEntry
from scenarios.properties.modelled import NAMES, is_unset, value
from sim.config import CONTROLLER_KEYS, KEYS, Value, shown
from sim.errors import ALIKE, InputError, UserError, nearest
from sim.protocol.modes import Mode
from sim.protocol.rules import unmet

FILE_BYTES: Final = 1 << 20
_PROVIDED: Final = re.compile(r"\$\{[^}]*:[^}]*\}")
"""A value that a config provider inserts."""
_LISTENER: Final = re.compile(r"listener\.name\.[\w-]+\.(?:(?:plain|gssapi|oauthbearer|scram-sha-\d+)\.)?(?P<key>.+)")
_WORDS_OF_KEY: Final = re.compile(r"[\w.-]+", re.ASCII)
"""The characters of a key that anything reads: other keys are in no properties file of Kafka."""
_SHAPE: Final = re.compile(r"[a-z]+([.-][a-z]+)+")
"""The shape of a key. What has another shape, or no value, may be a part of a password, and is not repeated."""
_RANKS: Final = ("static settings", "dynamic settings", "topic settings")
_WORDS: Final = {"broker": "a broker", "topic": "a topic", "producer": "a producer", "consumer": "a consumer"}


class Status(Enum):
    """What a simulation makes of a key."""

    USED = "used"
    INERT = "no effect"
    NOT_MODELLED = "not modelled"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ClassifiedKey:
    """A key of a file.

    Attributes:
        key: the key; empty if it is not repeated, because it may be a part of a password.
        line: its line in the file.
        status: what a simulation makes of it.
        why: the reason, or the nearest known key.
        name: the modelled key that it sets; empty if it sets none.
        value: the value of a modelled key; None if a config provider inserts it.
        changes_figures: whether figures would differ if a simulation used the key, which is not modelled.
    """

    file: str
    line: int
    key: str
    status: Status
    why: str
    name: str = ""
    value: Value | None = None
    changes_figures: bool = False


@dataclass(frozen=True, slots=True)
class ClassifiedFiles:
    """The settings of some files.

    Attributes:
        findings: one for each key of each file.
        settings: modelled key -> its value; topics override brokers.
        notes: repeated keys, keys that files set differently, and keys that a backslash makes a value.
        control_plane: ``kraft`` or ``zookeeper``, if a file tells.
        racks: number of different values of ``broker.rack`` in the brokers' files; None if there is no such file.
    """

    findings: tuple[ClassifiedKey, ...] = ()
    settings: Mapping[str, Value] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    control_plane: str = ""
    racks: int | None = None

    def in_modes(self, modes: Collection[Mode]) -> ClassifiedFiles:
        """Mark the keys that have no effect in any of the modes."""
        return replace(self, findings=tuple(_in_modes(finding, modes) for finding in self.findings))

    def not_given(self, given: Collection[str], options: Mapping[str, str] | None = None) -> None:
        """Refuse values that a config provider inserts, unless the settings are given, or a later file sets them.

        Args:
            given: settings that the user gives.
            options: setting -> the option of the command that gives it; None: the command has ``--set``.

        Raises:
            InputError: names them all.
        """
        known = {*given, *self.settings}
        missing = [
            finding for finding in self.findings if finding.name and finding.value is None and finding.name not in known
        ]
        if missing:
            raise InputError(
                *(
                    f"{finding.file}, line {finding.line}: {finding.key}: {finding.why}; {_give(finding.name, options)}"
                    for finding in missing
                )
            )


@dataclass(frozen=True, slots=True)
class _File:
    name: str
    scope: str
    rank: int
    """A file of a higher rank overrides those below: static, dynamic, topic."""
    entries: tuple[PropertyEntry, ...]


def read(files: Iterable[Path]) -> ClassifiedFiles:
    """Read properties files and outputs of ``--describe``; of several files of the same sort, the last counts.

    Raises:
        InputError: a file is missing or none of these, or a modelled key has a value that is not valid.
        StorageError: a file cannot be read.
    """
    given = sorted((_read(path) for path in files), key=lambda file: file.rank)
    origins: dict[str, tuple[int, str]] = {}
    findings: list[ClassifiedKey] = []
    settings: dict[str, Value] = {}
    notes: list[str] = []
    problems: list[str] = []
    for file in given:
        notes += (*_repeated(file), *_swallowed(file))
        for entry in {entry.key: entry for entry in file.entries}.values():
            try:
                found = _finding(file, entry)
            except InputError as error:
                problems += (f"{file.name}, line {entry.line}: {problem}" for problem in error.problems)
                continue
            findings.append(found)
            if found.value is None:
                settings.pop(found.name, None)
                continue
            if settings.get(found.name, found.value) != found.value:
                notes.append(_differing(found.name, (settings[found.name], found.value), *origins[found.name], file))
            settings[found.name], origins[found.name] = found.value, (file.rank, file.name)
    if problems:
        raise InputError(*problems)
    notes += _combined(settings)
    return ClassifiedFiles(tuple(findings), settings, tuple(notes), _control_plane(given), _racks(given))


def _combined(settings: Mapping[str, Value]) -> list[str]:
    """Settings that together do not do what each of them says."""
    notes = []
    if "log.flush.interval.ms" in settings and "log.flush.scheduler.interval.ms" not in settings:
        notes.append(
            "log.flush.interval.ms flushes only once, 30 s after a start, unless the brokers set "
            "log.flush.scheduler.interval.ms: these files do not, and by default the flusher does not run again"
        )
    replicas, min_isr = (settings.get(key) for key in ("default.replication.factor", "min.insync.replicas"))
    if isinstance(replicas, int) and isinstance(min_isr, int) and min_isr > replicas:
        notes.append(
            f"min.insync.replicas = {min_isr} is more than default.replication.factor = {replicas}: topics with that "
            "many replicas refuse each write with acks=all"
        )
    return notes


def _read(path: Path) -> _File:
    try:
        content = paths.read(path, FILE_BYTES)
        entries = java_properties.parse(content)
        output = described.parse(content.decode("iso-8859-1"))
    except UserError as error:
        raise type(error)(*(f"{path}: {problem}" for problem in error.problems)) from None
    if output is not None:
        scope, entries = output
        return _File(str(path), scope, 2 if scope == "topic" else 1, tuple(entries))
    if not entries:
        raise InputError(f"{path}: it sets no key")
    if not all(_WORDS_OF_KEY.fullmatch(entry.key) for entry in entries) and not any(
        known.readers(entry.key) for entry in entries
    ):
        raise InputError(f"{path}: this is no properties file: it sets no key of Kafka's")
    scope = max(known.SCOPES, key=lambda scope: sum(entry.key in known.names(scope) for entry in entries))
    return _File(str(path), scope, 2 if scope == "topic" else 0, tuple(entries))


def _give(name: str, options: Mapping[str, str] | None) -> str:
    """How the user gives the value of a key."""
    if options is None:
        return "give it with --set"
    return f"give it with {options[name]}" if name in options else "give it in a further --server-properties FILE"


def _repeated(file: _File) -> list[str]:
    entries: dict[str, list[PropertyEntry]] = {}
    for entry in file.entries:
        entries.setdefault(entry.key, []).append(entry)
    return [
        f"{file.name}: {_said(same[0]) or 'a key'} is set in lines "
        f"{', '.join(str(entry.line) for entry in same[:-1])} and {same[-1].line}; the last one counts, as in Java"
        for same in entries.values()
        if len(same) > 1
    ]


def _swallowed(file: _File) -> list[str]:
    """Lines that a backslash makes a part of the value before, although they look like a key of Kafka."""
    return [
        f"{file.name}: line {number - 1} goes on in line {number}, which looks like {key}: a backslash at the end of a "
        "line continues it, so the key is not set"
        for entry in file.entries
        for number, key in entry.continued.items()
        if known.readers(key)
    ]


def _differing(name: str, values: tuple[Value, Value], rank: int, other: str, file: _File) -> str:
    """That two files set a key differently."""
    before, now = values
    why = "the last one counts" if rank == file.rank else f"{_RANKS[file.rank]} override {_RANKS[rank]}"
    where = f"{shown(before)} in {other}, {shown(now)} in {file.name}"
    return f"files set {name} differently ({where}); {why}"


def _said(entry: PropertyEntry) -> str:
    """The key if it may be repeated, empty if it may be a part of a password."""
    key = entry.key
    if _listener_key(key) in known.names("broker"):
        return key
    return key if (_SHAPE.fullmatch(key) and entry.value) or known.readers(key) or _near(key, "broker") else ""


def _listener_key(key: str) -> str:
    """The key that ``listener.name.NAME.KEY`` sets for one listener; empty for other keys."""
    prefixed = _LISTENER.fullmatch(key)
    return "" if prefixed is None else prefixed["key"]


def _control_plane(files: Iterable[_File]) -> str:
    keys = {entry.key for file in files if file.scope == "broker" for entry in file.entries if entry.value.strip()}
    if "process.roles" in keys:
        return "kraft"
    return "zookeeper" if any(key.startswith("zookeeper.") for key in keys) else ""


def _racks(files: Iterable[_File]) -> int | None:
    brokers = [file for file in files if file.scope == "broker"]
    names = {entry.value.strip() for file in brokers for entry in file.entries if entry.key == "broker.rack"}
    return len(names - {""}) if brokers else None


def _finding(file: _File, entry: PropertyEntry) -> ClassifiedKey:
    key, scope = entry.key, file.scope
    name = NAMES[scope].get(key, "")
    found = ClassifiedKey(file.name, entry.line, _said(entry), Status.USED, "" if key == name else f"as {name}", name)
    if name and _PROVIDED.search(entry.value):
        return replace(found, why="a config provider inserts its value, which is not read")
    if is_unset(name, entry.value):
        return replace(found, why="it is not set")
    if name:
        why = 'only in scenarios with control = "quorum"' if name in CONTROLLER_KEYS else found.why
        return replace(found, value=value(scope, key, entry.value), why=why)
    if key in known.names(scope):
        return replace(found, status=Status.NOT_MODELLED, why=reasons.why_not(key))
    if readers := known.readers(key):
        why = f"a key of {' and '.join(readers)}, which {_WORDS[scope]} does not read"
        differs = any(key in modelled for modelled in NAMES.values())
        return replace(found, status=Status.NOT_MODELLED, why=why, changes_figures=differs)
    if own := _listener_key(key):
        if own not in known.names("broker"):
            return replace(found, status=Status.UNKNOWN, why=_nearest(own, scope, found.key))
        return replace(found, status=Status.NOT_MODELLED, why=reasons.why_not(own))
    if why := reasons.extension(key):
        return replace(found, status=Status.NOT_MODELLED, why=why)
    return replace(found, status=Status.UNKNOWN, why=_nearest(key, scope, found.key))


def _nearest(key: str, scope: str, said: str) -> str:
    if near := _near(key, scope):
        return f"no release has it; did you mean {near}?"
    return "no release has it" if said else "no key has such a name; it is not shown, because it may be a secret"


def _near(key: str, scope: str) -> str:
    return nearest(key, known.names(scope), ALIKE)


def _in_modes(found: ClassifiedKey, modes: Collection[Mode]) -> ClassifiedKey:
    if found.status is not Status.USED:
        return found
    needs = [unmet(KEYS[found.name].where, [mode.rules]) for mode in modes]
    if not needs or not all(needs):
        return found
    conditions = dict.fromkeys(condition for need in needs for condition in need)
    reason = ", ".join(f"{rule}={'|'.join(values)}" for rule, values in conditions)
    names = ", ".join(mode.name for mode in modes)
    return replace(found, status=Status.INERT, why=f"no effect in {names}: needs {reason}")
