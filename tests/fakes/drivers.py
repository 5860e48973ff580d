# SPDX-License-Identifier: Apache-2.0
"""Drivers that do as they are told: answer, fail, hang, and prepare."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from oslo_config import cfg

from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.exceptions import DriverError
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.inventory import Deployable, Device, Finding, HandleType, Unit


def finding(
    address: str = '0000:01:00.0', driver: str = 'scripted', *, offered: bool = True
) -> Finding:
    """The verdict on a function, and the card it is if that is offered."""
    name = f'compute-1_{address}'
    info = {'domain': '0000', 'bus': '01', 'device': '00', 'function': '0'}
    unit = Unit(address, HandleType.PCI, info)
    root = Deployable(name, 'PGPU', ('CUSTOM_X',), total=1, units=(unit,))
    device = Device('GPU', '10de', 'Card', 'NVIDIA', address, address, root)
    reason = 'whole card' if offered else 'no IOMMU group'
    return Finding(
        address, '10de:1eb8', '030200', driver, reason, device if offered else None
    )


def handle(address: str = '0000:01:00.0', uuid: str = 'handle-1') -> HeldHandle:
    return HeldHandle(
        uuid=uuid,
        arq_uuid=f'arq-of-{uuid}',
        hostname='compute-1',
        deployable_name=f'compute-1_{address}',
        driver='NVIDIA',
        address=address,
        key=f'{address}/{uuid}',
        type='MDEV',
        needs_host=True,
    )


class ScriptedDriver:
    """Finds what it is given, or fails as it is told; handles need nothing."""

    NAME: ClassVar[str] = 'scripted'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = ()

    # Any: as the options of drivers are.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        self.findings: Sequence[Finding] = ()
        self.failure: BaseException | None = None
        self.looks = 0

    def discover(self) -> Iterator[Finding]:
        self.looks += 1
        yield from self.findings
        if self.failure is not None:
            raise self.failure


class HangingDriver(ScriptedDriver):
    """Does not return from a look until it is let go."""

    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        super().__init__(host, options)
        self.let_go = threading.Event()

    def discover(self) -> Iterator[Finding]:
        self.looks += 1
        self.let_go.wait()
        yield from self.findings


class PreparingDriver(ScriptedDriver):
    """Keeps the handles that it prepared, and refuses those that it is told to."""

    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        super().__init__(host, options)
        self.prepared: set[str] = set()  # uuids of handles
        self.refused: dict[str, Exception] = {}  # by uuid; in both directions

    def prepare(self, handle: HeldHandle) -> None:
        self._refuse(handle)
        self.prepared.add(handle.uuid)

    def release(self, handle: HeldHandle) -> None:
        self._refuse(handle)
        self.prepared.discard(handle.uuid)

    def _refuse(self, handle: HeldHandle) -> None:
        refusal = self.refused.get(handle.uuid)
        if refusal is not None:
            raise refusal


def refusal(reason: str = 'The card is busy.') -> DriverError:
    return DriverError(reason=reason)
