# SPDX-License-Identifier: Apache-2.0
"""Tests of creating and showing ARQs."""

from collections.abc import Callable
from typing import Any

import pytest

from cyborg_lite.db.core import tables
from cyborg_lite.model.arqs.arqs import HANDLE_SHOWN_STATES, State
from cyborg_lite.model.profiles.grammar import is_valid_name
from tests.builders.service_rows import mark_down
from tests.support.api.conductor import HANDLE
from tests.support.api.conversation import (
    ADMIN,
    HOST,
    MEMBER,
    NOVA,
    OTHER_MEMBER,
    PROJECT,
    SERVICE_TOKEN,
    Client,
)
from tests.support.api.patches import INSTANCE, PROVIDER, UNKNOWN, build_bind

XILINX = {'resources:FPGA': '1', 'trait:CUSTOM_FPGA_XILINX': 'required'}
NO_NAMES: list[Any] = [None, 5, True, [], {}, ['dp1']]


def test_create_arqs_one_per_accelerator(nova: Client) -> None:
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
        'created_at': arqs[0]['created_at'],
        'updated_at': None,
    }


def test_create_arqs_xilinx_creates_two(client: Client) -> None:
    client.create_profile('xilinx', XILINX)
    assert [arq['device_profile_group_id'] for arq in client.create_arqs('xilinx')] == [
        0,
        0,
    ]


def list_images(client: Client) -> list[str | None]:
    """Return the images that have reached the conductor."""
    return client.conductor.list_arguments('create_arqs', 'image_uuid')


@pytest.mark.parametrize(
    'fields',
    [
        {'device_profile_group_id': None},
        {'device_profile_group_id': 'x'},
        {'image_uuid': 'x'},
        {'anything': {'a': [1]}},
    ],
)
def test_create_arqs_unknown_keys_are_ignored(
    nova: Client, fields: dict[str, Any]
) -> None:
    body = {'device_profile_name': 'dp1', **fields}
    assert nova.post('/accelerator_requests', body).status == 201
    assert list_images(nova) == [None]


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
def test_create_arqs_image_is_used_since_2_4(
    nova: Client, image: Any, status: int
) -> None:
    body = {'device_profile_name': 'dp1', 'image_uuid': image}
    assert nova.at('2.4').post('/accelerator_requests', body).status == status
    expected_image = None if image is None else UNKNOWN
    assert list_images(nova) == ([expected_image] if status == 201 else [])


@pytest.mark.parametrize(
    'name',
    ['nobody', '', '!@#$%^&*()=-[]', 'a\0b', '\ud800', 'x' * 5000, UNKNOWN, 'DP1'],
)
def test_create_arqs_unknown_profile_returns_404(nova: Client, name: str) -> None:
    call_count = len(nova.conductor.callers)
    answer = nova.post('/accelerator_requests', {'device_profile_name': name})
    assert answer.status == 404
    assert 'not found' in answer.fault
    # A malformed name must not reach a database, which may compare it as equal to
    # another name.
    assert len(nova.conductor.callers) - call_count == is_valid_name(name)


@pytest.mark.parametrize(
    'body',
    [{}, [], {'name': 'dp1'}, *({'device_profile_name': name} for name in NO_NAMES)],
)
def test_create_arqs_without_name_returns_400(nova: Client, body: Any) -> None:
    assert nova.post('/accelerator_requests', body).status == 400
    assert not nova.conductor.arqs


def test_create_arqs_empty_profile_returns_400(client: Client) -> None:
    """Old rows may contain such a profile; it can no longer be created."""
    uuid = client.create_profile('old')['uuid']
    client.conductor.change(tables.DeviceProfile, uuid, groups=[{'accel:x': '1'}])
    answer = client.post('/accelerator_requests', {'device_profile_name': 'old'})
    assert answer.status == 400
    assert 'old' in answer.fault


def test_list_arqs_shows_project_of_caller(nova: Client) -> None:
    uuids = [arq['uuid'] for arq in nova.create_arqs()]
    listed = nova.as_(MEMBER).get('/accelerator_requests').json['arqs']
    assert [arq['uuid'] for arq in listed] == uuids
    assert nova.as_(OTHER_MEMBER).get('/accelerator_requests').json == {'arqs': []}
    assert len(nova.as_(ADMIN).get('/accelerator_requests').json['arqs']) == 3


def test_show_arq_has_no_wrapper(nova: Client) -> None:
    created = nova.create_arqs()[0]
    uuid = created['uuid']
    for spelling in (uuid, uuid.upper(), uuid.replace('-', '')):
        assert nova.get(f'/accelerator_requests/{spelling}').json == created


