"""Builds the documentation site into build/site; a broken link is an error.

Pages stay where their subject is, and a copy of them is built, those of modes with their findings, beside pages that
are made from the code: commands, settings, columns, keys of scenario files, names of plug-ins, Kafka's names, findings,
figures of the zoo and of confirmed runs, tickets. A page of the tree names one of these as `build/site/PAGE.html`,
which becomes a link here. ``--reviews`` also reviews the proposals, in some minutes, unless build/reviews has the
reviews of this code. Nothing is fetched.

If `make playground` has built the playground of this tree, it becomes a part of the site, and commands that it can
carry out become links. Otherwise no page has such a link: so none is broken, and none runs other code.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import plugin_reference
from playground import build, links

from faults.kind import REPLICAS
from faults.kinds.registry import KINDS
from highwater.cli import main as cli
from highwater.cli.overview import GROUPS
from highwater.lab.bugs.bugs import MISSING, fixed_bugs, shown_by
from highwater.lab.tickets.findings_page import findings_of, findings_page
from highwater.lab.tickets.ticket import findings, handwritten, ticket
from highwater.lab.zoo import targets
from scenarios.format.catalogue import load
from scenarios.format.catalogue import names as scenario_names
from scenarios.format.reference import reference
from scenarios.single.rows import COLUMNS
from scenarios.version import code_version
from sim.config import KEYS, shown
from sim.protocol.modes import MODES
from tests.verification import tickets
from tests.verification.confirm import __main__ as confirm
from tests.verification.oracle import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from faults.kind import Amount, FaultKind

ROOT: Final = Path(__file__).parents[1]
BUILD: Final = ROOT / "build" / "docs"
SITE: Final = ROOT / "build" / "site"
REVIEWS: Final = ROOT / "build" / "reviews"
FOLDERS: Final = ("sim", "faults", "scenarios", "reports", "highwater", "notebooks", "tests")
CONFIG: Final = Path(__file__).parent / "zensical.toml"
STYLE: Final = Path(__file__).parent / "site.css"
PROPOSALS: Final = {
    "kafka-19975": ("elr", "reassignments"),
    "kafka-15665": ("elr-4.3", "reassignments"),
    "kip-1303": ("kip-1023", "racks"),
    "kip-1275": ("elr-recovery", "elr-chaos"),
}
"""Proposal -> the mode that it is reviewed against, and the random scenario."""
SEEDS: Final = 100
"""Of a review."""
_LINK: Final = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
BUILT: Final = re.compile(r"`build/site/([\w./-]+)\.html(#[\w-]+)?`")


def pages() -> dict[str, str]:
    """Markdown pages of the tree: path -> text."""
    found = [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))]
    return {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in sorted(found)}


def built() -> dict[str, str]:
    """What is made from the code: path in the site -> text."""
    return {
        "reference/commands.md": _commands(),
        "reference/settings.md": _settings(),
        "reference/columns.md": _columns(),
        "reference/scenario-files.md": reference(),
        "reference/plugins.md": plugin_reference.reference(),
        "reference/kafka.md": names.page(names.references()),
        "reference/faults.md": _faults(),
        "reference/zoo.md": _zoo(),
        "reference/fixed-bugs.md": _fixed_bugs(),
        "reference/explored.md": _explored(),
        "reference/oracle.md": _oracle(),
        "reference/confirmed.md": _confirmed(),
        "reference/findings.md": findings_page(),
        **_tickets(),
        **{f"reviews/{name}.md": _review(name) for name in PROPOSALS},
    }


def check_tree(tree: Mapping[str, str], made: Mapping[str, str], by_hand: set[str]) -> None:
    """What is made is not committed, but for tickets written by hand; raises SystemExit for the first such page."""
    titles = {
        text.partition("\n")[0]: page
        for page, text in made.items()
        if page.endswith(".md") and page not in {f"tickets/{name}.md" for name in by_hand}
    }
    for page, text in tree.items():
        if (same := titles.get(text.partition("\n")[0])) is not None:
            raise SystemExit(f"{page} is made from the code: {same}")


def linked(page: str, text: str) -> str:
    """A page of the tree with links to the pages that are made from the code."""

    def link(match: re.Match[str]) -> str:
        return f"[{match[1]}]({os.path.relpath(f'{match[1]}.md', Path(page).parent)}{match[2] or ''})"

    return BUILT.sub(link, text)


def _of_mode(page: str) -> str:
    """What the page of a mode has on the site besides its text: scenarios and findings."""
    mode = re.fullmatch(r"scenarios/modes/(.+)\.md", page)
    return "" if mode is None else _scenarios_of(mode[1]) + findings_of(mode[1])


def _scenarios_of(mode: str) -> str:
    """The scenarios that fail in a mode, without findings, and those that fail in the mode before it only."""
    failing, repaired = [], []
    for name in scenario_names():
        scenario = load(name)
        verdicts = {tried: expected.verdict for tried, expected in scenario.expect.items()}
        ordered = sorted(verdicts, key=lambda name: MODES[name].place)
        before = dict(zip(ordered[1:], ordered, strict=False)).get(mode, "")
        if verdicts.get(mode) == "violates" and scenario.finding is None:
            failing.append((f"`{name}`", scenario.title, f"`highwater explain {name} --mode {mode}`"))
        elif verdicts.get(mode) == "clean" and verdicts.get(before) == "violates":
            repaired.append((f"`{name}`", scenario.title, f"`highwater show {name} --mode {before} --against {mode}`"))
    parts = [("What this mode repairs", repaired), ("What still fails", failing)]
    head = ("scenario", "what happens", "command")
    return "".join(f"\n## {title}\n\n{_table(head, rows)}" for title, rows in parts if rows)


def files(page: str, text: str) -> Iterator[str]:
    """Files of the tree that a page links to."""
    for link in _LINK.findall(text):
        path = os.path.normpath(Path(page).parent / link)
        if "://" not in link and (ROOT / path).is_file():
            yield path


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    head = list(head)
    lines = [" | ".join(head), "|".join("---" for _ in head)]
    lines += [" | ".join(str(cell).replace("|", "\\|").replace("<", "&lt;") for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines) + "\n"


def _commands() -> str:
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


def _settings() -> str:
    text = (
        "# Settings\n\nKeys of `--set` and `[config]`. Those that begin with `sim.` are ours, all others Kafka's.\n\n"
    )
    rows = ((f"`{key}`", shown(spec.default), spec.meaning) for key, spec in sorted(KEYS.items()))
    return text + _table(("key", "default", "meaning"), rows)


def _columns() -> str:
    text = (
        "# Columns of a row\n\n*Since* is the schema version that introduced a column, *before* its value in rows of "
        "older versions; -1 means unknown or not applicable.\n\n"
    )
    rows = (
        (f"`{one.name}`", one.type, one.since, "" if one.before is None else one.before, one.meaning)
        for one in COLUMNS.values()
    )
    return text + _table(("column", "type", "since", "before", "meaning"), rows)


def _zoo() -> str:
    found = targets.measured()
    about: dict[str, str] = found.pop("about")
    parts = [
        "# Figures of the zoo",
        f"{about['measured']} [The zoo](../highwater/lab/zoo/README.md) explains the words.",
    ]
    for part, entries in found.items():
        rows: list[dict[str, Any]] = []
        for name, entry in entries.items():
            hunted = {}
            if part == "hunts":
                one = targets.target(name)
                place = "walks" if one.walks is not None else one.runs.scenario
                hunted = {"tier": one.tier, "hunted in": place, "mode": one.runs.base}
            rows.append({"name": f"`{name}`", **hunted, **(entry if isinstance(entry, dict) else {"": entry})})
        head = dict.fromkeys(key for row in rows for key in row)
        parts += [
            f"## {part}",
            about[part],
            _table(map(_spelt, head), ([_cell(row.get(key)) for key in head] for row in rows)),
        ]
    return "\n\n".join(parts)


def _fixed_bugs() -> str:
    text = (
        "# Fixed bugs\n\nBugs of Kafka that a release repaired, and that no scripted scenario shows; "
        "[the page of `highwater bugs`](../highwater/lab/bugs/README.md) explains the columns. A mode is said to "
        "behave better than its release also where it is not known whether the release is older than the bug.\n\n"
    )
    head = ("bug", "fixed in", "effect", "shown by, or why not", "better than their releases", "what happens", "repair")
    rows = (
        (
            *(bug.name, bug.fixed, bug.effect),
            shown_by(bug) if bug.older else f"lacks {MISSING[bug.missing]}. {bug.why}",
            ", ".join(f"`{mode}`" for mode in bug.lacking),
            *(bug.happens, bug.fix),
        )
        for bug in fixed_bugs().values()
    )
    return text + _table(head, rows)


def _spelt(key: str) -> str:
    return {"cpu_s": "CPU s", "tlc": "TLC, CPU s"}.get(key, key.replace("_percent", ", %").replace("_", " "))


def _cell(value: Any) -> str:
    match value:
        case [int(number), int(of)]:
            return f"{number} of {of}"
        case list():
            return ", ".join(value)
        case int():
            return f"{value:,}"
        case None:
            return ""
    return str(value)


def _faults() -> str:
    text = (
        "# Kinds of fault\n\nA bound in backquotes is a key of `[faults]`; a seed may use a part of that range. "
        "Parameters in brackets are optional. The unit of `value` in a plan is in parentheses.\n\n"
    )
    head = ("kind", "strikes", "what a script gives", "how much is drawn", "how long", "needs", "what it does")
    return text + _table(head, map(_fault, KINDS.values()))


def _fault(kind: FaultKind) -> tuple[str, ...]:
    params = ", ".join(f"`{name}`" if param.required else f"[`{name}`]" for name, param in kind.params().items())
    lasts = kind.remains if kind.duration is None else _key(kind.duration.bounds)
    return f"`{kind.name}`", kind.targets.label, params, _drawn(kind.amount), lasts, ", ".join(kind.needs), kind.meaning


def _drawn(amount: Amount | None) -> str:
    if amount is None:
        return ""
    if amount.bounds == REPLICAS:
        return f"1 to the number of replicas ({amount.unit})"
    bounds = _key(amount.bounds) if isinstance(amount.bounds, str) else " to ".join(map(str, amount.bounds))
    return f"{bounds} ({amount.unit})"


def _key(name: str) -> str:
    return f"`{name.removesuffix('_us')}_ms`" if name.endswith("_us") else f"`{name}`"


def _explored() -> str:
    text = (
        "# Searches of every order of events\n\nFirst violation or early warning of `highwater explore --strict`, or "
        "all states ([exploring](../highwater/lab/explore/README.md)); with `--walks`, of random walks.\n\n"
    )
    return text + _csv("highwater/lab/explore/results.csv")


def _oracle() -> str:
    text = (
        "# Kafka's classes beside the core\n\n[The oracle](../tests/verification/oracle/README.md) explains the words."
    )
    folder = "tests/verification/oracle"
    return f"{text}\n\n{_csv(f'{folder}/compared.csv')}\n## Mutants\n\n{_csv(f'{folder}/mutants.csv')}"


def _csv(file: str) -> str:
    with (ROOT / file).open(encoding="utf-8", newline="") as lines:
        head, *rows = csv.reader(lines)
    return _table(head, rows)


def _confirmed() -> str:
    text = (
        "# Confirmed runs\n\nWhat [`highwater confirm`](../highwater/lab/confirm/README.md) showed on brokers. A "
        "star marks runs of an earlier harness or scenario.\n\n"
    )
    lines = confirm.RUNS.read_text(encoding="utf-8").splitlines()
    return text + confirm.table(map(json.loads, lines))


def _tickets() -> dict[str, str]:
    found = {f"tickets/{file}": text for name in findings() for file, text in ticket(name).files.items()}
    rows = (f"- [{name}]({name}.md): {load(name).title}" for name in findings())
    text = [
        "# Tickets of all findings",
        "What [`highwater ticket`](../highwater/lab/tickets/README.md) writes of each finding.",
        "\n".join(rows),
    ]
    return {
        "tickets/index.md": "\n\n".join([*text, "## Runs of their scripts and tests", tickets.table(tickets.read())])
        + "\n",
        **found,
    }


def _review(name: str) -> str:
    page = REVIEWS / code_version() / name / "review.md"
    return page.read_text(encoding="utf-8") if page.is_file() else f"# Review of {name}\n\n`make docs` makes it.\n"


def review() -> None:
    """Review the proposals, unless this code has reviewed them."""
    folder = REVIEWS / code_version()
    for old in REVIEWS.glob("*"):
        if old != folder:
            shutil.rmtree(old)
    for name, (base, scenario) in PROPOSALS.items():
        output = folder / name
        if not (output / "review.md").is_file():
            sys.stdout.write(f"review of {name}, {SEEDS} seeds\n")
            words = [sys.executable, "-m", "highwater", "review", name, "--against", base, "--scenarios", scenario]
            words += [
                "--plugin",
                f"notebooks/proposals/{name.replace('-', '_')}.py",
                "--seeds",
                str(SEEDS),
                "-q",
                "--output",
                str(output),
            ]
            subprocess.run(words, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)


def _add_playground(folder: Path) -> None:
    """Put the playground into the site, with a link back."""
    shutil.copytree(build.OUTPUT, folder, copy_function=os.link)
    index = folder / "index.html"
    text = index.read_text(encoding="utf-8")
    index.unlink()  # It is the same file as the original.
    back = '<p><a href="../index.html">Documentation</a></p>'
    index.write_text(text.replace("<!-- site -->", back), encoding="utf-8")


def main() -> None:
    """Build.

    Raises:
        SystemExit: a page has a broken link, cannot be built, or is in the tree although it is made.
    """
    if "--reviews" in sys.argv[1:]:
        review()
    shutil.rmtree(BUILD, ignore_errors=True)
    source = BUILD / "pages"
    tree, derived = pages(), built()
    check_tree(tree, derived, set(handwritten()))
    made = {page: linked(page, text) + _of_mode(page) for page, text in tree.items()} | derived
    has_playground = build.is_current()
    if has_playground:
        _add_playground(source / build.OUTPUT.name)
        made = {page: links.with_links(page, text) if page.endswith(".md") else text for page, text in made.items()}
    elif build.OUTPUT.exists():
        sys.stdout.write("build/playground is of another state of the tree: the site is without it (make playground)\n")
    for name, text in made.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text, encoding="utf-8")
    for file in {file for name, text in made.items() for file in files(name, text)} - made.keys():
        (source / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, source / file)
    shutil.copyfile(STYLE, source / STYLE.name)
    config = CONFIG.read_text(encoding="utf-8")
    if has_playground:
        config = config.replace("nav = [\n", f'nav = [\n  {{ "Playground" = "{links.ADDRESS}" }},\n', 1)
    (BUILD / CONFIG.name).write_text(config, encoding="utf-8")
    program = Path(sys.executable).with_name("zensical")
    words = [str(program), "build", "--strict", "--clean", "--config-file", str(BUILD / CONFIG.name)]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})
    if done.returncode:
        sys.exit(done.stdout + done.stderr.partition("Traceback")[0])
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.move(BUILD / "site", SITE)
    sys.stdout.write(f"{SITE.relative_to(ROOT)}/index.html: {sum(name.endswith('.md') for name in made)} pages\n")


if __name__ == "__main__":
    main()
