# SPDX-License-Identifier: Apache-2.0
"""Orphans are found, nobody else is taken for one, and ending them loses nothing."""

import pytest

from cyborg_lite.conductor.binding import BindHandler
from cyborg_lite.conductor.releasing import ReleaseHandler
from cyborg_lite.db import audit as queries
from cyborg_lite.db import binding, clock, job_table, jobs, release
from cyborg_lite.db.engine import Database
from cyborg_lite.model.audit import Remedy, Trouble
from cyborg_lite.model.jobs import JobState, Kind, NewJob
from tests.fakes.agents import FakeAgents
from tests.fakes.orphans import EVERYBODY, RULES, Cloud
from tests.fakes.rows import OWNER, add_arqs, owners, states
from tests.fakes.statements import statements


@pytest.fixture
def cloud(database: Database) -> Cloud:
    return Cloud(database)


def released(cloud: Cloud) -> None:
    """All hosts do what they are told."""
    for job in cloud.database.write(jobs.take, OWNER, 10, [Kind.RELEASE]):
        ReleaseHandler(cloud.database, FakeAgents()).run(job)


def kinds(cloud: Cloud) -> list[str]:
    return [job.kind for job in cloud.database.read(job_table.listed)]


# --- what is as it should be ----------------------------------------------------------


def test_a_cloud_in_order_has_no_orphans(cloud: Cloud) -> None:
    cloud.bound()
    cloud.bound(needs_host=True)
    report = cloud.find()
    assert report.findings == ()
    assert report.doubts == ()


def test_what_was_touched_within_the_grace_is_left_alone(cloud: Cloud) -> None:
    uuid, instance = cloud.bound()
    del cloud.servers.hosts[instance]
    cloud.touch(uuid)
    add_arqs(cloud.database, 1)
    cloud.accepted(needs_host=True)
    cloud.lose_jobs()
    assert cloud.find().findings == ()


def test_a_bind_that_takes_long_is_not_lost(cloud: Cloud) -> None:
    uuid, instance, job = cloud.accepted(needs_host=True)
    told = NewJob(Kind.NOVA_EVENT)
    cloud.database.write(binding.claim, job, [uuid], None, told)
    # Nova may have given up, but the job of the bind has not.
    del cloud.servers.hosts[instance]
    cloud.age()
    assert cloud.find().findings == ()


def test_a_device_that_is_being_cleaned_for_long_is_not_forgotten(
    cloud: Cloud,
) -> None:
    uuid, _instance = cloud.bound(needs_host=True)
    cloud.database.write(release.delete_listed, [uuid], EVERYBODY, True, None)
    cloud.age()
    assert cloud.find().findings == ()


# --- servers that are gone ------------------------------------------------------------


@pytest.mark.parametrize('needs_host', [False, True])
def test_the_request_of_a_server_that_is_gone_is_released(
    cloud: Cloud, needs_host: bool
) -> None:
    uuid, instance = cloud.bound(needs_host=needs_host)
    cloud.bound()
    del cloud.servers.hosts[instance]
    finding = cloud.only()
    assert (finding.trouble, finding.suspect.uuid) == (Trouble.SERVER_GONE, uuid)
    assert finding.reason == f'Nova has no server {instance}.'
    assert cloud.remedy(finding)
    released(cloud)
    assert states(cloud.database, [uuid]) == []
    assert len(owners(cloud.database)) == 1
    assert cloud.find().findings == ()


def test_a_failed_bind_of_a_server_that_is_gone_goes_with_it(cloud: Cloud) -> None:
    uuid, instance, job = cloud.accepted()
    event = cloud.database.write(
        binding.fail, job, [uuid], 'none left', NewJob(Kind.NOVA_EVENT)
    )
    assert event is not None
    cloud.database.write(jobs.finish, event)
    cloud.consumers.forget(instance)
    cloud.age()
    assert cloud.find().findings == ()
    del cloud.servers.hosts[instance]
    assert cloud.remedy(cloud.only())
    assert states(cloud.database, [uuid]) == []


def test_a_nova_that_is_away_condemns_nobody(cloud: Cloud) -> None:
    _uuid, instance = cloud.bound()
    del cloud.servers.hosts[instance]
    cloud.servers.away = True
    report = cloud.find()
    assert report.findings == ()
    (doubt,) = report.doubts
    assert 'Nova does not answer' in doubt


def test_a_cloud_without_nova_condemns_nobody(cloud: Cloud) -> None:
    _uuid, instance = cloud.bound()
    del cloud.servers.hosts[instance]
    cloud.servers.configured = False
    report = cloud.find()
    assert report.findings == ()
    assert '[nova] is not configured' in report.doubts[0]


