# SPDX-License-Identifier: Apache-2.0
"""Units, ARQs and daemons of the cloud, as Prometheus metrics."""

from collections import Counter
from collections.abc import Iterable, Sequence

from prometheus_client.core import GaugeMetricFamily

from cyborg_lite.conductor.metrics.database_metrics import DatabaseCollector
from cyborg_lite.db.capacity import provider_capacity
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.capacity.explanations import ProviderCapacity
from cyborg_lite.model.hosts.services import AGENT, CONDUCTOR, ServiceState
from cyborg_lite.model.hosts.topology import Availability
from cyborg_lite.model.traits import OWNER_CYBORG


class CapacityCollector(DatabaseCollector):
    """The numbers of units, ARQs and daemons."""

    subject = 'Capacity'

    def _create_families(self) -> Sequence[GaugeMetricFamily]:
        return (
            GaugeMetricFamily(
                'cyborg_lite_units',
                'Units of accelerators, by resource class.',
                labels=['resource_class', 'availability'],
            ),
            GaugeMetricFamily(
                'cyborg_lite_units_by_trait',
                'Units of accelerators, by each of their traits.',
                labels=['resource_class', 'trait', 'availability'],
            ),
            GaugeMetricFamily('cyborg_lite_arqs', 'ARQs.', labels=['state']),
            GaugeMetricFamily(
                'cyborg_lite_services', 'Daemons.', labels=['binary', 'state']
            ),
        )

    def _add_samples(self, families: Sequence[GaugeMetricFamily]) -> None:
        class_family, trait_family, arq_family, service_family = families
        capacities = self._database.read(provider_capacity.list_provider_capacities)
        _add_units(class_family, trait_family, capacities)
        arqs = self._database.read(provider_capacity.count_arqs)
        services = self._database.read(provider_capacity.count_services)
        # Zeros are exported: an alert must see the difference to a missing metric.
        for arq_state in State:
            arq_family.add_metric([arq_state.value], arqs.get(arq_state.value, 0))
        for binary in (AGENT, CONDUCTOR):
            for service_state in ServiceState:
                number = services.get((binary, service_state.value), 0)
                service_family.add_metric([binary, service_state.value], number)


def _add_units(
    class_family: GaugeMetricFamily,
    trait_family: GaugeMetricFamily,
    capacities: Iterable[ProviderCapacity],
) -> None:
    by_class: Counter[tuple[str, str]] = Counter()
    by_trait: Counter[tuple[str, str, str]] = Counter()
    for item in capacities:
        for state in Availability if item.states else ():
            number = item.states.get(state, 0)
            by_class[item.resource_class, state.value] += number
            for trait in item.traits - {OWNER_CYBORG}:
                by_trait[item.resource_class, trait, state.value] += number
    for class_labels, number in by_class.items():
        class_family.add_metric(class_labels, number)
    for trait_labels, number in by_trait.items():
        trait_family.add_metric(trait_labels, number)
