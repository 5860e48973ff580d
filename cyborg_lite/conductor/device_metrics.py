# SPDX-License-Identifier: Apache-2.0
"""Health and telemetry of the devices, as Prometheus metrics.

The values are read from the database at each scrape, so all conductors serve the same.
"""

from collections import Counter
from collections.abc import Iterable

from oslo_log import log
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from cyborg_lite.db import cleanings, devices
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.devices import DeviceRecord
from cyborg_lite.model.queries import Query
from cyborg_lite.model.usage import Usage, telemetry_values

LOG = log.getLogger(__name__)


class DeviceCollector(Collector):
    """Health and telemetry of each device. Unknown values are omitted."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Return the metrics without samples.

        Registration calls this method. It must not open the database.
        """
        return _create_families()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Return the metrics, or nothing if the database does not answer."""
        health_family, usage_family, error_family, *more_families = _create_families()
        lost_family, unclean_family = more_families
        try:
            records = self._database.read(devices.list_devices, Query())
            lost = self._database.read(devices.count_lost_arqs)
            unclean = self._database.read(cleanings.list_unclean_units)
        except CyborgError as error:
            # The other metrics matter most while the database is unreachable.
            LOG.error('Device metrics omitted from a scrape: %s', error.text)
            return ()
        for device in records:
            labels = _device_labels(device)
            health_family.add_metric([*labels, device.health.value], 1)
            usage = device.usage or Usage()
            for name, value in telemetry_values(usage).items():
                usage_family.add_metric([*labels, name], value)
            for kind, count in usage.counters.items():
                error_family.add_metric([*labels, kind], count)
        for hostname, number in lost.items():
            lost_family.add_metric([hostname], number)
        backlog = Counter((unit.hostname, unit.state.value) for unit in unclean)
        for place, number in backlog.items():
            unclean_family.add_metric(list(place), number)
        return health_family, usage_family, error_family, lost_family, unclean_family


def _device_labels(device: DeviceRecord) -> tuple[str, str, str]:
    return device.hostname, device.uuid, device.model


def _create_families() -> tuple[GaugeMetricFamily, ...]:
    device_labels = ('hostname', 'device', 'model')
    return (
        GaugeMetricFamily(
            'cyborg_lite_device_health',
            'Current health of the device, as a label; the value is always 1.',
            labels=[*device_labels, 'health'],
        ),
        GaugeMetricFamily(
            'cyborg_lite_device_usage',
            'Last measurement in bytes, percent, degrees Celsius, watts or vGPUs.',
            labels=[*device_labels, 'figure'],
        ),
        GaugeMetricFamily(
            'cyborg_lite_device_errors',
            'Errors since the last reboot of the host.',
            labels=[*device_labels, 'kind'],
        ),
        GaugeMetricFamily(
            'cyborg_lite_lost_arqs',
            'Bound ARQs whose device is gone, failed or missing.',
            labels=['hostname'],
        ),
        GaugeMetricFamily(
            'cyborg_lite_unclean_units',
            'Units that are withheld until they are clean.',
            labels=['hostname', 'state'],
        ),
    )
