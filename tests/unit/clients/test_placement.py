# SPDX-License-Identifier: Apache-2.0
"""Answers of Placement that a healthy one rarely gives, and what we ask only once.

The rest is in ``tests/functional/test_placement.py``, against a real one.
"""

from collections.abc import Iterator

import pytest
from oslo_config import cfg

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conf import placement as section
from cyborg_lite.exceptions import (
    ConfigurationError,
    PlacementConflict,
    ProviderInUse,
    RemoteError,
    ServiceUnavailable,
)
from tests.fakes.http_service import Answer, HttpService


@pytest.fixture
def service() -> Iterator[HttpService]:
    with HttpService() as service:
        yield service


def configured(endpoint: str | None) -> Placement:
    conf = cfg.ConfigOpts()
    conf.register_opts(section.OPTIONS, group=section.GROUP)
    conf([])
    conf.set_override('endpoint_override', endpoint, group=section.GROUP)
    return Placement.configured(conf)


@pytest.fixture
def placement(service: HttpService) -> Placement:
    return configured(service.url)


def test_an_empty_section_is_a_mistake_in_the_configuration() -> None:
    with pytest.raises(ConfigurationError, match=r'\[placement\]'):
        configured(None)


@pytest.mark.parametrize(
    ('code', 'error'),
    [
        ('placement.concurrent_update', PlacementConflict),
        ('placement.inventory.inuse', ProviderInUse),
        ('placement.undefined_code', RemoteError),
    ],
)
def test_a_conflict_is_told_by_its_code(
    placement: Placement, service: HttpService, code: str, error: type[Exception]
) -> None:
    service.answers['PUT /resource_providers/a/inventories'] = Answer(
        409, {'errors': [{'code': code, 'status': 409, 'detail': 'why'}]}
    )
    with pytest.raises(error):
        placement.set_inventories('a', 1, {})


def test_a_provider_with_children_is_in_use(
    placement: Placement, service: HttpService
) -> None:
    code = 'placement.resource_provider.cannot_delete_parent'
    service.answers['DELETE /resource_providers/a'] = Answer(
        409, {'errors': [{'code': code}]}
    )
    with pytest.raises(ProviderInUse):
        placement.delete_provider('a')


def test_custom_names_are_made_once(placement: Placement, service: HttpService) -> None:
    service.answers['PUT /resource_classes/CUSTOM_A'] = Answer(201)
    service.answers['PUT /traits/CUSTOM_B'] = Answer(204)
    for _ in range(2):
        placement.ensure(classes=['PGPU', 'CUSTOM_A'], traits=['CUSTOM_B', 'HW_X'])
    assert [asked.path for asked in service.asked] == [
        '/resource_classes/CUSTOM_A',
        '/traits/CUSTOM_B',
    ]


def test_a_class_and_a_trait_of_one_name_are_two_things(
    placement: Placement, service: HttpService
) -> None:
    service.answers['PUT /resource_classes/CUSTOM_A'] = Answer(201)
    service.answers['PUT /traits/CUSTOM_A'] = Answer(201)
    placement.ensure(classes=['CUSTOM_A'], traits=['CUSTOM_A'])
    assert len(service.asked) == 2


def test_what_could_not_be_made_is_tried_again(
    placement: Placement, service: HttpService
) -> None:
    service.answers['PUT /traits/CUSTOM_B'] = Answer(503)
    with pytest.raises(ServiceUnavailable):
        placement.ensure((), ['CUSTOM_B'])
    service.answers['PUT /traits/CUSTOM_B'] = Answer(201)
    placement.ensure((), ['CUSTOM_B'])
    assert len(service.asked) == 2


def test_what_is_forgotten_is_made_again(
    placement: Placement, service: HttpService
) -> None:
    service.answers['PUT /traits/CUSTOM_B'] = Answer(204)
    placement.ensure((), ['CUSTOM_B'])
    placement.forget()
    placement.ensure((), ['CUSTOM_B'])
    assert len(service.asked) == 2


def test_a_name_is_quoted(placement: Placement, service: HttpService) -> None:
    service.answers['GET /resource_providers?name=host%261'] = Answer(
        body={'resource_providers': []}
    )
    assert placement.provider_named('host&1') is None
