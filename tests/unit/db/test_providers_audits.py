# SPDX-License-Identifier: Apache-2.0
"""Audits of Placement: each host once per interval, and few hosts at a time."""

from collections import Counter

from sqlalchemy import select

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Job
from cyborg_lite.db.hosts import services
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.providers import providers
from cyborg_lite.model.jobs import Owner
from tests.builders.provider_rows import add_device, change_device
from tests.builders.service_rows import add_audited_agents, record_heartbeat

HOUR = 3600.0
MINUTE = 60.0


def finish_jobs(database: Database) -> set[str]:
    """Finish the waiting jobs and return their hosts."""
    payloads = database.read(lambda session: session.scalars(select(Job.payload)).all())
    for job in database.write(queue.lease_jobs, Owner('me', 30_000), 1000):
        database.write(queue.finish_job, job)
    return {payload['host'] for payload in payloads}


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
    database.write(services.store_digest, 'compute-0', 'd', 'b')
    database.write(services.record_agent_digest, 'compute-0', '0.1.0', 'd')
    assert database.write(providers.schedule_placement_audits, HOUR, MINUTE) == 1


def test_schedule_jobs_without_hosts_adds_none(database: Database) -> None:
    assert database.write(providers.schedule_placement_audits, HOUR, MINUTE) == 0
    assert database.write(providers.schedule_conflict_checks) == 0


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
