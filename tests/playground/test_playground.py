"""The playground as it is built: its Python in node, and its page in Chromium.

Skipped with a reason where node, npm, what is to be fetched, or the browser is missing.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final

import pytest

from sim.exit_codes import UNAVAILABLE
from tests.golden import stored
from tests.places import ci_program
from tests.plain import needs_sources
from tests.verification.browser import chromium

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.verification.browser.chromium import Browser

pytestmark = [needs_sources, pytest.mark.world]

RUNS: Final = 20
SECONDS: Final = 90
"""Until anything that the page does."""
RUN: Final = "run kip101-scenario-1 --mode hw"


@pytest.fixture(scope="module")
def folder() -> Path:
    build = ci_program("playground.build")
    if not build.is_current():
        done = subprocess.run([build.sys.executable, build.__file__], capture_output=True, text=True)
        if done.returncode == UNAVAILABLE:
            pytest.skip(done.stderr.strip())
        assert done.returncode == 0, done.stderr
    output: Path = build.OUTPUT
    return output


# In node.


def test_runs_in_webassembly_have_the_digests_of_all_others(folder: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not here")
    golden = stored()
    names = sorted(golden)[:: len(golden) // RUNS][:RUNS]
    words = [node, str(Path(__file__).with_name("runs.mjs")), str(folder)]
    done = subprocess.run(words, input=json.dumps(names), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["python"].startswith("3.14.")
    assert len(found["digests"]) == RUNS
    assert found["digests"] == {name: golden[name] for name in names}


# In Chromium.


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """Any server of static files will do: this is that of ``python -m http.server``."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = chromium.find()
    if program is None:
        pytest.skip(f"no browser here ({', '.join(chromium.NAMES)}, or HIGHWATER_BROWSER)")
    with chromium.Browser(program) as browser:
        browser.call("Emulation.setScrollbarsHidden", hidden=True)
        yield browser


@pytest.fixture(scope="module")
def page(browser: Browser, address: str) -> Browser:
    """The page, after the run of the link that opened it."""
    browser.load(f"{address}index.html#{RUN}", 1280)
    assert "…" in state(browser), "a progress line until the first result"
    done(browser)
    return browser


def until(browser: Browser, condition: str) -> None:
    end = time.monotonic() + SECONDS
    while not browser.ask(condition):
        assert time.monotonic() < end, f"{condition}: {state(browser)}"
        time.sleep(0.05)


def state(browser: Browser) -> str:
    return str(browser.ask("document.getElementById('state').textContent"))


def done(browser: Browser) -> None:
    until(browser, "document.getElementById('state').textContent.startsWith('Done')")


def output(browser: Browser, line: str) -> str:
    """What a line prints that somebody enters."""
    browser.ask(f"document.getElementById('line').value = {json.dumps(line)}; document.getElementById('go').click()")
    done(browser)
    return last(browser)


def last(browser: Browser) -> str:
    return str(browser.ask("document.querySelector('#screen > div:last-child').textContent"))


def seen(browser: Browser, part: str) -> bool:
    return bool(browser.ask(f"document.getElementById('{part}').getBoundingClientRect().height > 0"))


def test_a_link_runs_its_command_at_once(page: Browser) -> None:
    digest = stored()["kip101-scenario-1/hw/0"]
    text = last(page)
    assert text.startswith(f"highwater {RUN}")
    assert f"digest {digest}" in text
    assert "exit code 0 (as expected)" in text
    assert seen(page, "lesson")


def test_a_film_and_a_picture_are_beside_the_terminal(page: Browser) -> None:
    assert "exit code 0" in output(page, "show kip101-scenario-1 --mode hw --against kip101")
    assert seen(page, "frame")
    assert not seen(page, "lesson")
    assert "exit code 0" in output(page, "draw kip101-scenario-1 --mode hw")
    until(page, "document.getElementById('image').naturalWidth > 600")
    assert seen(page, "picture")


def test_a_failure_is_explained_and_shrunk(page: Browser) -> None:
    assert "Lost: record 1 (offset 1)" in output(page, "explain kip101-scenario-1 --mode hw")
    assert "7 -> 2 faults" in output(page, "shrink power --mode hw --seed 20")
    assert "no violation in any order of events" in output(page, "explore --mode kraft --losses 0 --fences 0")


@pytest.mark.parametrize("command", ["sweep power --seeds 0..3 --output x", "doctor", "kafka list", "zoo hunt x"])
def test_a_command_that_cannot_work_there_says_so_in_one_line(page: Browser, command: str) -> None:
    text = output(page, command)
    assert "that a browser does not have: install Highwater to use it" in text
    assert "exit code 69 (not possible here)" in text
    assert "internal error" not in text


def test_a_scenario_of_ones_own_runs(page: Browser) -> None:
    page.ask("document.getElementById('begin').click()")
    until(page, "document.getElementById('text').value.startsWith('schema = 1')")
    assert "mine, mode hw, seed 1" in output(page, "run mine.toml --mode hw --seed 1")
    page.ask("document.getElementById('text').value = 'schema = 1\\nname = 3'")
    assert "exit code 2 (bad input)" in output(page, "run mine.toml --mode hw")


@pytest.mark.parametrize(
    ("begun", "completed"),
    [
        ("exp", "expl"),
        ("run kip101-sc", "run kip101-scenario-"),
        ("run canary --mode kip10", "run canary --mode kip101 "),
        ("modes sh", "modes show "),
    ],
)
def test_tab_completes_commands_scenarios_and_modes(page: Browser, begun: str, completed: str) -> None:
    page.ask(
        f"document.getElementById('line').value = {json.dumps(begun)};"
        "document.getElementById('line').dispatchEvent(new KeyboardEvent('keydown', {key: 'Tab', cancelable: true}))"
    )
    until(page, f"document.getElementById('line').value === {json.dumps(completed)}")


def test_a_running_command_is_cancelled_and_files_stay(page: Browser) -> None:
    page.ask("document.getElementById('text').value = ''")
    page.ask("document.getElementById('line').value = 'run --all-scenarios'; document.getElementById('go').click()")
    until(page, "!document.getElementById('cancel').hidden")
    page.ask("document.getElementById('cancel').click()")
    assert "cancelled" in last(page)
    until(page, "!document.getElementById('go').disabled")
    assert "exit code 0" in output(page, "run store/power/shrunk/20-hw/plan.json --mode hw")


def test_a_link_in_the_output_or_the_lesson_runs(page: Browser) -> None:
    page.ask("document.querySelector('#lesson code a').click()")
    done(page)
    assert last(page).startswith(f"highwater {RUN}")
    page.ask("document.querySelector('#screen > div:last-child a').click()")
    until(page, "document.querySelector('#screen > div:last-child').textContent.startsWith('highwater replay')")
    done(page)
    assert "exit code 0" in last(page)


def test_it_asks_nobody_else_has_no_errors_and_fits_its_window(page: Browser, address: str) -> None:
    assert [asked for asked in page.requests if not asked.startswith((address, f"blob:{address}", "data:"))] == []
    assert page.errors == []
    for width in (1280, 420):
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        assert page.ask("document.documentElement.scrollWidth") <= width
