# SPDX-License-Identifier: Apache-2.0
"""Tests of the list of daemons."""

from cyborg_lite.conductor.hosts.services import ServiceRegistry
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.inventory import reports
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.model.queries import Query
from tests.builders.reports import HOST, card


def test_host_with_report_has_agent(database: Database) -> None:
    database.write(reports.store_report, HostReport(HOST, 'boot', (card(0x3B),)))
    (service,) = ServiceRegistry(database).list(Query())
    assert (service.host, service.binary) == (HOST, 'cyborg-lite-agent')
    conductors = Query(filters={'binary': ('cyborg-lite-conductor',)})
    assert ServiceRegistry(database).list(conductors) == ()
