# SPDX-License-Identifier: Apache-2.0
"""PCI functions that the operator offers together, such as both ports of a card."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from oslo_config import cfg, types

from cyborg_lite.drivers.host.sysfs import pci_address
from cyborg_lite.exceptions import ConfigurationError

GROUPS_OPTION: Final = cfg.ListOpt(
    'groups',
    default=[],
    item_type=types.String(regex=r'^[^+\s]+(\s*\+\s*[^+\s]+)+$'),
    help="""
PCI functions that an instance gets together or not at all, as
`address + address` entries. The first address is the one of a card of this
driver, under which the group is one device. The others are further cards of
this driver, or functions beside one of them such as the audio function of a
GPU. A device profile requests the number of functions, such as
resources:PGPU=2. Change it only while no instance uses one of the functions.
Example: 0000:3b:00.0 + 0000:3b:00.1.
""",
)


class FunctionGroups:
    """The groups of one driver."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        """Parse ``address + address`` entries.

        :raises ConfigurationError: a text has no address, or a function has two groups
        """
        self._groups: Mapping[str, Sequence[str]] = {}
        for text in texts:
            members = parse_group(text)
            repeated = [item for item in members if item in self._groups]
            if repeated or len(set(members)) < len(members):
                reason = f'"{text}" has a PCI function of another group, or one twice.'
                raise ConfigurationError(reason=reason)
            self._groups = {**self._groups, **dict.fromkeys(members, members)}

    def find(self, address: str) -> Sequence[str]:
        """Return the addresses of the group of a function; empty: it has none."""
        return self._groups.get(address, ())


def parse_group(text: str) -> tuple[str, ...]:
    """Return the addresses in a text such as ``3b:00.0 + 3b:00.1``.

    :raises ConfigurationError: one of them is no PCI address
    """
    members = []
    for member in text.split('+'):
        address = pci_address(member.strip().lower())
        if address is None:
            reason = f'{member.strip()} in "{text}" is not a PCI address.'
            raise ConfigurationError(reason=reason)
        members.append(address)
    return tuple(members)
