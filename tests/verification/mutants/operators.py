"""The mutants of a module: each replaces the text of one expression or statement in the body of one function.

An operator stands for a plausible mistake. Probes, assertions, the texts of exceptions and annotations are left alone,
because no run depends on them. A mutant also notes when its place is executed, by calling `REACHED`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from random import Random

REACHED: Final = "_reached_by_mutant_"
"""A builtin of the process that runs a mutant."""
STALE: Final = "_stale_by_mutant_"
NEGATED: Final = "negated"
CONSTANT: Final = "constant"
SHIFTED: Final = "shifted"
OPERAND: Final = "operand"
DROPPED: Final = "dropped"
SWAPPED: Final = "swapped"
OFF_BY_ONE: Final = "off-by-one"
RETURNED: Final = "returned"
STALE_COPY: Final = "stale-copy"
OPERATORS: Final = {
    NEGATED: "a condition is negated",
    CONSTANT: "a condition is always true, or never",
    SHIFTED: "a comparison includes equality, or excludes it",
    OPERAND: "a condition loses one of its parts, or `and` becomes `or`",
    DROPPED: "a call or an assignment to an attribute is dropped",
    SWAPPED: "an argument or attribute becomes its neighbour of the same type",
    OFF_BY_ONE: "an offset, an epoch, a time or another number is one too large or too small",
    RETURNED: "a function returns too early, or always the same truth value",
    STALE_COPY: "an attribute is read from before its assignment, or a copy is the original",
}
_SHIFTS: Final[Mapping[type[ast.cmpop], str]] = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
_NUMBERS: Final = ("leo", "hw", "offset", "epoch", "version", "place", "start", "end", "count")
"""Last words of names of numbers."""
_COPIES: Final = ("list", "dict", "set")
_SILENT: Final = ("reached", "note")
"""Methods that only note that a place was executed."""
_UNMUTATED: Final = ("dispose", "__repr__", "__str__", "to_json")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mutant.

    Attributes:
        file: the module's file, relative to the checkout.
        line: where the text stands that it replaces.
        column: where in the line, from 1.
        function: qualified name of the function.
        operator: see `OPERATORS`.
        before: the text.
        after: what stands there instead.
        source: bytes of the file that are replaced, from and to.
        code: what replaces them; it also notes that the place is executed.
    """

    file: str
    line: int
    column: int
    function: str
    operator: str
    before: str
    after: str
    source: tuple[int, int]
    code: str

    @property
    def name(self) -> str:
        """Unique among the mutants of one state of the sources."""
        return f"{self.file}:{self.line}:{self.column} {self.operator}: {self.before!r} -> {self.after!r}"

    def applied(self, text: bytes) -> bytes:
        """The source of the module with the mutant."""
        first, last = self.source
        return text[:first] + self.code.encode() + text[last:]


Fields = dict[str, list[list[tuple[str, str]]]]
"""Attribute -> for each class that declares it, its attributes with their types, in order."""


def fields_of(trees: Iterable[ast.Module]) -> Fields:
    """The attributes that classes declare with types."""
    found: Fields = defaultdict(list)
    for tree in trees:
        for owner in ast.walk(tree):
            if isinstance(owner, ast.ClassDef):
                fields = list(_declared(owner))
                for name, _ in fields:
                    found[name].append(fields)
    return found


def _declared(owner: ast.ClassDef) -> Iterator[tuple[str, str]]:
    types: dict[str, str] = {}
    for node in owner.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            types.setdefault(node.target.id, ast.unparse(node.annotation))
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            arguments = {one.arg: ast.unparse(one.annotation) for one in _arguments(node) if one.annotation}
            for inner in ast.walk(node):
                target, kind = _attribute_set(inner, arguments)
                if target and kind:
                    types.setdefault(target, kind)
    yield from types.items()


def _attribute_set(node: ast.AST, arguments: Mapping[str, str]) -> tuple[str, str]:
    """The attribute of self that a statement sets, and its type, as far as it shows."""
    if isinstance(node, ast.AnnAssign) and _is_own(node.target):
        return node.target.attr, ast.unparse(node.annotation)
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and _is_own(target := node.targets[0]):
        value = node.value
        if isinstance(value, ast.Name):
            return target.attr, arguments.get(value.id, "")
        if isinstance(value, ast.Constant):
            return target.attr, type(value.value).__name__
    return "", ""


