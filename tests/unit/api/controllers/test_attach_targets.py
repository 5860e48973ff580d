# SPDX-License-Identifier: Apache-2.0
"""Tests of attach targets: which client sees an attach handle."""

from typing import Any

import pytest

from cyborg_lite.db.core.tables import Arq
from cyborg_lite.model.arqs.arqs import State
from tests.support.api.conductor import HANDLE
from tests.support.api.conversation import NOVA, Client
from tests.support.api.patches import INSTANCE, build_bind

WITHOUT: dict[str, Any] = {
    'attach_handle_type': '',
    'attach_handle_uuid': None,
    'attach_handle_info': {},
}


def bound(client: Client, target: str) -> dict[str, dict[str, Any]]:
    """Return the view of the ARQ of an instance by microversion."""
    client.create_profile('dp1', {'resources:FPGA': '1', 'accel:attach_target': target})
    nova = client.as_(NOVA, '2.0')
    (arq,) = nova.create_arqs()
    patch = {arq['uuid']: build_bind()}
    assert nova.patch('/accelerator_requests', patch).status == 202
    path = f'/accelerator_requests/{arq["uuid"]}'
    return {version: nova.at(version).get(path).json for version in ('2.0', '2.4')}


def test_attach_target_default_is_vm(client: Client) -> None:
    views = bound(client, 'VM')
    assert 'attach_target' not in views['2.0']
    assert views['2.4']['attach_target'] == 'VM'
    for view in views.values():
        assert view['attach_handle_info'] == HANDLE


def test_attach_target_host_is_hidden_from_nova(client: Client) -> None:
    views = bound(client, 'host')
    assert views['2.0']['state'] == views['2.4']['state'] == 'Bound'
    assert views['2.0'].items() >= WITHOUT.items()
    assert views['2.4']['attach_target'] == 'host'
    assert views['2.4']['attach_handle_type'] == 'PCI'
    assert views['2.4']['attach_handle_info'] == HANDLE


def test_attach_target_none_never_shows_handle(client: Client) -> None:
    for view in bound(client, 'none').values():
        assert view['state'] == 'Bound'
        assert view.items() >= WITHOUT.items()
        assert view.get('attach_target', 'none') == 'none'


@pytest.mark.parametrize(
    ('target', 'status'), [('VM', 423), ('host', 200), ('none', 200)]
)
def test_power_on_held_only_for_vm_targets(
    client: Client, target: str, status: int
) -> None:
    uuid = bound(client, target)['2.0']['uuid']
    client.conductor.change(Arq, uuid, state=State.PROVISIONING)
    nova = client.as_(NOVA, '2.0')
    answer = nova.get(f'/accelerator_requests?instance={INSTANCE}')
    assert answer.status == status
