"""`make fuzz`: strange command lines, scenario files, plans, stores and metadata logs.

Whatever the command line is given, it ends with an exit code that README lists and not with an internal error, shows
no traceback and no secret, writes and removes nothing outside the folders that it was given, and ends soon. Most cases
run in this process, every twentieth in one of its own. A case depends on its seed alone: ``--only SEED`` shows one.

Spark is not started: masters are those that are refused before a JVM is. Numbers that are valid stay small: how long a
run may become is another question.
"""

from __future__ import annotations

import argparse
import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import random
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from google_crc32c import value as crc32c

from highwater.cli import last_failed
from highwater.cli.main import COMMANDS, main
from sim.config import KEYS
from sim.protocol.modes import MODES
from sim.protocol.rules import RULES
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECRET = "hunter2"  # noqa: S105 - a made-up one
CODES = {0, 1, 2, 3, 4, 69, 74, 130}
SECONDS = 30
"""That a case may take; the slowest that is sound takes one."""
ELSEWHERE_ONE_EVERY = 20
ALLOWED = ("out", "store", "dist")
"""Folders of a case that may change: ``--output`` goes to the first, a replay without it to the second, an archive for
Spark without it to the third.
"""
DEFAULT_FILE = re.compile(r"report\.html|[a-z0-9.-]+-[\w.-]+-\d+\.(svg|json|html)")
"""What `report`, `draw` and `show` write into the current folder without ``--output``: new files, never over others."""

SMALL = ("canary", "kip101-scenario-1", "kip279-scenario-1-below", "kafka-7164", "kip966-first-replies")
WORDS = (
    *". .. ../x / /etc/passwd ~ - -- -h = a=b=c , a,b ..5 5.. 0..0 café 日本 ' %s {0} $HOME *".split(),  # noqa: SIM905 - a line each would be pages
    *("", " ", "\x1b[31m", "\n", "\t", "\x00", "\udcff", "\u202e", '"', "a" * 5_000),
    *(f"spark://u:{SECRET}@h:1", f"a.password={SECRET}", f"s3a://K:{SECRET}@b/x", f"https://h/?token={SECRET}"),
    *"hw canary kip320 power never all true False acks min.insync.replicas".split(),  # noqa: SIM905 - a line each would be pages
)
NUMBERS = (
    *"0 1 -1 2 7 0x10 0X1F 0x 1_0 \u0663 \uff19 +1 1.5 1e3 1e400 nan inf -inf".split(),  # noqa: SIM905 - a line each would be pages
    *(" 1", str(1 << 31), str((1 << 63) - 1), str(1 << 63), str(1 << 64), "9" * 30, "9" * 5_000, "-" + "9" * 30),
)
RANGES = (
    "0..2",
    "0..1",
    "3..5",
    "5..3",
    "0..9223372036854775807",
    "0..9223372036854775808",
    "-1..2",
    "0...3",
    "0..nan",
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 7, 50, 1 << 63, -(1 << 63) - 1, 10**30, 0.5, -0.0, float("nan"), float("inf")),
    *([], [[]], {}, [1], [1, 2], [2, 1], ["a"], {"a": 1}, [None], "", "a\x00b", "x" * 3_000, f"x.secret={SECRET}"),
    *".. ../../x /abs a/b hw all never committed-loss 1 é \u202e kill append canary".split(),  # noqa: SIM905 - a line each would be pages
)
MASTERS = (
    "foo",
    f"spark://u:{SECRET}@h:1",
    "spark://127.0.0.1:1",
    "sc://127.0.0.1:1",
    "spark://",
    "sc://",
    "spark://h:x",
)


class Finding(NamedTuple):
    """A case that ended in a way that is not allowed."""

    seed: int
    words: list[str]
    why: str
    said: str

    def __str__(self) -> str:
        return f"case {self.seed}: {self.why}: highwater {shlex.join(self.words)[:400]}\n{self.said[-1_500:]}"


