# SPDX-License-Identifier: Apache-2.0
"""A driver whose cards are files of a folder, so that a test adds and removes cards.

Each file describes a card in JSON, for example ``{"address": "fa4f:01:00.0",
"units": 2, "resource_class": "PGPU"}``. ``serial`` is the address by default. Functions
of a card with ``"managed": false`` must keep their driver. ``memory_mib`` is a typed
attribute. The handles need their host.
The host refuses to prepare them while a file ``refuse`` exists in the folder. It takes
the seconds in the file ``delay`` to prepare or to refuse.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    Deployable,
    Device,
    DiscoveryResult,
    HandleType,
)
from cyborg_lite.model.inventory.typed_attributes import MEMORY, AttributeDeclaration

REFUSAL: Final = 'The card refuses to be prepared.'


class CardsDriver:
    """Cards with one deployable each."""

    NAME: ClassVar[str] = 'cards_driver'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        cfg.StrOpt('folder', default='/nowhere', help='Folder of the card files.'),
    )

    ATTRIBUTES: ClassVar[Sequence[AttributeDeclaration]] = (MEMORY,)

    # Any: options of drivers have any type.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        self._host = host
        self._folder = Path(options['folder'])

    def discover(self) -> Iterator[DiscoveryResult]:
        """Read one card per file."""
        for path in sorted(self._folder.glob('*.json')):
            yield self._build_result(json.loads(path.read_text()))

    # Any: JSON.
    def _build_result(self, card: dict[str, Any]) -> DiscoveryResult:
        address, units = card['address'], range(card['units'])
        managed = card.get('managed', True)
        memory = card.get('memory_mib')
        root = Deployable(
            name=f'{self._host.name}_{address}',
            resource_class=card['resource_class'],
            traits=('CUSTOM_CARDS', 'OWNER_CYBORG'),
            total=len(units),
            handles=tuple(_build_handle(address, n, managed) for n in units),
            typed_attributes=(MEMORY.of(memory),) if memory is not None else (),
        )
        device = Device(
            type='GPU',
            vendor='fa4f',
            model='Card',
            driver=self.NAME,
            control_address=address,
            hardware_id=card.get('serial', address),
            root=root,
        )
        return DiscoveryResult(
            address, 'fa4f:0001', '', self.NAME, 'described by a file', device
        )

    def prepare(self, handle: AllocatedHandle) -> None:
        """Prepare nothing.

        :raises DriverError: the folder holds a file ``refuse``
        """
        delay = self._folder / 'delay'
        if delay.exists():
            time.sleep(float(delay.read_text()))
        if (self._folder / 'refuse').exists():
            raise DriverError(reason=REFUSAL)

    def release(self, handle: AllocatedHandle) -> None:
        """Release nothing."""


def _build_handle(address: str, number: int, managed: bool) -> AttachHandle:
    domain, bus, slot = address.split(':')
    info = {'domain': domain, 'bus': bus, 'device': slot[:2], 'function': str(number)}
    key = f'{domain}:{bus}:{slot[:2]}.{number}'
    return AttachHandle(key, HandleType.PCI, info, needs_host=True, managed=managed)
