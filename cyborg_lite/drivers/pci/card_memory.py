# SPDX-License-Identifier: Apache-2.0
"""Last readings of the cards of one driver, for cards that cannot be read any more."""

from collections.abc import Collection, Iterable
from typing import Final

from cyborg_lite.drivers.host.sysfs import PciFunction
from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.inventory.host_report import Device, DiscoveryResult
from cyborg_lite.model.inventory.typed_attributes import TypedAttribute

# Attributes that cannot be read while the card is suspended or in a guest.
_KEPT_NAMES: Final = frozenset(
    {
        typed_attributes.FIRMWARE.name,
        typed_attributes.LINK_SPEED.name,
        typed_attributes.MAX_POWER.name,
    }
)


class CardMemory:
    """Serial numbers, attributes and last results, by PCI address."""

    def __init__(self) -> None:
        self.serials: dict[tuple[str, str], str] = {}  # by address and ids
        self.results: dict[str, DiscoveryResult] = {}  # with a device
        self._attributes: dict[str, dict[str, TypedAttribute]] = {}  # then by name

    def restore(self, device: Device, driver: str) -> None:
        """Accept a device that an earlier agent process discovered.

        :param driver: name of the driver
        """
        address, board = device.control_address, device.std_board_info
        ids = f'{device.vendor}:{board.get("product_id", "")}'
        pci_class = board.get('class', '')
        result = DiscoveryResult(address, ids, pci_class, driver, '', device)
        self.results[address] = result
        for deployable in device.root.walk():
            self._keep_attributes(address, deployable.typed_attributes)

    def remove_absent(self, present: Collection[str]) -> None:
        """Remove all cards but those at the given addresses."""
        for address in self._attributes.keys() - present:
            del self._attributes[address]
        for address in self.results.keys() - present:
            del self.results[address]
        for address, ids in list(self.serials):
            if address not in present:
                del self.serials[address, ids]

    def keep_result(self, address: str, result: DiscoveryResult | None) -> None:
        """Record the result for a function; one without a device removes the last."""
        if result is not None and result.device is not None:
            self.results[address] = result
        else:
            self.results.pop(address, None)

    def complete_attributes(
        self, function: PciFunction, items: Iterable[TypedAttribute]
    ) -> list[TypedAttribute]:
        """Return the attributes of a card, some of them as last read, by name."""
        attributes = {item.name: item for item in items}
        self._keep_attributes(function.address, attributes.values())
        values = self._attributes.get(function.address, {})
        return [item for _, item in sorted((values | attributes).items())]

    def _keep_attributes(self, address: str, items: Iterable[TypedAttribute]) -> None:
        for item in items:
            if item.name in _KEPT_NAMES:
                self._attributes.setdefault(address, {})[item.name] = item
