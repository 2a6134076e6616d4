"""Checks a report, an audit, a picture, the page of a run and the pages of `highwater open` in headless Chromium, at
1,280 and 390 pixels.

Each loads without a request to anywhere, without an error on the console, and is no wider than its window; each link of
the report leads to something that is seen, and its texts can be read in the light and in the dark.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final

import highwater as hw
from highwater.lab.audit.audit import audit
from highwater.lab.audit.page import audit_page
from highwater.lab.audit.results import Named
from highwater.lab.open.server import LoopbackServer
from highwater.lab.open.site import Site
from tests.places import FIXTURES
from tests.verification.browser import chromium, film, report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.verification.browser.chromium import Browser

WIDTHS: Final = (1_280, 390)
LINKS: Final = "[...document.querySelectorAll('a[href]')].map(link => link.getAttribute('href'))"
STEP: Final = "document.getElementById('choose').href.split('step=')[1]"
FOLLOW: Final = """(() => {{
  const link = [...document.querySelectorAll('a[href]')][{place}];
  link.click();
  const part = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  return part !== null && location.hash === link.getAttribute('href') && part.getBoundingClientRect().height > 0;
}})()"""


def problems(browser: Browser, file: Path, width: int) -> Iterator[str]:
    """Problems of a page at one width."""
    url = file.as_uri()
    browser.requests.clear()
    browser.errors.clear()
    browser.load(url, width)
    if file.suffix == ".html":
        if (wide := browser.ask("document.documentElement.scrollWidth")) > width:
            yield f"is {wide} pixels wide"
        links = browser.ask(LINKS)
        if not links:
            yield "has no links"
        yield from (
            f"{link} leads nowhere" for place, link in enumerate(links) if not browser.ask(FOLLOW.format(place=place))
        )
    yield from (f"asks for {asked}" for asked in browser.requests if asked.partition("#")[0] != url)
    yield from (f"error: {error}" for error in browser.errors)


def served_problems(browser: Browser, folder: Path, width: int) -> Iterator[str]:
    """Problems of the pages that `highwater open` serves of a sweep: its own, its failing runs, a film."""
    site = Site(str(folder))
    server = LoopbackServer(site.answer)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        home = f"{server.address.rstrip('/')}{site.answer('/', '').location}"
        for part in ("", "failing", "0-0-40/film", "report"):
            browser.requests.clear()
            browser.errors.clear()
            _load(browser, f"{home}{part}", width)
            if (wide := browser.ask("document.documentElement.scrollWidth")) > width:
                yield f"{part} is {wide} pixels wide"
            yield from (f"asks for {asked}" for asked in browser.requests if not asked.startswith((home, "data:")))
            yield from (f"{part}: error: {error}" for error in browser.errors)
        yield from _choice_problems(browser, f"{home}0-0-40/", width)
    finally:
        server.shutdown()
        server.server_close()
        site.jobs.close()


def _choice_problems(browser: Browser, run: str, width: int) -> Iterator[str]:
    """Problems of choosing the next event: from a step of a film to the page of choices, and to the film of the result,
    of which the next event is chosen again.
    """
    browser.errors.clear()
    _load(browser, f"{run}film#step-60", width)
    for kind in ("kill", "cut"):
        step = int(browser.ask(STEP))
        for _ in range(500):  # Some are steps of the other run.
            browser.ask("document.getElementById('on').click()")
            if int(browser.ask(STEP)) > step:
                break
        if int(browser.ask(STEP)) <= step:
            yield "the link to choices does not follow the step"
        _load(browser, browser.ask("document.getElementById('choose').href"), width)
        if (wide := browser.ask("document.documentElement.scrollWidth")) > width:
            yield f"choose is {wide} pixels wide"
        links = browser.ask(f"[...document.querySelectorAll('a[href*=\"{kind}.\"]')].map(link => link.href)")
        if not links:
            yield f"no {kind} can be chosen"
            return
        _load(browser, links[-1], width)
        if browser.ask("document.querySelectorAll('.stage').length") != 2:
            yield f"the film of a {kind} has not two runs"
        if browser.ask("document.getElementById('slider').value === '0'"):
            yield f"the film of a {kind} does not begin where the runs part"
        at = [
            browser.ask(f"document.getElementById('stage-{number}').getBoundingClientRect().top") for number in (0, 1)
        ]
        if (at[0] == at[1]) != (width >= 900):
            yield "from 900 pixels on, and only then, the runs stand beside each other"
        if (wide := browser.ask("document.documentElement.scrollWidth")) > width:
            yield f"the film of a {kind} is {wide} pixels wide"
    yield from (f"choices: error: {error}" for error in browser.errors)


def _load(browser: Browser, url: str, width: int) -> None:
    """Load a page, and again while it is being made."""
    browser.load(url, width)
    while browser.ask("document.querySelector('meta[http-equiv=refresh]') !== null"):
        browser.load(url, width)


def _audit() -> str:
    log = FIXTURES / "metadata" / "reassignment-back-4.3.1"
    found = audit([log])
    return audit_page(found, [log], Named(found, hides=False))


def _tell(file: Path, width: int, wrong: list[str]) -> None:
    sys.stdout.write("".join(f"{file.name} at {width}: {line}\n" for line in wrong or ["as it should be"]))


def main() -> int:
    """Check all pages and print problems; 0 also without a browser."""
    program = chromium.find()
    if program is None:
        sys.stdout.write(f"not tested: no browser here ({', '.join(chromium.NAMES)}, or HIGHWATER_BROWSER)\n")
        return 0
    found = 0
    with tempfile.TemporaryDirectory() as name, chromium.Browser(program) as browser:
        folder = Path(name)
        hw.sweep("power", "40..60", folder / "store", modes=["hw", "kip101", "elr"])
        hw.report(folder / "store", folder / "report.html", most=4)
        hw.draw(hw.run("kip101-scenario-1", "hw")).save(folder / "run.svg")
        (folder / "audit.html").write_text(_audit(), encoding="utf-8")
        for file in (folder / "report.html", folder / "audit.html", folder / "run.svg"):
            for width in WIDTHS:
                wrong = list(problems(browser, file, width))
                if file.suffix == ".html":
                    wrong += report.problems(browser, file, width)
                found += len(wrong)
                _tell(file, width, wrong)
        for width in WIDTHS:
            wrong = list(served_problems(browser, folder / "store", width))
            found += len(wrong)
            _tell(folder / "store", width, wrong)
        page = folder / "film.html"
        hw.show(hw.run("reassignments", "elr-4.3", 253), page, against="elr-repaired")
        for width in WIDTHS:
            wrong = list(film.problems(browser, page, width))
            wrong += film.without_scripts(browser, page, width)
            found += len(wrong)
            _tell(page, width, wrong)
    return int(found > 0)


if __name__ == "__main__":
    raise SystemExit(main())
