"""Reading a page without a browser: whether it is well-formed, where its links lead, and what it would fetch."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "input", "link", "wbr"}
FETCHES = ("src", "href", "data", "action", "poster", "srcset", "xlink:href")


class Page(HTMLParser):
    """A page.

    Attributes:
        problems: what is not well-formed.
        names: of its parts.
        links: within it.
        fetched: what it names elsewhere.
        text: all that can be read.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.problems: list[str] = []
        self.names: list[str] = []
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.text = ""
        self.tags: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.problems += [f"{tag} is not closed" for tag in self._open]
        self.fetched += re.findall(r"@import[^;]*|url\((?!#)[^)]*\)", text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self._open.append(tag)
        self._attributes(attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._attributes(attrs)

    def _attributes(self, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.names.append(value or "")
            elif name in FETCHES and (value or "").startswith("#"):
                self.links.append((value or "")[1:])
            elif name in FETCHES and not (value or "").startswith("data:"):
                self.fetched.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.problems.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data: str) -> None:
        self.text += data
