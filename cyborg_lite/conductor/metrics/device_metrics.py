# SPDX-License-Identifier: Apache-2.0
"""Health and telemetry of the devices, as Prometheus metrics."""

from collections.abc import Sequence
from typing import Final

from prometheus_client.core import GaugeMetricFamily

from cyborg_lite.conductor.metrics.database_metrics import DatabaseCollector
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices import devices
from cyborg_lite.model.devices.telemetry import Usage, telemetry_values
from cyborg_lite.model.inventory.host_report import Health
from cyborg_lite.model.queries import Query

# The health of most devices: such a device has no series of its own.
_USUAL_HEALTH: Final = (Health.OK, Health.BUSY)


class DeviceCollector(DatabaseCollector):
    """Numbers of devices by health, and the values of single devices.

    A large cloud has a million values of single devices. By default only a device with
    an unusual health has a series. Unknown values are omitted.
    """

    subject = 'Device'

    def __init__(self, database: Database, *, serves_each: bool) -> None:
        """Store the arguments.

        :param serves_each: serve health, telemetry and errors of each device
        """
        super().__init__(database)
        self._serves_each = serves_each

    def _create_families(self) -> Sequence[GaugeMetricFamily]:
        return _create_families()

    def _add_samples(self, families: Sequence[GaugeMetricFamily]) -> None:
        count_family, health_family, usage_family, error_family = families
        counts = self._database.read(devices.count_devices)
        for (model, health), number in counts.items():
            count_family.add_metric([model, health], number)
        unusual = Query({'health': tuple({*Health} - {*_USUAL_HEALTH})})
        query = Query() if self._serves_each else unusual
        for device in self._database.read(devices.list_devices, query):
            labels = device.hostname, device.uuid, device.model
            health_family.add_metric([*labels, device.health.value], 1)
            usage = (self._serves_each and device.usage) or Usage()
            for name, value in telemetry_values(usage).items():
                usage_family.add_metric([*labels, name], value)
            for kind, count in usage.counters.items():
                error_family.add_metric([*labels, kind], count)


def _create_families() -> tuple[GaugeMetricFamily, ...]:
    device_labels = ('hostname', 'device', 'model')
    return (
        GaugeMetricFamily(
            'cyborg_lite_devices',
            'Devices by model and current health.',
            labels=['model', 'health'],
        ),
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
    )