@dataclass
class Report:
    """Results of some cases.

    Attributes:
        cases: how many ran.
        codes: how they ended.
        findings: those that ended in a way that is not allowed.
    """

    cases: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)


class Late(BaseException):
    """A case takes too long; nothing on its way out may take it for an error of its own."""


# What cases are made of.


@cache
def templates() -> Path:
    """A folder with a store of two scenarios, one with a grid, and recorded runs."""
    folder = Path(tempfile.mkdtemp(prefix="highwater-fuzz-"))
    with contextlib.redirect_stdout(io.StringIO()):
        common = ["--seeds", "0..2", "--local", "1", "-q", "--json"]
        for words in (
            ["sweep", "canary", "power", "--modes", "hw", "--output", str(folder / "plain"), *common],
            ["sweep", "canary", "--set", "acks=1,all", "--output", str(folder / "grid"), *common],
            ["replay", "power", "--mode", "hw", "--seed", "3", "--output", str(folder), "--json"],
            ["replay", "chaos", "--mode", "elr", "--seed", "4", "--output", str(folder), "--json"],
        ):
            assert main(words) in CODES, words
    return folder


@cache
def stored(path: Path) -> Any:
    return json.loads(path.read_bytes())


@cache
def scenario_text(name: str) -> str:
    return (ROOT / "scenarios" / "files" / f"{name}.toml").read_text(encoding="utf-8")


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All paths of a tree."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield (*path, key)
        yield from places(value, (*path, key))


