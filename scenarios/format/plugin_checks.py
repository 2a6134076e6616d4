"""Checks what a plug-in declares about its rules and kinds of fault.

A compiled build refuses values of wrong types where they are passed, with a TypeError; a plain build refuses them here.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints, is_typeddict

from faults.bounds import FaultBounds
from faults.kind import (
    KRAFT,
    OTHER_BROKER,
    OTHER_REPLICA,
    PARAM_KINDS,
    REPLICAS,
    Amount,
    Duration,
    FaultKind,
    Param,
    Role,
    Targets,
)
from scenarios.format.plugin import Rule, RuleValue, StepProbe
from sim.config import Where
from sim.errors import InputError, did_you_mean, is_text
from sim.protocol.rules import ADDED_RULES, ADDED_VALUES, RULES

RESERVED: Final = (
    *("do", "when", "after_ms", "after_us", "rules"),
    *("construct", "copy", "dict", "from_orm", "json", "parse_file", "parse_obj", "parse_raw", "schema"),
    *("schema_json", "update_forward_refs", "validate"),
)
"""Names that no parameter of a script line can have: those that every line has, and methods of its model."""
_PARAM: Final = re.compile(r"(?!model_)[a-z][a-z0-9_]{0,63}")
_NUMBERS: Final = ("count", "broker", "leader", "offset", "ms", "permille", "flag")
"""Kinds of parameter whose values `FaultKind.value_of` turns into a number."""
_DURATIONS: Final = tuple(
    field.name for field in fields(FaultBounds) if field.name.endswith("_us") and field.name != "horizon_us"
)
_AMOUNTS: Final = (
    *(
        field.name
        for field in fields(FaultBounds)
        if field.name.endswith(("_us", "_permille")) and field.name != "horizon_us"
    ),
    REPLICAS,
)
"""What the bounds of an amount may name."""
_NAMING: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("broker", "node", "from", "to"), ("broker", "leader", "endpoint")),
    "brokers": ("brokers", "replicas"),
}
"""Parameter from which `FaultKind.targets_of` takes targets -> the kinds that it may have."""
_NEEDS: Final = (KRAFT, OTHER_REPLICA, OTHER_BROKER)

_Types = tuple[type, ...]
KIND_ATTRIBUTES: Final[Mapping[str, _Types]] = {
    "meaning": (str,),
    "targets": (Targets,),
    "amount": (Amount, NoneType),
    "duration": (Duration, NoneType),
    "remains": (str,),
    "needs": (tuple,),
    "moves_leader": (bool,),
    "loses_records": (bool,),
    "of_partition": (bool,),
    "of_directory": (bool,),
    "roles": (tuple,),
}


@cache
def _types_of(kind: type) -> Mapping[str, _Types]:
    """The types of a class's attributes by its annotations. A compiled class has `type` for each of these, and checks
    its arguments itself.
    """
    found: dict[str, _Types] = {}
    for name, hint in get_type_hints(kind).items():
        parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        found[name] = tuple(Mapping if is_typeddict(part) else get_origin(part) or part for part in parts)
    return {
        name: types
        for name, types in found.items()
        if all(isinstance(type_, type) and type_ is not type for type_ in types)
    }


def each(part: str, given: Any, kind: type | None = None) -> Iterable[Any]:
    """The declarations of one part of a `Plugin`; raises InputError if they are no list, or one is of another type."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"{part} = {given!r}: a list is needed, as in {part} = [...]")
    for declaration in given:
        if kind is not None and not isinstance(declaration, kind):
            raise InputError(f"{part}: {declaration!r}: a {kind.__name__} is needed")
        if isinstance(declaration, str) and not is_text(declaration):
            raise InputError(f"{part}: one contains what is no text")
        if isinstance(declaration, StepProbe):
            _check_types(f"probe {declaration.name}", declaration)
        yield declaration


def _check_types(what: str, given: object, types: Mapping[str, _Types] | None = None) -> None:
    """Check the attributes of a declaration by these types, those of a dataclass also by its annotations."""
    kind: type = type(given)
    known = {field.name: (object,) for field in fields(given)} | dict(_types_of(kind)) if is_dataclass(given) else {}
    for part, allowed in {**known, **(types or {})}.items():
        value = getattr(given, part)
        if not isinstance(value, allowed) or (type(value) is bool and not {bool, object} & {*allowed}):
            words = " or ".join("None" if one is NoneType else one.__name__ for one in allowed)
            raise InputError(f"{what}: {part} = {value!r}: {words} is needed")
        if isinstance(value, str) and not is_text(value):
            raise InputError(f"{what}: {part} = {value!r} is no text")


# Rules.


def rule_value(new: RuleValue) -> None:
    """Check the types of a new value of a rule."""
    _check_types(f"rule {new.rule}, value {new.value}", new)


def rule(new: Rule) -> Where:
    """Check the types of a new rule. Returns where it has an effect."""
    _check_types(f"rule {new.name}", new, {"where": (tuple, list)})
    for value, functions in new.values.items():
        if not isinstance(functions, Mapping):
            raise InputError(
                f"rule {new.name}, value {value}: {functions!r}: a dict of decisions and functions is needed"
            )
    return tuple(_condition(new.name, one) for one in new.where)


