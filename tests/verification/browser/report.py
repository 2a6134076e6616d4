"""The report of a sweep as a reader sees it: at some width, in the light and in the dark, with all parts unfolded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.verification.browser.chromium import Browser

LEAST: Final = 4.5
"""Contrast of text that WCAG 2 asks for at level AA."""
UNFOLD: Final = "document.querySelectorAll('summary').forEach(one => one.parentElement.open || one.click())"
FOLDED: Final = "document.querySelectorAll('details:not([open])').length"
CUT: Final = """[...document.querySelectorAll('body *')].filter(one => {
  const {left, right} = one.getBoundingClientRect();
  const seen = one.getClientRects().length && (!one.closest('.wide') || one.matches('caption span'));
  return seen && (right > innerWidth + 1 || left < -1);
}).map(one => `${one.tagName} ${one.textContent.slice(0, 40)}`)"""
"""Elements outside the window that no scrollable part holds."""
UNREACHED: Final = """[...document.querySelectorAll('.wide')].filter(one =>
  one.scrollWidth > one.clientWidth + 1 && one.tabIndex !== 0).length"""
SKIPS: Final = """[...document.querySelectorAll('h1, h2, h3, h4')].map(one => +one.tagName[1]).filter(
  (level, place, all) => place && level > all[place - 1] + 1).length"""
PALE: Final = """(() => {
  const light = text => text.match(/[\\d.]+/g).slice(0, 3).map(part => part / 255).map(
    part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4).reduce(
    (sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
  const ground = one => {
    const colour = getComputedStyle(one).backgroundColor;
    return colour === 'rgba(0, 0, 0, 0)' && one.parentElement ? ground(one.parentElement) : colour;
  };
  const texts = [...document.querySelectorAll('body *')].filter(one => !one.closest('figure.run svg, style')
    && [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim()));
  return texts.map(one => {
    const style = getComputedStyle(one), ink = one.closest('svg') ? style.fill : style.color;
    const pair = [light(ink), light(ground(one))];
    return [(Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05), one.tagName, one.textContent.trim().slice(0, 40)];
  }).filter(([contrast]) => contrast < LEAST).map(found => found.join(' '));
})()"""
TURNED: Final = """[...document.querySelectorAll('figure.run svg')].filter(
  one => getComputedStyle(one).filter.startsWith('invert') !== DARK).length"""
"""Pictures of runs that are not in the page's colours."""


def problems(browser: Browser, file: Path, width: int) -> Iterator[str]:
    """Problems of a report."""
    for scheme in ("light", "dark"):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        browser.load(file.as_uri(), width)
        yield from (f"{scheme}: {what} is cut" for what in browser.ask(CUT))
        browser.ask(UNFOLD)
        if browser.ask(FOLDED):
            yield f"{scheme}: parts stay folded"
        if (wide := browser.ask("document.documentElement.scrollWidth")) > width:
            yield f"{scheme}: is {wide} pixels wide unfolded"
        yield from (f"{scheme}: {what} is cut unfolded" for what in browser.ask(CUT))
        yield from (f"{scheme}: pale: {what}" for what in browser.ask(PALE.replace("LEAST", str(LEAST))))
        if browser.ask(TURNED.replace("DARK", str(scheme == "dark").lower())):
            yield f"{scheme}: a picture has the other colours"
    if browser.ask(UNREACHED):
        yield "a wide part cannot be scrolled by keys"
    if browser.ask(SKIPS):
        yield "a heading skips a level"
    browser.call("Emulation.setEmulatedMedia", features=[])
