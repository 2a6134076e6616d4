"""The border between Highwater and plug-ins: each function of a plug-in is called through one that checks its result.

What a plug-in returns or reports is checked here and nowhere else. If it is wrong, the run ends with a `PluginError`
that names the function, what it returned and what is expected. Without this check a compiled build would raise a
TypeError in Highwater's own code.
"""

from __future__ import annotations

import inspect
import linecache
import types
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePath
from typing import Any, Final

from faults.kind import FaultKind, Param
from faults.kinds.registry import LINKS
from faults.plan import FOLLOWERS, Fault, Trigger
from scenarios.format.plugin_checks import KIND_ATTRIBUTES, takes
from sim.checkers.checker import Checker
from sim.errors import ALIKE, InputError, PluginError, is_text, nearest, text_of
from sim.history import steps
from sim.protocol import decision_points as points

_MOST: Final = 1 << 62
"""Bound of integers: compiled code packs them into 64 bits."""
_SHOWN: Final = 80
"""Most characters of a wrong value in a message."""
HIDDEN: Final = ("dispose", "_known")
"""Methods of `Checker` that are not part of the interface."""

Expects = Callable[[Any, tuple[Any, ...]], str]
"""Takes what a function returned and its arguments; returns what is expected instead, empty if nothing is wrong."""


