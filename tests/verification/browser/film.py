"""The page of a run, driven as a reader would: slider, keys, sentences, comparison, copy button, and scripts off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.verification.browser.chromium import Browser

STEP: Final = "+document.getElementById('slider').value"
NOW: Final = "document.querySelector('#stage-0 .now').textContent"
KEY: Final = "document.body.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}}))"
CURRENT: Final = "document.querySelectorAll('.sentence[aria-current]').length"
CLIPPED: Final = """[...document.querySelectorAll('button, p, li, dd, .badges span')].filter(one =>
  one.offsetParent && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== 'inline').length"""


def problems(browser: Browser, file: Path, width: int) -> Iterator[str]:
    """Problems of a page that compares two modes."""
    url = file.as_uri()
    browser.requests.clear()
    browser.errors.clear()
    browser.load(url, width)
    if (wide := browser.ask("document.documentElement.scrollWidth")) > width:
        yield f"is {wide} pixels wide"
    if browser.ask(CLIPPED):
        yield "text is clipped"
    last = browser.ask("+document.getElementById('slider').max")
    browser.ask("document.getElementById('first').click()")
    texts = set()
    for _ in range(30):
        texts.add(browser.ask(NOW))
        before = browser.ask(STEP)
        browser.ask(KEY.format(key="ArrowRight"))
        if browser.ask(STEP) != before + 1:
            yield "the right arrow is not one step forward"
    browser.ask(KEY.format(key="ArrowLeft"))
    if browser.ask(STEP) != 29:
        yield "the left arrow is not one step back"
    if len(texts) < 15:
        yield f"thirty steps show {len(texts)} texts"
    yield from _same_both_ways(browser)
    browser.ask(KEY.format(key="n"))
    if not browser.ask(CURRENT):
        yield "no sentence is marked"
    browser.ask("(s => { s.value = s.max; s.dispatchEvent(new Event('input')) })(document.getElementById('slider'))")
    if browser.ask(STEP) != last or "of" not in browser.ask("document.getElementById('clock').textContent"):
        yield "the slider does not lead to the end"
    yield from _plays(browser)
    yield from _marks(browser)
    browser.ask("document.getElementById('copy').click()")
    if "### " not in browser.ask("document.getElementById('markdown').value"):
        yield "the copy button gives no Markdown"
    asked = (request for request in browser.requests if not request.startswith((url, "data:image/svg+xml;")))
    yield from (f"asks for {request[:200]}" for request in asked)
    yield from (f"error: {error[:500]}" for error in browser.errors)


def _same_both_ways(browser: Browser) -> Iterator[str]:
    """Check that a step looks the same whether it is reached forwards, backwards or by a jump."""
    stage = "document.querySelector('.stages').innerHTML"
    slide = "(s => {{ s.value = {step}; s.dispatchEvent(new Event('input')) }})(document.getElementById('slider'))"
    for step in (40, 150, 200):
        looks = set()
        for other in (0, step - 1, step + 1, 100_000):
            browser.ask(slide.format(step=other))
            browser.ask(slide.format(step=step))
            looks.add(browser.ask(stage))
        if len(looks) != 1:
            yield f"step {step} looks different, depending on the step before"


def _plays(browser: Browser) -> Iterator[str]:
    """Check that playing goes from sentence to sentence, in one of three speeds, and the size of the bar."""
    paces = browser.ask("[...document.getElementById('pace').options].map(option => +option.value)")
    if sorted(paces) != [0, 1_000, 2_000, 4_000]:
        yield f"the paces are {paces}"
    browser.ask("document.getElementById('first').click()")
    # Timers at once: what is tested is where they lead.
    browser.ask("window.setInterval = act => { act(); return 1 }; document.getElementById('play').click()")
    by_play = browser.ask(STEP)
    browser.ask("document.getElementById('play').click(); document.getElementById('first').click()")
    browser.ask(KEY.format(key="n"))
    if by_play != browser.ask(STEP):
        yield "playing does not go by sentences"
    high = browser.ask("document.querySelector('.controls').getBoundingClientRect().height")
    if browser.ask("innerWidth") < 600 and high > 130:
        yield f"the bar is {high} pixels high"


def _marks(browser: Browser) -> Iterator[str]:
    if browser.ask("document.querySelectorAll('.mark.violation').length") == 0:
        yield "no violation is listed"
        return
    browser.ask("document.querySelector('.cause').click()")
    cause = browser.ask(STEP)
    browser.ask("document.querySelector('.mark.violation').click()")
    if not cause < browser.ask(STEP):
        yield "a violation's cause is not before it"
    if not browser.ask("document.querySelector('#stage-0 .alarm').textContent"):
        yield "a violation is not shown at its step"
    if browser.ask("document.querySelectorAll('.stage').length") > 1 and "on the runs differ" not in browser.ask(
        "document.querySelector('.difference-note').textContent"
    ):
        yield "the first difference is not named"


def without_scripts(browser: Browser, file: Path, width: int) -> Iterator[str]:
    """Problems of the page without scripts."""
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.load(file.as_uri(), width)
        shot = browser.call("Page.getLayoutMetrics")["cssContentSize"]
        if shot["height"] < 1_000:
            yield f"is {shot['height']} pixels high without scripts: the picture is not there"
        if shot["width"] > width:
            yield f"is {shot['width']} pixels wide without scripts"
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