@pytest.mark.parametrize('identifier', ['%00', '%C3%A9', 'x' * 9000])
def test_show_arq_invalid_uuid_returns_400(nova: Client, identifier: str) -> None:
    assert nova.get(f'/accelerator_requests/{identifier}').status == 400


def test_show_arq_of_other_project_returns_404(nova: Client) -> None:
    uuid = nova.create_arqs()[0]['uuid']
    other_member = nova.as_(OTHER_MEMBER)
    answers = [
        other_member.get(f'/accelerator_requests/{uuid}'),
        other_member.delete(f'/accelerator_requests/{uuid}'),
        other_member.as_({**OTHER_MEMBER, **SERVICE_TOKEN}).patch(
            '/accelerator_requests', {uuid: build_bind()}
        ),
    ]
    assert [answer.status for answer in answers] == [404, 404, 404]
    assert nova.as_(ADMIN).get(f'/accelerator_requests/{uuid}').status == 200


def test_list_arqs_of_instance(nova: Client, bound: list[str]) -> None:
    nova.create_arqs()
    for spelling in (INSTANCE, INSTANCE.upper(), INSTANCE.replace('-', '')):
        arqs = nova.get(f'/accelerator_requests?instance={spelling}').json['arqs']
        assert [arq['uuid'] for arq in arqs] == bound
    assert nova.get(f'/accelerator_requests?instance={UNKNOWN}').json == {'arqs': []}


def test_show_arq_bound_has_handle(nova: Client, bound: list[str]) -> None:
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
def test_list_arqs_invalid_query_returns_400(nova: Client, query: str) -> None:
    answer = nova.get(f'/accelerator_requests?{query}')
    assert answer.status == 400
    assert answer.fault


def test_list_arqs_empty_bind_state_is_ignored(nova: Client) -> None:
    nova.create_arqs()
    assert len(nova.get('/accelerator_requests?bind_state=').json['arqs']) == 3


def test_list_arqs_resolved_of_all_instances(nova: Client, bound: list[str]) -> None:
    nova.create_arqs()
    arqs = nova.get('/accelerator_requests?bind_state=resolved').json['arqs']
    assert [arq['uuid'] for arq in arqs] == bound


def set_state(client: Client, uuid: str, new_state: State) -> None:
    if new_state is State.UNKNOWN:
        # The handle needs the host, whose agent is down.
        mark_down(client.conductor.database, 'compute-1')
        change_handle(client, uuid, needs_host=True)
    else:
        client.conductor.change(tables.Arq, uuid, state=new_state)


@pytest.mark.parametrize('arq_state', [State.BOUND, State.BIND_FAILED, State.DELETING])
def test_list_arqs_resolved_instance(
    nova: Client, bound: list[str], arq_state: State
) -> None:
    set_state(nova, bound[1], arq_state)
    path = f'/accelerator_requests?instance={INSTANCE}&bind_state=resolved'
    assert [arq['uuid'] for arq in nova.get(path).json['arqs']] == bound


@pytest.mark.parametrize(
    'arq_state', [State.BIND_STARTED, State.INITIAL, State.UNBOUND]
)
@pytest.mark.parametrize('parameters', ['', '&limit=1', '&arqs={}', '&sort_dir=desc'])
def test_list_arqs_unresolved_instance_returns_423(
    nova: Client, bound: list[str], arq_state: State, parameters: str
) -> None:
    set_state(nova, bound[1], arq_state)
    path = f'/accelerator_requests?instance={INSTANCE}&bind_state=resolved'
    answer = nova.get(path + parameters.format(bound[0]))
    assert answer.status == 423
    assert INSTANCE in answer.fault
    # Nova does not filter by state and checks each ARQ.
    assert nova.get(f'/accelerator_requests?instance={INSTANCE}').status == 200


def fail_bind(client: Client, uuid: str) -> None:
    state, reason = State.BIND_FAILED, 'No such vGPU type.'
    client.conductor.change(tables.Arq, uuid, state=state, status_reason=reason)


def lose_device(client: Client, uuid: str) -> None:
    """Have the next report of the host lack the handle of an ARQ."""
    change_handle(client, uuid, missing=True)


def change_handle(client: Client, uuid: str, **columns: bool) -> None:
    handle = client.conductor.arqs[uuid].attach_handle_uuid
    assert handle is not None
    client.conductor.change(tables.AttachHandle, handle, **columns)


DAMAGES: dict[str, Callable[[Client, str], None]] = {
    'No such vGPU type.': fail_bind,
    'is missing on the host': lose_device,
}