def place_of(function: object) -> str:
    """Where a function of a plug-in begins, in the form of `scenarios.plugged.last_line`; empty for a built-in one."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, types.CodeType):
        return ""
    text = linecache.getline(code.co_filename, code.co_firstlineno).strip()
    return f"{PurePath(code.co_filename).name}:{code.co_firstlineno} in {code.co_name}: {text}"


def _place_of_class(kind: type, plugin: str) -> str:
    """Where a class of a plug-in begins, in the form of `place_of`."""
    try:
        lines, number = inspect.findsource(kind)
    except (OSError, TypeError):
        return f"{plugin}: {kind.__name__}"
    name = PurePath(inspect.getfile(kind)).name
    return f"{name}:{number + 1} in {kind.__name__}: {lines[number].strip()}"


def guarded(what: str, function: Callable[..., Any], expects: Expects | None, plugin: str) -> Callable[..., Any]:
    """A function that calls one of a plug-in and checks what it returns.

    Args:
        what: the plug-in's function, for messages.
        function: it.
        expects: tells what is expected; None: the result has no meaning, and becomes None, because compiled callers
            accept nothing else.
        plugin: name of the plug-in, for messages about functions that have no source.

    Raises:
        InputError: it is a generator or a coroutine, whose body would never run.
    """
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise InputError(f"{what} is a generator or a coroutine; a function that returns its result is needed")
    where = place_of(function) or f"{plugin}: {what}"

    def call(*given: Any, **named: Any) -> Any:
        try:
            found = function(*given, **named)
        except Exception as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                raise
            raise PluginError(f"{what}: {type(error).__name__}: {text_of(error)}", where) from error
        if expects is None:
            return None
        expected = expects(found, given)
        if expected:
            raise PluginError(f"{what} returned {_shown(found)}, where {expected} is expected", where)
        return found

    return call


def _shown(value: object) -> str:
    try:
        text = " ".join(repr(value).split())
    except Exception:  # Of a plug-in's class.
        return f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


# Types.


def _is_int(value: object) -> bool:
    return type(value) is int and -_MOST < value < _MOST


def _are_ints(value: object) -> bool:
    return type(value) is tuple and all(map(_is_int, value))


def _is_text(value: object) -> bool:
    return type(value) is str and is_text(value)


def _nothing(found: object, _: tuple[Any, ...]) -> str:
    return "" if found is None else "None"


def _bool(found: object, _: tuple[Any, ...]) -> str:
    return "" if found is True or found is False else "True or False"


def _int(found: object, _: tuple[Any, ...]) -> str:
    return "" if _is_int(found) else "an int of at most 62 bits"


def _ints(found: object, _: tuple[Any, ...]) -> str:
    return "" if _are_ints(found) else "a tuple of ints"


def _text(found: object, _: tuple[Any, ...]) -> str:
    return "" if _is_text(found) else "a string"


# Decisions.


def _truncation(found: Any, given: tuple[Any, ...]) -> str:
    answer, at = given
    most = max(at.leo, answer[0])
    right = type(found) is tuple and len(found) == 2 and _is_int(found[0]) and type(found[1]) is bool
    if right and (found == answer or at.log_start <= found[0] <= most):
        return ""
    return f"(an offset from the log start {at.log_start} to {most}, whether that completes truncation)"


def _high_watermark(found: Any, given: tuple[Any, ...]) -> str:
    right = _is_int(found) and found <= given[1].leo
    return "" if right else f"an offset up to the LEO {given[1].leo}"


def _replica_start(found: Any, given: tuple[Any, ...]) -> str:
    at = given[1]
    most = max(at.log_start, at.hw)
    right = _is_int(found) and at.log_start <= found <= most
    return "" if right else f"an offset from the log start {at.log_start} to {most}"


def _leader(found: Any, given: tuple[Any, ...]) -> str:
    answer, at = given
    right = _is_int(found) and (found in (0, answer) or found in at.candidates)
    return "" if right else f"0 or one of the candidates {list(at.candidates)}"


def _leaving(found: Any, given: tuple[Any, ...]) -> str:
    answer, at = given
    there = [follower.broker for follower in at.followers if follower.broker in at.isr]
    right = _are_ints(found) and (found == answer or (len(set(found)) == len(found) and set(found) <= set(there)))
    return "" if right else f"a tuple of distinct followers in the ISR, of {there},"


def _eligible(found: Any, given: tuple[Any, ...]) -> str:
    answer, at = given
    known = {*at.replicas, *at.isr, *at.isr_before, *at.elr_before, *answer}
    right = _are_ints(found) and len(set(found)) == len(found) and set(found) <= known
    return "" if right else f"a tuple of distinct brokers of {sorted(known)}"


DECISIONS: Final[Mapping[str, Expects]] = {
    points.TRUNCATION: _truncation,
    points.FETCHER_RESTART: _bool,
    points.EPOCH_RECORDED: _bool,
    points.ISR_JOIN: _bool,
    points.ISR_LEAVE: _leaving,
    points.ISR_ACCEPTED: _bool,
    points.HIGH_WATERMARK: _high_watermark,
    points.END_OFFSET_HIDDEN: _bool,
    points.REPLICA_START: _replica_start,
    points.LEADER: _leader,
    points.ELIGIBLE_REPLICAS: _eligible,
    points.LAST_KNOWN_REPLICAS: _eligible,
    points.REASSIGNMENT_COMPLETES: _bool,
}
"""Decision point -> what its functions may return."""


def decisions(rule: str, value: str, functions: Mapping[str, Any], plugin: str) -> dict[str, Any]:
    """The functions of a rule value, checked."""
    return {
        point: guarded(f"{point} of {rule}={value}", function, DECISIONS[point], plugin)
        for point, function in functions.items()
    }


def probe(name: str, when: Callable[..., Any], plugin: str) -> Callable[..., Any]:
    """The function of a probe, checked."""
    return guarded(f"probe {name}: when", when, _bool, plugin)


# Kinds of fault.


def _target(found: Any, given: tuple[Any, ...]) -> str:
    most = max(given[2].all_brokers)
    return "" if _is_int(found) and FOLLOWERS <= found <= most else f"a broker up to {most}, or a role"


def _drawn(found: Any, given: tuple[Any, ...]) -> str:
    kind, _, limits = given
    return _fault(found, kind, max(limits.all_brokers), limits.window_us[0])


def _scripted(found: Any, given: tuple[Any, ...]) -> str:
    kind, _, at_us = given
    return _fault(found, kind, _MOST, at_us)


def _fault(found: Any, kind: FaultKind, most: int, from_us: int) -> str:
    """What is expected in place of a drawn fault; from a broker's number on there are no brokers."""
    if not isinstance(found, Fault):
        return "a Fault"
    targets, delays_us, trigger = found.targets, found.delays_us, found.trigger
    if found.kind != kind.name:
        return f"a Fault of kind {kind.name!r}"
    if not _is_int(found.at_us) or found.at_us < from_us:
        return f"a Fault whose at_us is an int from {from_us} on"
    if not _are_ints(targets) or not all(FOLLOWERS <= target <= most for target in targets):
        return "a Fault whose targets are a tuple of brokers or roles"
    if FOLLOWERS in targets and (len(targets) > 1 or kind.name in LINKS):
        return "a Fault whose targets are brokers, or all followers"
    if not _is_int(found.lasts_us) or found.lasts_us < -1:
        return "a Fault whose lasts_us is an int from -1 on"
    if not _are_ints(delays_us) or min(delays_us, default=0) < 0:
        return "a Fault whose delays_us are a tuple of ints from 0 on"
    if type(found.both_ways) is not bool or not _is_int(found.value) or not _are_ints(found.replicas):
        return "a Fault whose both_ways is a bool, value an int, replicas a tuple of ints"
    if not _is_text(found.partition):
        return "a Fault whose partition is a string"
    if trigger is not None and (
        not isinstance(trigger, Trigger)
        or trigger.moment not in steps.MOMENTS
        or not all(map(_is_int, (trigger.occurrence, trigger.after_us, trigger.until_us, trigger.sequence)))
        or trigger.occurrence < 1
        or trigger.after_us < 0
    ):
        return "a Fault whose trigger is None, or waits for a moment"
    problem = kind.problem(targets, found.value)
    return f"another Fault ({problem})" if problem else ""


