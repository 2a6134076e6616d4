"""Runs as a JUnit XML file, which build servers show: a test case for each scenario and mode."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from xml.etree import ElementTree

from reports import exits
from reports.evidence.story import head
from reports.formatting import plain
from scenarios.single.rows import Row
from sim import exit_codes

_TAGS = {exit_codes.UNEXPECTED: "failure", exit_codes.INTERNAL: "error", exit_codes.INCONCLUSIVE: "skipped"}
"""Exit code of a run -> the element that says so."""


def junit_xml(rows: Iterable[Row]) -> str:
    """The file's text; a run that is not as expected is a failure, one that used up its budget is skipped."""
    suites = ElementTree.Element("testsuites", name="highwater")
    every = list(rows)
    _count(suites, every)
    for scenario, group in groupby(every, key=lambda row: str(row["scenario"])):
        found = list(group)
        suite = ElementTree.SubElement(suites, "testsuite", name=scenario)
        _count(suite, found)
        for row in found:
            case = ElementTree.SubElement(suite, "testcase", classname=scenario, name=row["mode"])
            lines = [plain(line) for line in head(row)]
            if tag := _TAGS.get(exits.of_row(row)):
                ElementTree.SubElement(case, tag, message=lines[0], type=row["verdict"]).text = "\n".join(lines)
            ElementTree.SubElement(case, "system-out").text = plain(row["replay"]) or lines[0]
    ElementTree.indent(suites)
    return f"{ElementTree.tostring(suites, encoding='utf-8', xml_declaration=True).decode()}\n"


def _count(element: ElementTree.Element, rows: Sequence[Row]) -> None:
    codes = [exits.of_row(row) for row in rows]
    element.set("tests", str(len(codes)))
    for name, code in (
        ("failures", exit_codes.UNEXPECTED),
        ("errors", exit_codes.INTERNAL),
        ("skipped", exit_codes.INCONCLUSIVE),
    ):
        element.set(name, str(codes.count(code)))
