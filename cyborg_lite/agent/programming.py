# SPDX-License-Identifier: Apache-2.0
"""Loads bitstreams on this host: fetch, load, and tell what the card is then."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from oslo_log import log

from cyborg_lite.agent.discovery import Discovery
from cyborg_lite.agent.image_cache import ImageCache
from cyborg_lite.agent.loaded import LoadedRegions
from cyborg_lite.drivers.base import Programmable
from cyborg_lite.exceptions import (
    BitstreamRefused,
    DeviceGone,
    DriverError,
    LoadingFailed,
)
from cyborg_lite.model.bitstreams import LoadOrder
from cyborg_lite.model.inventory import Device, Finding

LOG = log.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stock:
    """What the agent keeps on disk for loading."""

    cache: ImageCache
    loaded: LoadedRegions


class Programming:
    """One load at a time on a card; cards do not wait for one another."""

    def __init__(
        self,
        discovery: Discovery,
        stock: Stock,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """:param changed: told after each load, whatever came of it"""
        self._changed = changed
        self._discovery = discovery
        self._cache = stock.cache
        self._loaded = stock.loaded
        self._guard = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        # By card: when the last load was ordered. A host that stood still may find
        # several orders at once, and those who gave the older ones stand by them no
        # more.
        self._ordered_at: dict[str, int] = {}

    def program(self, order: LoadOrder) -> Device:
        """The device as it is afterwards.

        :raises BitstreamRefused: nothing was touched
        :raises LoadingFailed: the region is closed until something is loaded into it
        :raises DriverError: it could not be loaded, and the region is as it was
        :raises ServiceUnavailable: Glance does not answer
        """
        driver = self._driver(order)
        name = f'{self._discovery.host.name}_{order.address}{order.part}'
        with (
            self._exclusive(order.address),
            self._cache.fetched(order.bitstream) as image,
        ):
            self._check_latest(order)
            try:
                device = driver.program(name, image, order.bitstream)
            except BitstreamRefused:
                self._cache.discard(order.bitstream)
                raise
            except LoadingFailed as error:
                self._loaded.failed(name, error.text)
                self._changed()
                raise
            if order.bitstream.is_shell:
                card = f'{self._discovery.host.name}_{order.address}'
                self._loaded.emptied(card)
            else:
                self._loaded.loaded(name, order.bitstream)
            self._discovery.learn(device)
        self._changed()
        LOG.info('Loaded image %s into %s.', order.bitstream.image_id, name)
        return self._amended(device)

    def _check_latest(self, order: LoadOrder) -> None:
        """:raises DriverError: a later order was carried out already"""
        latest = self._ordered_at.get(order.address, 0)
        if 0 < order.ordered_at < latest:
            reason = f'Something was loaded into {order.address} since it was ordered.'
            raise DriverError(reason=reason)
        self._ordered_at[order.address] = max(order.ordered_at, latest)

    def _driver(self, order: LoadOrder) -> Programmable:
        driver = self._discovery.driver_of(order.address)
        if driver is None:
            raise DeviceGone(address=order.address)
        if not isinstance(driver, Programmable):
            reason = f'Driver {driver.NAME} cannot load anything into {order.address}.'
            raise DriverError(reason=reason)
        return driver

    def _amended(self, device: Device) -> Device:
        bare = Finding(device.address, '', '', '', '', device)
        return self._loaded.amended(bare).device or device

    def _exclusive(self, address: str) -> AbstractContextManager[object]:
        with self._guard:
            return self._locks.setdefault(address, threading.Lock())
