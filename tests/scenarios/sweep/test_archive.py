"""The archive for a cluster's workers, unpacked and used as they use it."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from scenarios.sweep import archive
from scenarios.version import code_version
from sim.errors import InputError


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With what a run needs, in a compiled build librt as well; pyarrow and pandas take long."""
    folder = tmp_path_factory.mktemp("archive")
    needed = archive.closure(["simpy", "pydantic", "librt"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive, "closure", lambda _: needed)
        archive.write_archive(folder / "new" / "environment.tar.gz")
    with tarfile.open(folder / "new" / "environment.tar.gz") as packed:
        assert {(entry.uid, entry.gid, entry.uname, entry.gname) for entry in packed} == {(0, 0, "", "")}
        packed.extractall(folder / "environment", filter="data")
    return folder / "environment"


@pytest.mark.world
def test_archive_runs_with_its_own_packages(unpacked: Path) -> None:
    code = (
        "import simpy, scenarios.version as v; from scenarios.single.run import run_row;"
        "from sim.protocol.modes import mode;"
        "from scenarios.format.catalogue import load;"
        "print(simpy.__file__, v.__file__, v.code_version(), run_row(load('canary'), mode('hw'), 1)['verdict'])"
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    # Without site-packages, whatever is installed here.
    words = [str(unpacked / "bin" / "python"), "-S", "-c", code]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, cwd=unpacked, check=False)
    packages = unpacked / "packages"
    found = f"{packages}/simpy/__init__.py {packages}/scenarios/version.py {code_version()} violation\n"
    assert (done.stdout, done.stderr) == (found, "")


def test_archive_holds_our_files_only_and_no_path_of_this_machine(unpacked: Path) -> None:
    packages = unpacked / "packages"
    assert {"sim", "faults", "scenarios", "reports", "simpy"} <= {entry.name for entry in packages.iterdir()}
    assert not list(packages.rglob("__pycache__"))
    assert not list(packages.rglob("direct_url.json"))
    assert list(packages.glob("highwater-*.dist-info/METADATA"))


def test_another_python_runs_without_the_packages_so_that_spark_names_it(unpacked: Path, tmp_path: Path) -> None:
    other = tmp_path / "python3"
    other.write_text('#!/bin/sh\n[ "$1" = -c ] && exit 1\necho "$@" "[$PYTHONPATH]"\n')
    other.chmod(0o755)
    (tmp_path / "dirname").symlink_to("/usr/bin/dirname")
    words = ["/bin/sh", str(unpacked / "bin" / "python"), "-m", "pyspark.daemon"]
    done = subprocess.run(words, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.stdout == "-m pyspark.daemon []\n"


def test_archive_needs_neither_what_spark_brings_nor_other_extras() -> None:
    needed = archive.closure(archive.requirements("highwater", "spark"))
    assert {"simpy", "pyarrow", "pydantic", "pydantic-core", "pandas", "pyspark"} <= set(needed)
    assert "mypy" not in needed
    assert archive.requirements("pyspark") == ["py4j"]


def test_missing_package_is_one_line() -> None:
    with pytest.raises(InputError, match=r"^no-such is not installed here"):
        archive.requirements("no-such")


def test_unwritable_place_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"^cannot write .*environment\.tar\.gz"):
        archive.write_archive(tmp_path / "file" / "environment.tar.gz")
