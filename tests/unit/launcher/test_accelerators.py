# SPDX-License-Identifier: Apache-2.0
"""Tests of the resource providers that the launcher reads from Placement."""

import pytest

from devstack.launcher.accelerators import Accelerator, list_accelerators
from devstack.launcher.configuration import HOST
from devstack.launcher.failure import LaunchFailed
from devstack.launcher.rest import Service
from tests.doubles.http_service import Answer, HttpService

_BASE = 'GET /resource_providers'


def test_list_accelerators_yields_inventory() -> None:
    node, card = {'uuid': 'node', 'name': HOST}, {'uuid': 'card', 'name': 'c'}
    record = {'total': 8, 'reserved': 2}
    with HttpService() as service:
        service.answers = {
            f'{_BASE}?name={HOST}': Answer(body={'resource_providers': [node]}),
            f'{_BASE}?in_tree=node': Answer(body={'resource_providers': [node, card]}),
            f'{_BASE}/node/inventories': Answer(body={'inventories': {}}),
            f'{_BASE}/node/traits': Answer(body={'traits': ['OWNER_NOVA']}),
            f'{_BASE}/card/inventories': Answer(body={'inventories': {'VGPU': record}}),
            f'{_BASE}/card/traits': Answer(body={'traits': ['OWNER_X', 'CUSTOM_X']}),
        }
        accelerators = list(list_accelerators(Service(service.url)))
    traits = ('CUSTOM_X', 'OWNER_X')
    assert accelerators == [Accelerator('card', 'c', 'VGPU', 8, 2, traits)]


def test_list_accelerators_error_raises() -> None:
    with HttpService() as service, pytest.raises(LaunchFailed, match='404'):
        list(list_accelerators(Service(service.url)))


def test_own_trait_is_custom_trait() -> None:
    traits = ('COMPUTE_NODE', 'CUSTOM_X', 'OWNER_CYBORG')
    assert Accelerator('u', 'n', 'PGPU', 1, 0, traits).own_trait == 'CUSTOM_X'


@pytest.mark.parametrize(('reserved', 'is_usable'), [(7, True), (8, False)])
def test_accelerator_with_all_units_reserved_is_not_usable(
    reserved: int, is_usable: bool
) -> None:
    accelerator = Accelerator('u', 'n', 'VGPU', 8, reserved, ())
    assert accelerator.is_usable == is_usable
