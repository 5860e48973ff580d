# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics of what waits for an operator."""

from collections import Counter
from collections.abc import Sequence

from prometheus_client.core import GaugeMetricFamily

from cyborg_lite.conductor.metrics.database_metrics import DatabaseCollector
from cyborg_lite.db.attention import list_attention
from cyborg_lite.db.devices.cleanings import list_unclean_units
from cyborg_lite.model.attention import AttentionKind


class AttentionCollector(DatabaseCollector):
    """The numbers of items, of lost ARQs and of unclean units."""

    subject = 'Attention'

    def _create_families(self) -> Sequence[GaugeMetricFamily]:
        return (
            GaugeMetricFamily(
                'cyborg_lite_attention',
                'Items that wait for an operator; the host is empty if there is none.',
                labels=['kind', 'hostname'],
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

    def _add_samples(self, families: Sequence[GaugeMetricFamily]) -> None:
        items = self._database.read(list_attention)
        lost_arqs = [item for item in items if item.kind is AttentionKind.LOST_ARQ]
        unclean = self._database.read(list_unclean_units)
        numbers: tuple[Counter[tuple[str, ...]], ...] = (
            # Zeros make the difference to a missing metric.
            Counter({(kind.value, ''): 0 for kind in AttentionKind}),
            Counter((item.hostname,) for item in lost_arqs),
            Counter((unit.hostname, unit.state.value) for unit in unclean),
        )
        numbers[0].update((item.kind.value, item.hostname) for item in items)
        for family, values in zip(families, numbers, strict=True):
            for labels, number in values.items():
                family.add_metric(labels, number)
