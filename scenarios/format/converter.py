"""Plain data of files and stores to dataclasses and back, by the types of their fields (`scenarios.format.values`).

A store has the shape of the dataclass. In a file, a field may have another key, form and unit, and a class with
`of_file` and `as_file` reads and writes its table itself. What is read here was checked before, or is bundled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, is_dataclass
from dataclasses import fields as dataclass_fields
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from scenarios.format.fields import Facts
from scenarios.format.values import TYPES, Check, FileKey, InFile, Mark

_NOT_IN_FILE: Final = frozenset({Mark.NEVER, Mark.REQUEST, Mark.ELSEWHERE})


@dataclass(frozen=True, slots=True)
class Declared:
    """A field of a dataclass, as its type declares it.

    Attributes:
        kind: its type, with all metadata.
        key: its key in a file.
        default: its default, as the dataclass has it; MISSING: a file needs it.
    """

    name: str
    kind: Any
    key: str
    default: Any
    marks: frozenset[Mark]


def declared(owner: type) -> tuple[Declared, ...]:
    """The fields of a dataclass."""
    if owner not in _DECLARED:
        kinds = TYPES.get(owner) or get_type_hints(owner, include_extras=True)
        fields: Any = dataclass_fields(owner)
        _DECLARED[owner] = tuple([_declared(field, kinds[field.name]) for field in fields])
    return _DECLARED[owner]


def _declared(field: Any, kind: Any) -> Declared:
    _, metadata = _parts(kind)
    marks = frozenset(mark for mark in metadata if isinstance(mark, Mark))
    key = next((one for one in metadata if isinstance(one, FileKey)), FileKey())
    default = field.default_factory() if field.default_factory is not MISSING else field.default
    if key.default is not None:
        default = key.default
    if Mark.REQUIRED in marks:
        default = MISSING
    name = key.name or (field.name.removesuffix("us") + "ms" if Mark.IN_MS in marks else field.name)
    return Declared(field.name, kind, name, default, marks)


_DECLARED: Final[dict[type, tuple[Declared, ...]]] = {}


def in_file(owner: type) -> Iterable[Declared]:
    """The fields that the table of a file has, also those in them that stand in the same table."""
    for field in declared(owner):
        if Mark.FLAT in field.marks:
            yield from in_file(_parts(field.kind)[0])
        elif not field.marks & _NOT_IN_FILE:
            yield field


def is_table(kind: Any) -> bool:
    """Whether a type is a dataclass."""
    return isinstance(kind, type) and is_dataclass(kind)


def _parts(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type without metadata, and the metadata."""
    return (get_args(kind)[0], get_args(kind)[1:]) if get_origin(kind) is Annotated else (kind, ())


def _inner(kind: Any) -> Any:
    """The type beside None."""
    if get_origin(kind) in (Union, UnionType) and NoneType in get_args(kind):
        return next(arg for arg in get_args(kind) if arg is not NoneType)
    return kind


# Stores.


def to_plain(value: Any) -> Any:
    """Plain data of a dataclass, as JSON has it."""
    if is_table(type(value)):
        return {
            field.name: to_plain(found)
            for field in declared(type(value))
            if Mark.NEVER not in field.marks
            and not ((found := getattr(value, field.name)) == field.default and Mark.LATER in field.marks)
        }
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    return [to_plain(item) for item in value] if isinstance(value, list | tuple) else value


def of_plain(kind: Any, value: Any) -> Any:
    """What `to_plain` made plain; of data that it did not make, the result may be wrong.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: it did not make it.
    """
    kind, _ = _parts(kind)
    if value is None:
        return None
    inner, _ = _parts(_inner(kind))
    origin, args = get_origin(inner), get_args(inner)
    if is_table(inner):
        kinds = {field.name: field.kind for field in declared(inner)}
        return inner(**{name: of_plain(kinds[name], item) for name, item in value.items()})
    if origin is tuple:
        return tuple([of_plain(args[0], item) for item in ([value] if isinstance(value, str) else value)])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key = int if _parts(args[0])[0] is int else str
        return {key(name): of_plain(args[1], item) for name, item in value.items()}
    return value