def test_a_request_that_changed_since_it_was_found_is_left_alone(
    cloud: Cloud,
) -> None:
    """The server was gone; meanwhile its request serves another."""
    uuid, instance = cloud.bound()
    del cloud.servers.hosts[instance]
    finding = cloud.only()
    cloud.touch(uuid)
    assert not cloud.remedy(finding)
    assert states(cloud.database, [uuid]) == ['Bound']
    assert owners(cloud.database) == [uuid]


def test_a_request_that_is_deleted_meanwhile_is_left_alone(cloud: Cloud) -> None:
    uuid, instance = cloud.bound(needs_host=True)
    del cloud.servers.hosts[instance]
    finding = cloud.only()
    cloud.database.write(release.delete_of_instance, instance, EVERYBODY, None)
    assert not cloud.remedy(finding)
    assert kinds(cloud) == ['release']
    assert states(cloud.database, [uuid]) == ['Deleting']


# --- servers without an allocation ----------------------------------------------------


def test_a_running_server_keeps_its_device_without_an_allocation(
    cloud: Cloud,
) -> None:
    uuid, instance = cloud.bound()
    cloud.consumers.forget(instance)
    finding = cloud.only()
    assert (finding.trouble, finding.suspect.uuid) == (Trouble.NO_ALLOCATION, uuid)
    assert finding.remedy is None
    assert 'it may be running' in finding.reason
    assert not cloud.remedy(finding)
    assert owners(cloud.database) == [uuid]


def test_a_server_that_is_on_no_host_and_has_no_allocation_needs_no_device(
    cloud: Cloud,
) -> None:
    """Dropped in mid-build; Nova keeps it to show its error."""
    uuid, instance = cloud.bound()
    cloud.servers.hosts[instance] = None
    assert cloud.find().findings == ()
    cloud.consumers.forget(instance)
    finding = cloud.only()
    assert finding.remedy is Remedy.DELETE
    assert cloud.remedy(finding)
    assert owners(cloud.database) == []
    assert states(cloud.database, [uuid]) == []


def test_who_cannot_tell_where_a_server_is_releases_nothing(cloud: Cloud) -> None:
    _uuid, instance = cloud.bound()
    cloud.consumers.forget(instance)
    cloud.servers.away = True
    assert cloud.only().remedy is None


def test_a_placement_that_is_away_condemns_nobody(cloud: Cloud) -> None:
    _uuid, instance = cloud.bound()
    cloud.consumers.forget(instance)
    cloud.consumers.away = True
    report = cloud.find()
    assert report.findings == ()
    assert 'Placement does not answer' in report.doubts[0]


def test_where_binds_need_no_allocation_none_is_missed(cloud: Cloud) -> None:
    _uuid, instance = cloud.bound()
    cloud.consumers.forget(instance)
    cloud.require_allocation = False
    assert cloud.find().findings == ()


# --- requests that nobody wants -------------------------------------------------------


@pytest.mark.parametrize('state', ['Initial', 'Unbound', 'UnbindFailed', 'Deleting'])
def test_a_request_that_was_never_bound_is_deleted(cloud: Cloud, state: str) -> None:
    """Nova never heard the answer to its create."""
    (uuid,) = add_arqs(cloud.database, 1)
    cloud.set_state(uuid, state)
    finding = cloud.only()
    assert (finding.trouble, finding.suspect.uuid) == (Trouble.NEVER_BOUND, uuid)
    assert cloud.remedy(finding)
    assert states(cloud.database, [uuid]) == []


def test_a_request_that_is_bound_at_last_is_left_alone(cloud: Cloud) -> None:
    (uuid,) = add_arqs(cloud.database, 1)
    cloud.age()
    finding = cloud.only()
    cloud.touch(uuid)
    cloud.set_state(uuid, 'BindStarted')
    assert not cloud.remedy(finding)
    assert states(cloud.database, [uuid]) == ['BindStarted']


# --- binds and releases that are lost -------------------------------------------------


@pytest.mark.parametrize('needs_host', [False, True])
def test_a_bind_without_a_job_is_failed_and_holds_nothing(
    cloud: Cloud, needs_host: bool
) -> None:
    uuid, instance, job = cloud.accepted(needs_host=needs_host)
    if needs_host:
        told = NewJob(Kind.NOVA_EVENT)
        cloud.database.write(binding.claim, job, [uuid], None, told)
    cloud.lose_jobs()
    cloud.age()
    finding = next(
        one for one in cloud.find().findings if one.trouble is Trouble.BIND_LOST
    )
    assert cloud.remedy(finding)
    assert not cloud.remedy(finding), 'one job is enough'
    (late,) = cloud.database.write(jobs.take, OWNER, 10)
    assert (late.kind, late.expired) == (Kind.BIND, True)
    agents = FakeAgents()
    handler = BindHandler(cloud.database, agents, cloud.consumers, RULES)
    event = handler.expire(late, 'too late')
    assert event is not None
    assert event.payload == {
        'instance': instance,
        'arqs': [uuid],
        'succeeded': False,
    }
    released(cloud)
    assert states(cloud.database, [uuid]) == ['BindFailed']
    assert owners(cloud.database) == []