def _condition(name: str, given: Any) -> tuple[str, tuple[str, ...]]:
    """One condition of `where`."""
    what = f"rule {name}: where"
    if not isinstance(given, tuple | list) or len(given) != 2 or not isinstance(given[1], tuple | list):
        raise InputError(f"{what}: {given!r}: a rule and a tuple of its values are needed, as in ('elr', ('on',))")
    of, values = given
    if of not in RULES:
        raise InputError(f"{what}: unknown rule {of!r}{did_you_mean(str(of), RULES)}")
    known = [one for one in RULES[of].values if of in ADDED_RULES or (of, one) not in ADDED_VALUES]
    for value in values:
        if value not in known:
            raise InputError(f"{what}: rule {of} has no value {value!r}{did_you_mean(str(value), known)}")
    if not values:
        raise InputError(f"{what}: no values of rule {of} are named; it has {', '.join(known)}")
    return of, tuple(values)


def takes(what: str, function: Callable[..., Any], *arguments: str) -> None:
    """Check that a function can be called with these arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # Some built-in functions have none.
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        raise InputError(f"{what} takes {signature}, but is called with ({', '.join(arguments)})") from None


# Kinds of fault.


def fault_kind(kind: FaultKind) -> None:
    """Check the types and names in a new kind of fault."""
    what = f"fault {kind.name}"
    _check_types(what, kind, KIND_ATTRIBUTES)
    targets, amount, duration = kind.targets, kind.amount, kind.duration
    _check_targets(what, kind, targets)
    taken = [*targets.params]
    if amount is not None:
        _check_amount(what, kind, amount)
        taken.append(amount.param)
    if duration is not None:
        _check_types(f"{what}: duration", duration)
        if duration.bounds not in _DURATIONS:
            words = did_you_mean(duration.bounds, _DURATIONS)
            raise InputError(f"{what}: duration: bounds = {duration.bounds!r} is no bound of durations{words}")
        taken.append(duration.param)
    if kind.of_directory:
        taken.append("directory")
    if kind.of_partition:
        taken.append("partition")
    for place, name in enumerate(taken):
        if name in taken[:place]:
            raise InputError(f"{what}: two parameters are called {name!r}")
    for need in kind.needs:
        if need not in _NEEDS:
            raise InputError(f"{what}: needs {need!r}; KRAFT, OTHER_REPLICA and OTHER_BROKER are known")
    for role in kind.roles:
        if not isinstance(role, Role):
            raise InputError(f"{what}: roles: {role!r}: a Role is needed")


def _check_targets(what: str, kind: FaultKind, targets: Targets) -> None:
    _check_types(f"{what}: targets", targets)
    if type(kind).targets_of is FaultKind.targets_of:
        for name, allowed in _NAMING.items():
            given = targets.params.get(name)
            if isinstance(given, Param) and given.kind in PARAM_KINDS and given.kind not in allowed:
                words = " or ".join(allowed)
                raise InputError(f"{what}: targets: {name} is Param({given.kind!r}); use {words}, or define targets_of")


def _check_amount(what: str, kind: FaultKind, amount: Amount) -> None:
    what = f"{what}: amount"
    _check_types(what, amount)
    _check_param(f"{what}: Param", amount.given)
    bounds, given = amount.bounds, amount.given.kind
    if isinstance(bounds, str):
        if bounds not in _AMOUNTS:
            raise InputError(f"{what}: bounds = {bounds!r} is no bound of faults{did_you_mean(bounds, _AMOUNTS)}")
    elif len(bounds) != 2 or not all(type(bound) is int for bound in bounds) or bounds[0] > bounds[1]:
        raise InputError(f"{what}: bounds = {bounds!r}: two ints are needed, the smaller one first")
    if amount.scale < 1:
        raise InputError(f"{what}: scale = {amount.scale!r}: an int from 1 on is needed")
    if given not in _NUMBERS and type(kind).value_of is FaultKind.value_of:
        known = ", ".join(_NUMBERS)
        raise InputError(f"{what}: Param({given!r}) is no number; use one of: {known}; or define value_of")


def params(what: str, given: Mapping[str, Param]) -> None:
    """Check the parameters of script lines of a new kind of fault."""
    for name, param in given.items():
        if not isinstance(name, str) or not _PARAM.fullmatch(name) or name in RESERVED:
            reserved = ", ".join(RESERVED[:5])
            raise InputError(
                f"{what}: {name!r} cannot be the name of a parameter: [a-z][a-z0-9_]*, and none of {reserved}, or of "
                "pydantic's methods"
            )
        if not isinstance(param, Param):
            raise InputError(f"{what}: parameter {name}: {param!r}: a Param is needed, as in Param('broker')")
        _check_param(f"{what}: parameter {name}", param)


def _check_param(what: str, param: Param) -> None:
    _check_types(what, param)
    if param.kind not in PARAM_KINDS:
        raise InputError(f"{what}: no kind of parameter is {param.kind!r}{_nearest(param.kind)}")


def _nearest(kind: str) -> str:
    words = did_you_mean(kind, PARAM_KINDS)
    return words if words.startswith("; one of") else f"{words} One of: {', '.join(PARAM_KINDS)}"
