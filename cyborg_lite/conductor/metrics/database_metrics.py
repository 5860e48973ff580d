# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics that are read from the database at each scrape."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from oslo_log import log
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from cyborg_lite.db.attention import list_attention
from cyborg_lite.db.capacity import provider_capacity
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices import devices
from cyborg_lite.db.devices.cleanings import list_unclean_units
from cyborg_lite.db.jobs import administration, outbox, queue
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.attention import AttentionKind
from cyborg_lite.model.devices.telemetry import Usage, telemetry_values
from cyborg_lite.model.hosts.services import AGENT, CONDUCTOR, ServiceState
from cyborg_lite.model.hosts.topology import Availability
from cyborg_lite.model.inventory.host_report import Health
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.queries import Query
from cyborg_lite.model.traits import OWNER_CYBORG

LOG = log.getLogger(__name__)

# Values of the label `kind` that differ from the operation kinds; dashboards use them.
_KINDS: Final[Mapping[str, str]] = {
    OperationKind.RECONCILE: 'placement-sync',
    OperationKind.CLEANING: 'clean',
    OperationKind.CONFIGURATION: 'reconfigure',
}
# The health of most devices: such a device has no series of its own.
_USUAL_HEALTH: Final = (Health.OK, Health.BUSY)
_OF_DEVICE: Final = ('hostname', 'device', 'model')

Families = Mapping[str, tuple[str, Sequence[str]]]
"""Documentation and labels, by name without the prefix ``cyborg_lite_``."""
Samples = Iterator[tuple[str, Sequence[str], float]]
"""Name as in ``Families``, values of the labels, and the value."""

_JOBS: Final[Families] = {
    'jobs': ('Jobs that have not succeeded.', ('kind', 'state')),
    'job_queue_age_seconds': (
        'Time for which the oldest job has waited, also between attempts.',
        ('kind',),
    ),
}
_DEVICES: Final[Families] = {
    'devices': ('Devices by model and current health.', ('model', 'health')),
    'device_health': (
        'Current health of the device, as a label; the value is always 1.',
        (*_OF_DEVICE, 'health'),
    ),
    'device_usage': (
        'Last measurement in bytes, percent, degrees Celsius, watts or vGPUs.',
        (*_OF_DEVICE, 'figure'),
    ),
    'device_errors': (
        'Errors since the last reboot of the host.',
        (*_OF_DEVICE, 'kind'),
    ),
}
_CAPACITY: Final[Families] = {
    'units': (
        'Units of accelerators, by resource class.',
        ('resource_class', 'availability'),
    ),
    'units_by_trait': (
        'Units of accelerators, by each of their traits.',
        ('resource_class', 'trait', 'availability'),
    ),
    'arqs': ('ARQs.', ('state',)),
    'services': ('Daemons.', ('binary', 'state')),
}
_NOTIFICATIONS: Final[Families] = {
    'notifications_waiting': ('Notifications that are not sent.', ()),
    'notification_age_seconds': (
        'Age of the oldest notification that is not sent; 0 if none waits.',
        (),
    ),
}
_ATTENTION: Final[Families] = {
    'attention': (
        'Items that wait for an operator; the host is empty if there is none.',
        ('kind', 'hostname'),
    ),
    'lost_arqs': (
        'Bound ARQs whose device is gone, failed or missing.',
        ('hostname',),
    ),
    'unclean_units': (
        'Units that are withheld until they are clean.',
        ('hostname', 'state'),
    ),
}


@dataclass(frozen=True, eq=False)
class DatabaseCollector(Collector):
    """Metrics of one subject. All conductors serve the same values."""

    database: Database
    subject: str  # for messages, with a capital
    families: Families
    # Yields the samples; raises ``CyborgError`` if the database does not answer.
    read: Callable[[Database], Samples]

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Return the metrics without samples.

        Registration calls this method. It must not open the database.
        """
        return self._create_families().values()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Return the metrics, or nothing if the database does not answer."""
        families = self._create_families()
        try:
            for name, labels, value in self.read(self.database):
                families[name].add_metric(labels, value)
        except CyborgError as error:
            # The other metrics matter most while the database is unreachable.
            LOG.error('%s metrics omitted from a scrape: %s', self.subject, error.text)
            return ()
        return families.values()

    def _create_families(self) -> dict[str, GaugeMetricFamily]:
        return {
            name: GaugeMetricFamily(f'cyborg_lite_{name}', text, labels=labels)
            for name, (text, labels) in self.families.items()
        }


