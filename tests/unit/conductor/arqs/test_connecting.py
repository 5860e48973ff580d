# SPDX-License-Identifier: Apache-2.0
"""Connect jobs: from a bind to the call of the agent when the instance is spawned."""

from collections.abc import Iterator

import pytest

from cyborg_lite.conductor.arqs.binding import ConnectHandler
from cyborg_lite.db.arqs import release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.arqs import InstanceNotSpawned
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.jobs import Job
from cyborg_lite.model.operations import OperationKind
from tests.builders.binds import Bind
from tests.builders.cloud_clients import create_nova_client
from tests.builders.rows import OWNER
from tests.doubles.agents import FakeAgents
from tests.doubles.nova import FakeNova

EVERYBODY = Scope(project_id=None)


class Site:
    """A bound instance, and the doubles that its connect job calls."""

    def __init__(self, database: Database, fake: FakeNova, connecting: bool) -> None:
        self.database, self.fake = database, fake
        self.agents = FakeAgents()
        self.agents.connecting = connecting
        self.handler = ConnectHandler(
            database, create_nova_client(fake.endpoint), self.agents
        )
        bind = Bind(database, needs_host=True, agents=self.agents)
        bind.handler.run(bind.accept())
        self.instance, self.uuids = bind.instance, bind.uuids

    def lease_jobs(self) -> tuple[Job, ...]:
        return self.database.write(queue.lease_jobs, OWNER, 10, [OperationKind.CONNECT])


@pytest.fixture
def nova() -> Iterator[FakeNova]:
    with FakeNova() as nova:
        yield nova


@pytest.fixture
def site(database: Database, nova: FakeNova) -> Site:
    site = Site(database, nova, connecting=True)
    nova.rules.servers[site.instance] = 'compute-1'
    return site


def test_bind_without_connecting_driver_adds_no_job(
    database: Database, nova: FakeNova
) -> None:
    assert Site(database, nova, connecting=False).lease_jobs() == ()


def test_connect_waits_until_instance_is_spawned(site: Site) -> None:
    (job,) = site.lease_jobs()
    assert (job.awaited, job.request_id) == (True, 'req-1')
    site.fake.rules.vm_states[site.instance] = 'building'
    with pytest.raises(InstanceNotSpawned, match=site.instance):
        site.handler.run(job)
    assert site.agents.connected == []
    del site.fake.rules.vm_states[site.instance]
    site.handler.run(job)
    arqs = [handle.arq_uuid for handle in site.agents.connected]
    assert sorted(arqs) == sorted(site.uuids)
    instances = {handle.instance_uuid for handle in site.agents.connected}
    assert instances == {site.instance}
    assert site.lease_jobs() == ()


def test_connect_failing_driver_is_retried(site: Site) -> None:
    (job,) = site.lease_jobs()
    site.agents.refusal = DriverError(reason='not ready')
    with pytest.raises(DriverError):
        site.handler.run(job)
    site.agents.refusal = None
    site.handler.run(job)
    assert len(site.agents.connected) == 2


def test_connect_after_release_calls_nobody(site: Site) -> None:
    (job,) = site.lease_jobs()
    site.database.write(release.unbind_arqs, site.uuids, EVERYBODY, None)
    gets = len(site.fake.gets)
    site.handler.run(job)
    assert site.agents.connected == []
    assert len(site.fake.gets) == gets


def test_expired_connect_ends_job(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    (job,) = site.lease_jobs()
    site.handler.expire(job, 'not spawned')
    assert f'instance {site.instance} not connected' in caplog.text
    assert site.agents.connected == []
