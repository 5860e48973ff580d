# SPDX-License-Identifier: Apache-2.0
"""Drivers that answer, fail, hang or prepare as the test configures."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

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


def discovery_result(
    address: str = '0000:01:00.0', driver: str = 'scripted', *, is_offered: bool = True
) -> DiscoveryResult:
    """Return the result for a PCI function; it has a device if it is offered."""
    name = f'compute-1_{address}'
    info = {'domain': '0000', 'bus': '01', 'device': '00', 'function': '0'}
    handle = AttachHandle(address, HandleType.PCI, info)
    root = Deployable(name, 'PGPU', ('CUSTOM_X',), total=1, handles=(handle,))
    device = Device('GPU', '10de', 'Card', 'NVIDIA', address, address, root)
    reason = 'whole card' if is_offered else 'no IOMMU group'
    return DiscoveryResult(
        address, '10de:1eb8', '030200', driver, reason, device if is_offered else None
    )


def handle(address: str = '0000:01:00.0', uuid: str = 'handle-1') -> AllocatedHandle:
    return AllocatedHandle(
        uuid=uuid,
        arq_uuid=f'arq-of-{uuid}',
        hostname='compute-1',
        deployable_name=f'compute-1_{address}',
        driver='NVIDIA',
        control_address=address,
        key=f'{address}/{uuid}',
        type='MDEV',
        needs_host=True,
    )


class ScriptedDriver:
    """Driver that returns the given results or raises; it prepares no handles."""

    NAME: ClassVar[str] = 'scripted'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = ()

    # Any: driver options have various types.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        self.results: Sequence[DiscoveryResult] = ()
        self.failure: BaseException | None = None
        self.scan_count = 0

    def discover(self) -> Iterator[DiscoveryResult]:
        self.scan_count += 1
        yield from self.results
        if self.failure is not None:
            raise self.failure


class HangingDriver(ScriptedDriver):
    """Driver whose scan blocks until the test releases it."""

    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        super().__init__(host, options)
        self.continue_scan = threading.Event()

    def discover(self) -> Iterator[DiscoveryResult]:
        self.scan_count += 1
        self.continue_scan.wait()
        yield from self.results


class PreparingDriver(ScriptedDriver):
    """Driver that records prepared handles and refuses the configured ones."""

    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        super().__init__(host, options)
        self.prepared: set[str] = set()  # uuids of handles
        self.refusals: dict[str, Exception] = {}  # by uuid; for prepare and release

    def prepare(self, handle: AllocatedHandle) -> None:
        self._refuse(handle)
        self.prepared.add(handle.uuid)

    def release(self, handle: AllocatedHandle) -> None:
        self._refuse(handle)
        self.prepared.discard(handle.uuid)

    def _refuse(self, handle: AllocatedHandle) -> None:
        refusal = self.refusals.get(handle.uuid)
        if refusal is not None:
            raise refusal


def refusal(reason: str = 'The card is busy.') -> DriverError:
    return DriverError(reason=reason)
