"""Builds the documentation site from the pages of the tree, into build/site; a broken link is an error.

Pages stay where their subject is. A copy of them is built, with three pages that are made from the code: commands,
settings and columns. Nothing is fetched.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from highwater import plugin_reference
from highwater.cli import main as cli
from highwater.cli.overview import GROUPS
from scenarios.single.rows import COLUMNS
from sim.config import KEYS, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[1]
BUILD: Final = ROOT / "build" / "docs"
SITE: Final = ROOT / "build" / "site"
FOLDERS: Final = ("sim", "faults", "scenarios", "reports", "highwater", "notebooks", "tests")
REFERENCE: Final = "reference"
CONFIG: Final = Path(__file__).parent / "zensical.toml"
_LINK: Final = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def pages() -> list[Path]:
    """All Markdown pages, relative to the root."""
    found = [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))]
    return sorted(page.relative_to(ROOT) for page in found)


def linked(page: Path) -> Iterator[Path]:
    """Files of the tree that a page links to, relative to the root."""
    for link in _LINK.findall((ROOT / page).read_text(encoding="utf-8")):
        target = (ROOT / page.parent / link).resolve()
        if "://" not in link and target.is_file():
            yield target.relative_to(ROOT)


def commands() -> str:
    """The page of all commands, with their help texts."""
    context = click.Context(cli.highwater, info_name="highwater")
    lines = ["# Commands", "", "What `--help` prints of each command."]
    for heading, group in GROUPS.items():
        lines += ["", f"## {heading}"]
        for name in group:
            command = cli.highwater.get_command(context, name)
            assert command is not None
            parts = command.commands if isinstance(command, click.Group) else {"": command}
            for part, one in parts.items():
                title = f"{name} {part}".rstrip()
                inner = click.Context(one, info_name=title, parent=context, max_content_width=100)
                lines += ["", f"### highwater {title}", "", "```text", one.get_help(inner), "```"]
    return "\n".join([*lines, ""])


def settings() -> str:
    """The page of all settings."""
    lines = [
        "# Settings",
        "",
        "Keys of `--set` and `[config]`. Those that begin with `sim.` are ours, all others Kafka's.",
    ]
    lines += ["", "| key | default | meaning |", "|---|---|---|"]
    lines += [f"| `{key}` | {shown(spec.default)} | {_cell(spec.meaning)} |" for key, spec in sorted(KEYS.items())]
    return "\n".join([*lines, ""])


def columns() -> str:
    """The page of the columns of a row."""
    lines = ["# Columns of a row", "", "| column | type | meaning |", "|---|---|---|"]
    lines += [f"| `{column.name}` | {column.type} | {_cell(column.meaning)} |" for column in COLUMNS.values()]
    return "\n".join([*lines, ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def main() -> None:
    """Build.

    Raises:
        SystemExit: a page has a broken link, cannot be built, or is not that of the sources.
    """
    if plugin_reference.PAGE.read_text(encoding="utf-8") != plugin_reference.reference():
        sys.exit(f"{plugin_reference.PAGE.relative_to(ROOT)} is old: python -m highwater.plugin_reference renews it")
    shutil.rmtree(BUILD, ignore_errors=True)
    source = BUILD / "pages"
    found = pages()
    for file in {*found, *(target for page in found for target in linked(page))}:
        (source / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, source / file)
    (source / REFERENCE).mkdir()
    for name, text in (("commands", commands()), ("settings", settings()), ("columns", columns())):
        (source / REFERENCE / f"{name}.md").write_text(text, encoding="utf-8")
    shutil.copyfile(CONFIG, BUILD / CONFIG.name)
    program = Path(sys.executable).with_name("zensical")
    done = subprocess.run(
        [program, "build", "--strict", "--clean", "--config-file", BUILD / CONFIG.name], capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr.partition("Traceback")[0])
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.move(BUILD / "site", SITE)
    sys.stdout.write(f"{SITE.relative_to(ROOT)}/index.html: {len(found) + 3} pages\n")


if __name__ == "__main__":
    main()
