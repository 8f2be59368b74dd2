"""Policies: rules in a TOML file, checked before any data is read."""

import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from crossfusion._base import (
    FileError,
    InputError,
    arg,
    as_names,
    check_known,
    check_level,
    check_option,
    check_positive,
    check_seed,
    check_whole,
)
from crossfusion.fusion import WEIGHTS, check_min_units
from crossfusion.gates.rule import ENDS, Rule
from crossfusion.inference import ADJUSTMENTS

COMPARISON = ("between", "given", "units", "seed")
SETTINGS = {  # the limit of a rule, and the keys that may go with it
    "max": (*COMPARISON, "on", "level", "weights", "each_pair", "min_units", "incomparable"),
    "min": (*COMPARISON, "on", "level", "weights", "each_pair", "min_units", "incomparable"),
    "fused_within": (*COMPARISON, "alpha", "weights", "each_pair", "min_units", "incomparable"),
    "max_separability": (*COMPARISON, "on", "level", "each_pair", "min_units", "incomparable"),
    "drift": ("given", "reference", "alarm", "adjust", "window", "step", "latest", "incomparable", "seed", "weights"),
}
INCOMPARABLE = ("error", "ignore")
ALARM = 0.01  # false-alarm rate of a drift rule that names none
HEADING = re.compile(r"^\s*\[\[\s*rule\s*\]\]", re.MULTILINE)


@dataclass(frozen=True)
class Policy:
    """The rules of a file, and its name."""

    name: str
    rules: tuple[Rule, ...]


def read_policy(policy: Any) -> Policy:
    """Read a policy from a TOML file, or from a mapping of the same form."""
    if isinstance(policy, Mapping):
        return Policy("policy", _make_rules(policy, "the policy", []))
    if not isinstance(policy, str | os.PathLike):
        raise InputError("policy", policy, "must be a TOML file, or a mapping of the same form")
    name = os.fspath(policy)
    text = _read_text(name)
    try:
        entries = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise FileError(name, f"is not valid TOML ({problem})", "fix that line") from problem
    lines = [text.count("\n", 0, match.end()) + 1 for match in HEADING.finditer(text)]
    return Policy(name, _make_rules(entries, name, lines))


