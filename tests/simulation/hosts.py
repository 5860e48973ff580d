# SPDX-License-Identifier: Apache-2.0
"""Cards of the simulated hosts, and the driver that prepares their attach handles.

A card remembers for which ARQ each handle is prepared, as a kernel does: the record
survives the agent, and is lost when the host boots. The last card is a drive: its
handles keep the data of an ARQ, until a cleaning run erases them.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.drivers import DeviceBusy, DriverError
from cyborg_lite.model.devices.cleaning import CleanStep
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    CleaningPolicy,
    Deployable,
    Device,
    DiscoveryResult,
    HandleType,
)
from tests.chaos.history.records import HostAction, HostStep
from tests.simulation import scheduler

CLASS: Final = 'VGPU'
HANDLES: Final = 2
"""Handles of a card."""
_VENDOR: Final = 'fa4f'


@dataclass
class Cards:
    """The cards of one host."""

    hostname: str
    addresses: Sequence[str]
    steps: list[HostStep]
    prepared: dict[str, str] = field(default_factory=dict)
    """ARQ by key of the handle."""
    slow: float = 0.0
    """Longest time of a preparation, in seconds."""
    least: float = 0.0
    """Shortest time of a preparation, in seconds."""
    failing: float = 0.0
    """Probability that a preparation fails at its end."""

    hanging: str = ''
    """Address of the card whose preparation never ends after a boot; empty: none."""
    booted_at: float = 0.0
    data: dict[str, str] = field(default_factory=dict)
    """ARQ whose data a handle of the drive keeps, by key of the handle."""
    violations: list[str] = field(default_factory=list)

    is_leaking: ClassVar[bool] = False
    """Released handles stay prepared."""
    is_forgetting: ClassVar[bool] = False
    """Cleaning runs erase nothing."""

    def is_drive(self, key: str) -> bool:
        """Check whether a handle is one of the drive."""
        return key.startswith(self.addresses[-1])

    def write(self, handle: AllocatedHandle) -> None:
        """Let the user of a handle write data."""
        if not self.is_drive(handle.key):
            return
        owner = self.data.setdefault(handle.key, handle.arq_uuid)
        if owner != handle.arq_uuid:
            self._complain(f'{handle.arq_uuid} gets the data of {owner}')

    def erase(self, handle: AllocatedHandle) -> None:
        """Erase the data of a handle, which nobody may use."""
        if handle.key in self.prepared:
            self._complain(f'{handle.key} of {self.prepared[handle.key]} is erased')
        if not self.is_forgetting:
            self.data.pop(handle.key, None)

    def _complain(self, text: str) -> None:
        now = scheduler.read_monotonic()
        self.violations.append(f'{now:.3f} {self.hostname}: {text}')

    def boot(self) -> None:
        """Lose all that was prepared."""
        self.prepared.clear()
        self.booted_at = time.monotonic()

    def record(self, action: HostAction, handle: AllocatedHandle) -> None:
        """Store a step of the history."""
        # The clock of the host may be wrong.
        now = scheduler.read_real_time()
        step = HostStep(now, self.hostname, handle.key, action, handle.arq_uuid)
        self.steps.append(step)


class CardDriver:
    """Driver of the cards of one host."""

    NAME: ClassVar[str] = 'simulated_driver'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = ()

    # Any: driver options have various types.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        self._host = host
        self._cards: Cards = options['cards']

    def discover(self) -> Iterator[DiscoveryResult]:
        """Return each card."""
        for address in self._cards.addresses:
            device = self._build_device(address)
            yield DiscoveryResult(
                address, f'{_VENDOR}:0001', '', self.NAME, 'simulated', device
            )

    def _build_device(self, address: str) -> Device:
        handles = tuple(
            AttachHandle(
                f'{address}/{number}',
                HandleType.MDEV,
                {'asked_type': 'sim-1', 'vgpu_mark': f'sim-1_{number}'},
                needs_host=True,
                cleaning=(
                    CleaningPolicy.AFTER_USE
                    if self._cards.is_drive(address)
                    else CleaningPolicy.NEVER
                ),
            )
            for number in range(HANDLES)
        )
        root = Deployable(
            name=f'{self._host.name}_{address}',
            resource_class=CLASS,
            traits=('CUSTOM_SIMULATED', 'OWNER_CYBORG'),
            total=HANDLES,
            handles=handles,
        )
        return Device(
            type='GPU',
            vendor=_VENDOR,
            model='Simulated',
            driver=self.NAME,
            control_address=address,
            hardware_id=address,
            root=root,
        )

    def prepare_device(self, device: Device) -> bool:
        """Hang while the card hangs."""
        while self._cards.hanging == device.control_address:
            time.sleep(1)
        return False

    def prepare(self, handle: AllocatedHandle) -> None:
        """Prepare a handle after a time; refuse one that another ARQ has.

        :raises DriverError: the card fails, or the handle is prepared for another ARQ
        """
        cards = self._cards
        owner = cards.prepared.get(handle.key, '')
        if owner == handle.arq_uuid:
            return
        self._work(cards.least)
        owner = cards.prepared.get(handle.key, handle.arq_uuid)
        if owner != handle.arq_uuid:
            cards.record(HostAction.REFUSE, handle)
            raise DriverError(reason=f'The handle is prepared for {owner}.')
        if happens(cards.failing):
            raise DriverError(reason='The card has failed.')
        cards.prepared[handle.key] = handle.arq_uuid
        cards.write(handle)
        cards.record(HostAction.PREPARE, handle)

    def release(self, handle: AllocatedHandle) -> None:
        """Undo ``prepare`` after a time."""
        cards = self._cards
        cards.record(HostAction.RELEASE, handle)
        if not cards.is_leaking:
            cards.prepared.pop(handle.key, None)
        self._work()

    def is_prepared(self, handle: AllocatedHandle) -> bool:
        """Check whether the handle is prepared for its ARQ."""
        return self._cards.prepared.get(handle.key) == handle.arq_uuid

    def list_clean_steps(self, handle: AllocatedHandle) -> Sequence[CleanStep]:
        """Return the only step.

        :raises DeviceBusy: the handle is prepared
        """
        if handle.key in self._cards.prepared:
            raise DeviceBusy(address=handle.key, reason='It is prepared.')
        return [CleanStep('erase', destroys='all data')]

    def run_clean_step(
        self, handle: AllocatedHandle, _name: str, _abort: threading.Event
    ) -> str:
        """Erase the data after a time."""
        self._work()
        self._cards.erase(handle)
        return ''

    def _work(self, least: float = 0.0) -> None:
        chance = scheduler.find_scheduler().current.random
        # Most operations are fast also on a slow card.
        longest = self._cards.slow if chance.random() < 0.5 else 0.01
        time.sleep(max(least, chance.random() * longest))


def happens(probability: float) -> bool:
    """Decide whether an event of a probability happens now."""
    return (
        probability > 0
        and scheduler.find_scheduler().current.random.random() < probability
    )
