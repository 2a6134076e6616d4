"""Which blocks of statements a run executes: a run that does not execute the block of a mutant is that without it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.verification.mutants.operators import blocks_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MARKS: Final = "_marks_of_mutants_"
"""A builtin: the set of the numbers of the blocks that were executed."""


class Block(NamedTuple):
    """A block of statements: lines of a file, inclusive."""

    file: str
    first: int
    last: int


def _blocks(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield from blocks_of(node.body)


def _block(file: str, statements: Sequence[ast.stmt]) -> Block:
    last = statements[-1]
    return Block(file, statements[0].lineno, last.end_lineno or last.lineno)


def blocks(texts: Mapping[str, bytes]) -> list[Block]:
    """All blocks of these files; their places are their numbers."""
    return [_block(file, found) for file, text in texts.items() for found in _blocks(ast.parse(text))]


def block_of(every: Sequence[Block], file: str, line: int) -> int:
    """The number of the innermost block that has this line."""
    around = [(one.first, -one.last, place) for place, one in enumerate(every) if _has(one, file, line)]
    return max(around)[2]


def _has(block: Block, file: str, line: int) -> bool:
    return block.file == file and block.first <= line <= block.last


def marked(text: bytes, first: int) -> ast.Module:
    """The module with marks in its blocks, which are numbered from `first` on."""
    tree = ast.parse(text)
    for place, found in enumerate(list(_blocks(tree)), first):
        names = ast.Name(MARKS, ast.Load())
        call = ast.Call(ast.Attribute(names, "add", ast.Load()), [ast.Constant(place)], [])
        found.insert(0, ast.copy_location(ast.Expr(call), found[0]))
    return ast.fix_missing_locations(tree)


def number(executed: set[int]) -> int:
    """Blocks as bits."""
    return sum(1 << place for place in executed)