def _params(found: Any, _: tuple[Any, ...]) -> str:
    right = isinstance(found, dict) and all(type(name) is str and isinstance(one, Param) for name, one in found.items())
    return "" if right else "a dict of names and Param"


def _param(found: object, _: tuple[Any, ...]) -> str:
    return "" if _is_int(found) or _is_text(found) else "an int or a string"


KIND: Final[Mapping[str, Expects | None]] = {
    "strike": _bool,
    "undo": None,
    "is_possible": _bool,
    "draw": _drawn,
    "draw_target": _target,
    "draw_value": _int,
    "draw_lasts_us": _int,
    "params": _params,
    "scripted": _scripted,
    "targets_of": _ints,
    "value_of": _int,
    "param_of": _param,
    "problem": _text,
}
"""Method of `FaultKind` -> what it may return."""


def fault_kind(kind: type[FaultKind], plugin: str) -> Any:
    """A subclass of a plug-in's kind of fault whose methods are checked."""
    _check_names(f"fault {kind.name}", kind, FaultKind, ("name", *KIND_ATTRIBUTES))
    methods = {
        name: _method(f"fault {kind.name}: {name}", kind, FaultKind, name, expects, plugin)
        for name, expects in KIND.items()
        if getattr(kind, name) is not getattr(FaultKind, name)
    }
    return _derived(kind, methods)


def _check_names(what: str, kind: type, base: type, attributes: Iterable[str]) -> None:
    """Refuse members that resemble one of the interface, and would never be used; raises InputError."""
    interface = [*attributes, *(name for name in dir(base) if not name.startswith("_"))]
    for name in vars(kind):
        if name.startswith("_") or name in interface:
            continue
        if near := nearest(name, interface, ALIKE):
            raise InputError(
                f"{what}: {name} is not used; did you mean {near!r}? A name of your own begins with an underscore"
            )


def _method(what: str, kind: type, base: type, name: str, expects: Expects | None, plugin: str) -> Callable[..., Any]:
    """The method of a plug-in's class in place of that of `base`."""
    method = inspect.getattr_static(kind, name)
    if isinstance(method, staticmethod | classmethod) or not callable(method):
        raise InputError(f"{what} is no method: def {name}(self, ...) is needed")
    takes(what, method, *inspect.signature(getattr(base, name)).parameters)
    return guarded(what, method, expects, plugin)


