# SPDX-License-Identifier: Apache-2.0
"""A Prometheus metric of everything that waits for an operator."""

from collections import Counter
from collections.abc import Sequence

from prometheus_client.core import GaugeMetricFamily

from cyborg_lite.conductor.metrics.database_metrics import DatabaseCollector
from cyborg_lite.db.attention import list_attention
from cyborg_lite.model.attention import AttentionKind


class AttentionCollector(DatabaseCollector):
    """The number of items by kind and host."""

    subject = 'Attention'

    def _create_families(self) -> Sequence[GaugeMetricFamily]:
        return (
            GaugeMetricFamily(
                'cyborg_lite_attention',
                'Items that wait for an operator; the host is empty if there is none.',
                labels=['kind', 'hostname'],
            ),
        )

    def _add_samples(self, families: Sequence[GaugeMetricFamily]) -> None:
        (family,) = families
        # Zeros make the difference to a missing metric.
        numbers = Counter({(kind.value, ''): 0 for kind in AttentionKind})
        items = self._database.read(list_attention)
        numbers.update((item.kind.value, item.hostname) for item in items)
        for labels, number in numbers.items():
            family.add_metric(labels, number)
