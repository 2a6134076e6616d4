"""Reads the configuration keys of Kafka's releases from their classes, and writes `scenarios/properties/keys.json`.

``python -m tests.verification.kafka_keys`` needs Maven, a JDK and a network, and takes ten minutes. To add a release,
name it in `RELEASES` and run it again; the table of modes in `scenarios/properties/releases.py` may need an entry, too.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from itertools import groupby
from pathlib import Path
from typing import Final

from scenarios.properties.known import KEYS_VERSION, SCOPES
from scenarios.properties.modelled import NAMES
from tests.places import ROOT

RELEASES: Final = (
    *("0.10.2.2", "0.11.0.3", "1.0.2", "1.1.1", "2.0.1", "2.1.1", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.3"),
    *("2.7.2", "2.8.2", "3.0.2", "3.1.2", "3.2.3", "3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.1"),
    *("4.0.1", "4.1.2", "4.2.2", "4.3.1", "4.4.0"),
)
"""The last one of each minor release."""
SCALA_2_11: Final = RELEASES.index("2.4.1")
"""Releases before it are read as built for Scala 2.11."""
POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>keys</groupId><artifactId>keys</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka_{scala}</artifactId><version>{release}</version>
  </dependency></dependencies>
</project>
"""
Found = dict[tuple[str, str], str]
"""Scope and key -> default."""


def keys(release: str, folder: Path) -> Found:
    """The keys of one release."""
    scala = "2.11" if RELEASES.index(release) < SCALA_2_11 else "2.13"
    (folder / "pom.xml").write_text(POM.format(scala=scala, release=release), encoding="utf-8")
    goal = ["mvn", "-q", "-B", "dependency:build-classpath", "-Dmdep.outputFile=class-path"]
    subprocess.run(goal, cwd=folder, check=True)
    classes = f"{folder}:{(folder / 'class-path').read_text()}"
    out = subprocess.run(["java", "-cp", classes, "Keys"], capture_output=True, text=True, check=True).stdout
    found = [line.split("\t") for line in out.splitlines() if line.startswith(SCOPES)]
    return {(scope, key): default for scope, key, default in found}


def table(found: dict[str, Found]) -> dict[str, object]:
    """The content of the file: releases that have a key, and the defaults of modelled keys with their changes.

    Args:
        found: minor release -> its keys, oldest first.
    """
    releases = list(found)
    known: dict[str, dict[str, str]] = {scope: {} for scope in SCOPES}
    defaults: dict[str, dict[str, dict[str, str]]] = {scope: {} for scope in SCOPES}
    for scope, key in sorted({pair for keys in found.values() for pair in keys}):
        having = [number for number, release in enumerate(releases) if (scope, key) in found[release]]
        runs = [[number for _, number in run] for _, run in groupby(enumerate(having), lambda pair: pair[1] - pair[0])]
        known[scope][key] = ", ".join(f"{releases[run[0]]}..{releases[run[-1]]}" for run in runs)
        if key in NAMES[scope]:
            values = {releases[number]: found[releases[number]][scope, key] for number in having}
            defaults[scope][key] = {
                release: value
                for before, (release, value) in zip([None, *values.values()], values.items(), strict=False)
                if value != before
            }
    return {"schema_version": KEYS_VERSION, "releases": list(RELEASES), "keys": known, "defaults": defaults}


def minor(release: str) -> str:
    """``3.9`` for ``3.9.1``, ``0.10.2`` for ``0.10.2.2``."""
    return release.rpartition(".")[0]


def main() -> None:
    """Write the file."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        source = Path(__file__).with_name("Keys.java")
        subprocess.run(["javac", "-d", folder, source], check=True)
        found: dict[str, Found] = {}
        for release in RELEASES:
            found[minor(release)] = keys(release, folder)
            sys.stdout.write(f"{release}: {len(found[minor(release)])} keys\n")
    file = ROOT / "scenarios" / "properties" / "keys.json"
    file.write_text(json.dumps(table(found), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
