"""Loads plug-ins: rule values, rules, modes, kinds of fault, checkers, probes and scenarios from outside the package.

A plug-in is a Python file that --plugin names, or a module: one that --plugin names, or that an installed package has
under the entry point group `GROUP`. Worker processes load the same ones: they get the content of a file, and import a
module, whose hash has to be the same.
"""

from __future__ import annotations

import ast
import linecache
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import SourceLoader
from importlib.util import find_spec, module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from faults.kind import LINK, FaultKind
from faults.kinds import registry as faults
from scenarios import paths, plugged
from scenarios.format import catalogue
from scenarios.format import plugin_border as border
from scenarios.format import plugin_checks as checks
from scenarios.format.actions import ACTIONS, Action
from scenarios.format.plugin import API_VERSION, Plugin, Rule, RuleValue, StepProbe
from scenarios.plugged import GROUP, LOADED, Loaded
from sim.checkers import registry as checkers
from sim.checkers.checker import PROMISED, Checker, Finding
from sim.errors import InputError, UserError, did_you_mean, text_of
from sim.history import step_probes, steps
from sim.protocol import decisions, probes
from sim.protocol.decision_points import POINTS
from sim.protocol.modes import MODES
from sim.protocol.probes import PROBES, Probe
from sim.protocol.rules import ADDED_RULES, ADDED_VALUES, RULES, AddedValue, Rules, RuleSpec

DECLARATIONS: Final = "PLUGIN"
VERSION: Final = "API_VERSION"
_WORD: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}")
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_PREFIX: Final = "highwater_plugin_"
"""Of the names under which files are imported, so that they hide no other module."""


def load(word: str) -> None:
    """Load a plug-in by the path of its file, or by the name of its module; a no-op if it is loaded already.

    Raises:
        InputError: it cannot be imported, is of another version of the interface, or declares something wrong.
        StorageError: its file exists and cannot be read.
    """
    _load(_found(word, word))


def load_installed() -> None:
    """Load all plug-ins that installed packages have as entry points; raises InputError as `load`."""
    if not plugged.are_installed():
        return
    from importlib.metadata import entry_points  # Slower than all the rest here.

    for point in sorted(entry_points(group=GROUP), key=lambda one: one.value):
        if point.module not in LOADED:
            _load(_of_module(point.module, "", f"entry point {point.name} of {GROUP}"))


def ensure(wanted: Sequence[Mapping[str, Any]]) -> None:
    """Load exactly these plug-ins (`scenarios.plugged.shipped`), as a worker process does; unload others.

    Raises:
        InputError: one cannot be imported, or has another hash here.
    """
    if [(plugin.name, plugin.hash) for plugin in LOADED.values()] == [(one["name"], one["hash"]) for one in wanted]:
        return
    unload()
    for one in wanted:
        sources = dict(one["sources"])
        if one["shipped"]:
            _load(Loaded(one["name"], one["word"], one["hash"], sources, shipped=True))
            continue
        found = _of_module(one["name"], one["word"], f"plug-in {one['name']}")
        if found.hash != one["hash"]:
            raise InputError(f"plug-in {one['name']} has other code here ({found.hash}) than there ({one['hash']})")
        _load(found)


@contextmanager
def loaded(*words: str) -> Iterator[None]:
    """Load some plug-ins for a while."""
    before = plugged.shipped()
    try:
        for word in words:
            load(word)
        yield
    finally:
        ensure(before)


# Finding the code.


