# SPDX-License-Identifier: Apache-2.0
"""Accelerator requests, as Nova, the SDK and people make and read them."""

import dataclasses
from typing import Any

import pytest

from cyborg_lite.api.app import assemble
from cyborg_lite.model.arqs import WITH_HANDLE, State
from cyborg_lite.model.profile_grammar import is_name
from tests.fakes.conductor_requests import HANDLE
from tests.unit.api.controllers.patches import (
    INSTANCE,
    PROVIDER,
    UNKNOWN,
    bind,
)
from tests.unit.api.conversation import (
    ADMIN,
    HOST,
    MEMBER,
    PROJECT,
    SERVICE_TOKEN,
    STRANGER,
    Client,
    configuration,
)

XILINX = {'resources:FPGA': '1', 'trait:CUSTOM_FPGA_XILINX': 'required'}
NO_NAMES: list[Any] = [None, 5, True, [], {}, ['dp1']]

# --- create ---


def test_every_unit_of_every_group_makes_a_request(nova: Client) -> None:
    answer = nova.post('/accelerator_requests', {'device_profile_name': 'dp1'})
    assert answer.status == 201
    arqs = answer.json['arqs']
    assert [arq['device_profile_group_id'] for arq in arqs] == [0, 1, 1]
    uuid = arqs[0]['uuid']
    assert arqs[0] == {
        'uuid': uuid,
        'state': 'Initial',
        'device_profile_name': 'dp1',
        'device_profile_group_id': 0,
        'hostname': None,
        'device_rp_uuid': None,
        'instance_uuid': None,
        'project_id': PROJECT,
        'attach_handle_type': '',
        'attach_handle_uuid': None,
        'attach_handle_info': {},
        'links': [{'href': f'{HOST}/v2/accelerator_requests/{uuid}', 'rel': 'self'}],
        'created_at': '2026-11-21T05:53:44.501846+00:00',
        'updated_at': None,
    }


def test_a_xilinx_card_makes_two(client: Client) -> None:
    client.profile('xilinx', XILINX)
    assert [arq['device_profile_group_id'] for arq in client.arqs('xilinx')] == [0, 0]


@pytest.mark.parametrize(
    'more',
    [
        {'device_profile_group_id': None},
        {'device_profile_group_id': 'x'},
        {'image_uuid': 'x'},
        {'anything': {'a': [1]}},
    ],
)
def test_what_else_a_client_sends_is_ignored(
    nova: Client, more: dict[str, Any]
) -> None:
    body = {'device_profile_name': 'dp1', **more}
    assert nova.post('/accelerator_requests', body).status == 201
    assert nova.conductor.images == [None]


@pytest.mark.parametrize(
    ('image', 'status'),
    [
        (UNKNOWN, 201),
        (UNKNOWN.replace('-', ''), 201),
        (None, 201),
        ('x', 400),
        (5, 400),
    ],
)
def test_the_image_of_the_server_counts_from_2_4_on(
    nova: Client, image: Any, status: int
) -> None:
    body = {'device_profile_name': 'dp1', 'image_uuid': image}
    assert nova.at('2.4').post('/accelerator_requests', body).status == status
    named = None if image is None else UNKNOWN
    assert nova.conductor.images == ([named] if status == 201 else [])


@pytest.mark.parametrize(
    'name',
    ['nobody', '', '!@#$%^&*()=-[]', 'a\0b', '\ud800', 'x' * 5000, UNKNOWN, 'DP1'],
)
def test_an_unknown_profile_is_not_found(nova: Client, name: str) -> None:
    asked = len(nova.conductor.callers)
    answer = nova.post('/accelerator_requests', {'device_profile_name': name})
    assert answer.status == 404
    assert 'not found' in answer.fault
    # What no profile can be called must not reach a database, which may think two
    # names equal that are not.
    assert len(nova.conductor.callers) - asked == is_name(name)


