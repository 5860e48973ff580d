# SPDX-License-Identifier: Apache-2.0
"""Inventory of each provider: total and reserved handles."""

from collections import Counter
from typing import Any

import pytest
from sqlalchemy import select

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, AttachHandle, Job
from cyborg_lite.db.hosts import services
from cyborg_lite.db.inventory import agents, reports
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.providers import providers
from cyborg_lite.model.inventory.attribute_keys import GROUP_SIZE
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.model.jobs import Owner
from cyborg_lite.model.providers.providers import ProviderRow
from cyborg_lite.model.traits import DEGRADED
from tests.builders.provider_rows import add_device, change_deployable, change_device
from tests.builders.reports import card, with_root
from tests.builders.rows import HOST, add_arqs, add_card
from tests.builders.service_rows import (
    add_audited_agents,
    expire_heartbeat,
    mark_down,
    record_heartbeat,
)
from tests.builders.table_rows import change_rows, read_column
from tests.support.sql_statements import statements


def list_rows(database: Database, hostname: str = HOST) -> tuple[ProviderRow, ...]:
    return database.read(providers.list_providers_of_host, hostname)


def read_only_row(database: Database) -> ProviderRow:
    (row,) = list_rows(database)
    return row


def change_handle(database: Database, number: int, **columns: Any) -> None:
    """Change a handle of the only device, by its number in the order of ids."""
    ids = read_column(database, select(AttachHandle.id).order_by(AttachHandle.id))
    change_rows(database, AttachHandle, AttachHandle.id == ids[number], **columns)


@pytest.mark.parametrize(('size', 'expected'), [('2', 2), ('two', 1), ('9' * 99, 1)])
def test_provider_row_has_reported_group_size(
    database: Database, size: str, expected: int
) -> None:
    group = with_root(card(0x3B, handles=4), attributes={GROUP_SIZE: size})
    database.write(reports.store_report, HostReport(HOST, '', (group,)))
    assert read_only_row(database).group_size == expected


def test_list_providers_returns_given_host_only(database: Database) -> None:
    add_device(database, 'compute-2', 'gpu')
    assert list_rows(database) == ()
    assert len(list_rows(database, 'compute-2')) == 1


@pytest.mark.parametrize(
    ('columns', 'reserved'),
    [
        ({'status': 'maintaining'}, 4),
        ({'health': 'failed'}, 4),
        ({'health': 'gone'}, 4),
        ({'health': 'degraded'}, 0),
        ({'health': 'busy'}, 0),
    ],
)
def test_provider_row_unusable_device_is_fully_reserved(
    database: Database, columns: dict[str, str], reserved: int
) -> None:
    rp_uuid = add_device(database, HOST, 'gpu', num_accelerators=4)
    change_device(database, rp_uuid, **columns)
    assert read_only_row(database).reserved == reserved


def test_degraded_device_has_trait(database: Database) -> None:
    rp_uuid = add_device(database, HOST, 'gpu')
    assert DEGRADED not in read_only_row(database).traits
    change_device(database, rp_uuid, health='degraded')
    assert DEGRADED in read_only_row(database).traits


def test_provider_row_reserved_never_exceeds_total(database: Database) -> None:
    add_card(database, 2)
    change_deployable(database, read_only_row(database).rp_uuid, reserved=2)
    change_handle(database, 0, missing=True)
    assert read_only_row(database).reserved == 2


def test_provider_row_counts_handles_of_own_device(database: Database) -> None:
    add_card(database, 2)
    change_handle(database, 0, missing=True)
    add_card(database, 2)
    assert sorted(row.reserved for row in list_rows(database)) == [0, 1]


def test_provider_row_host_down_never_offers_more(database: Database) -> None:
    add_card(database, 2)
    for number, arq in enumerate(add_arqs(database, 2)):
        change_handle(database, number, arq_uuid=arq, missing=True)
    change_rows(database, Arq, state='Bound')
    before = read_only_row(database).reserved
    mark_down(database, HOST)
    assert read_only_row(database).reserved == before


def test_provider_row_conductor_down_reserves_nothing(database: Database) -> None:
    add_card(database, 2)
    expire_heartbeat(database, HOST, 'cyborg-lite-conductor')
    mark_down(database, 'compute-2')
    assert read_only_row(database).reserved == 0


def test_list_providers_of_host_costs_one_statement(database: Database) -> None:
    for _ in range(3):
        add_card(database, 2)
    with statements(database) as sql:
        assert len(list_rows(database)) == 3
    assert len(sql) == 1


# --- audits of Placement: each host once per interval, and few hosts at a time ------


HOUR = 3600.0
MINUTE = 60.0


def finish_jobs(database: Database) -> set[str]:
    """Finish the waiting jobs and return their hosts."""
    payloads = read_column(database, select(Job.payload))
    for job in database.write(queue.lease_jobs, Owner('me', 30_000), 1000):
        database.write(queue.finish_job, job)
    return {payload['hostname'] for payload in payloads}


def test_schedule_audits_spreads_hosts_over_interval(database: Database) -> None:
    add_audited_agents(database, 120)
    audit_counts: Counter[str] = Counter()
    for _ in range(80):
        assert database.write(providers.schedule_placement_audits, HOUR, MINUTE) <= 2
        audit_counts.update(finish_jobs(database))
    assert audit_counts == {f'compute-{number}': 1 for number in range(120)}


def test_schedule_audits_new_host_is_not_due(database: Database) -> None:
    record_heartbeat(database, 'compute-1')
    assert database.write(providers.schedule_placement_audits, HOUR, MINUTE) == 0


def test_schedule_audits_heartbeat_and_report_keep_time(database: Database) -> None:
    add_audited_agents(database, 1)
    database.write(agents.store_digest, 'compute-0', 'd', 'b')
    database.write(services.record_agent_heartbeat, 'compute-0', '0.1.0', 'd')
    assert database.write(providers.schedule_placement_audits, HOUR, MINUTE) == 1


def test_schedule_conflict_checks_contested_hosts_every_time(
    database: Database,
) -> None:
    for host in ('a', 'b'):
        rp_uuid = add_device(database, host, 'x')
        change_device(database, rp_uuid, conflict='nova')
    add_device(database, 'c', 'x')
    for _ in range(2):
        assert database.write(providers.schedule_conflict_checks) == 2
        assert finish_jobs(database) == {'a', 'b'}


# --- traits that Placement has of each provider -------------------------------------


def test_record_provider_traits_costs_one_statement(database: Database) -> None:
    traits = {str(number): {'X'} for number in range(64)}
    with statements(database) as sql:
        database.write(providers.record_provider_traits, traits)
        database.write(providers.record_provider_traits, {})
        database.write(providers.delete_provider_traits, ())
    assert len(sql) == 1
