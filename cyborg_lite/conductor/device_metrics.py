# SPDX-License-Identifier: Apache-2.0
"""How the devices are doing, as Prometheus collects it.

It is read from the database whenever somebody asks, and each conductor shows the same.
"""

from collections.abc import Iterable

from oslo_log import log
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from cyborg_lite.db import devices
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.devices import DeviceRecord
from cyborg_lite.model.queries import Query
from cyborg_lite.model.usage import Usage, figures

LOG = log.getLogger(__name__)


class Devices(Collector):
    """Health and figures of each; a figure that is not known is left out."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """By names alone: registering must not open the database."""
        return _families()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        healths, measured, errors = _families()
        try:
            found = self._database.read(devices.listed, Query())
        except CyborgError as error:
            # The other figures are wanted all the more now.
            LOG.error('The metrics lack the devices: %s', error.text)
            return ()
        for device in found:
            healths.add_metric([*_names(device), device.health.value], 1)
            usage = device.usage or Usage()
            for name, value in figures(usage).items():
                measured.add_metric([*_names(device), name], value)
            for kind, count in usage.counters.items():
                errors.add_metric([*_names(device), kind], count)
        return healths, measured, errors


def _names(device: DeviceRecord) -> tuple[str, str, str]:
    return device.hostname, device.uuid, device.model


def _families() -> tuple[GaugeMetricFamily, ...]:
    of_device = ('hostname', 'device', 'model')
    return (
        GaugeMetricFamily(
            'cyborg_lite_device_health',
            'The health that each device has: always 1.',
            labels=[*of_device, 'health'],
        ),
        GaugeMetricFamily(
            'cyborg_lite_device_usage',
            'Bytes, percent, degrees Celsius, watts or vGPUs, as last measured.',
            labels=[*of_device, 'figure'],
        ),
        GaugeMetricFamily(
            'cyborg_lite_device_errors',
            'Errors since the host was booted.',
            labels=[*of_device, 'kind'],
        ),
    )
