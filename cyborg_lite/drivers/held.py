# SPDX-License-Identifier: Apache-2.0
"""What the agent itself has made on a host: all else that is there is a stranger's."""

import threading
from collections.abc import Iterable

from cyborg_lite.drivers.nvidia_carving import Vgpu
from cyborg_lite.drivers.pci import handle_address
from cyborg_lite.model.devices import HeldHandle


def unit_label(key: str) -> str:
    """The type that the key of a unit names; empty where the unit is a function."""
    return key.split('/')[1] if '/' in key else ''


class Held:
    """Handles that are prepared, or about to be. Threads look while others change."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._handles: dict[str, HeldHandle] = {}  # by uuid

    def add(self, handles: Iterable[HeldHandle]) -> None:
        with self._guard:
            self._handles = {
                **self._handles,
                **{handle.uuid: handle for handle in handles},
            }

    def remove(self, uuid: str) -> None:
        with self._guard:
            self._handles = {
                key: handle for key, handle in self._handles.items() if key != uuid
            }

    def has(self, vgpu: Vgpu) -> bool:
        """An mdev bears the uuid of its handle; a virtual function is named by it."""
        if vgpu.uuid is not None:
            return vgpu.uuid in self._handles
        held = self._handles.values()
        return any(handle_address(handle.info) == vgpu.address for handle in held)

    def label_of(self, vgpu: Vgpu) -> str | None:
        """What type it was made of, where it is no mdev; None: it is not ours."""
        for handle in self._handles.values():
            if handle_address(handle.info) == vgpu.address and unit_label(handle.key):
                return unit_label(handle.key)
        return None

    def any_of(self, card: str) -> bool:
        """Whether anything of a card is held, by the address that manages it."""
        return any(handle.address == card for handle in self._handles.values())
