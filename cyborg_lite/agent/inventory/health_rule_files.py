# SPDX-License-Identifier: Apache-2.0
"""Reads the health rules: those of the package, then those of the operator."""

from collections.abc import Mapping
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml

from cyborg_lite import codec
from cyborg_lite.errors.daemons import ConfigurationError, MalformedData
from cyborg_lite.model.devices.health_rules import HealthRule, HealthRules, LinePattern

T = TypeVar('T', HealthRule, LinePattern)

SHIPPED: Final = 'health_rules.yaml'  # in this package
_SECTIONS: Final = ('rules', 'lines')

# Any, in this module: YAML values.
_Entries = dict[str, Any]  # entries of a section, by name


def load_rules(
    directory: Path | None = None,
    options: Mapping[str, Mapping[str, int]] | None = None,
) -> HealthRules:
    """Return the rules of a host.

    Each file changes fields of the rules before it, adds rules, or removes a rule by
    the value null.

    :param directory: files ``*.yaml`` of the operator, in order of their names; None,
        or a directory that does not exist: there are none
    :param options: fields from the configuration, by name of a shipped rule; the
        threshold 0 removes the rule
    :raises ConfigurationError: a file cannot be read, or a rule is invalid
    """
    text = (resources.files(__package__) / SHIPPED).read_text(encoding='utf-8')
    sections = _parse(SHIPPED, text)
    for name, values in (options or {}).items():
        sections['rules'][name] |= values
        if not values.get('threshold', 1):
            del sections['rules'][name]
    for path in sorted(directory.glob('*.yaml')) if directory else ():
        try:
            added = _parse(str(path), path.read_text(encoding='utf-8'))
        except (OSError, UnicodeDecodeError) as error:
            reason = f'Cannot read the health rules {path}: {error}.'
            raise ConfigurationError(reason=reason) from None
        for section in _SECTIONS:
            _merge(sections[section], added[section])
    for name, values in sections['rules'].items():
        values['name'] = name
    lines = _convert(LinePattern, sections['lines'])
    rules = HealthRules(_convert(HealthRule, sections['rules']), lines)
    for fault in rules.list_faults():
        raise ConfigurationError(reason=f'Health rules: {fault}')
    return rules


def _parse(name: str, text: str) -> dict[str, _Entries]:
    """Return the sections of a file.

    :raises ConfigurationError: it has another form
    """
    try:
        data = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        reason = f'{name} is no YAML: {" ".join(str(error).split())}'
        raise ConfigurationError(reason=reason) from None
    is_valid = isinstance(data, dict) and all(
        section in _SECTIONS
        and isinstance(entries, dict)
        and all(item is None or isinstance(item, dict) for item in entries.values())
        for section, entries in data.items()
    )
    if not is_valid:
        sections = ' and '.join(_SECTIONS)
        reason = f'{name} may only have the sections {sections} with named mappings.'
        raise ConfigurationError(reason=reason)
    return {section: data.get(section, {}) for section in _SECTIONS}


def _merge(entries: _Entries, changes: _Entries) -> None:
    for name, values in changes.items():
        if values is None:
            entries.pop(name, None)
        else:
            entries[name] = entries.get(name, {}) | values


def _convert(kind: type[T], entries: _Entries) -> dict[str, T]:
    """Return the entries of a section as data classes.

    :raises ConfigurationError: an entry has an unknown field, or an invalid value
    """
    field_names = {item.name for item in fields(kind)}
    converted = {}
    for name, values in entries.items():
        unknown = ', '.join(sorted(map(str, values.keys() - field_names)))
        if unknown:
            raise ConfigurationError(reason=f'Health rules, {name}: unknown {unknown}.')
        try:
            converted[str(name)] = codec.load(kind, values)
        except MalformedData as error:
            reason = f'Health rules, {name}: {error.text}'
            raise ConfigurationError(reason=reason) from None
    return converted
