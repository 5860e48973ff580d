# SPDX-License-Identifier: Apache-2.0
"""Health and telemetry of the devices, as Prometheus metrics."""

from collections.abc import Sequence

from prometheus_client.core import GaugeMetricFamily

from cyborg_lite.conductor.metrics.database_metrics import DatabaseCollector
from cyborg_lite.db.devices import devices
from cyborg_lite.model.devices.devices import DeviceRecord
from cyborg_lite.model.devices.telemetry import Usage, telemetry_values
from cyborg_lite.model.queries import Query


class DeviceCollector(DatabaseCollector):
    """Health and telemetry of each device. Unknown values are omitted."""

    subject = 'Device'

    def _create_families(self) -> Sequence[GaugeMetricFamily]:
        return _create_families()

    def _add_samples(self, families: Sequence[GaugeMetricFamily]) -> None:
        health_family, usage_family, error_family = families
        records = self._database.read(devices.list_devices, Query())
        for device in records:
            labels = _device_labels(device)
            health_family.add_metric([*labels, device.health.value], 1)
            usage = device.usage or Usage()
            for name, value in telemetry_values(usage).items():
                usage_family.add_metric([*labels, name], value)
            for kind, count in usage.counters.items():
                error_family.add_metric([*labels, kind], count)


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
    )