def mutated(data: Any, chance: random.Random, values: tuple[Any, ...] = VALUES) -> Any:
    """A tree with a few places changed, removed, moved or nested."""
    data = deepcopy(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        paths = list(places(data))
        if not paths:
            break
        *above, last = chance.choice(paths)
        parent = data
        for key in above:
            parent = parent[key]
        how = chance.randrange(8)
        if how == 0:
            del parent[last]
        elif how == 1 and isinstance(parent, dict):
            parent[chance.choice(("extra", "..", "", "schema_version", str(last)[:-1]))] = parent[last]
        elif how == 2:
            parent[last] = [parent[last]]
        elif how == 3:
            parent[last] = {"a": parent[last]}
        elif how == 4 and isinstance(parent[last], str):
            parent[last] = chance.choice(
                (parent[last][:-1], parent[last] * 2, f"{parent[last]}/..", parent[last].upper())
            )
        elif how == 5:
            other = chance.choice(paths)
            with contextlib.suppress(KeyError, IndexError, TypeError):
                value = data
                for key in other:
                    value = value[key]
                parent[last] = deepcopy(value)
        else:
            parent[last] = chance.choice(values)
    return data


def toml(value: Any) -> str:
    """A tree as TOML with inline tables; values that TOML lacks become empty strings."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(str(key))} = {toml(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, float):
        return str(value)
    return json.dumps("" if value is None else value).replace("\\u0000", "\\u0000")


def file_bytes(text: str, chance: random.Random) -> bytes:
    """A file's content, sometimes with damaged bytes."""
    content = text.encode("utf-8", "surrogatepass")
    how = chance.randrange(24)
    if how == 0:
        return b"\xef\xbb\xbf" + content
    if how == 1:
        return content[: chance.randrange(len(content) + 1)]
    if how == 2:
        place = chance.randrange(len(content) + 1)
        return content[:place] + chance.randbytes(3) + content[place:]
    if how == 3:
        return text.encode("utf-16")
    if how == 4:
        return chance.choice(
            (b"", b"\x00" * 100, b"[" * 100_000, b'{"a":' * 100_000, b"a = " + b"[" * 5_000, b"[a" + b".a" * 3_000)
        )
    return content


def put(path: Path, content: bytes, chance: random.Random) -> None:
    """Write a file, or sometimes a folder or link in its place."""
    how = chance.randrange(40)
    if how == 0:
        path.mkdir()
    elif how == 1:
        os.mkfifo(path)
    elif how == 2:
        path.symlink_to(path.name)
    elif how == 3:
        path.symlink_to("/dev/zero")
    elif how > 4:
        path.write_bytes(content)


# Cases: each takes a folder to fill and gives the words to run there.


def scenario_file(folder: Path, chance: random.Random) -> list[str]:
    """A command on a scenario file with mistakes."""
    name = chance.choice((*SMALL, "power", "chaos"))
    command = chance.choice(
        (["scenarios", "validate"], ["scenarios", "show"], ["scenarios", "show", "--resolved"], ["run"], ["replay"])
    )
    text = scenario_text(name)
    if chance.random() < 0.6:
        data = mutated(tomllib.loads(text), chance)
        text = "\n".join(f"{json.dumps(str(key))} = {toml(value)}" for key, value in data.items())
    else:
        lines = text.splitlines()
        for _ in range(chance.choice((1, 1, 3))):
            place = chance.randrange(len(lines))
            how = chance.randrange(4)
            if how == 0:
                del lines[place]
            elif how == 1:
                lines.insert(place, chance.choice(lines))
            elif how == 2:
                key = lines[place].partition("=")[0]
                lines[place] = f"{key}= {toml(chance.choice(VALUES))}"
            else:
                lines[place] = lines[place][: chance.randrange(len(lines[place]) + 1)]
        text = "\n".join(lines)
    put(folder / "x.toml", file_bytes(text, chance), chance)
    if command == ["run"] or command == ["replay"]:
        more = ["--seed", chance.choice(("1", "2"))]
        more += ["--output", "out"] if command == ["replay"] else []
        return [*command, "./x.toml", *more]
    return [*command, "./x.toml"]


def plan_file(folder: Path, chance: random.Random) -> list[str]:
    """A command on a recorded run or plan with mistakes."""
    word, path = chance.choice((("power", "seeds/3-hw"), ("chaos", "seeds/4-elr")))
    data = stored(templates() / path / "plan.json")
    if chance.random() < 0.3:
        data = data["plan"]
    if chance.random() < 0.5 and "plan" in data:  # Settings and batches are most of a file.
        data = {**data, "plan": mutated(data["plan"], chance)}
    else:
        data = mutated(data, chance)
    put(folder / "plan.json", file_bytes(json.dumps(data), chance), chance)
    named = [chance.choice((word, "canary", "power"))] if "sends" not in data or chance.random() < 0.2 else []
    return [
        "run",
        *named,
        "--plan",
        "plan.json",
        *chance.choice(([], ["--json"], ["--mode", "kip320"], ["--seed", "5"])),
    ]


def store(folder: Path, chance: random.Random) -> list[str]:
    """A command on a damaged store."""
    kind = chance.choice(("plain", "grid"))
    shutil.copytree(templates() / kind, folder / "out" / "s")
    target = folder / "out" / "s"
    how = chance.randrange(4)
    if how == 0:
        rows_changed(target, chance)
    elif how == 1:
        file = target / "summary.json"
        data = mutated(stored(templates() / kind / "summary.json"), chance)
        file.unlink()
        put(file, file_bytes(json.dumps(data), chance), chance)
    elif how == 2:
        links(folder, target, chance)
    else:
        data = mutated(stored(templates() / kind / "run.json"), chance)
        (target / "run.json").unlink()
        put(target / "run.json", file_bytes(json.dumps(data), chance), chance)
    words = chance.choice((["replay"], ["replay"], ["replay"], ["compare"], ["coverage"]))
    if words == ["replay"]:
        more = (
            ["--set", chance.choice(("acks=1", "acks=all"))]
            if kind == "grid"
            else ["--scenario", chance.choice(("canary", "power"))]
        )
        more += [] if chance.random() < 0.8 else ["--output", "out/r"]
        return ["replay", "out/s", "--seed", chance.choice("01"), *chance.choice(([], ["--mode", "hw"])), *more]
    return [*words, "out/s", *chance.choice(([], ["--json"]))]


def rows_changed(target: Path, chance: random.Random) -> None:
    """Put strange strings and numbers into a column of the rows."""
    part = chance.choice(sorted(target.rglob("part-*.parquet")))
    table = pq.read_table(part)
    column = chance.choice(table.column_names)
    kind = table.schema.field(column).type
    strange = [chance.choice([word for word in WORDS if "\udcff" not in word]) for _ in range(len(table))]
    values = strange if pa.types.is_string(kind) else [chance.choice((0, 1, -1, 127)) for _ in range(len(table))]
    changed = pa.array(values).cast(kind)
    pq.write_table(table.set_column(table.column_names.index(column), table.schema.field(column), changed), part)


def links(folder: Path, target: Path, chance: random.Random) -> None:
    """Put links where a replay would write and remove."""
    name = chance.choice(
        ("seeds", "canary", "power", "seeds/0-hw", "canary/seeds", "acks=1", "acks=1/seeds", "seeds/0-hw/row.json")
    )
    place = target / name
    place.parent.mkdir(parents=True, exist_ok=True)
    aim = chance.choice((folder / "outside", folder / "outside" / "row.json", Path("/nonexistent"), Path("..")))
    place.symlink_to(aim)


OPTIONS: dict[str, tuple[str, ...]] = {
    "--seed": NUMBERS,
    "--seeds": RANGES,
    "--mode": (*MODES, *WORDS),
    "--modes": ("hw", "hw,kip101", ",", "hw,,", *WORDS),
    "--rule": tuple(f"{name}={value}" for name in list(RULES)[:5] for value in ("", "x", *RULES[name].values)) + WORDS,
    "--set": tuple(f"{key}={value}" for key in KEYS for value in ("", "x", "-1", "never", "1,1", "9" * 30)) + WORDS,
    "--conf": (f"spark.ssl.keyPassword={SECRET}", "a", "=", "a=1", *WORDS),
    "--plan": ("plan.json", "missing.json", ".", *WORDS),
    "--trace": ("out/t", "out", "out/missing/t", "/dev/full", "out/\x1b"),
    "--expect-digest": ("0" * 32, "x", *WORDS),
    "--scenario": ("canary", *WORDS),
    "--output": (
        "out",
        "out/o",
        "out/a:b",
        "out/" + "d" * 300,
        "file",
        "file/x",
        "out/a\x00b",
        "out/\udcff",
        "out/x/../y",
    ),
    "--local": ("1", "0", "-1", "x", "9" * 20),
    "--chunks": ("0", "1", "3", "9" * 30, "x"),
    "--task-seconds": ("nan", "inf", "0", "-1", "1e400", "0.1", "x"),
    "--master": MASTERS,
    "--by": ("mode", "acks", *WORDS),
    "--color": ("always", "never", "x"),
}
FLAGS = ("--json", "--strict", "--all-modes", "--resolved", "-q", "-v", "--help", "--nonsense", "-x")
TAKES = {
    "run": ("--plan", "--mode", "--seed", "--rule", "--set", "--trace"),
    "sweep": ("--modes", "--seeds", "--output", "--local", "--chunks", "--task-seconds", "--rule", "--set", "--conf"),
    "replay": ("--seed", "--mode", "--scenario", "--expect-digest", "--rule", "--set", "--output"),
    "compare": ("--by",),
}


def command_line(folder: Path, chance: random.Random) -> list[str]:
    """Random words, some of them in the order of a valid command."""
    shutil.copytree(templates() / "plain", folder / "out" / "s")
    (folder / "file").write_text("x")
    command = chance.choice(
        [name for name in (*COMMANDS, "run", "run", "replay", "sweep") if name not in ("doctor", "open")]
    )
    words = [command]
    if command in ("modes", "scenarios"):
        words.append(chance.choice(("list", "show", "validate", *WORDS)))
    things = (*SMALL, "power", "out/s", "out/s", "file", "hw", chance.choice(WORDS))
    words += chance.choices(things, k=chance.choice((0, 1, 1, 1, 2)))
    options = [*TAKES.get(command, ()), *(chance.choice(sorted(OPTIONS)) for _ in range(chance.choice((0, 0, 1))))]
    for option in chance.sample(options, min(len(options), chance.choice((0, 1, 2, 2, 3, 5)))):
        words += [option, chance.choice(OPTIONS[option])]
    if command == "sweep":  # Complete more often than not.
        words += [] if "--seeds" in words else ["--seeds", chance.choice(RANGES)]
        words += [] if "--output" in words else ["--output", "out/o"]
        if "--local" not in words:
            words += chance.choice((["--local", "1"], ["--master", chance.choice(MASTERS)]))
    words += [flag for flag in FLAGS if chance.random() < 0.06]
    return words


@cache
def audited() -> dict[str, bytes]:
    """A dump, a segment and a description of one metadata log."""
    forms = ROOT / "tests" / "fixtures" / "metadata" / "three-forms-4.3.1"
    segments = [path.read_bytes() for path in sorted((forms / "__cluster_metadata-0").glob("*.log"))[:2]]
    return {
        "dump": lzma.decompress((forms / "dump.txt.xz").read_bytes()),
        "segment": b"".join(segments),
        "description": (forms / "topics.txt").read_bytes(),
    }


def dump(chance: random.Random) -> bytes:
    """A dump of which some records have other fields, or fields of other types, or some lines are damaged."""
    lines = audited()["dump"].decode().splitlines()
    begin = chance.randrange(len(lines) - 200)
    lines = lines[: chance.choice((60, begin, len(lines)))]
    told = [place for place, line in enumerate(lines) if "payload: {" in line and '"NO_OP_RECORD"' not in line]
    for place in chance.sample(told, min(len(told), chance.choice((1, 1, 3, 20)))):
        head, _, payload = lines[place].partition("payload: ")
        record = json.loads(payload)
        record = sound(record, chance) if chance.random() < 0.6 else mutated(record, chance, (*VALUES, *AUDIT_VALUES))
        text = json.dumps(record)
        if chance.random() < 0.02:
            text = chance.choice(('{"a":' + "[" * 200_000, '{"a":' + "9" * 5_000 + "}"))
        lines[place] = f"{head}payload: {text}"
    for _ in range(chance.choice((0, 0, 0, 0, 0, 1, 3))):
        place = chance.randrange(len(lines))
        lines[place] = damaged_line(lines[place], chance)
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")


AUDIT_VALUES: Final = (
    *("PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "CONFIG_RECORD", "min.insync.replicas", "abc", "-5"),
    *([1, 2, 3], [1] * 300, [-1], [2**31], "AAAAAAAAAAAAAAAAAAAAAQ", ["AAAAAAAAAAAAAAAAAAAAAQ"] * 3, 2**31 - 1),
)
"""Further values of fields of metadata records."""


def sound(record: Any, chance: random.Random) -> Any:
    """A metadata record with another value of the right type, which its controller would not have written."""
    data = record["data"]
    if data:
        name = chance.choice(sorted(data))
        value = data[name]
        if isinstance(value, list):
            data[name] = chance.choices(value or [1, 2, 3], k=chance.choice((0, 1, 2, 3)))
            if not value or isinstance(value[0], int):
                data[name] = chance.choices((-1, 0, 1, 2, 3, 4, 5), k=chance.choice((0, 1, 2, 3, 5)))
        elif isinstance(value, bool):
            data[name] = not value
        elif isinstance(value, int):
            data[name] = chance.choice((-3, -2, -1, 0, 1, 2, 3, 4, 5, value + 1))
        elif isinstance(value, str):
            data[name] = chance.choice((value[::-1], "min.insync.replicas", "3", "true", value))
    return record


def damaged_line(line: str, chance: random.Random) -> str:
    """A line of a dump or description with another number, a field less, twice, repeated without end, or cut."""
    how = chance.randrange(6)
    words = re.split(r"([\s,]+)", line)
    place = chance.randrange(len(words))
    if how == 0:
        return re.sub(r"\d+", lambda _: chance.choice(NUMBERS), line, count=chance.choice((1, 2, 5)))
    if how == 1:
        return "".join(words[:place] + words[place + 1 :])
    if how == 2:
        return "".join([*words[:place], chance.choice(WORDS), *words[place + 1 :]])
    if how == 3:
        return line * chance.choice((2, 50, 1 + 165_000 // (len(line) + 1)))
    if how == 4:
        return "".join([*words[:place], words[place] * chance.choice((2, 100_000)), *words[place:]])
    return line[: chance.randrange(len(line) + 1)]


def segment(chance: random.Random) -> bytes:
    """A segment with other bytes; mostly with the checksums that fit them, so that its records are decoded."""
    data, batches = audited()["segment"], []
    while data:
        length = 12 + struct.unpack_from(">i", data, 8)[0]
        batches.append(bytearray(data[:length]))
        data = data[length:]
    long = [batch for batch in batches if len(batch) > 80]
    for batch in chance.sample(long, chance.choice((1, 1, 3))):
        for _ in range(chance.choice((1, 1, 2, 8))):
            place = chance.randrange(len(batch)) if chance.random() < 0.2 else chance.randrange(61, len(batch))
            batch[place] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, batch[place] ^ 1 << chance.randrange(8)))
        if chance.random() < 0.9:
            struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    whole = b"".join(batches)
    return whole if chance.random() < 0.9 else whole[: chance.randrange(len(whole))]


def audit_of(folder: Path, chance: random.Random) -> list[str]:
    """An audit of a damaged dump, segment or description, which may be compressed, a pipe or a device."""
    form = chance.choice(("dump", "dump", "segment", "segment", "description"))
    path = folder / f"{form}.txt"
    if form == "segment":
        path = folder / "__cluster_metadata-0" / f"{0:020}.log"
        path.parent.mkdir()
        content = segment(chance)
    elif form == "dump":
        content = dump(chance)
    else:
        lines = audited()["description"].decode().splitlines()
        for _ in range(chance.choice((1, 1, 3))):
            place = chance.randrange(len(lines))
            lines[place : place + 1] = chance.choice(([], [damaged_line(lines[place], chance)], [lines[place]] * 2))
        content = ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")
    if form != "segment" and chance.random() < 0.2:
        packed = bytearray(chance.choice((gzip.compress, bz2.compress, lzma.compress))(content))
        packed[chance.randrange(len(packed))] ^= 1 << chance.randrange(8)
        content = bytes(packed)
    put(path, content, chance)
    options = (
        *(
            ["--before-restart", "1"],
            ["--distance", "--most-events", "2"],
            ["--no-explain"],
            ["--anonymous"],
            ["--json"],
        ),
        *(["--release", "3.9.0"], ["--format", "markdown"], ["--output", "out/page.html"], ["--broker-log", str(path)]),
        ["--static", f"min.insync.replicas={chance.choice(NUMBERS)}"],
    )
    asked = [word for option in chance.sample(options, chance.choice((0, 1, 1, 2))) for word in option]
    return ["audit", str(path.parent if form == "segment" and chance.random() < 0.5 else path), *asked]


KINDS: tuple[Callable[[Path, random.Random], list[str]], ...] = (
    scenario_file,
    plan_file,
    store,
    command_line,
    audit_of,
)


# Running.


REMEMBERED: Final = ("XDG_CACHE_HOME/highwater", f"XDG_CACHE_HOME/highwater/{last_failed.NAME}")
"""Where `highwater run` notes the runs that were not as expected."""


def snapshot(folder: Path) -> dict[str, object]:
    """The contents of a folder, without files that may change; links are not followed."""
    found: dict[str, object] = {}
    for above, folders, files in os.walk(folder):
        here = Path(above)
        if here == folder / "case":
            folders[:] = [name for name in folders if name not in ALLOWED]
        for name in (*folders, *files):
            path = here / name
            if str(path.relative_to(folder)) in REMEMBERED:
                continue
            if path.is_symlink():
                found[str(path)] = str(path.readlink())
            elif path.is_file():
                found[str(path)] = path.read_bytes()
            else:
                found[str(path)] = "folder" if path.is_dir() else "special"
    return found


def here(words: list[str]) -> tuple[int, str, str]:
    """Run a case in this process."""
    out, err = io.StringIO(), io.StringIO()

    def late(_signal: int, _frame: object) -> None:
        raise Late

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
    except Late:
        code = -signal.SIGALRM
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return code, out.getvalue(), err.getvalue()


def elsewhere(words: list[str]) -> tuple[int, str, str]:
    """Run a case in another process."""
    command = [sys.executable, "-m", "highwater.cli.entry", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return -signal.SIGALRM, "", ""
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def case(seed: int, root: Path, report: Report) -> None:
    """Make a case, run it, and check what it left behind."""
    chance = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    folder = root / "case"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("out", "outside"):
        (folder / name).mkdir(parents=True)
    (folder / "outside" / "row.json").write_text("{}")
    words = kind(folder, chance)
    separate = seed // len(KINDS) % ELSEWHERE_ONE_EVERY == 0 and not any(set(word) & {"\0", "\udcff"} for word in words)
    os.chdir(folder)
    before = snapshot(root)
    code, out, err = (elsewhere if separate else here)(words)
    report.cases += 1
    report.codes[code] += 1
    why = []
    if code == -signal.SIGALRM:
        why.append(f"more than {SECONDS} s")
    elif code not in CODES:
        why.append(f"exit code {code}")
    if "Traceback" in err:
        why.append("a traceback")
    if SECRET in out + err:
        why.append("a secret")
    after = snapshot(root)
    made = {str(path) for path in folder.iterdir() if DEFAULT_FILE.fullmatch(path.name)} - before.keys()
    there = (before.keys() | after.keys()) - made
    changed = sorted(path for path in there if before.get(path) != after.get(path))
    if changed:
        why.append(f"changed {', '.join(changed[:5])}")
    if why:
        report.findings.append(Finding(seed, words, ", ".join(why), out[-300:] + err))


def fuzz(first: int, cases: int, verbose: bool = False, only: str | None = None) -> Report:
    """Run cases of consecutive seeds in a new folder; `only` those of one kind."""
    report = Report()
    back = Path.cwd()
    templates()
    root = Path(tempfile.mkdtemp(prefix="highwater-fuzz-"))
    kept = {name: os.environ.get(name) for name in ("HOME", "XDG_CACHE_HOME", "TMPDIR")}
    try:
        for name in kept:
            (root / name).mkdir()
            os.environ[name] = str(root / name)
        seeds = (seed for seed in count(first) if only in (None, KINDS[seed % len(KINDS)].__name__))
        for seed in islice(seeds, cases):
            case(seed, root, report)
            if verbose and report.findings and report.findings[-1].seed == seed:
                sys.stdout.write(f"{report.findings[-1]}\n\n")
            if verbose and report.cases % 500 == 0:
                sys.stderr.write(f"{report.cases} cases, {len(report.findings)} findings\n")
    finally:
        for name, value in kept.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        os.chdir(back)
        shutil.rmtree(root, ignore_errors=True)
    return report


def cli() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--only", type=int, help="seed of the one case to run")
    parser.add_argument("--kind", choices=[kind.__name__ for kind in KINDS], help="cases of this kind only")
    options = parser.parse_args()
    try:
        if options.only is not None:
            report = fuzz(options.only, 1, verbose=True)
        else:
            report = fuzz(options.seed, options.cases, verbose=True, only=options.kind)
    finally:
        shutil.rmtree(templates(), ignore_errors=True)
    codes = ", ".join(f"{count} with {code}" for code, count in sorted(report.codes.items()))
    sys.stdout.write(f"{report.cases} cases ({codes}): {len(report.findings)} findings\n")
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(cli())
