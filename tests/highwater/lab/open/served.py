"""A server in this process, and requests to it."""

from __future__ import annotations

import http.client
import re
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Any

from highwater.lab.open.made_page import MadePage
from highwater.lab.open.server import HOST, LoopbackServer
from highwater.lab.open.site import Site
from highwater.lab.open.tasks import Task, carry_out

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class JobsHere:
    """Stands in for `Jobs`: carries tasks out in this process, and remembers them."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []

    def result(self, task: Task) -> MadePage:
        self.tasks.append(task)
        return carry_out(task)

    def close(self) -> None:
        return


@dataclass(frozen=True)
class Got:
    """An answer."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def links(self) -> list[str]:
        """Addresses of its links but those within the page."""
        return [link.replace("&amp;", "&") for link in re.findall(r'href="([^"#][^"]*)"', self.text)]


class Served:
    """A site that is served; redirections are followed."""

    def __init__(self, server: LoopbackServer, jobs: JobsHere) -> None:
        self.server = server
        self.jobs = jobs

    def ask(self, path: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> Got:
        """One request, exactly as written."""
        connection = http.client.HTTPConnection(HOST, self.server.server_port, timeout=60)
        connection.request(method, path, headers=dict(headers or {}))
        answer = connection.getresponse()
        got = Got(answer.status, dict(answer.getheaders()), answer.read().decode())
        connection.close()
        return got

    def get(self, path: str = "/") -> Got:
        """A page."""
        got = self.ask(path)
        return self.ask(got.headers["Location"]) if got.status == 302 else got

    @property
    def home(self) -> str:
        """Where the first page leads to."""
        return self.ask("/").headers["Location"]


@contextmanager
def served(word: object) -> Iterator[Served]:
    """Serve a folder or scenario."""
    site, jobs = Site(str(word)), JobsHere()
    site.jobs = jobs  # type: ignore[assignment]
    server = LoopbackServer(site.answer)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield Served(server, jobs)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def plain(got: Got) -> str:
    """What a page says, without its style."""
    from tests.reports.page.pages import Page

    text: Any = re.sub(r"<style>.*?</style>", "", got.text, flags=re.DOTALL)
    return " ".join(Page(text).text.split())
