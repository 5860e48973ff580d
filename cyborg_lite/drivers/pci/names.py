# SPDX-License-Identifier: Apache-2.0
"""Names of PCI vendors and devices, from the database ``pci.ids`` of this system."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

_TABLES: Final = tomllib.loads(
    (resources.files(__package__) / 'names.toml').read_text(encoding='utf-8')
)
# Of common vendors: in traits, and without a database.
VENDOR_NAMES: Final[Mapping[str, str]] = _TABLES['vendors']
# Functions that no guest may have, by both ids.
STAYING: Final[Mapping[str, str]] = _TABLES['staying']

# The packages pci.ids (Debian), hwdata (Fedora, RHEL, SUSE) and pciutils install it.
PATHS: Final = (
    Path('/usr/share/misc/pci.ids'),
    Path('/usr/share/hwdata/pci.ids'),
    Path('/usr/share/pci.ids'),
)

_LINE: Final = re.compile(r'(\t?)([0-9a-f]{4})  (.+)')
_MAX_BYTES: Final = 16 * 2**20  # the database has 1.5 MB


@dataclass(frozen=True, slots=True)
class PciNames:
    """The names of PCI ids. Without a database it has the names of common vendors."""

    # The key is ``vendor`` or ``vendor:device``, of 4 hex digits each.
    names: Mapping[str, str]

    def describe(self, ids: str) -> str | None:
        """Return the name of vendor and device, or None if the vendor is unknown.

        :param ids: ``vendor:device`` or ``vendor``, of 4 hex digits each; other text
            has no name
        """
        vendor_id, separator, _ = ids.partition(':')
        vendor = self.names.get(vendor_id)
        device = self.names.get(ids) if separator else None
        return f'{vendor} {device}' if vendor and device else vendor


def load_names(paths: Iterable[Path] = PATHS) -> PciNames:
    """Return the names in the first database that can be read."""
    names: dict[str, str] = dict(VENDOR_NAMES)
    for path in paths:
        try:
            with path.open(encoding='utf-8', errors='replace') as stream:
                names.update(_parse(stream.read(_MAX_BYTES).splitlines()))
        except OSError:
            continue
        break
    return PciNames(names)


def _parse(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield ids and names. The format is that of pci.ids(5).

    A line of a vendor has no tab, a line of a device one, a line of a subsystem two.
    Device classes follow the vendors and start with ``C``.
    """
    vendor = ''
    for line in lines:
        if line.startswith('C '):
            return
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        tab, number, name = match.groups()
        if tab:
            yield f'{vendor}:{number}', name
        else:
            vendor = number
            yield vendor, name
