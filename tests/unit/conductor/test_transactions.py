# SPDX-License-Identifier: Apache-2.0
"""Tests of the methods that are one transaction each."""

import pytest

from cyborg_lite.conductor.transactions import Transactions
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.inventory import reports
from cyborg_lite.errors.hosts import HostNotFound
from cyborg_lite.model.arqs.usages import UsageQuery, UsageReport
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.model.queries import Query
from tests.builders.reports import HOST, card
from tests.builders.rows import HOST as CARD_HOST
from tests.builders.rows import add_card


@pytest.fixture
def service(database: Database) -> Transactions:
    return Transactions(database)


def _store_report(service: Transactions) -> None:
    report = HostReport(HOST, 'boot', (card(0x3B),))
    service.database.write(reports.store_report, report)


def test_use_ends_at_end_of_query(service: Transactions) -> None:
    report = service.sum_usages(UsageQuery(0, 1_000))
    assert report == UsageReport((), end=1_000)


def test_topology_has_devices_of_host(service: Transactions) -> None:
    add_card(service.database, 2)
    (device,) = service.show_topology(CARD_HOST).devices
    assert sum(device.count_units().values()) == 2
    with pytest.raises(HostNotFound):
        service.show_topology('elsewhere')


def test_host_with_report_has_agent(service: Transactions) -> None:
    _store_report(service)
    (daemon,) = service.list_services(Query())
    assert (daemon.host, daemon.binary) == (HOST, 'cyborg-lite-agent')
    conductors = Query(filters={'binary': ('cyborg-lite-conductor',)})
    assert service.list_services(conductors) == ()