@pytest.mark.parametrize(
    'body',
    [
        {},
        [],
        5,
        None,
        'dp1',
        True,
        [{'device_profile_name': 'dp1'}],
        {'name': 'dp1'},
        *({'device_profile_name': name} for name in NO_NAMES),
    ],
)
def test_a_request_without_a_name_is_refused(nova: Client, body: Any) -> None:
    raw = b'null' if body is None else None
    assert nova.send('POST', '/accelerator_requests', body, raw=raw).status == 400
    assert not nova.conductor.arqs


def test_a_profile_that_asks_for_nothing_makes_no_request(client: Client) -> None:
    """Older rows may hold such a profile, which can no longer be made."""
    uuid = client.profile('old')['uuid']
    old = dataclasses.replace(
        client.conductor.profiles[uuid], groups=({'accel:x': '1'},)
    )
    client.conductor.profiles[uuid] = old
    answer = client.post('/accelerator_requests', {'device_profile_name': 'old'})
    assert answer.status == 400
    assert 'old' in answer.fault


# --- read ---


def test_the_caller_sees_its_projects_requests(nova: Client) -> None:
    uuids = [arq['uuid'] for arq in nova.arqs()]
    listed = nova.as_(MEMBER).get('/accelerator_requests').json['arqs']
    assert [arq['uuid'] for arq in listed] == uuids
    assert nova.as_(STRANGER).get('/accelerator_requests').json == {'arqs': []}
    assert len(nova.as_(ADMIN).get('/accelerator_requests').json['arqs']) == 3


def test_one_request_comes_bare(nova: Client) -> None:
    created = nova.arqs()[0]
    uuid = created['uuid']
    for spelling in (uuid, uuid.upper(), uuid.replace('-', '')):
        assert nova.get(f'/accelerator_requests/{spelling}').json == created


@pytest.mark.parametrize(
    ('identifier', 'status'),
    [(UNKNOWN, 404), ('x', 400), ('%00', 400), ('%C3%A9', 400), ('x' * 9000, 400)],
)
def test_what_is_no_request_is_not_shown(
    nova: Client, identifier: str, status: int
) -> None:
    assert nova.get(f'/accelerator_requests/{identifier}').status == status


def test_another_projects_request_is_as_unknown_as_none(nova: Client) -> None:
    uuid = nova.arqs()[0]['uuid']
    stranger = nova.as_(STRANGER)
    answers = [
        stranger.get(f'/accelerator_requests/{uuid}'),
        stranger.delete(f'/accelerator_requests/{uuid}'),
        stranger.as_({**STRANGER, **SERVICE_TOKEN}).patch(
            '/accelerator_requests', {uuid: bind()}
        ),
    ]
    assert [answer.status for answer in answers] == [404, 404, 404]
    assert nova.as_(ADMIN).get(f'/accelerator_requests/{uuid}').status == 200


def test_the_requests_of_an_instance(nova: Client, bound: list[str]) -> None:
    nova.arqs()
    for spelling in (INSTANCE, INSTANCE.upper(), INSTANCE.replace('-', '')):
        arqs = nova.get(f'/accelerator_requests?instance={spelling}').json['arqs']
        assert [arq['uuid'] for arq in arqs] == bound
    assert nova.get(f'/accelerator_requests?instance={UNKNOWN}').json == {'arqs': []}


def test_a_bound_request_shows_where_and_with_what(
    nova: Client, bound: list[str]
) -> None:
    arq = nova.get(f'/accelerator_requests/{bound[0]}').json
    assert arq['state'] == 'Bound'
    assert arq['hostname'] == 'compute-1'
    assert arq['device_rp_uuid'] == PROVIDER
    assert arq['instance_uuid'] == INSTANCE
    assert arq['attach_handle_type'] == 'PCI'
    assert arq['attach_handle_info'] == HANDLE
    assert arq['attach_handle_uuid']
    assert arq['updated_at']


