"""Sweeps into S3, against a server on loopback: `make test-s3`, which fetches the server and what Spark needs for s3a.

Not part of `make test`: both come over the network.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.fs as pafs
import pytest

from scenarios.sweep import claim, store
from scenarios.sweep.folder import open_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Call

pytest_plugins = ["tests.conftest"]

SERVER = os.environ.get("HIGHWATER_S3_SERVER", "moto_server")
PACKAGE = "org.apache.hadoop:hadoop-aws:3.5.0"
SECRET = "hunter2hunter2"  # noqa: S105 - a made-up one


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    if shutil.which(SERVER) is None:
        pytest.fail(f"no {SERVER}: make test-s3 fetches it")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [SERVER, "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        while True:
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert server.poll() is None
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
        server.kill()


@pytest.fixture(autouse=True)
def s3(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> pafs.S3FileSystem:
    """The environment knows where S3 is; there is an empty bucket."""
    for name, value in (
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_ACCESS_KEY_ID", "someone"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    system = pafs.S3FileSystem(endpoint_override=endpoint, allow_bucket_creation=True, allow_bucket_deletion=True)
    for info in system.get_file_info(pafs.FileSelector("")):
        system.delete_dir(info.path)
    system.create_dir("bucket")
    return system


def conf(endpoint: str) -> list[str]:
    settings = {
        "spark.jars.packages": PACKAGE,
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.access.key": "someone",
        "spark.hadoop.fs.s3a.secret.key": SECRET,
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }
    return [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]


def objects(s3: pafs.S3FileSystem) -> set[str]:
    return {info.path for info in s3.get_file_info(pafs.FileSelector("bucket", recursive=True)) if info.is_file}


def expected(highwater: Callable[..., Call], tmp_path: Path, seeds: str) -> dict[str, list[Any]]:
    output = tmp_path / "expected"
    assert highwater("sweep", "power", "--modes", "hw", "--seeds", seeds, "--output", output, "--local", 2).code == 0
    return store.Store(output).rows()


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_processes_write_and_everything_reads(
    highwater: Callable[..., Call], tmp_path: Path, s3: pafs.S3FileSystem, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = f"{scheme}://bucket/some where/a:b"
    sweep = ["sweep", "power", "--modes", "hw", "--output", place, "--local", 2]
    assert highwater(*sweep, "--seeds", "0..40").code == 0
    assert highwater(*sweep, "--seeds", "0..60").code == 0
    assert store.Store(place).rows() == expected(highwater, tmp_path, "0..60")
    assert highwater("compare", place).code == highwater("coverage", place).code == highwater("doctor", place).code == 0
    replayed = highwater("replay", place, "--seed", 7, "--mode", "hw", "--json")
    assert not replayed.json["replays"][0]["digest"]["differs"]
    assert not [name for name in objects(s3) if "claims" in name]


def test_spark_writes_by_s3a(
    highwater: Callable[..., Call], tmp_path: Path, s3: pafs.S3FileSystem, endpoint: str
) -> None:
    place = "s3a://bucket/spark"
    words = ["sweep", "power", "--modes", "hw", "--output", place, "--master", "local[2]", *conf(endpoint)]
    call = highwater(*words, "--seeds", "0..60")
    assert call.code == 0, call.err
    assert store.Store(place).rows() == expected(highwater, tmp_path, "0..60")
    assert highwater("doctor", place).code == 0
    for name in objects(s3):
        assert SECRET.encode() not in s3.open_input_file(name).read()
    assert SECRET not in call.err + call.out


def test_damage_is_found_and_repaired(highwater: Callable[..., Call], s3: pafs.S3FileSystem) -> None:
    place = "s3://bucket/damaged"
    assert highwater("sweep", "canary", "--seeds", "0..20", "--output", place, "--local", 1).code == 0
    before = store.Store(place).rows()
    part = next(name for name in objects(s3) if "part-" in name)
    s3.delete_file(part)
    found = highwater("doctor", place)
    assert (found.code, f"{part.removeprefix('bucket/damaged/')} is missing" in found.out) == (1, True)
    assert highwater("compare", place).code == 2  # Nothing is left to compare.
    assert highwater("doctor", place, "--repair", "--local", 1).code == 0
    assert store.Store(place).rows() == before


def test_what_cannot_be_written_is_refused_at_once(highwater: Callable[..., Call], s3: pafs.S3FileSystem) -> None:
    call = highwater("sweep", "canary", "--seeds", "0..9", "--output", "s3://nobody/x", "--local", 1)
    assert (call.code, call.err.count("\n")) == (74, 1)
    assert "cannot write to s3://nobody/x" in call.err
    assert not objects(s3)


def test_a_second_driver_is_told_of_the_first(highwater: Callable[..., Call], s3: pafs.S3FileSystem) -> None:
    held = claim.FolderClaim(open_folder("s3://bucket/busy"))
    call = highwater("sweep", "canary", "--seeds", "0..9", "--output", "s3://bucket/busy", "--local", 1)
    assert (call.code, "another driver is at work" in call.err) == (69, True)
    held.end()
    assert not objects(s3)


def test_file_uris_are_folders(highwater: Callable[..., Call], tmp_path: Path) -> None:
    place = f"file://{tmp_path}/a%20b"
    assert highwater("sweep", "canary", "--seeds", "0..9", "--output", place, "--local", 1).code == 0
    assert json.loads((tmp_path / "a b" / "summary.json").read_text())["complete"]
    assert highwater("doctor", place).code == 0


def test_without_s3a_spark_says_what_brings_it(s3: pafs.S3FileSystem) -> None:
    # In a process of its own: a JVM keeps what it has loaded.
    words = ["sweep", "canary", "--seeds", "0..9", "--output", "s3a://bucket/x", "--master", "local[1]"]
    done = subprocess.run([sys.executable, "-m", "highwater.cli.main", *words], capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (69, 1), done.stderr
    assert "spark.jars.packages=org.apache.hadoop:hadoop-aws" in done.stderr
    assert not objects(s3)
