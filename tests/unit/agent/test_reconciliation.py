# SPDX-License-Identifier: Apache-2.0
"""Tests of the comparison of prepared handles with those of the conductor."""

import pytest

from cyborg_lite.agent import reconciliation
from cyborg_lite.agent.cache import Cache
from cyborg_lite.agent.reconciliation import Reconciliation
from cyborg_lite.exceptions import ServiceUnavailable
from cyborg_lite.model.devices import AllocatedHandle
from tests.doubles.drivers import handle
from tests.doubles.report_receiver import ReportKeeper

_ADDRESS = '0000:01:00.0'


@pytest.fixture
def released() -> list[AllocatedHandle]:
    return []


@pytest.fixture
def compared(cache: Cache, released: list[AllocatedHandle]) -> Reconciliation:
    return Reconciliation('compute-1', cache, released.extend)


def test_reconcile_releases_handles_without_arq(
    compared: Reconciliation, cache: Cache, released: list[AllocatedHandle]
) -> None:
    conductor = ReportKeeper()
    conductor.abandoned = {'b'}
    cache.add_handles([handle(_ADDRESS, 'a'), handle(_ADDRESS, 'b')])
    compared.reconcile(conductor)
    assert [item.uuid for item in released] == ['b']


def test_reconcile_without_handles_does_not_call(compared: Reconciliation) -> None:
    conductor = ReportKeeper()
    compared.reconcile(conductor)
    assert conductor.calls == []


def test_reconcile_repeats_after_interval_or_request(
    compared: Reconciliation, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    conductor = ReportKeeper()
    cache.add_handles([handle(_ADDRESS, 'a')])
    compared.reconcile(conductor)
    compared.reconcile(conductor)
    assert len(conductor.calls) == 1
    compared.request()
    compared.reconcile(conductor)
    assert len(conductor.calls) == 2
    monkeypatch.setattr(reconciliation, '_INTERVAL', -1.0)
    compared.request()
    compared.reconcile(conductor)
    compared.reconcile(conductor)
    assert len(conductor.calls) == 4


def test_reconcile_after_failure_is_repeated(
    compared: Reconciliation, cache: Cache
) -> None:
    conductor = ReportKeeper()
    cache.add_handles([handle(_ADDRESS, 'a')])
    conductor.refusal = ServiceUnavailable(what='cyborg-lite-conductor')
    with pytest.raises(ServiceUnavailable):
        compared.reconcile(conductor)
    conductor.refusal = None
    compared.reconcile(conductor)
    assert len(conductor.calls) == 2
