# SPDX-License-Identifier: Apache-2.0
"""Tests of the comparison of prepared handles with those of the conductor."""

import pytest

from cyborg_lite.agent.arqs import reconciliation
from cyborg_lite.agent.arqs.reconciliation import Reconciliation
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.model.devices.devices import AllocatedHandle
from tests.doubles.drivers import handle
from tests.doubles.report_receiver import ReportKeeper

_ADDRESS = '0000:01:00.0'


class Comparison(Reconciliation):
    """Comparison that records the handles to release and to adopt."""

    def __init__(self, cache: Cache) -> None:
        self.released: list[AllocatedHandle] = []
        self.adopted: list[AllocatedHandle] = []
        super().__init__('compute-1', cache, self.released.extend, self.adopted.extend)


@pytest.fixture
def comparison(cache: Cache) -> Comparison:
    return Comparison(cache)


def test_reconcile_adopts_handles_of_bound_arqs(comparison: Comparison) -> None:
    conductor = ReportKeeper()
    conductor.unmentioned = (handle(_ADDRESS, 'a'),)
    comparison.reconcile(conductor.client)
    assert comparison.adopted == [handle(_ADDRESS, 'a')]


def test_reconcile_releases_handles_without_arq(
    comparison: Comparison, cache: Cache
) -> None:
    conductor = ReportKeeper()
    conductor.abandoned = {'b'}
    cache.add_handles([handle(_ADDRESS, 'a'), handle(_ADDRESS, 'b')])
    comparison.reconcile(conductor.client)
    assert [item.uuid for item in comparison.released] == ['b']


def test_reconcile_without_handles_calls_once(
    comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The conductor may believe that the host has prepared handles."""
    monkeypatch.setattr(reconciliation, '_INTERVAL', -1.0)
    conductor = ReportKeeper()
    for _ in range(3):
        comparison.reconcile(conductor.client)
    assert (len(conductor.calls), conductor.prepared) == (1, ())
    comparison.request()
    comparison.reconcile(conductor.client)
    assert len(conductor.calls) == 2


def test_reconcile_with_outdated_list_is_repeated(
    comparison: Comparison, cache: Cache
) -> None:
    """A release ends while the conductor compares."""
    conductor = ReportKeeper()
    cache.add_handles([handle(_ADDRESS, 'a')])
    conductor.on_comparison = lambda: cache.remove_handles(['a'])
    comparison.reconcile(conductor.client)
    comparison.reconcile(conductor.client)
    assert (len(conductor.calls), conductor.prepared) == (2, ())


def test_reconcile_soon_after_releases(
    comparison: Comparison, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciliation, '_INTERVAL_OF_RELEASES', -1.0)
    conductor = ReportKeeper()
    conductor.abandoned = {'a'}
    cache.add_handles([handle(_ADDRESS, 'a')])
    comparison.reconcile(conductor.client)
    conductor.abandoned = set()
    comparison.reconcile(conductor.client)
    comparison.reconcile(conductor.client)
    assert len(conductor.calls) == 2