def _is_own(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _arguments(function: ast.FunctionDef) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


class Source:
    """The mutants of one file."""

    def __init__(self, file: str, text: bytes, fields: Fields) -> None:
        self._file = file
        self._text = text
        self._fields = fields
        self._function = ""
        self._arguments: Mapping[str, str] = {}

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in self._text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts

    def mutants(self) -> Iterator[Mutant]:
        """All of them, in the order of the text of their functions."""
        yield from self._in(ast.parse(self._text), "")

    def _in(self, node: ast.AST, owner: str) -> Iterator[Mutant]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield from self._in(child, f"{owner}{child.name}.")
            elif isinstance(child, ast.FunctionDef) and child.name not in _UNMUTATED:
                self._function = f"{owner}{child.name}"
                self._arguments = {one.arg: ast.unparse(one.annotation) for one in _arguments(child) if one.annotation}
                yield from self._of_function(child)
            elif isinstance(child, ast.If) and ast.unparse(child.test) != "TYPE_CHECKING":
                yield from self._in(child, owner)

    def _of_function(self, function: ast.FunctionDef) -> Iterator[Mutant]:
        returns = ast.unparse(function.returns) if function.returns else ""
        body = function.body
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]
        for node in _nodes(body):
            if isinstance(node, ast.stmt):
                yield from self._of_statement(node, returns)
            elif isinstance(node, ast.expr):
                yield from self._of_expression(node)
            elif isinstance(node, ast.comprehension):
                for condition in node.ifs:
                    yield from self._of_condition(condition)
        for block in blocks_of(body):
            if function.name == "__init__":
                continue
            yield from self._stale(block)
            if returns == "None":
                yield from self._early(block, is_body=block is body)

    # Statements.

    def _of_statement(self, node: ast.stmt, returns: str) -> Iterator[Mutant]:
        if isinstance(node, ast.If):
            yield from self._of_condition(node.test)
        elif isinstance(node, ast.While) and not isinstance(node.test, ast.Constant):
            yield self._expression(NEGATED, node.test, f"not ({self._of(node.test)})")
        elif self._can_be_dropped(node):
            yield self._statement(DROPPED, node, "pass")
        elif isinstance(node, ast.Return) and returns == "bool" and not isinstance(node.value, ast.Constant):
            assert node.value is not None
            for value in ("True", "False"):
                yield self._expression(RETURNED, node.value, value)

    def _can_be_dropped(self, node: ast.stmt) -> bool:
        """Whether it is a call, or an assignment to attributes or items; one of a constructor declares them."""
        if isinstance(node, ast.Assign):
            is_state = all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
            return is_state and not self._function.endswith("__init__")
        return isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))

    def _early(self, block: Sequence[ast.stmt], *, is_body: bool) -> Iterator[Mutant]:
        """A return before each statement but the first of a function, where that is not the last thing it does."""
        for node in block[1:] if is_body else block:
            first, _ = self._span(node)
            is_elif = self._text.startswith(b"elif", first)
            if not is_elif and not isinstance(node, ast.Return | ast.Raise | ast.Pass | ast.Assert | ast.FunctionDef):
                text = f"return\n{' ' * node.col_offset}"
                yield self._mutant(RETURNED, node, "", "return", (first, first), f"{REACHED}(); {text}")

    def _stale(self, block: Sequence[ast.stmt]) -> Iterator[Mutant]:
        """A later statement of the block reads what an attribute was before its assignment."""
        for place, node in enumerate(block):
            if not isinstance(node, ast.Assign | ast.AugAssign):
                continue
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if not isinstance(target, ast.Attribute):
                continue
            name = ast.unparse(target)
            for read in _nodes(block[place + 1 :]):
                if isinstance(read, ast.Attribute) and isinstance(read.ctx, ast.Load) and ast.unparse(read) == name:
                    first, last = self._span(node)[0], self._span(read)[1]
                    between = self._text[first : self._span(read)[0]].decode()
                    code = f"{STALE} = {name}; {between}({REACHED}() or {STALE})"
                    yield self._mutant(STALE_COPY, read, name, f"{name} of before", (first, last), code)
                    break

    # Expressions.

    def _of_condition(self, test: ast.expr) -> Iterator[Mutant]:
        yield self._expression(NEGATED, test, f"not ({self._of(test)})")
        for value in ("True", "False"):
            yield self._expression(CONSTANT, test, value)

    def _of_expression(self, node: ast.expr) -> Iterator[Mutant]:
        if isinstance(node, ast.IfExp):
            yield from self._of_condition(node.test)
        elif isinstance(node, ast.BoolOp):
            yield from self._of_operands(node)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _SHIFTS:
            left, right = self._of(node.left), self._of(node.comparators[0])
            yield self._expression(SHIFTED, node, f"{left} {_SHIFTS[type(node.ops[0])]} {right}")
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                yield from self._swapped(node, node.id, [list(self._arguments.items())])
                yield from self._off_by_one(node, node.id, self._arguments.get(node.id, ""))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            declared = self._fields.get(node.attr, [])
            yield from self._swapped(node, node.attr, declared)
            yield from self._off_by_one(node, node.attr, *(dict(fields)[node.attr] for fields in declared))
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            for value in (node.value + 1, node.value - 1):
                yield self._expression(OFF_BY_ONE, node, str(value))
        elif isinstance(node, ast.Call):
            yield from self._of_call(node)

    def _of_operands(self, node: ast.BoolOp) -> Iterator[Mutant]:
        texts = [f"({self._of(value)})" for value in node.values]
        word, other = (" and ", " or ") if isinstance(node.op, ast.And) else (" or ", " and ")
        for place in range(len(texts)):
            yield self._expression(OPERAND, node, word.join([*texts[:place], *texts[place + 1 :]]))
        yield self._expression(OPERAND, node, other.join(texts))

    def _of_call(self, node: ast.Call) -> Iterator[Mutant]:
        function = node.func
        if isinstance(function, ast.Name) and function.id in _COPIES and len(node.args) == 1 and not node.keywords:
            yield self._expression(STALE_COPY, node, self._of(node.args[0]))
        elif isinstance(function, ast.Attribute) and function.attr == "copy" and not node.args:
            yield self._expression(STALE_COPY, node, self._of(function.value))

    def _swapped(
        self, node: ast.Name | ast.Attribute, name: str, declared: list[list[tuple[str, str]]]
    ) -> Iterator[Mutant]:
        others = {_neighbour(name, fields) for fields in declared}
        other = others.pop() if len(others) == 1 else ""
        if other:
            prefix = f"{self._of(node.value)}." if isinstance(node, ast.Attribute) else ""
            yield self._expression(SWAPPED, node, prefix + other)

    def _off_by_one(self, node: ast.expr, name: str, *kinds: str) -> Iterator[Mutant]:
        is_number = name.endswith("_us") or name.rpartition("_")[2] in _NUMBERS
        if is_number and kinds and all(kind in ("int", "i64") for kind in kinds):
            for change in ("+ 1", "- 1"):
                yield self._expression(OFF_BY_ONE, node, f"{self._of(node)} {change}")

    # Texts.

    def _expression(self, operator: str, node: ast.expr, after: str) -> Mutant:
        code = f"({REACHED}() or ({after}))"
        return self._mutant(operator, node, self._of(node), after, self._span(node), code)

    def _statement(self, operator: str, node: ast.stmt, after: str) -> Mutant:
        return self._mutant(operator, node, self._of(node), after, self._span(node), f"{REACHED}()")

    def _mutant(
        self, operator: str, node: ast.stmt | ast.expr, before: str, after: str, source: tuple[int, int], code: str
    ) -> Mutant:
        return Mutant(
            self._file, node.lineno, node.col_offset + 1, self._function, operator, before, after, source, code
        )

    def _of(self, node: ast.expr | ast.stmt) -> str:
        first, last = self._span(node)
        return self._text[first:last].decode()

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[node.end_lineno - 1] + node.end_col_offset


