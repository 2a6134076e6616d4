"""Whoever passes a folder on controls each name in it: no page runs a script of his, or loads anything."""

from __future__ import annotations

import io
import json
import re
import shutil
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scenarios.sweep import manifest
from scenarios.sweep.manifest import Manifest, Part, digest_of
from scenarios.sweep.store import Store
from tests.highwater.lab.open.served import served
from tests.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.highwater.lab.open.served import Got

HOSTILE = (
    *("<script>alert(1)</script>", "</title><script>alert(1)</script>", "</td></tr></table><script>x</script>"),
    *(
        "<img src=x onerror=alert(1)>",
        '"><img src=x onerror=alert(1)>',
        "'><svg onload=alert(1)>",
        "<svg/onload=alert(1)>",
    ),
    *('" onmouseover="alert(1)', "' onfocus='alert(1)' autofocus='", "` onclick=`alert(1)", "javascript:alert(1)"),
    *("data:text/html,<script>alert(1)</script>", "//evil.example/x.js", "https://evil.example/", "../../etc/passwd"),
    *("<iframe src=javascript:alert(1)>", "<base href=//evil.example/>", "<meta http-equiv=refresh content=0;url=//e>"),
    *("<link rel=stylesheet href=//evil.example>", "<style>@import '//evil.example'</style>", "<object data=x>"),
    *("<embed src=x>", "<form action=//evil.example><input>", "<math><mtext><script>x</script>", "<!--", "-->", "]]>"),
    *("<![CDATA[<script>x</script>]]>", "&lt;script&gt;alert(1)&lt;/script&gt;", "&#60;script&#62;", "\u202e<script>"),
    *("\x1b[31m<b>", "\x00<script>", "%3Cscript%3E", "+ADw-script+AD4-", "<scr\nipt>", "<a href='javascript:x'>x</a>"),
    *(
        "{{7*7}}",
        "${alert(1)}",
        "</script><script>alert(1)//",
        "<template><script>x</script></template>",
        "\ud83d\ude00<x>",
    ),
)
ALLOWED = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "h2",
        "h3",
        "h4",
        "p",
        "nav",
        "ul",
        "li",
        "a",
        "div",
        "wbr",
    ),
    *("table", "caption", "span", "thead", "tbody", "tr", "th", "td", "dl", "dt", "dd", "pre", "code", "details", "b"),
    *(
        "summary",
        "figure",
        "figcaption",
        "svg",
        "g",
        "path",
        "line",
        "rect",
        "circle",
        "text",
        "tspan",
        "title",
        "defs",
    ),
}