def _found(word: str, said: str) -> Loaded:
    said = f"--plugin {said}"
    if not (word.endswith(".py") or paths.is_path(word)):
        return _of_module(word, word, said)
    path = Path(word)
    try:
        text = paths.read(path, paths.SCENARIO_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{said}: not UTF-8 text") from None
    except UserError as error:
        raise type(error)(*(f"{said}: {problem}" for problem in error.problems)) from None
    sources = {str(path.resolve()): text}
    return Loaded(path.name.removesuffix(".py"), word, plugged.hash_of(sources), sources, shipped=True)


def _of_module(name: str, word: str, said: str) -> Loaded:
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None:
        raise InputError(f"{said}: there is no file and no module of this name")
    main = Path(spec.origin)
    files = [main] if spec.submodule_search_locations is None else sorted(main.parent.rglob("*"))
    try:
        sources = {str(file): file.read_text("utf-8") for file in files if file.suffix in (".py", ".toml")}
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{said}: its sources cannot be read: {error}") from None
    return Loaded(name, word, plugged.hash_of(sources), sources, shipped=False)


class _Text(SourceLoader):
    """Imports a module from its text; no byte code is kept."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._text = text

    def get_filename(self, fullname: str) -> str:  # noqa: ARG002
        return self._path

    def get_data(self, path: str | bytes) -> bytes:  # noqa: ARG002
        return self._text.encode()


def _imported(found: Loaded, said: str) -> ModuleType:
    """Import the plug-in; its text is looked at first, since code of another version of the interface may not import.

    Raises:
        InputError: it is of another version, or raises an exception.
    """
    try:
        spec = find_spec(found.name) if not found.shipped else None
        main = next(iter(found.sources)) if spec is None else str(spec.origin)
        _check_version(ast.parse(found.sources[main]), said)
        if spec is not None:
            _check_unchanged(found, said)
            return import_module(found.name)
        return _of_text(_PREFIX + re.sub(r"\W", "_", found.name), main, found.sources[main])
    except UserError:
        raise
    except SyntaxError as error:
        raise InputError(f"{said} does not import: line {error.lineno}: {error.msg}") from None
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | MemoryError):
            raise
        raise InputError(f"{said} does not import: {_told(error, found)}") from None


_IMPORTED: Final[dict[str, str]] = {}
"""Name of an imported module -> hash of its sources."""


def _check_unchanged(found: Loaded, said: str) -> None:
    if _IMPORTED.setdefault(found.name, found.hash) != found.hash:
        raise InputError(f"{said} has changed since this process imported it: start a new one")


def _of_text(name: str, file: str, text: str) -> ModuleType:
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file  # For tracebacks of worker processes.
    spec = spec_from_loader(name, _Text(file, text))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # Dataclasses look their module up.
    spec.loader.exec_module(module)
    return module


def _check_version(tree: ast.Module, said: str) -> None:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == VERSION for target in node.targets
        ):
            if not isinstance(node.value, ast.Constant) or node.value.value != API_VERSION:
                given = ast.unparse(node.value)
                raise InputError(
                    f"{said}: {VERSION} = {given}: it was written for another version of the plug-in interface; this "
                    f"highwater has {API_VERSION}"
                )
            return
    raise InputError(f"{said} does not say for which version it was written: {VERSION} = {API_VERSION} is missing")


def _told(error: BaseException, found: Loaded) -> str:
    """An exception in one line, with the plug-in's last line."""
    where = plugged.last_line(error, [found])
    text = f"{type(error).__name__}: {text_of(error)}"
    return f"{text} ({where})" if where else text


# Taking up the declarations.


def _load(found: Loaded) -> None:
    said = f"--plugin {found.word}" if found.word else f"plug-in {found.name}"
    there = LOADED.get(found.name)
    if there is not None:
        if there.hash != found.hash:
            raise InputError(f"{said}: another plug-in is called {found.name!r}")
        return
    plugged.watch(found.sources)
    declared = getattr(_imported(found, said), DECLARATIONS, None)
    if not isinstance(declared, Plugin):
        raise InputError(f"{said} has no declarations: {DECLARATIONS} = Plugin(...) is missing")
    if not any(getattr(declared, one) for one in declared.__dataclass_fields__):
        raise InputError(f"{said} has no declarations: {DECLARATIONS} is empty")
    before = _contents()
    try:
        _take_up(declared, found.name)
        _rebuild()
    except UserError as error:
        _restore(before)
        raise type(error)(*(f"{said}: {problem}" for problem in error.problems)) from None
    except BaseException as error:
        _restore(before)
        if isinstance(error, KeyboardInterrupt | MemoryError):
            raise
        raise InputError(f"{said}: {_told(error, found)}") from None
    LOADED[found.name] = found


def unload() -> None:
    """Unload all plug-ins."""
    if LOADED:
        _restore(_BUILT_IN)
        LOADED.clear()


def _take_up(declared: Plugin, name: str) -> None:
    for value in checks.each("rule_values", declared.rule_values, RuleValue):
        _add_value(value, name)
    for rule in checks.each("rules", declared.rules, Rule):
        _add_rule(rule, name)
    for text in checks.each("modes", declared.modes, str):
        _add_mode(text)
    for checker in checks.each("checkers", declared.checkers):
        _add_checker(checker, name)
    for fault in checks.each("faults", declared.faults):
        _add_fault(fault, name)
    for probe in checks.each("probes", declared.probes, StepProbe):
        _add_probe(probe, name)
    _rebuild()
    for text in checks.each("scenarios", declared.scenarios, str):
        _add_scenario(text, name)


def _add_value(new: RuleValue, plugin: str) -> None:
    checks.rule_value(new)
    if new.rule not in RULES:
        raise InputError(f"rule_values: unknown rule {new.rule!r}{did_you_mean(new.rule, RULES)}")
    spec = RULES[new.rule]
    if new.like not in spec.values:
        words = did_you_mean(str(new.like), spec.values)
        raise InputError(f"rule {new.rule}, value {new.value}: like = {new.like!r}: the rule has no such value{words}")
    if new.rule in ADDED_RULES or (new.rule, new.like) in ADDED_VALUES:
        raise InputError(f"rule {new.rule}, value {new.value}: like = {new.like!r} is a plug-in's; name Highwater's")
    _check_word(f"rule {new.rule}: value", new.value, spec.values)
    _check_decisions(f"rule {new.rule}, value {new.value}", new.decisions, new.rule)
    if not new.decisions:
        raise InputError(f"rule {new.rule}, value {new.value}: decisions is empty, so it would equal {new.like!r}")
    functions = border.decisions(new.rule, new.value, new.decisions, plugin)
    meaning = f"{spec.meaning.rstrip('.')}; {new.value}: {new.meaning}"
    source = f"{spec.source}; {new.source}" if new.source else spec.source
    RULES[new.rule] = RuleSpec(meaning, source, spec.where, (*spec.values, new.value))
    ADDED_VALUES[new.rule, new.value] = AddedValue(new.rule, new.value, new.like, functions)


def _add_rule(new: Rule, plugin: str) -> None:
    where = checks.rule(new)
    if new.name in RULES:
        raise InputError(f"rules: {new.name!r} is a rule already; choose another name")
    if not _NAME.fullmatch(new.name) or hasattr(Rules, new.name):
        raise InputError(f"rules: {new.name!r} cannot be the name of a rule: [a-z][a-z0-9_]*, and no word of Python's")
    values = tuple(new.values)
    if len(values) < 2 or new.values[values[0]]:
        raise InputError(f"rule {new.name}: two values are needed, of which the first has no functions")
    for place, (value, functions) in enumerate(new.values.items()):
        _check_word(f"rule {new.name}: value", value, values[:place])
        _check_decisions(f"rule {new.name}, value {value}", functions, "")
        if place:
            checked = border.decisions(new.name, value, functions, plugin)
            ADDED_VALUES[new.name, value] = AddedValue(new.name, value, values[0], checked)
    RULES[new.name] = RuleSpec(new.meaning, new.source, where, values)
    ADDED_RULES.add(new.name)


def _check_word(what: str, word: object, known: Iterable[str]) -> None:
    if not isinstance(word, str) or not _WORD.fullmatch(word):
        raise InputError(f"{what} {word!r} is no word of [a-z0-9.-]")
    if word in known:
        raise InputError(f"{what} {word!r} exists already; choose another name")


def _check_decisions(what: str, functions: Mapping[str, Any], rule: str) -> None:
    for name, function in functions.items():
        known = [point.name for point in POINTS.values() if not rule or rule in point.rules]
        if name not in POINTS:
            raise InputError(f"{what}: there is no decision {name!r}{did_you_mean(name, known or POINTS)}")
        if name not in known:
            others = ", ".join(POINTS[name].rules)
            raise InputError(f"{what}: decision {name!r} belongs to {others}; declare a rule of your own for it")
        if not callable(function):
            raise InputError(f"{what}: decision {name!r} is no function")
        checks.takes(f"{what}: decision {name!r}", function, "answer", "situation")


def _add_mode(text: str) -> None:
    from scenarios.format.mode_file import of_text  # Imports pydantic, which only this call needs.

    found = of_text(text)
    MODES[found.mode.name] = found.mode
    catalogue.ADDED_MODES[found.mode.name] = found


def _add_checker(new: object, plugin: str) -> None:
    if not isinstance(new, type) or not issubclass(new, Checker):
        raise InputError(f"checkers: {new!r} is no class derived from Checker")
    if not isinstance(new.FINDINGS, tuple) or not all(isinstance(one, Finding) for one in new.FINDINGS):
        raise InputError(f"checker {new.__name__}: FINDINGS is no tuple of Finding(...)")
    if not new.FINDINGS:
        raise InputError(f"checker {new.__name__} has no FINDINGS")
    for name in dir(new):
        if name.startswith(_HEARS) and not hasattr(steps.Listener, name):
            raise InputError(f"checker {new.__name__}: no step comes to {name}{_method_of(name)}")
    for finding in new.FINDINGS:
        if finding.promised not in PROMISED:
            words = did_you_mean(str(finding.promised), PROMISED)
            raise InputError(f"checker {new.__name__}: unknown promised word {finding.promised!r}{words}")
        _check_word(f"checker {new.__name__}: kind", finding.kind, checkers.FINDINGS)
        checkers.FINDINGS[finding.kind] = finding
    checkers.CHECKERS.append(border.checker(new, plugin))


def _method_of(name: str) -> str:
    """For a method that no step calls: the one that the step of its name calls, or the one with the nearest name."""
    kind = steps.BY_NAME.get(name.removeprefix(_HEARS).replace("_", "-"))
    if kind is not None:
        return f": {kind.name} comes to {kind.method}"
    methods = {one: {*one.split("_")[1:]} for one in dir(steps.Listener) if one.startswith(_HEARS)}
    words = {*name.split("_")[1:]}
    nearest = min(methods, key=lambda one: len(methods[one] ^ words))
    return f"; did you mean {nearest!r}?" if methods[nearest] & words else did_you_mean(name, methods)


_HEARS: Final = "on_"


def _add_fault(new: object, plugin: str) -> None:
    if not isinstance(new, type) or not issubclass(new, FaultKind):
        raise InputError(f"faults: {new!r} is no class derived from FaultKind")
    kind = new()
    for part in ("name", "meaning", "targets"):
        if not hasattr(kind, part):
            raise InputError(f"fault {new.__name__} has no {part}")
    _check_word("fault", kind.name, ACTIONS)
    checks.fault_kind(kind)
    if kind.duration is None and not kind.remains:
        raise InputError(f"fault {kind.name} has neither a duration nor remains, the state that it leaves")
    if kind.duration is not None and type(kind).undo is FaultKind.undo:
        raise InputError(f"fault {kind.name} has a duration, but no undo")
    if type(kind).strike is FaultKind.strike:
        raise InputError(f"fault {kind.name} has no strike")
    kind = border.fault_kind(new, plugin)()
    params = kind.params()
    checks.params(f"fault {kind.name}", params)
    faults.KINDS[kind.name] = kind
    faults.ADDED.add(kind.name)
    if kind.targets is LINK:
        faults.LINKS.append(kind.name)
    ACTIONS[kind.name] = Action(kind.meaning, params)


def _add_probe(new: StepProbe, plugin: str) -> None:
    _check_word("probe", new.name, [probe.name for probe in (*PROBES, *_ADDED_PROBES)])
    if new.step not in steps.BY_NAME:
        raise InputError(f"probe {new.name}: no step is called {new.step!r}{did_you_mean(new.step, steps.STEPS)}")
    if not callable(new.when):
        raise InputError(f"probe {new.name}: when = {new.when!r} is no function")
    checks.takes(f"probe {new.name}: when", new.when, "step")
    when = border.probe(new.name, new.when, plugin)
    _ADDED_PROBES.append(Probe(plugin, new.name, new.meaning))
    step_probes.ADDED.append(step_probes.Watched(new.name, steps.BY_NAME[new.step], when))


def _add_scenario(text: str, plugin: str) -> None:
    from scenarios.format.schema import read  # Imports pydantic, which only this call needs.

    name = read(text, f"a scenario of {plugin}").name
    if name in catalogue.names():
        raise InputError(f"scenarios: {name!r} is a scenario already; choose another name")
    catalogue.ADDED[name] = text


_ADDED_PROBES: Final[list[Probe]] = []
_TABLES: Final[tuple[Any, ...]] = (
    RULES,
    ADDED_RULES,
    ADDED_VALUES,
    MODES,
    checkers.CHECKERS,
    checkers.FINDINGS,
    faults.KINDS,
    faults.LINKS,
    faults.ADDED,
    ACTIONS,
    catalogue.ADDED,
    catalogue.ADDED_MODES,
    step_probes.ADDED,
    _ADDED_PROBES,
)
"""What plug-ins add to."""


def _contents() -> list[Any]:
    return [table.copy() for table in _TABLES]


def _restore(contents: Sequence[Any]) -> None:
    for table, content in zip(_TABLES, contents, strict=True):
        table.clear()
        if isinstance(table, list):
            table.extend(content)
        else:
            table.update(content)
    _rebuild()


def _rebuild() -> None:
    """Number rule values and probes anew."""
    decisions.rebuild()
    probes.rebuild(_ADDED_PROBES)
    step_probes.rebuild()


_BUILT_IN: Final = _contents()
