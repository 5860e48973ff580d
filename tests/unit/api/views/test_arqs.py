# SPDX-License-Identifier: Apache-2.0
"""Tests of ARQs in responses."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cyborg_lite.api.microversion import V2_3, V2_4
from cyborg_lite.api.views.arqs import ArqList, ArqView
from cyborg_lite.model.arqs.arqs import Arq, State
from tests.builders.api_calls import render

CREATED_AT = datetime(2026, 11, 21, tzinfo=UTC)
INFO = {'domain': '0000', 'bus': '3b', 'device': '00', 'function': '0'}
BOUND = Arq(
    uuid='5c9a477a-d3d4-426a-9e9c-b2660917780e',
    state=State.BOUND,
    device_profile_name='gpu',
    device_profile_group_id=0,
    device_profile_group={'resources:PGPU': '1'},
    created_at=CREATED_AT,
    attach_handle_uuid='853f07a6-19de-3dd6-b9f6-6c782daa3f7b',
    attach_handle_type='PCI',
    attach_handle_info=INFO,
    status_reason='hot',
    state_times={State.BOUND: CREATED_AT},
)
NEW_FIELDS = {
    'status_reason',
    'attach_target',
    'deployable_uuid',
    'device_uuid',
    'state_times',
}


def test_arq_view_bound_shows_attach_handle() -> None:
    body = render(ArqView(BOUND))
    assert body['attach_handle_uuid'] == BOUND.attach_handle_uuid
    assert (body['attach_handle_type'], body['attach_handle_info']) == ('PCI', INFO)
    href = f'http://api/v2/accelerator_requests/{BOUND.uuid}'
    assert body['links'] == [{'href': href, 'rel': 'self'}]


@pytest.mark.parametrize(
    'state', [State.INITIAL, State.BIND_STARTED, State.PROVISIONING, State.DELETING]
)
def test_arq_view_unready_hides_attach_handle(state: State) -> None:
    body = render(ArqView(replace(BOUND, state=state)), V2_4)
    assert body['attach_handle_uuid'] is None
    assert (body['attach_handle_type'], body['attach_handle_info']) == ('', {})


@pytest.mark.parametrize(
    ('state', 'older_state'),
    [
        (State.PROVISIONING, 'BindStarted'),
        (State.UNKNOWN, 'Bound'),
        (State.BIND_FAILED, 'BindFailed'),
    ],
)
def test_arq_view_before_2_4_replaces_new_states(
    state: State, older_state: str
) -> None:
    arq = replace(BOUND, state=state)
    assert render(ArqView(arq), V2_3)['state'] == older_state
    assert render(ArqView(arq), V2_4)['state'] == state.value


def test_arq_view_details_need_2_4() -> None:
    older = render(ArqView(BOUND), V2_3)
    newer = render(ArqView(BOUND), V2_4, is_admin=True)
    assert newer.keys() - older.keys() == NEW_FIELDS
    assert newer['status_reason'] == 'hot'
    assert newer['attach_target'] == 'VM'
    assert set(newer['state_times']) == {'Bound'}


@pytest.mark.parametrize(
    ('target', 'versions'),
    [('VM', {'2.3', '2.4'}), ('host', {'2.4'}), ('none', set())],
)
def test_arq_view_shows_handle_by_attach_target(
    target: str, versions: set[str]
) -> None:
    arq = replace(BOUND, device_profile_group={'accel:attach_target': target})
    assert versions == {
        str(version)
        for version in (V2_3, V2_4)
        if render(ArqView(arq), version)['attach_handle_uuid']
    }


def test_arq_list_without_next_page_has_no_links() -> None:
    body = render(ArqList([BOUND]))
    assert [arq['uuid'] for arq in body['arqs']] == [BOUND.uuid]
    assert 'arqs_links' not in body
