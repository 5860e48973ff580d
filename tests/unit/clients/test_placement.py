# SPDX-License-Identifier: Apache-2.0
"""Error responses of Placement, and the cache of custom names.

``tests/functional/test_placement.py`` runs the other methods with a real Placement.
"""

import pytest

from cyborg_lite.clients.placement import Placement, ProviderInventories
from cyborg_lite.errors.daemons import (
    ConfigurationError,
    RemoteError,
    ServiceUnavailable,
)
from cyborg_lite.errors.providers import PlacementConflict, ProviderInUse
from cyborg_lite.model.providers.providers import ProviderInventory
from tests.builders.cloud_clients import create_placement_client
from tests.doubles.http_service import Answer, HttpService


@pytest.fixture
def placement(service: HttpService) -> Placement:
    return create_placement_client(service.url)


def test_from_config_empty_section_raises() -> None:
    with pytest.raises(ConfigurationError, match=r'\[placement\]'):
        create_placement_client(None)


@pytest.mark.parametrize(
    ('code', 'error'),
    [
        ('placement.concurrent_update', PlacementConflict),
        ('placement.inventory.inuse', ProviderInUse),
        ('placement.undefined_code', RemoteError),
    ],
)
def test_set_inventories_conflict_raises_error_by_code(
    placement: Placement, service: HttpService, code: str, error: type[Exception]
) -> None:
    service.answers['PUT /resource_providers/a/inventories'] = Answer(
        409, {'errors': [{'code': code, 'status': 409, 'detail': 'reason'}]}
    )
    with pytest.raises(error):
        placement.set_inventories('a', 1, {})


@pytest.mark.parametrize(
    ('status', 'requests'), [(400, 2), (409, 2), (403, 1), (404, 1), (406, 1)]
)
def test_fill_providers_missing_role_asks_once(
    placement: Placement, service: HttpService, status: int, requests: int
) -> None:
    service.answers['POST /reshaper'] = Answer(status, {'errors': []})
    targets = {'a': ProviderInventories(1, {'PGPU': ProviderInventory(1)})}
    for _ in range(2):
        assert placement.fill_providers(targets) is None
    assert len(service.requests) == requests
    assert service.requests[0].headers['OpenStack-API-Version'] == 'placement 1.30'


def test_delete_provider_with_children_raises_in_use(
    placement: Placement, service: HttpService
) -> None:
    code = 'placement.resource_provider.cannot_delete_parent'
    service.answers['DELETE /resource_providers/a'] = Answer(
        409, {'errors': [{'code': code}]}
    )
    with pytest.raises(ProviderInUse):
        placement.delete_provider('a')


def test_create_custom_names_sends_each_name_once(
    placement: Placement, service: HttpService
) -> None:
    service.answers['PUT /resource_classes/CUSTOM_A'] = Answer(201)
    service.answers['PUT /traits/CUSTOM_A'] = Answer(204)
    for _ in range(2):
        placement.create_custom_names(['PGPU', 'CUSTOM_A'], ['CUSTOM_A', 'HW_X'])
    assert [request.path for request in service.requests] == [
        '/resource_classes/CUSTOM_A',
        '/traits/CUSTOM_A',
    ]


def test_create_custom_names_after_invalidation_sends_again(
    placement: Placement, service: HttpService
) -> None:
    service.answers['PUT /traits/CUSTOM_B'] = Answer(204)
    placement.create_custom_names((), ['CUSTOM_B'])
    placement.invalidate_names()
    placement.create_custom_names((), ['CUSTOM_B'])
    assert len(service.requests) == 2


def test_find_provider_by_name_quotes_name(
    placement: Placement, service: HttpService
) -> None:
    service.answers['GET /resource_providers?name=host%261'] = Answer(
        body={'resource_providers': []}
    )
    assert placement.find_provider_by_name('host&1') is None


def test_list_consumers_404_of_proxy_raises(
    placement: Placement, service: HttpService
) -> None:
    """A proxy that has lost the service must not make a device look unused."""
    service.answers['GET /resource_providers/a/allocations'] = Answer(404, b'not found')
    with pytest.raises(ServiceUnavailable):
        placement.list_consumers('a')