@pytest.mark.parametrize(
    'query',
    [
        'instance=x',
        'instance=',
        'bind_state=bound',
        'bind_state=RESOLVED',
        f'instance={INSTANCE}&instance={INSTANCE}',
        'arqs=x',
        'arqs=%00',
        'foo=1',
        'limit=0',
        'limit=-1',
        'limit=x',
        'limit=1.5',
        'limit=\u0663',
        'limit=',
        'marker=x',
        'marker=',
        f'marker={UNKNOWN}',
        'sort_key=foo',
        'sort_key=',
        'sort_dir=up',
        'sort_dir=',
        '%ff=1',
        'instance=%ff',
        '%00',
    ],
)
def test_a_wrong_query_is_refused(nova: Client, query: str) -> None:
    answer = nova.get(f'/accelerator_requests?{query}')
    assert answer.status == 400
    assert answer.fault


def test_an_unknown_argument_is_named(nova: Client) -> None:
    assert 'instance_uuid' in nova.get('/accelerator_requests?instance_uuid=x').fault
    created = nova.arqs()[0]['uuid']
    for method, path in (('GET', created), ('DELETE', created), ('PATCH', '')):
        answer = nova.send(method, f'/accelerator_requests/{path}?foo=1', {})
        assert (answer.status, 'foo' in answer.fault) == (400, True)


def test_an_empty_bind_state_is_none(nova: Client) -> None:
    nova.arqs()
    assert len(nova.get('/accelerator_requests?bind_state=').json['arqs']) == 3


def test_resolved_requests_of_everything(nova: Client, bound: list[str]) -> None:
    nova.arqs()
    arqs = nova.get('/accelerator_requests?bind_state=resolved').json['arqs']
    assert [arq['uuid'] for arq in arqs] == bound


def state(client: Client, uuid: str, new: State) -> None:
    arqs = client.conductor.arqs
    arqs[uuid] = dataclasses.replace(arqs[uuid], state=new)


@pytest.mark.parametrize('other', [State.BOUND, State.BIND_FAILED, State.DELETING])
def test_an_instance_is_resolved_when_all_its_requests_are(
    nova: Client, bound: list[str], other: State
) -> None:
    state(nova, bound[1], other)
    path = f'/accelerator_requests?instance={INSTANCE}&bind_state=resolved'
    assert [arq['uuid'] for arq in nova.get(path).json['arqs']] == bound


@pytest.mark.parametrize('other', [State.BIND_STARTED, State.INITIAL, State.UNBOUND])
@pytest.mark.parametrize('more', ['', '&limit=1', '&arqs={}', '&sort_dir=desc'])
def test_an_instance_with_one_unfinished_request_must_wait(
    nova: Client, bound: list[str], other: State, more: str
) -> None:
    state(nova, bound[1], other)
    path = f'/accelerator_requests?instance={INSTANCE}&bind_state=resolved'
    answer = nova.get(path + more.format(bound[0]))
    assert answer.status == 423
    assert INSTANCE in answer.fault
    # Nova itself asks without the state, and looks at each.
    assert nova.get(f'/accelerator_requests?instance={INSTANCE}').status == 200


def test_an_instance_without_requests_is_resolved(nova: Client) -> None:
    answer = nova.get(f'/accelerator_requests?instance={INSTANCE}&bind_state=resolved')
    assert (answer.status, answer.json) == (200, {'arqs': []})


def must_wait(nova: Client, arq: str) -> None:
    for version in (None, '2.3'):
        for more in ('', '&limit=1', '&bind_state=resolved'):
            path = f'/accelerator_requests?instance={INSTANCE}{more}'
            answer = nova.as_(nova.headers, version).get(path)
            assert answer.status == 423
            assert f'Instance {INSTANCE} must not be started now' in answer.fault
            assert arq in answer.fault
            assert 'the host compute-1' in answer.fault


