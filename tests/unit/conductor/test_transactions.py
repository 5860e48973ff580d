# SPDX-License-Identifier: Apache-2.0
"""Tests of the methods that are one transaction each."""

import pytest

from cyborg_lite.conductor.transactions import Transactions
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.inventory import reports
from cyborg_lite.errors.devices import AttributeExists, AttributeNotFound
from cyborg_lite.errors.hosts import HostNotFound
from cyborg_lite.model.arqs.usages import UsageQuery, UsageReport
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.model.queries import Query
from tests.builders.provider_rows import add_device
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


def test_attribute_is_listed_until_deleted(service: Transactions) -> None:
    _store_report(service)
    (deployable,) = service.list_deployables(Query())
    attribute = service.create_attribute(deployable.id, key='rack', value='r1')
    assert attribute in service.list_attributes(Query())
    with pytest.raises(AttributeExists):
        service.create_attribute(deployable.id, key='rack', value='r2')
    service.delete_attribute(attribute.uuid)
    assert attribute not in service.list_attributes(Query())
    with pytest.raises(AttributeNotFound):
        service.delete_attribute(attribute.uuid)


def test_list_applies_filters_and_page(service: Transactions) -> None:
    for part in ('a', 'b', 'c'):
        add_device(service.database, 'compute-1', part)
    names = [row.name for row in service.list_deployables(Query(sort_key='name'))]
    assert sorted(names) == ['compute-1_a', 'compute-1_b', 'compute-1_c']
    (deployable,) = service.list_deployables(Query(filters={'name': ('compute-1_b',)}))
    assert deployable.name == 'compute-1_b'
    assert len(service.list_deployables(Query(limit=2))) == 2
    assert service.list_deployables(Query(filters={'name': ('none',)})) == ()
