"""Reads the classes of a jar and the names of their members from class files.

Java's `javap` comes with development kits only, and reflection would have to load classes that refer to libraries which
are not there.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from zipfile import ZipFile

_MAGIC: Final = 0xCAFEBABE
_UTF8: Final = 1
_SIZES: Final = {
    tag: size
    for size, tags in ((3, (7, 8, 16, 19, 20)), (4, (15,)), (5, (3, 4, 9, 10, 11, 12, 17, 18)), (9, (5, 6)))
    for tag in tags
}
"""Bytes of an entry of the constant pool, by its tag; see the Java Virtual Machine Specification, 4.4."""
_WIDE: Final = (5, 6)
"""Tags of entries that take two places."""
_COMPANION: Final = re.compile(r"\$(class)?$")
"""What Scala appends to the name of an object, and, before 2.12, of a trait's methods."""
_PRIVATE: Final = re.compile(r"^.*\$\$(?=\w)")
"""What Scala puts before the name of a private method that a closure calls."""


def members(data: bytes) -> set[str]:
    """Names of the fields and methods that a class file declares.

    Raises:
        ValueError: it is no class file.
    """
    if len(data) < 10 or struct.unpack_from(">I", data)[0] != _MAGIC:
        raise ValueError("not a class file")
    texts, at = {}, 10
    index, count = 1, struct.unpack_from(">H", data, 8)[0]
    while index < count:
        tag = data[at]
        if tag == _UTF8:
            length = struct.unpack_from(">H", data, at + 1)[0]
            texts[index] = data[at + 3 : at + 3 + length]
            at += 3 + length
        elif tag in _SIZES:
            at += _SIZES[tag]
        else:
            raise ValueError(f"constant {index} has the unknown tag {tag}")
        index += 2 if tag in _WIDE else 1
    at += 6
    at += 2 + 2 * struct.unpack_from(">H", data, at)[0]
    found = set()
    for _ in ("fields", "methods"):
        entries = struct.unpack_from(">H", data, at)[0]
        at += 2
        for _ in range(entries):
            _, name, _, attributes = struct.unpack_from(">HHHH", data, at)
            found.add(_PRIVATE.sub("", texts[name].decode("utf-8", "replace")))
            at += 8
            for _ in range(attributes):
                at += 6 + struct.unpack_from(">I", data, at + 2)[0]
    return found


def classes(jars: Iterable[Path], simple: set[str]) -> dict[str, set[str]]:
    """The members of some classes; a Scala object's, or a trait's, are those of the class of that name.

    Args:
        jars: where to look.
        simple: names of the classes without package and without enclosing classes.

    Returns:
        By full name, ``package.Outer.Inner``.
    """
    found: dict[str, set[str]] = {}
    for name, data in _entries(jars, simple):
        found.setdefault(name, set()).update(members(data))
    return found


def _entries(jars: Iterable[Path], simple: set[str]) -> Iterator[tuple[str, bytes]]:
    for jar in jars:
        with ZipFile(jar) as archive:
            for entry in archive.namelist():
                if entry.endswith(".class"):
                    name = _COMPANION.sub("", entry.removesuffix(".class")).replace("/", ".").replace("$", ".")
                    if name.rpartition(".")[2] in simple:
                        yield name, archive.read(entry)
