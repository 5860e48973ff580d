# SPDX-License-Identifier: Apache-2.0
"""Driver of one device with two modes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cyborg_lite.model.devices.modes import DeviceMode, OfferedInventory
from cyborg_lite.model.inventory.host_report import Device, DiscoveryResult
from tests.doubles.file_driver import FileDriver


class WithModes(FileDriver):
    """Driver whose mode is written in two steps."""

    def discover(self) -> Iterator[DiscoveryResult]:
        for result in super().discover():
            device = result.device
            assert device is not None
            traits = f'CUSTOM_MODE_{(self.host.text("mode") or "a").upper()}'
            root = replace(device.root, traits=('OWNER_CYBORG', traits))
            yield replace(result, device=replace(device, root=root))

    def modes(self, device: Device) -> Sequence[DeviceMode]:
        return [
            DeviceMode(
                name,
                (OfferedInventory('FPGA', 2, (f'CUSTOM_MODE_{name.upper()}',)),),
                self.has_mode(device, name),
            )
            for name in ('a', 'b')
        ]

    def has_mode(self, device: Device, mode: str) -> bool:
        return not self.host.has('open') and (self.host.text('mode') or 'a') == mode

    def declared_mode(self, device: Device) -> str | None:
        return None

    def set_mode(self, device: Device, mode: str) -> Device:
        for path, text in (('open', 'yes'), ('mode', mode), ('open', '')):
            self.host.kernel.write(self.host.root, path, text)
        (result,) = self.discover()
        assert result.device is not None
        return result.device