def _read_text(name: str) -> str:
    if not Path(name).is_file():
        found = "is not a plain file" if Path(name).exists() else "does not exist"
        raise FileError(name, found, "name the TOML file of the policy first, then the data")
    try:
        return Path(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise FileError(name, f"cannot be read as text ({problem})", "save it as UTF-8") from problem


def _make_rules(entries: Mapping[str, Any], holder: str, lines: Sequence[int]) -> tuple[Rule, ...]:
    known = sorted({key for keys in SETTINGS.values() for key in keys})
    stray = [key for key in entries if key in ("name", *SETTINGS, *known)]
    if stray:
        raise InputError(
            problem=f"{holder} has {stray[0]!r} outside of a rule",
            remedy="put it below [[rule]], or below [defaults] for all rules",
        )
    check_known(entries, ("rule", "defaults"), "key", holder)
    tables, defaults = entries.get("rule", []), entries.get("defaults", {})
    if not isinstance(tables, Sequence) or not all(isinstance(table, Mapping) for table in tables):
        raise InputError(problem=f"rule in {holder} is not a list of tables", remedy="begin each rule with [[rule]]")
    if not isinstance(defaults, Mapping):
        raise InputError(problem=f"defaults in {holder} is not a table", remedy="write [defaults]")
    if not tables:
        raise InputError(
            problem=f"{holder} has no rules", remedy="add one: [[rule]] with between = 'scanner' and max = 0.02"
        )
    check_known(defaults, known, "key", f"[defaults] of {holder}")
    places = lines if len(lines) == len(tables) else [None] * len(tables)
    rules = [
        _make_rule(table, defaults, f"rule {number} of {holder}", line)
        for number, (table, line) in enumerate(zip(tables, places, strict=True), 1)
    ]
    names = [rule.name for rule in rules]
    for name in names:
        if names.count(name) > 1:
            raise InputError(problem=f"{holder} has two rules called {name!r}", remedy="give each rule a name")
    return tuple(rules)


def _make_rule(table: Mapping[str, Any], defaults: Mapping[str, Any], holder: str, line: int | None) -> Rule:
    if isinstance(table.get("name"), str):
        holder = f"{holder} ({table['name']!r})"
    every = sorted({"name", *SETTINGS, *(key for keys in SETTINGS.values() for key in keys)})
    check_known(table, every, "key", holder)
    kind = _find_kind(table, holder)
    for key in table:
        if key not in ("name", kind, *SETTINGS[kind]):
            raise InputError(problem=f"{holder} has {key}, which does not apply to {kind}", remedy="leave it out")
    settings = {key: value for key, value in defaults.items() if key in SETTINGS[kind]} | dict(table)
    try:
        return make_rule(kind, settings, line)
    except InputError as problem:
        raise InputError(problem=f"{holder}: {problem.marked}") from problem


def _find_kind(table: Mapping[str, Any], holder: str) -> str:
    """Find the limit of a rule, of which it has one."""
    found = [kind for kind in SETTINGS if kind in table]
    if len(found) != 1:
        problem = f"has both {found[0]} and {found[1]}" if found else "has no limit"
        raise InputError(problem=f"{holder} {problem}", remedy=f"give it one of {', '.join(SETTINGS)}")
    return found[0]


def make_rule(kind: str, settings: dict[str, Any], line: int | None = None) -> Rule:
    """Make a rule with this kind of limit of the values of its keys."""
    settings = dict(settings)
    for key, value in settings.items():
        CHECKS[key](value, key)
    limit, name = settings.pop(kind), settings.pop("name", None)
    if kind == "drift":
        if "reference" not in settings:
            raise InputError("reference", problem="is missing", remedy="name the periods, such as 'first:8'")
        settings["between"], limit = limit, settings.pop("alarm", ALARM)
    if "between" not in settings:
        raise InputError("between", problem="is missing", remedy="name the column of the groups")
    for key in ("between", "given", "units"):
        settings[key] = as_names(settings.get(key), key, "column", needed=key == "between")
    _check_columns(settings)
    rule = Rule("", kind, float(limit), line=line, **settings)
    return Rule(**(vars(rule) | {"name": name or f"{rule.question}: {rule.requirement}"}))


def _check_columns(settings: Mapping[str, Any]) -> None:
    """Refuse a column that is named for two purposes."""
    for name in settings["between"]:
        for key in ("given", "units"):
            if name in settings[key]:
                raise InputError(key, problem=f"names {name!r}, which is compared itself", remedy="leave it out there")
    if set(settings["given"]) & set(settings["units"]):
        raise InputError(
            problem=f"{arg('given')} and {arg('units')} name the same column", remedy="name different columns"
        )


def _check_limit(value: Any, key: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not (value >= 0 and isfinite(value)):
        raise InputError(key, value, "must be a finite number, 0 or more")


def _check_share(value: Any, key: str) -> None:
    _check_limit(value, key)
    if not 0 < value <= 1:
        raise InputError(key, value, "must be a balanced accuracy, above 0 and at most 1, such as 0.7")


def _check_alpha(value: Any, key: str) -> None:
    _check_limit(value, key)
    if not 0 < value <= 0.25:
        raise InputError(key, value, "must be above 0 and at most 0.25, such as 0.05")


def _check_text(value: Any, key: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise InputError(key, value, "must be text that is not empty")


def _check_flag(value: Any, key: str) -> None:
    if not isinstance(value, bool):
        raise InputError(key, value, "must be true or false")


def _check_alarm(value: Any, key: str) -> None:
    _check_limit(value, key)
    if not 1e-6 <= value <= 0.5:
        raise InputError(key, value, "must be a rate of false alarms from 0.000001 to 0.5, such as 0.01")


def _check_names(value: Any, key: str) -> None:
    as_names(value if isinstance(value, list | tuple) else [value], key, "column")  # [] undoes a default


def _check_reference(value: Any, key: str) -> None:
    if not isinstance(value, str | list) or not value:
        raise InputError(key, value, "must be text such as 'first:8' or 'previous', or a list of periods")


CHECKS: dict[str, Callable[[Any, str], None]] = {
    "name": _check_text,
    "between": _check_names,
    "given": _check_names,
    "units": _check_names,
    "max": _check_limit,
    "min": _check_limit,
    "fused_within": check_positive,
    "max_separability": _check_share,
    "drift": _check_text,
    "on": lambda value, key: check_option(value, ENDS, key),
    "level": lambda value, _: check_level(value, needed=True),
    "alpha": _check_alpha,
    "weights": lambda value, key: check_option(value, WEIGHTS, key),
    "each_pair": _check_flag,
    "min_units": lambda value, _: check_min_units(value),
    "incomparable": lambda value, key: check_option(value, INCOMPARABLE, key),
    "seed": lambda value, _: check_seed(value),
    "reference": _check_reference,
    "alarm": _check_alarm,
    "adjust": lambda value, key: check_option(value, ADJUSTMENTS, key),
    "window": check_whole,
    "step": check_whole,
    "latest": _check_flag,
}