def build_collectors(
    database: Database, *, serves_each_device: bool = False
) -> tuple[DatabaseCollector, ...]:
    """Return the collectors of all subjects.

    A large cloud has a million values of single devices. By default only a device with
    an unusual health has a series.

    :param serves_each_device: serve health, telemetry and errors of each device
    """
    read_devices = partial(_read_devices, serves_each=serves_each_device)
    return (
        DatabaseCollector(database, 'Job', _JOBS, _read_jobs),
        DatabaseCollector(database, 'Device', _DEVICES, read_devices),
        DatabaseCollector(database, 'Capacity', _CAPACITY, _read_capacity),
        DatabaseCollector(
            database, 'Notification', _NOTIFICATIONS, _read_notifications
        ),
        DatabaseCollector(database, 'Attention', _ATTENTION, _read_attention),
    )


def name_kind(kind: str) -> str:
    """Return the value of the label ``kind`` of a job type."""
    return _KINDS.get(kind, kind)


def _read_jobs(database: Database) -> Samples:
    for count in database.read(queue.count_jobs):
        yield 'jobs', (name_kind(count.type), count.state), count.count
    for kind, seconds in database.read(administration.list_longest_waits).items():
        yield 'job_queue_age_seconds', (name_kind(kind),), seconds


def _read_devices(database: Database, *, serves_each: bool) -> Samples:
    """Yield numbers of devices by health, and the known values of single devices."""
    for keys, number in database.read(devices.count_devices).items():
        yield 'devices', keys, number
    unusual = Query({'health': tuple({*Health} - {*_USUAL_HEALTH})})
    query = Query() if serves_each else unusual
    for device in database.read(devices.list_devices, query):
        labels = device.hostname, device.uuid, device.model
        yield 'device_health', (*labels, device.health.value), 1
        usage = (serves_each and device.usage) or Usage()
        for name, value in telemetry_values(usage).items():
            yield 'device_usage', (*labels, name), value
        for kind, count in usage.counters.items():
            yield 'device_errors', (*labels, kind), count


def _read_units(database: Database) -> Samples:
    by_class: Counter[tuple[str, str]] = Counter()
    by_trait: Counter[tuple[str, str, str]] = Counter()
    for item in database.read(provider_capacity.list_provider_capacities):
        for state in Availability if item.states else ():
            number = item.states.get(state, 0)
            by_class[item.resource_class, state.value] += number
            for trait in item.traits - {OWNER_CYBORG}:
                by_trait[item.resource_class, trait, state.value] += number
    for class_labels, number in by_class.items():
        yield 'units', class_labels, number
    for trait_labels, number in by_trait.items():
        yield 'units_by_trait', trait_labels, number


def _read_capacity(database: Database) -> Samples:
    yield from _read_units(database)
    # Zeros are exported: an alert must see the difference to a missing metric.
    arqs = database.read(provider_capacity.count_arqs)
    for arq_state in State:
        yield 'arqs', (arq_state.value,), arqs.get(arq_state.value, 0)
    services = database.read(provider_capacity.count_services)
    for binary in (AGENT, CONDUCTOR):
        for service_state in ServiceState:
            key = binary, service_state.value
            yield 'services', key, services.get(key, 0)


def _read_notifications(database: Database) -> Samples:
    backlog = database.read(outbox.read_backlog)
    yield 'notifications_waiting', (), backlog.count
    yield 'notification_age_seconds', (), backlog.age


def _read_attention(database: Database) -> Samples:
    items = database.read(list_attention)
    # Zeros make the difference to a missing metric.
    numbers = Counter({(kind.value, ''): 0 for kind in AttentionKind})
    numbers.update((item.kind.value, item.hostname) for item in items)
    lost_arqs = (i.hostname for i in items if i.kind is AttentionKind.LOST_ARQ)
    units = database.read(list_unclean_units)
    unclean = Counter((unit.hostname, unit.state.value) for unit in units)
    for labels, number in numbers.items():
        yield 'attention', labels, number
    for hostname, number in Counter(lost_arqs).items():
        yield 'lost_arqs', (hostname,), number
    for labels, number in unclean.items():
        yield 'unclean_units', labels, number