def test_a_guest_does_not_start_while_its_host_is_silent(
    nova: Client, bound: list[str]
) -> None:
    """Whether the device is there nobody knows; the request is what it was."""
    state(nova, bound[2], State.UNKNOWN)
    must_wait(nova, bound[2])
    shown = [
        nova.get(f'/accelerator_requests/{bound[2]}').json,
        nova.get('/accelerator_requests').json['arqs'][2],
        nova.get('/accelerator_requests?bind_state=resolved').json['arqs'][2],
    ]
    for arq in shown:
        assert arq['state'] == 'Bound'
        assert arq['attach_handle_info'] == HANDLE


@pytest.mark.parametrize(
    ('other', 'as_'), [(State.UNKNOWN, 'Bound'), (State.PROVISIONING, 'BindStarted')]
)
def test_an_operator_may_let_guests_start_all_the_same(
    nova: Client, bound: list[str], other: State, as_: str
) -> None:
    state(nova, bound[2], other)
    lenient = assemble(configuration(hold_power_on=False), nova.conductor)
    nova = Client(nova.conductor, lenient, nova.headers)
    answer = nova.get(f'/accelerator_requests?instance={INSTANCE}')
    assert answer.status == 200
    assert [arq['state'] for arq in answer.json['arqs']] == ['Bound', 'Bound', as_]
    path = f'/accelerator_requests?instance={INSTANCE}&bind_state=resolved'
    assert nova.get(path).status == (200 if other is State.UNKNOWN else 423)


def test_a_guest_does_not_start_while_its_device_is_rebuilt(
    nova: Client, bound: list[str]
) -> None:
    """Nova asks at power-on and does not look at the states."""
    state(nova, bound[2], State.PROVISIONING)
    must_wait(nova, bound[2])
    shown = [
        nova.get(f'/accelerator_requests/{bound[2]}').json,
        nova.get('/accelerator_requests').json['arqs'][2],
    ]
    for arq in shown:
        assert arq['state'] == 'BindStarted'
        assert arq['attach_handle_info'] == {}


@pytest.mark.parametrize('other', sorted(set(State) - WITH_HANDLE), ids=str)
def test_the_handle_shows_only_while_it_is_ready(
    nova: Client, bound: list[str], other: State
) -> None:
    state(nova, bound[0], other)
    arq = nova.get(f'/accelerator_requests/{bound[0]}').json
    assert arq['attach_handle_type'] == ''
    assert arq['attach_handle_uuid'] is None
    assert arq['attach_handle_info'] == {}


def test_requests_are_picked_by_uuid(nova: Client) -> None:
    uuids = [arq['uuid'] for arq in nova.arqs()]
    wanted = f'{uuids[2].upper()},{UNKNOWN},{uuids[0]}'
    arqs = nova.get(f'/accelerator_requests?arqs={wanted}').json['arqs']
    assert [arq['uuid'] for arq in arqs] == [uuids[0], uuids[2]]
    assert nova.get('/accelerator_requests?arqs=').json == {'arqs': []}


def test_nova_asks_the_conductor_once(nova: Client, bound: list[str]) -> None:
    before = len(nova.conductor.callers)
    nova.get(f'/accelerator_requests?instance={INSTANCE}')
    nova.get(f'/accelerator_requests?instance={INSTANCE}&bind_state=resolved')
    assert len(nova.conductor.callers) - before == 2


# --- what there is not ---


@pytest.mark.parametrize(
    ('method', 'path', 'allowed'),
    [
        ('PUT', '/accelerator_requests', 'GET, HEAD, POST, PATCH, DELETE'),
        ('PUT', f'/accelerator_requests/{UNKNOWN}', 'GET, HEAD, PATCH, DELETE'),
        ('POST', '/accelerator_requests/x', 'GET, HEAD, PATCH, DELETE'),
    ],
)
def test_other_methods_are_not_allowed(
    nova: Client, method: str, path: str, allowed: str
) -> None:
    answer = nova.send(method, path, {'device_profile_name': 'dp1'})
    assert answer.status == 405
    assert answer.headers['Allow'] == allowed
