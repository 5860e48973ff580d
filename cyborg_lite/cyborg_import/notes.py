# SPDX-License-Identifier: Apache-2.0
"""Notes of an import, and how its converters read values of the source."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from cyborg_lite.cyborg_import.plan import ImportNote, NoteKind, Table

_HEX: Final = re.compile(r'(?:0x)?([0-9a-f]+)', re.IGNORECASE)
_ADDRESS_WIDTHS: Final = {'domain': 4, 'bus': 2, 'device': 2, 'function': 1}


@dataclass(frozen=True, slots=True)
class Notes:
    """Collects the notes of an import."""

    moment: datetime  # creation time of rows that have none
    items: list[ImportNote] = field(default_factory=list)

    def refuse(self, table: Table, uuid: str, reason: str) -> None:
        """Record that a row is not imported."""
        self.items.append(ImportNote(NoteKind.REFUSED, table, uuid, reason))

    def change(self, table: Table, uuid: str, reason: str) -> None:
        """Record that a row is imported with a difference."""
        self.items.append(ImportNote(NoteKind.CHANGED, table, uuid, reason))

    def date(self, created_at: datetime | None) -> datetime:
        """Return the creation time of a row; the source stores UTC without a zone."""
        return self.moment if created_at is None else created_at.replace(tzinfo=UTC)


def parse_object(text: str | None) -> dict[str, str]:
    """Return a JSON object with its values as strings; empty: it is no object."""
    try:
        value = json.loads(text or '')
    except ValueError:
        return {}
    if not isinstance(value, dict):
        return {}
    return {
        str(key): item if isinstance(item, str) else json.dumps(item)
        for key, item in value.items()
    }


def normalize_address(info: Mapping[str, str]) -> dict[str, str] | None:
    """Return the fields of a PCI address as sysfs writes them.

    :param info: the fields, with or without ``0x`` and leading zeros
    :returns: None if the fields are no PCI address
    """
    fields: dict[str, str] = {}
    for name, width in _ADDRESS_WIDTHS.items():
        match = _HEX.fullmatch(info.get(name, ''))
        if match is None:
            return None
        fields[name] = match[1].lower().lstrip('0').zfill(width)
    return fields


def format_address(fields: Mapping[str, str]) -> str:
    """Return the PCI address with the given fields."""
    return f'{fields["domain"]}:{fields["bus"]}:{fields["device"]}.{fields["function"]}'