def _neighbour(name: str, fields: Sequence[tuple[str, str]]) -> str:
    """The next name of the same type after this one, or the one before; empty: there is none."""
    types = dict(fields)
    alike = [other for other, kind in fields if kind == types.get(name)]
    if name not in alike or len(alike) < 2:
        return ""
    place = alike.index(name)
    return alike[place + 1] if place + 1 < len(alike) else alike[place - 1]


def _nodes(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """What is executed in a run, outermost first: no nested functions, texts, types or assertions."""
    for node in statements:
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.FunctionDef | ast.ClassDef | ast.Global):
            continue
        if isinstance(node, ast.pattern | ast.Import | ast.ImportFrom) or _is_silent(node):
            continue
        yield node
        children: Iterable[ast.AST] = ast.iter_child_nodes(node)
        if isinstance(node, ast.AnnAssign):
            children = [node.value] if node.value is not None else []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("cast", "isinstance"):
            children = []
        elif isinstance(node, ast.Subscript):
            children = [node.value] if isinstance(node.slice, ast.Constant) else [node.value, node.slice]
        yield from _nodes(children)


def _is_silent(node: ast.AST) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _SILENT


def blocks_of(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """The block, and all within it, without those of nested functions."""
    yield body
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield from blocks_of(block)
        for case in (*getattr(node, "cases", ()), *getattr(node, "handlers", ())):
            yield from blocks_of(case.body)


def drawn(mutants: Sequence[Mutant], random: Random, number: int) -> list[Mutant]:
    """So many different ones: each time an operator is drawn, and then one of its mutants."""
    left = {operator: [one for one in mutants if one.operator == operator] for operator in OPERATORS}
    found: list[Mutant] = []
    while len(found) < number:
        operators = [operator for operator, ones in left.items() if ones]
        if not operators:
            break
        ones = left[operators[random.randrange(len(operators))]]
        found.append(ones.pop(random.randrange(len(ones))))
    return found
