# SPDX-License-Identifier: Apache-2.0
"""Who reads the handle of an accelerator that is not for the guest."""

import dataclasses
from typing import Any

import pytest

from cyborg_lite.model.arqs import State
from tests.fakes.conductor_requests import HANDLE
from tests.unit.api.controllers.patches import INSTANCE, bind
from tests.unit.api.conversation import NOVA, Client

WITHOUT: dict[str, Any] = {
    'attach_handle_type': '',
    'attach_handle_uuid': None,
    'attach_handle_info': {},
}


def bound(client: Client, target: str) -> dict[str, dict[str, Any]]:
    """The one request of a server as each version reads it, by version."""
    client.profile('dp1', {'resources:FPGA': '1', 'accel:attach_target': target})
    nova = client.as_(NOVA, '2.0')
    (arq,) = nova.arqs()
    patch = {arq['uuid']: bind()}
    assert nova.patch('/accelerator_requests', patch).status == 202
    path = f'/accelerator_requests/{arq["uuid"]}'
    return {version: nova.at(version).get(path).json for version in ('2.0', '2.4')}


def test_the_guest_is_the_target_of_most(client: Client) -> None:
    shown = bound(client, 'VM')
    assert 'attach_target' not in shown['2.0']
    assert shown['2.4']['attach_target'] == 'VM'
    for one in shown.values():
        assert one['attach_handle_info'] == HANDLE


def test_what_is_for_the_host_is_not_for_nova(client: Client) -> None:
    shown = bound(client, 'host')
    assert shown['2.0']['state'] == shown['2.4']['state'] == 'Bound'
    assert shown['2.0'].items() >= WITHOUT.items()
    assert shown['2.4']['attach_target'] == 'host'
    assert shown['2.4']['attach_handle_type'] == 'PCI'
    assert shown['2.4']['attach_handle_info'] == HANDLE


def test_what_is_for_nobody_has_no_handle_in_any_answer(client: Client) -> None:
    for one in bound(client, 'none').values():
        assert one['state'] == 'Bound'
        assert one.items() >= WITHOUT.items()
        assert one.get('attach_target', 'none') == 'none'


@pytest.mark.parametrize(
    ('target', 'status'), [('VM', 423), ('host', 200), ('none', 200)]
)
def test_a_guest_waits_only_for_what_is_attached_to_it(
    client: Client, target: str, status: int
) -> None:
    shown = bound(client, target)['2.0']
    kept = client.conductor.arqs[shown['uuid']]
    rebuilt = dataclasses.replace(kept, state=State.PROVISIONING)
    client.conductor.arqs[kept.uuid] = rebuilt
    nova = client.as_(NOVA, '2.0')
    answer = nova.get(f'/accelerator_requests?instance={INSTANCE}')
    assert answer.status == status
