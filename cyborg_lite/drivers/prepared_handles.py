# SPDX-License-Identifier: Apache-2.0
"""The record of the handles that the agent has prepared on the host.

Objects on the host that belong to no such handle are foreign: another program made
them, and drivers must not change them.
"""

import threading
from collections.abc import Iterable

from cyborg_lite.drivers.pci.functions import handle_address
from cyborg_lite.model.devices.devices import AllocatedHandle


class PreparedHandles:
    """Handles that are prepared or being prepared. Safe to use from any thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        # By uuid. Never changed in place: readers take no lock.
        self._handles: dict[str, AllocatedHandle] = {}

    def add(self, handles: Iterable[AllocatedHandle]) -> None:
        """Add handles; an added handle replaces the one of the same uuid."""
        with self._guard:
            self._handles = {
                **self._handles,
                **{handle.uuid: handle for handle in handles},
            }

    def remove(self, uuid: str) -> None:
        """Remove a handle. An unknown uuid is ignored."""
        with self._guard:
            self._handles = {
                key: handle for key, handle in self._handles.items() if key != uuid
            }

    def has_uuid(self, uuid: str) -> bool:
        """Return True if there is a handle of this uuid."""
        return uuid in self._handles

    def list_at(self, address: str) -> tuple[AllocatedHandle, ...]:
        """Return the handles whose info has this PCI address."""
        return tuple(
            handle
            for handle in self._handles.values()
            if handle_address(handle.info) == address
        )

    def list_placed(self, card: str) -> tuple[AllocatedHandle, ...]:
        """Return the handles with a place on an elastic card."""
        return tuple(
            handle
            for handle in self._handles.values()
            if handle.control_address == card and handle.place is not None
        )

    def has_any_on(self, card: str) -> bool:
        """Return True if a handle belongs to the card with this control address."""
        return any(handle.control_address == card for handle in self._handles.values())