@pytest.mark.parametrize('reason', DAMAGES)
@pytest.mark.parametrize('version', [None, '2.3'])
@pytest.mark.parametrize('parameters', ['', '&limit=1', '&arqs={}', '&bind_state='])
def test_list_arqs_damaged_instance_returns_409(
    nova: Client, bound: list[str], reason: str, version: str | None, parameters: str
) -> None:
    """Nova would start the instance without the device."""
    DAMAGES[reason](nova, bound[1])
    # 423 means that Nova may retry, and this ARQ stays failed.
    set_state(nova, bound[2], State.PROVISIONING)
    path = f'/accelerator_requests?instance={INSTANCE}'
    answer = nova.as_(nova.headers, version).get(path + parameters.format(bound[0]))
    assert answer.status == 409
    assert f'Instance {INSTANCE} must not be started' in answer.fault
    assert bound[1] in answer.fault
    assert bound[0] not in answer.fault
    assert reason in answer.fault
    assert nova.delete(path).status == 204
    assert (nova.get(path).status, nova.get(path).json) == (200, {'arqs': []})


def test_list_arqs_failed_instance_is_shown_otherwise(
    nova: Client, bound: list[str]
) -> None:
    fail_bind(nova, bound[1])
    uuids = ','.join(bound)
    for version, arguments in (
        (None, f'arqs={uuids}'),
        (None, ''),
        (None, 'bind_state=resolved'),
        (None, f'instance={INSTANCE}&bind_state=resolved'),
        ('2.4', f'instance={INSTANCE}'),
    ):
        client = nova.as_(nova.headers, version)
        answer = client.get(f'/accelerator_requests?{arguments}')
        assert answer.status == 200
        states = [arq['state'] for arq in answer.json['arqs']]
        assert states == ['Bound', 'BindFailed', 'Bound']


def test_list_arqs_failed_instance_accepted_if_configured(
    nova: Client, bound: list[str]
) -> None:
    fail_bind(nova, bound[1])
    lenient = nova.configure(refuse_failed_binds=False)
    answer = lenient.get(f'/accelerator_requests?instance={INSTANCE}')
    assert answer.status == 200
    assert answer.json['arqs'][1]['state'] == 'BindFailed'


def test_list_arqs_lost_device_is_shown_otherwise(
    nova: Client, bound: list[str]
) -> None:
    lose_device(nova, bound[1])
    path = f'/accelerator_requests?instance={INSTANCE}'
    newest = nova.as_(nova.headers, '2.4').get(path).json['arqs'][1]
    assert newest['state'] == 'Unknown'
    assert 'is missing on the host' in newest['status_reason']
    assert newest['attach_handle_uuid']
    resolved = nova.get(f'{path}&bind_state=resolved').json['arqs'][1]
    assert resolved['state'] == 'Bound'
    # The agent cannot prepare the device, so the power-on is not held.
    answer = nova.configure(refuse_failed_binds=False).get(path)
    assert (answer.status, answer.json['arqs'][1]['state']) == (200, 'Bound')


@pytest.mark.parametrize(
    ('process', 'status'),
    [
        ('nova-api keystoneauth1/5', 200),
        ('nova-api-wsgi keystoneauth1/5', 200),
        ('uwsgi a', 200),
        ('gunicorn/23.0 a', 200),
        ('nova-compute a', 409),
        ('nova-conductor a', 409),
        ('openstacksdk/4.22 a', 409),
        ('', 409),
    ],
)
@pytest.mark.parametrize('reason', DAMAGES)
def test_list_arqs_compute_api_may_shelve(
    nova: Client, bound: list[str], process: str, status: int, reason: str
) -> None:
    DAMAGES[reason](nova, bound[1])
    caller = nova.as_({**nova.headers, 'User-Agent': process})
    answer = caller.get(f'/accelerator_requests?instance={INSTANCE}')
    assert answer.status == status


@pytest.mark.parametrize('arq_state', [State.UNKNOWN, State.PROVISIONING])
@pytest.mark.parametrize(
    ('process', 'status'), [('nova-api keystoneauth1/5', 200), ('nova-compute a', 423)]
)
def test_list_arqs_compute_api_is_not_held(
    nova: Client, bound: list[str], arq_state: State, process: str, status: int
) -> None:
    set_state(nova, bound[2], arq_state)
    caller = nova.as_({**nova.headers, 'User-Agent': process})
    answer = caller.get(f'/accelerator_requests?instance={INSTANCE}')
    assert answer.status == status
    if status == 200:
        assert [arq['uuid'] for arq in answer.json['arqs']] == bound


