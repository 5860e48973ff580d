# SPDX-License-Identifier: Apache-2.0
"""Tests of the Nova client with a fake Nova that validates events as Nova does."""

import logging
from collections.abc import Iterator
from uuid import uuid4

import pytest

from cyborg_lite.clients.nova import BoundEvent
from cyborg_lite.errors.daemons import RemoteError, ServiceUnavailable
from tests.builders.cloud_clients import create_nova_client
from tests.doubles.nova import FakeNova


@pytest.fixture
def fake() -> Iterator[FakeNova]:
    with FakeNova() as fake:
        yield fake


def event(*, succeeded: bool = True) -> BoundEvent:
    return BoundEvent(str(uuid4()), str(uuid4()), succeeded)


def test_post_events_uses_microversion_2_82(fake: FakeNova) -> None:
    create_nova_client(fake.endpoint).post_events([event()])
    assert fake.posts[0].headers['OpenStack-API-Version'] == 'compute 2.82'


def test_post_events_matches_outcomes_by_tag(fake: FakeNova) -> None:
    instance = str(uuid4())
    first, second = (BoundEvent(instance, str(uuid4()), True) for _ in range(2))
    fake.rules.codes = {second.arq_uuid: 422}
    outcomes = create_nova_client(fake.endpoint).post_events([first, second])
    assert [outcome.code for outcome in outcomes] == [200, 422]


def test_post_events_failing_nova_raises_service_unavailable(fake: FakeNova) -> None:
    fake.rules.failures = 1
    nova = create_nova_client(fake.endpoint)
    with pytest.raises(ServiceUnavailable, match='Nova does not answer'):
        nova.post_events([event()])
    assert fake.events == []
    assert nova.post_events([event()])[0].code == 200


def test_post_events_rejected_request_raises_with_reason(fake: FakeNova) -> None:
    malformed = BoundEvent('not-a-uuid', str(uuid4()), True)
    with pytest.raises(RemoteError, match='Nova answered 400: Invalid input'):
        create_nova_client(fake.endpoint).post_events([malformed])


def test_post_events_without_events_sends_nothing(fake: FakeNova) -> None:
    assert create_nova_client(fake.endpoint).post_events([]) == ()
    assert fake.posts == []


def test_post_events_unknown_instances_only_warns_once(
    fake: FakeNova, caplog: pytest.LogCaptureFixture
) -> None:
    events = [event(), event()]
    fake.rules.codes = {event.instance_uuid: 404 for event in events}
    nova = create_nova_client(fake.endpoint)
    for _ in range(3):
        nova.post_events(events)
    assert caplog.text.count('admin role') == 1


def test_post_events_some_unknown_instances_does_not_warn(
    fake: FakeNova, caplog: pytest.LogCaptureFixture
) -> None:
    known_event, unknown_event = event(), event()
    fake.rules.codes = {unknown_event.instance_uuid: 404}
    create_nova_client(fake.endpoint).post_events([known_event, unknown_event])
    assert 'admin role' not in caplog.text


def test_post_events_404_for_request_applies_to_all(fake: FakeNova) -> None:
    """Nova releases that know none of the instances answer 404 for the request."""
    fake.rules.failures, fake.rules.failure = 1, 404
    outcomes = create_nova_client(fake.endpoint).post_events([event(), event()])
    assert [outcome.code for outcome in outcomes] == [404, 404]


def test_post_events_without_configuration_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    nova = create_nova_client(None)
    with caplog.at_level(logging.DEBUG):
        outcomes = nova.post_events([event()]) + nova.post_events([event()])
    assert [outcome.code for outcome in outcomes] == [None, None]
    assert caplog.text.count('are dropped') == 1
    assert caplog.text.count('Event dropped') == 2


# --- instances ---


def build_servers(number: int) -> dict[str, str | None]:
    return {str(uuid4()): 'compute-1' for _ in range(number)}


def test_find_missing_instances_returns_unknown_uuids(fake: FakeNova) -> None:
    fake.rules.servers = build_servers(2)
    missing = str(uuid4())
    instance_uuids = [*fake.rules.servers, missing]
    assert create_nova_client(fake.endpoint).find_missing_instances(
        instance_uuids
    ) == frozenset({missing})
    assert len(fake.gets) == 4


def test_find_missing_instances_many_instances_reads_pages(fake: FakeNova) -> None:
    fake.rules.servers = build_servers(250)
    fake.rules.largest_page = 100
    missing = frozenset({str(uuid4()), str(uuid4())})
    assert (
        create_nova_client(fake.endpoint).find_missing_instances(
            {*fake.rules.servers, *missing}
        )
        == missing
    )
    # Three pages, the empty last page, and one request per missing instance.
    assert len(fake.gets) == 4 + 2


def test_find_missing_instances_without_admin_role_raises(fake: FakeNova) -> None:
    """Nova hides instances of other projects from users without the admin role."""
    fake.rules.servers = build_servers(1)
    fake.rules.sees_all = False
    with pytest.raises(RemoteError, match='get_all_tenants'):
        create_nova_client(fake.endpoint).find_missing_instances(fake.rules.servers)


@pytest.mark.parametrize('number', [1, 101])
def test_find_missing_instances_failing_nova_raises(
    fake: FakeNova, number: int
) -> None:
    fake.rules.failures = 1
    with pytest.raises(ServiceUnavailable):
        create_nova_client(fake.endpoint).find_missing_instances(build_servers(number))


def test_unconfigured_nova_returns_none() -> None:
    nova = create_nova_client(None)
    assert nova.find_missing_instances(['x']) is None
    assert nova.is_placed('x') is None
    assert nova.is_spawned('x') is None
    assert nova.find_settled_node('x') is None


def test_placed_spawned_and_settled_instances_are_known(fake: FakeNova) -> None:
    names = ('idle', 'busy', 'building', 'deleted', 'unplaced', 'missing')
    uuids = {name: str(uuid4()) for name in names}
    fake.rules.servers = dict.fromkeys(list(uuids.values())[:-2], 'compute-1')
    fake.rules.servers[uuids['unplaced']] = None
    fake.rules.tasks[uuids['busy']] = 'unshelving'
    fake.rules.vm_states[uuids['building']] = 'building'
    fake.rules.vm_states[uuids['deleted']] = 'deleted'
    nova = create_nova_client(fake.endpoint)
    answers = {
        name: (
            nova.is_placed(uuid),
            nova.is_spawned(uuid),
            nova.find_settled_node(uuid),
        )
        for name, uuid in uuids.items()
    }
    assert answers == {
        'idle': (True, True, 'compute-1'),
        'busy': (True, False, None),
        'building': (True, False, 'compute-1'),
        'deleted': (True, False, None),
        'unplaced': (False, True, None),
        'missing': (False, False, None),
    }


def test_is_migration_knows_migrations_only(fake: FakeNova) -> None:
    migration, instance = str(uuid4()), str(uuid4())
    fake.rules.moves = [migration]
    nova = create_nova_client(fake.endpoint)
    assert (nova.is_migration(migration), nova.is_migration(instance)) == (True, False)
