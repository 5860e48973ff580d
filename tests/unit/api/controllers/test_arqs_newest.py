# SPDX-License-Identifier: Apache-2.0
"""Tests of ARQs at microversion 2.4: details, filters, pages, events."""

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

from cyborg_lite.model.arqs.arqs import Actor, State, Step
from tests.support.api.conversation import ADMIN, MANAGER, OTHER_MEMBER, Client
from tests.support.api.patches import INSTANCE, UNKNOWN

AT = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)
ADDED = {
    'status_reason',
    'attach_target',
    'deployable_uuid',
    'device_uuid',
    'state_times',
}
DEVICE, DEPLOYABLE = 'a' * 8 + UNKNOWN[8:], 'b' * 8 + UNKNOWN[8:]


@pytest.fixture
def newest(nova: Client) -> Client:
    return nova.at('2.4')


def become(client: Client, uuid: str, **fields: Any) -> None:
    """Have each list contain only this ARQ, with other values."""
    arq = dataclasses.replace(client.conductor.arqs[uuid], **fields)
    client.conductor.answers['list_arqs'] = (arq,)


@pytest.mark.parametrize('version', ['2.0', '2.3'])
def test_show_arq_before_2_4_lacks_new_fields(
    nova: Client, bound: list[str], version: str
) -> None:
    path = f'/accelerator_requests/{bound[0]}'
    older = nova.at(version).get(path).json
    newer = nova.at('2.4').get(path).json
    assert newer.keys() - older.keys() == ADDED
    assert older.keys() <= newer.keys()


def test_show_arq_has_reason_device_and_times(newest: Client, bound: list[str]) -> None:
    become(
        newest,
        bound[0],
        status_reason='no firmware',
        deployable_uuid=DEPLOYABLE,
        device_uuid=DEVICE,
        state_times={State.INITIAL: AT, State.BOUND: AT + timedelta(seconds=2)},
    )
    arq = newest.get(f'/accelerator_requests/{bound[0]}').json
    assert {name: arq[name] for name in ADDED} == {
        'status_reason': 'no firmware',
        'attach_target': 'VM',
        'deployable_uuid': DEPLOYABLE,
        'device_uuid': DEVICE,
        'state_times': {
            'Initial': '2026-11-21T06:00:00+00:00',
            'Bound': '2026-11-21T06:00:02+00:00',
        },
    }
    assert newest.get('/accelerator_requests').json['arqs'][0] == arq


@pytest.mark.parametrize('state', [State.PROVISIONING, State.UNKNOWN])
def test_list_arqs_shows_all_states(
    newest: Client, bound: list[str], state: State
) -> None:
    become(newest, bound[1], state=state)
    response = newest.get(f'/accelerator_requests?instance={INSTANCE}')
    assert response.status == 200
    assert [arq['state'] for arq in response.json['arqs']].count(state.value) == 1
    picked = newest.get(f'/accelerator_requests?state={state.value}').json['arqs']
    assert [arq['uuid'] for arq in picked] == [bound[1]]


@pytest.mark.parametrize(
    ('query', 'count'),
    [
        ('hostname=compute-1', 3),
        ('hostname=compute-2', 0),
        ('device_profile_name=dp1', 3),
        ('device_profile_name=dp1&state=Bound', 3),
        ('state=Initial', 0),
        ('project_id=nobody', 0),
    ],
)
def test_list_arqs_newer_filters(
    newest: Client, bound: list[str], query: str, count: int
) -> None:
    answer = newest.get(f'/accelerator_requests?{query}')
    assert (answer.status, len(answer.json['arqs'])) == (200, count)
    assert newest.at('2.3').get(f'/accelerator_requests?{query}').status == 400


def test_list_arqs_state_and_bind_state_returns_400(newest: Client) -> None:
    path = '/accelerator_requests?state=Bound&bind_state=resolved'
    assert newest.get(path).status == 400


def test_arq_events_show_actor_and_duration(newest: Client, bound: list[str]) -> None:
    failed_at = AT + timedelta(seconds=1.5)
    newest.conductor.answers['list_arq_steps'] = (
        Step('BindFailed', Actor.AGENT, failed_at, 'no firmware'),
        Step('BindStarted', Actor.CLIENT, AT, ended_at=failed_at),
    )
    answer = newest.as_(ADMIN).get(f'/accelerator_requests/{bound[0]}/events')
    assert answer.status == 200
    started, failed = answer.json['events']
    assert (started['step'], started['actor']) == ('BindStarted', 'client')
    assert (started['duration'], started['reason']) == (1.5, None)
    assert (failed['step'], failed['actor']) == ('BindFailed', 'agent')
    assert (failed['duration'], failed['reason']) == (None, 'no firmware')
    assert failed['at'] == '2026-11-21T06:00:01.500000+00:00'


def test_arq_events_duration_is_never_negative(
    newest: Client, bound: list[str]
) -> None:
    newest.conductor.answers['list_arq_steps'] = (
        Step('Bound', Actor.AGENT, AT, ended_at=AT - timedelta(seconds=1)),
    )
    (event,) = newest.get(f'/accelerator_requests/{bound[0]}/events').json['events']
    assert event['duration'] == 0.0


def test_events_of_instance_outlive_its_arqs(newest: Client, bound: list[str]) -> None:
    """The latest step is first. A page continues where the one before it ended."""
    path = f'/instance_events?instance={INSTANCE}'
    latest = newest.at('2.7')
    newest.delete(f'/accelerator_requests?instance={INSTANCE}')
    page = latest.get(path + '&limit=2').json
    (link,) = page['events_links']
    following = latest.get(f'/instance_events?{urlsplit(link["href"]).query}').json
    assert following.keys() == {'events'}
    events = page['events'] + following['events']
    assert {event['arq_uuid'] for event in events} == set(bound)
    assert {event['instance_uuid'] for event in events} == {INSTANCE}
    for uuid in bound:
        path = f'/accelerator_requests/{uuid}/events'
        listed = latest.get(path).json['events']
        assert listed == [event for event in events if event['arq_uuid'] == uuid]


def test_events_of_instance_are_those_of_project(
    newest: Client, bound: list[str]
) -> None:
    path = '/instance_events?instance='
    assert newest.as_(OTHER_MEMBER).at('2.7').get(path + INSTANCE).json == {
        'events': []
    }
    assert newest.at('2.7').get(path + UNKNOWN).json == {'events': []}
    assert newest.at('2.7').get(path + 'x').status == 400
    assert newest.at('2.7').get('/instance_events').status == 400


def test_arq_events_of_other_project_return_404(
    newest: Client, bound: list[str]
) -> None:
    path = f'/accelerator_requests/{bound[0]}/events'
    assert newest.as_(OTHER_MEMBER).get(path).status == 404
    assert newest.as_(MANAGER).get(path).status == 200
    assert newest.get(f'/accelerator_requests/{UNKNOWN}/events').status == 404
    assert newest.get('/accelerator_requests/x/events').status == 400
