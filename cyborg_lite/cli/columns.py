# SPDX-License-Identifier: Apache-2.0
"""Columns of the output: text for people, the values of the API for ``-f json``."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cliff.columns import FormattableColumn

Names = Mapping[str, str]
"""Heading of each column by the name of its field in the API."""


class Lines(FormattableColumn[list[Any]]):
    """A list with one element per line."""

    def human_readable(self) -> str:
        return '\n'.join(str(element) for element in self._value)


class Pairs(FormattableColumn[dict[str, Any]]):
    """An object as ``key=value``, one pair per line."""

    def human_readable(self) -> str:
        return '\n'.join(f'{key}={value}' for key, value in self._value.items())


class Groups(FormattableColumn[list[dict[str, str]]]):
    """Groups of a device profile, one per line."""

    def human_readable(self) -> str:
        return '\n'.join(
            ', '.join(f'{key}={value}' for key, value in group.items())
            for group in self._value
        )


def format_value(value: Any) -> Any:
    """Return a value of the API as a column."""
    if isinstance(value, dict):
        return Pairs(value)
    if isinstance(value, list):
        return Lines(value)
    return value


def build_rows(
    names: Names, records: Iterable[Mapping[str, Any]]
) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
    """Return the headings and the rows of a list."""
    rows = [
        tuple(format_value(record.get(name)) for name in names) for record in records
    ]
    return tuple(names.values()), rows


def build_fields(
    record: Mapping[str, Any], formats: Mapping[str, type[Any]] | None = None
) -> tuple[Sequence[str], Sequence[Any]]:
    """Return the names and the values of one object, without its links.

    :param formats: class of a column by the name of a field; other fields have the
        class of their type
    """
    classes = formats or {}
    fields = {name: value for name, value in record.items() if name != 'links'}
    values = [
        classes[name](value) if name in classes else format_value(value)
        for name, value in fields.items()
    ]
    return tuple(fields), values
