"""Properties files are read as Java reads them."""

from __future__ import annotations

import json

import pytest

from scenarios.properties.java_properties import PropertyEntry, parse
from sim.errors import InputError
from tests.places import FIXTURES

TEXTS = json.loads((FIXTURES / "properties" / "java.json").read_text(encoding="utf-8"))["texts"]
"""Texts and what ``java.util.Properties.load`` made of them; null where it refused them."""


def test_texts_are_read_as_java_read_them() -> None:
    assert len(TEXTS) == 150
    for text, read in TEXTS:
        try:
            found = {entry.key: entry.value for entry in parse(text.encode("iso-8859-1"))}
        except InputError:
            found = None
        assert found == read, text


def test_separators_continuations_escapes_and_comments() -> None:
    text = (
        b"# comment \\\n! another\n\n a = 1\nb:2\rc 3\r\n  d\\ e\\:f = g \\\n   # h\\\n  i\\u00e9\n"
        b"empty\nlast=\\t x \nlast=y"
    )
    assert parse(text) == [
        PropertyEntry("a", "1", 4),
        PropertyEntry("b", "2", 5),
        PropertyEntry("c", "3", 6),
        PropertyEntry("d e:f", "g # hi\u00e9", 7),
        PropertyEntry("empty", "", 10),
        PropertyEntry("last", "\t x ", 11),
        PropertyEntry("last", "y", 12),
    ]


def test_other_encodings_in_comments_do_no_harm() -> None:
    assert parse("# für\na=ü\n".encode()) == [PropertyEntry("a", "Ã¼", 2)]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a=1\nb=2\\", "line 2: the file ends where its backslash continues a line"),
        (b"a=1\nb=2 \\\n", "line 2: the file ends where its backslash continues a line"),
        (b"a=\\u12", "line 1: \\u needs four hexadecimal digits"),
        ("a=1".encode("utf-16"), "it begins with the byte order mark of UTF-16"),
        ("\ufeffa=1".encode(), "it begins with the byte order mark of UTF-8"),
        ("a=1\nb=2".encode("utf-16-le"), "line 1: it is binary"),
        (b"a=1\n\x7fELF\x02\x01\x00", "line 2: it is binary"),
    ],
)
def test_what_no_broker_was_started_with_is_refused(content: bytes, problem: str) -> None:
    with pytest.raises(InputError) as refused:
        parse(content)
    (found,) = refused.value.problems
    assert found.startswith(problem)