def _derived(kind: type, methods: Mapping[str, Any]) -> Any:
    found = types.new_class(kind.__name__, (kind,), {}, lambda namespace: namespace.update(methods))
    found.__module__ = kind.__module__
    return found


# Checkers.


def checker(kind: type[Checker], plugin: str) -> Any:
    """A subclass of a plug-in's checker whose methods, and what these report, are checked."""
    name = kind.__name__
    for hidden in HIDDEN:
        if getattr(kind, hidden) is not getattr(Checker, hidden):
            raise InputError(f"checker {name}: {hidden} is not a method of the interface; choose another name")
    heard = [one for one in dir(steps.Listener) if one.startswith("on_")]
    own = [one for one in heard if getattr(kind, one) is not getattr(Checker, one)]
    _check_names(f"checker {name}", kind, Checker, ("decided",))
    methods = {one: _method(f"checker {name}: {one}", kind, Checker, one, None, plugin) for one in own}
    created, final = getattr(kind, "__init__"), kind.final  # noqa: B009 - of the class
    takes(f"checker {name}: __init__", created, "self", "history")
    takes(f"checker {name}: final", final, "self", "end")
    begin = guarded(f"checker {name}: __init__", created, _nothing, plugin)
    end = guarded(f"checker {name}: final", final, None, plugin)
    place = _place_of_class(kind, plugin)
    violates, warns = kind._violates, kind._warns  # noqa: SLF001 - part of the interface

    def __init__(self: Any, *given: Any) -> None:  # noqa: N807
        begin(self, *given)
        if not hasattr(self, "_findings"):
            raise PluginError(f"checker {name}: __init__ does not call super().__init__(*given)", place)

    def _final(self: Any, ended: Any) -> None:
        end(self, ended)
        if type(self.decided) is not bool:
            what = f"checker {name}: decided is {_shown(self.decided)}, where True or False is expected"
            raise PluginError(what, place)

    def _violates(self: Any, kind: Any, at_us: Any, detail: Any, ids: Any = ()) -> None:
        what = f"checker {name}: _violates"
        reported = _reported(what, kind, at_us, detail, ids)
        if any(one.kind == kind and one.is_warning for one in self.FINDINGS):
            raise PluginError(f"{what} gets kind = {kind!r}, which FINDINGS declares as an early warning", place)
        violates(self, kind, at_us, detail, reported)

    def _warns(self: Any, kind: Any, at_us: Any, detail: Any, ids: Any = (), weak: Any = ()) -> None:
        what = f"checker {name}: _warns"
        if not _are_ints(weak):
            raise PluginError(f"{what} gets weak = {_shown(weak)}, where a tuple of brokers is expected")
        if any(one.kind == kind and not one.is_warning for one in self.FINDINGS):
            raise PluginError(f"{what} gets kind = {kind!r}, which FINDINGS declares as a violation", place)
        warns(self, kind, at_us, detail, _reported(what, kind, at_us, detail, ids), weak)

    return _derived(kind, {**methods, "__init__": __init__, "final": _final, "_violates": _violates, "_warns": _warns})


def _reported(what: str, kind: Any, at_us: Any, detail: Any, ids: Any) -> frozenset[int]:
    """The ids of a finding; raises PluginError if a part of it is of another type."""
    if not _is_text(kind):
        raise PluginError(f"{what} gets kind = {_shown(kind)}, where a string is expected")
    if not _is_int(at_us) or at_us < 0:
        raise PluginError(f"{what} gets at_us = {_shown(at_us)}, where the time of a step is expected")
    if not _is_text(detail):
        raise PluginError(f"{what} gets detail = {_shown(detail)}, where a string is expected")
    try:
        found = list(ids)
    except TypeError:
        found = [ids]
    if not all(map(_is_int, found)) or isinstance(ids, str):
        raise PluginError(f"{what} gets ids = {_shown(ids)}, where ids of records are expected")
    return ids if isinstance(ids, frozenset) else frozenset(found)