# Files.


def of_file(kind: Any, value: Any, facts: Facts) -> Any:
    """A value of a file.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: it is not valid; only part of what is not is found.
    """
    kind, metadata = _parts(kind)
    checks = [check for check in metadata if isinstance(check, Check)]
    for check in checks:
        value = check.check(value, facts) if check.first else value
    form = next((entry.form for entry in metadata if isinstance(entry, InFile)), None)
    value = _of_file(kind if form is None else form, value, facts)
    for check in checks:
        value = value if check.first else check.check(value, facts)
    if Mark.IN_MS in metadata:
        value = _scaled(value, lambda ms: 1_000 * ms)
    return value if form is None else of_plain(kind, value)


def _of_file(kind: Any, value: Any, facts: Facts) -> Any:
    inner = _inner(kind)
    if inner is not kind or get_origin(inner) is Annotated:
        return of_file(inner, value, facts)
    origin, args = get_origin(kind), get_args(kind)
    if is_table(kind):
        own: Callable[[Any, Facts], Any] | None = getattr(kind, "of_file", None)
        return kind(**fields_of_file(kind, value, facts)) if own is None else own(value, facts)
    if origin in (tuple, list):
        return origin([of_file(args[0], item, facts) for item in value])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {of_file(args[0], key, facts): of_file(args[1], item, facts) for key, item in value.items()}
    return value


def fields_of_file(owner: Any, table: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    """The fields of a dataclass from its table; raises TypeError if that has other keys."""
    given: dict[str, Any] = {}
    left = dict(table)
    for field in declared(owner):
        if Mark.FLAT in field.marks:
            part = {other.key: left.pop(other.key) for other in in_file(_parts(field.kind)[0]) if other.key in left}
            given[field.name] = of_file(field.kind, part, facts)
        elif field.key in left and not field.marks & _NOT_IN_FILE:
            given[field.name] = of_file(field.kind, left.pop(field.key), facts)
        elif field.default is not MISSING and Mark.ELSEWHERE not in field.marks:
            given[field.name] = field.default
    if left:
        raise TypeError(f"unknown: {', '.join(left)}")
    return given


def as_file(kind: Any, value: Any) -> Any:
    """What a file has for a value; `of_file` reads it.

    Raises:
        AttributeError, TypeError, ValueError: the value is not of that type.
    """
    kind, metadata = _parts(kind)
    form = next((entry for entry in metadata if isinstance(entry, InFile)), None)
    if form is not None and form.write is not None:
        return form.write(value)
    if Mark.IN_MS in metadata:
        value = in_ms(value)
    kind = _inner(kind)
    if get_origin(kind) is Annotated:
        return as_file(kind, value)
    if is_table(kind) and is_table(type(value)):
        own: Callable[[], dict[str, Any]] | None = getattr(value, "as_file", None)
        return fields_as_file(value) if own is None else own()
    if isinstance(value, Mapping):
        item = get_args(kind)[1] if len(get_args(kind)) > 1 else Any
        return {key: as_file(item, one) for key, one in value.items()}
    if isinstance(value, tuple):
        return [as_file(get_args(kind)[0] if get_args(kind) else Any, one) for one in value]
    return value


def fields_as_file(value: Any) -> dict[str, Any]:
    """The table of a dataclass, without what has its default."""
    table: dict[str, Any] = {}
    for field in declared(type(value)):
        found = getattr(value, field.name)
        if Mark.FLAT in field.marks:
            table |= as_file(field.kind, found)
        elif not field.marks & _NOT_IN_FILE and (field.default is MISSING or found != field.default):
            table[field.key] = as_file(field.kind, found)
    return table


def in_ms(us: Any) -> Any:
    """A time, or several; raises ValueError if one is no whole number of ms."""

    def ms(one: int) -> int:
        if one % 1_000:
            raise ValueError(f"{one} us is no whole number of ms")
        return one // 1_000

    return _scaled(us, ms)


def _scaled(value: Any, by: Callable[[int], int]) -> Any:
    return tuple([by(one) for one in value]) if isinstance(value, list | tuple) else by(value)
