# SPDX-License-Identifier: Apache-2.0
"""Downloads bitstreams and loads them into regions of devices on this host."""

from collections.abc import Callable
from dataclasses import dataclass

from oslo_log import log

from cyborg_lite.agent.bitstreams.image_cache import ImageCache
from cyborg_lite.agent.bitstreams.loaded_bitstreams import LoadedBitstreams
from cyborg_lite.agent.devices.device_locks import DeviceLocks
from cyborg_lite.agent.inventory.discovery import Discovery
from cyborg_lite.drivers.base import LoadsBitstreams
from cyborg_lite.errors.bitstreams import BitstreamRefused, LoadingFailed
from cyborg_lite.errors.drivers import DeviceGone, DriverError
from cyborg_lite.model.bitstreams.bitstreams import LoadOrder
from cyborg_lite.model.inventory.host_report import Device, DiscoveryResult
from cyborg_lite.rpc.dispatcher import serves_host
from cyborg_lite.rpc.interface import Agents

LOG = log.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BitstreamStore:
    """Downloaded images, and records of the bitstreams that regions contain."""

    cache: ImageCache
    loaded: LoadedBitstreams


class Programming:
    """Loads bitstreams, one at a time per device."""

    def __init__(
        self,
        discovery: Discovery,
        store: BitstreamStore | None,  # None: Glance is not configured
        locks: DeviceLocks,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        # Called after each load that may have changed a region.
        self._on_change = on_change
        self._discovery = discovery
        self._store = store
        self._locks = locks  # shared with all components that change devices

    @serves_host(Agents.program)
    def program(self, order: LoadOrder) -> Device:
        """Load a bitstream and return the changed device."""
        if self._store is None:
            reason = 'This host cannot load bitstreams: section [glance] is empty.'
            raise DriverError(reason=reason)
        cache, loaded = self._store.cache, self._store.loaded
        driver = self._find_driver(order)
        name = f'{self._discovery.host.name}_{order.address}{order.region_suffix}'
        with (
            self._locks.lock(order.address),
            cache.open_image(order.bitstream) as image,
        ):
            reason = f'A later bitstream was already loaded into {order.address}.'
            self._locks.check_latest(order, reason)
            try:
                device = driver.program(name, image, order.bitstream)
            except BitstreamRefused:
                cache.discard(order.bitstream)
                raise
            except LoadingFailed as error:
                loaded.record_failure(name, error.text)
                self._on_change()
                raise
            if order.bitstream.is_shell:
                card = f'{self._discovery.host.name}_{order.address}'
                loaded.remove_regions(card)
            else:
                loaded.record_loaded(name, order.bitstream)
            self._discovery.update_device(device)
        self._on_change()
        LOG.info('Loaded image %s into %s', order.bitstream.image_id, name)
        result = DiscoveryResult(device.control_address, '', '', '', '', device)
        return loaded.amend(result).device or device

    def _find_driver(self, order: LoadOrder) -> LoadsBitstreams:
        driver = self._discovery.find_driver(order.address)
        if driver is None:
            raise DeviceGone(address=order.address)
        if not isinstance(driver, LoadsBitstreams):
            reason = (
                f'Driver {driver.NAME} cannot load bitstreams into {order.address}.'
            )
            raise DriverError(reason=reason)
        return driver