def test_a_device_whose_release_was_lost_is_released(cloud: Cloud) -> None:
    uuid, _instance = cloud.bound(needs_host=True)
    cloud.database.write(release.delete_listed, [uuid], EVERYBODY, True, None)
    cloud.lose_jobs()
    cloud.age()
    finding = cloud.only()
    assert (finding.trouble, finding.suspect.uuid) == (Trouble.NOT_RELEASED, uuid)
    assert finding.handle_uuid is not None
    assert cloud.remedy(finding)
    assert kinds(cloud) == ['release']
    released(cloud)
    assert owners(cloud.database) == []
    assert states(cloud.database, [uuid]) == []


def test_a_device_that_nobody_prepares_any_more_is_released(cloud: Cloud) -> None:
    uuid, _instance, job = cloud.accepted(needs_host=True)
    told = NewJob(Kind.NOVA_EVENT)
    cloud.database.write(binding.claim, job, [uuid], None, told)
    cloud.database.write(release.unbind, [uuid], EVERYBODY, None)
    cloud.age()
    assert cloud.find().findings == (), 'the bind job ends by releasing it'
    cloud.lose_jobs()
    assert cloud.preparing() == [True]
    assert cloud.remedy(cloud.only())
    released(cloud)
    assert owners(cloud.database) == []
    assert states(cloud.database, [uuid]) == ['Unbound']


@pytest.mark.parametrize('state', ['Unbound', 'BindFailed', 'Initial', 'Deleting'])
def test_a_handle_that_needs_no_host_is_freed_at_once(cloud: Cloud, state: str) -> None:
    uuid, _instance = cloud.bound()
    cloud.set_state(uuid, state)
    finding = next(
        one for one in cloud.find().findings if one.trouble is Trouble.NOT_RELEASED
    )
    assert cloud.remedy(finding)
    assert owners(cloud.database) == []
    left = [] if state == 'Deleting' else [state]
    assert states(cloud.database, [uuid]) == left


def test_a_release_that_has_failed_is_retried(cloud: Cloud) -> None:
    uuid, _instance = cloud.bound(needs_host=True)
    cloud.database.write(release.delete_listed, [uuid], EVERYBODY, True, None)
    (job,) = cloud.database.write(jobs.take, OWNER, 10)
    cloud.database.write(jobs.give_up, job, 'An operator cancelled it.')
    cloud.age()
    finding = cloud.only()
    assert finding.trouble is Trouble.RELEASE_FAILED
    assert finding.job_uuid == job.uuid
    assert job.uuid in finding.reason
    assert cloud.remedy(finding)
    (again,) = cloud.database.read(job_table.listed)
    assert (again.uuid, again.state) == (job.uuid, JobState.WAITING)
    released(cloud)
    assert owners(cloud.database) == []


def test_a_release_that_somebody_called_for_meanwhile_is_enough(
    cloud: Cloud,
) -> None:
    uuid, _instance = cloud.bound(needs_host=True)
    cloud.database.write(release.delete_listed, [uuid], EVERYBODY, True, None)
    cloud.lose_jobs()
    cloud.age()
    finding = cloud.only()
    # Nova deletes once more.
    cloud.database.write(release.delete_listed, [uuid], EVERYBODY, True, None)
    assert not cloud.remedy(finding)
    assert kinds(cloud) == ['release']


# --- cost -----------------------------------------------------------------------------


def test_an_audit_of_many_costs_no_more_statements_than_one_of_few(
    cloud: Cloud,
) -> None:
    counts = []
    for _ in range(2):
        cloud.bound()
        cloud.bound()
        with statements(cloud.database) as seen:
            cloud.find()
        counts.append(len(seen))
    assert counts[0] == counts[1]


def test_pages_follow_one_another(cloud: Cloud) -> None:
    uuids = [cloud.bound()[0] for _ in range(3)]
    before = cloud.database.read(clock.ago, 0)
    first = cloud.database.read(queries.with_device, before, 0, 2)
    rest = cloud.database.read(queries.with_device, before, first[-1].id, 2)
    assert [one.uuid for one in (*first, *rest)] == uuids