class Tags(HTMLParser):
    """The tags of a page that could do something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if tag not in ALLOWED or any(name.startswith("on") or name in ("src", "style", "action") for name in names):
            self.wrong.append(f"{tag} {attrs}")
        for name, value in attrs:
            if name in ("href", "xlink:href") and not re.fullmatch(
                r"#[\w-]+|[./]{0,3}[\w./-]*(\?[\w.%+&=-]*)?", value or ""
            ):
                self.wrong.append(f"{tag} {value}")
            if name == "http-equiv" and value not in ("Content-Security-Policy", "refresh"):
                self.wrong.append(f"{tag} {attrs}")


def check(got: Got) -> None:
    assert Tags(got.text).wrong == []
    assert "script-src" not in got.headers["Content-Security-Policy"]
    assert not [link for link in got.links if link.startswith("//") or "evil" in link.partition("?")[0]]


def test_there_are_forty() -> None:
    assert len(set(HOSTILE)) >= 40


def hostile_sweep(folder: Path, swept: Path) -> Path:
    """A sweep whose rows have hostile kinds of violation and replay lines, and whose scenarios hostile texts."""
    base = Store(swept)
    table = base.table()
    kinds = [HOSTILE[place % len(HOSTILE)].replace("\x00", "").replace(",", "") for place in range(len(table))]
    run = json.loads(json.dumps(base.run))
    for place, scenario in enumerate(run["scenarios"]):
        scenario["title"] = HOSTILE[place]
        scenario["description"] = "\n".join(text.replace("\x00", "") for text in HOSTILE[:-1])
    run["code_version"] = HOSTILE[0]
    columns = {"violations": kinds, "violations_inside": kinds, "replay": kinds, "verdict": ["violation"] * len(table)}
    schema = table.schema
    for name, values in columns.items():
        table = table.set_column(
            table.column_names.index(name),
            name,
            pa.array([value.encode(errors="replace").decode() for value in values]),
        )
    source = next(swept.glob("results/*/part-*.parquet"))  # Its schema has the version.
    table = table.cast(schema).replace_schema_metadata(pq.read_schema(source).metadata)
    content = io.BytesIO()
    pq.write_table(table, content)
    names = sorted(path.name for path in (swept / "results").iterdir())
    wave = folder / "results" / names[0]
    wave.mkdir(parents=True)
    (wave / "part-00000.parquet").write_bytes(content.getvalue())
    part = Part("part-00000.parquet", len(table), len(content.getvalue()), digest_of(content.getvalue()))
    (folder / "run.json").write_text(json.dumps(run))
    covers = [piece for stored in base.waves for piece in stored.covers]
    (wave / manifest.NAME).write_bytes(Manifest(names[0], run, tuple(covers), (part,)).to_bytes())
    return folder


@pytest.mark.world
def test_no_text_of_a_store_becomes_markup(tmp_path: Path, swept: Path) -> None:
    with served(hostile_sweep(tmp_path / "store", swept)) as site:
        first = site.get()
        assert first.status == 200
        check(first)
        assert "&lt;img src=x onerror=alert(1)&gt;" in first.text
        links = [link for link in first.links if link.startswith("failing")]
        assert len(links) > 40
        for link in links:
            got = site.get(site.home + link)
            assert got.status == 200
            check(got)
        for part in ("report", "0-0-1/explanation", "0-0-1/ticket"):
            check(site.get(site.home + part))
        film = site.get(f"{site.home}0-0-1/film")
        assert "<img src=x onerror" not in film.text
        assert film.headers["Content-Security-Policy"].count("sha256-") == 2


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_of_a_folder_and_no_title_becomes_markup(tmp_path: Path, text: str) -> None:
    name = text.replace("/", "_").replace("\x00", "_").encode(errors="replace").decode()
    (tmp_path / "a" / name).mkdir(parents=True)
    (tmp_path / "b").mkdir()
    title = text.replace("<", "&lt;").encode(errors="replace").decode()
    for place in (tmp_path / "a" / name, tmp_path / "b"):
        page = f'<meta name="generator" content="Highwater hunt"><title>{title}</title>{text}'
        (place / "hunt.html").write_text(page, encoding="utf-8", errors="replace")
    with served(tmp_path) as site:
        got = site.get()
        check(got)
        assert len([link for link in got.links if re.fullmatch(r"/[0-9a-f]{12}/", link)]) == 2
    with served(tmp_path / "a" / name) as site:
        assert site.get().status == 200


def test_no_name_of_a_mode_becomes_markup(tmp_path: Path, swept: Path) -> None:
    """A store with such names is refused, in a page that has them, and listed with them."""
    shutil.copytree(swept, tmp_path / "a")
    run = json.loads((tmp_path / "a" / "run.json").read_text())
    names = [text.encode(errors="replace").decode() for text in HOSTILE]
    run["modes"].update((scenario, names) for scenario in run["modes"])
    (tmp_path / "a" / "run.json").write_text(json.dumps(run))
    with served(tmp_path) as site:
        for path, status in ((site.home, 422), (f"{site.home}failing", 422), ("/?all=1", 200)):
            got = site.get(path)
            assert got.status == status
            assert "&lt;script&gt;alert(1)" in got.text
            check(got)


def test_no_text_of_a_scenario_becomes_markup(tmp_path: Path) -> None:
    canary = (ROOT / "scenarios" / "files" / "canary.toml").read_text(encoding="utf-8")
    title = f"title = {json.dumps(HOSTILE[3])}"
    (tmp_path / "x.toml").write_text(re.sub(r"^title = .*$", lambda _: title, canary, flags=re.MULTILINE))
    with served(tmp_path / "x.toml") as site:
        got = site.get()
        assert "&lt;img src=x onerror=alert(1)&gt;" in got.text
        check(got)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_word_of_an_address_becomes_markup(swept: Path, text: str) -> None:
    with served(swept) as site:
        word = quote(text.encode(errors="replace"))
        for path in (
            f"/{word}",
            f"{site.home}{word}",
            f"{site.home}failing?mode={word}",
            f"{site.home}failing?kind={word}",
        ):
            got = site.ask(path)
            assert got.status == 404
            check(got)