def test_list_arqs_resolved_instance_without_arqs(nova: Client) -> None:
    answer = nova.get(f'/accelerator_requests?instance={INSTANCE}&bind_state=resolved')
    assert (answer.status, answer.json) == (200, {'arqs': []})


@pytest.mark.parametrize(
    ('arq_state', 'shown_state', 'info'),
    [(State.UNKNOWN, 'Bound', HANDLE), (State.PROVISIONING, 'BindStarted', {})],
)
def test_power_on_held_while_device_is_not_ready(
    nova: Client,
    bound: list[str],
    arq_state: State,
    shown_state: str,
    info: dict[str, Any],
) -> None:
    """Nova reads the ARQs at power-on and ignores their states."""
    set_state(nova, bound[2], arq_state)
    for version in (None, '2.3'):
        for parameters in ('', '&limit=1', '&bind_state=resolved'):
            path = f'/accelerator_requests?instance={INSTANCE}{parameters}'
            answer = nova.as_(nova.headers, version).get(path)
            assert answer.status == 423
            assert f'Instance {INSTANCE} must not be started now' in answer.fault
            assert bound[2] in answer.fault
            assert 'host compute-1' in answer.fault
    views = [
        nova.get(f'/accelerator_requests/{bound[2]}').json,
        nova.get('/accelerator_requests').json['arqs'][2],
    ]
    for arq in views:
        assert (arq['state'], arq['attach_handle_info']) == (shown_state, info)


@pytest.mark.parametrize(
    ('arq_state', 'as_'),
    [(State.UNKNOWN, 'Bound'), (State.PROVISIONING, 'BindStarted')],
)
def test_power_on_not_held_if_configured(
    nova: Client, bound: list[str], arq_state: State, as_: str
) -> None:
    set_state(nova, bound[2], arq_state)
    nova = nova.configure(hold_power_on=False)
    answer = nova.get(f'/accelerator_requests?instance={INSTANCE}')
    assert answer.status == 200
    assert [arq['state'] for arq in answer.json['arqs']] == ['Bound', 'Bound', as_]
    path = f'/accelerator_requests?instance={INSTANCE}&bind_state=resolved'
    assert nova.get(path).status == (200 if arq_state is State.UNKNOWN else 423)


@pytest.mark.parametrize('arq_state', sorted(set(State) - HANDLE_SHOWN_STATES), ids=str)
def test_show_arq_handle_only_while_ready(
    nova: Client, bound: list[str], arq_state: State
) -> None:
    set_state(nova, bound[0], arq_state)
    arq = nova.get(f'/accelerator_requests/{bound[0]}').json
    assert arq['attach_handle_type'] == ''
    assert arq['attach_handle_uuid'] is None
    assert arq['attach_handle_info'] == {}


def test_list_arqs_by_uuids(nova: Client) -> None:
    uuids = [arq['uuid'] for arq in nova.create_arqs()]
    identifiers = f'{uuids[2].upper()},{UNKNOWN},{uuids[0]}'
    arqs = nova.get(f'/accelerator_requests?arqs={identifiers}').json['arqs']
    assert [arq['uuid'] for arq in arqs] == [uuids[0], uuids[2]]
    assert nova.get('/accelerator_requests?arqs=').json == {'arqs': []}


def test_list_arqs_of_instance_is_one_call(nova: Client, bound: list[str]) -> None:
    before = len(nova.conductor.callers)
    nova.get(f'/accelerator_requests?instance={INSTANCE}')
    nova.get(f'/accelerator_requests?instance={INSTANCE}&bind_state=resolved')
    assert len(nova.conductor.callers) - before == 2


def test_create_arqs_user_is_limited_and_nova_is_not(client: Client) -> None:
    """100 ARQs that were never bound are allowed by default."""
    client.create_profile('many', {'resources:FPGA': '60'})
    user = client.as_(MEMBER)
    body = {'device_profile_name': 'many'}
    assert user.post('/accelerator_requests', body).status == 201
    answer = user.post('/accelerator_requests', body)
    assert answer.status == 403
    assert 'unbound_requests would be 120, the limit is 100' in answer.fault
    assert client.as_(NOVA).post('/accelerator_requests', body).status == 201
    assert client.as_(ADMIN).post('/accelerator_requests', body).status == 201
    assert client.as_(OTHER_MEMBER).post('/accelerator_requests', body).status == 201
    arqs = user.get('/accelerator_requests').json['arqs']
    uuids = ','.join(arq['uuid'] for arq in arqs)
    assert user.delete(f'/accelerator_requests?arqs={uuids}').status == 204
    assert user.post('/accelerator_requests', body).status == 201
