"""Names of packages that others have, too."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from highwater import own_packages
from sim import exit_codes
from tests.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def test_ours_are_found() -> None:
    assert own_packages.problem() == ""
    assert exit_codes.UNAVAILABLE == own_packages.UNAVAILABLE


@pytest.mark.parametrize("content", ['"""A simulator of something else."""\n', None])
@pytest.mark.parametrize("name", ["sim", "reports"])
def test_another_package_of_such_a_name_is_one_line(tmp_path: Path, name: str, content: str | None) -> None:
    (tmp_path / name).mkdir()
    if content is not None:
        (tmp_path / name / "__init__.py").write_text(content)
    code = f"import sys; sys.path[:0] = {[str(tmp_path), str(ROOT)]}; import highwater.cli.entry"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    if content is None:  # A folder without __init__.py is nobody's package: ours is found behind it.
        assert (done.returncode, done.stderr) == (0, "")
    else:
        assert done.returncode == exit_codes.UNAVAILABLE
        assert done.stderr.startswith(f"highwater: the package '{name}' in {tmp_path}")
        assert done.stderr.count("\n") == 1


def test_the_library_says_so_too(tmp_path: Path) -> None:
    (tmp_path / "sim").mkdir()
    (tmp_path / "sim" / "__init__.py").write_text("")
    code = f"import sys; sys.path[:0] = {[str(tmp_path), str(ROOT)]}; import highwater; highwater.run"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert f"ImportError: the package 'sim' in {tmp_path}" in done.stderr
