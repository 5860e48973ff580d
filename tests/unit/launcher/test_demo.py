# SPDX-License-Identifier: Apache-2.0
"""The demo believes nothing that it does not see."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from devstack.launcher import demo
from devstack.launcher.failure import LaunchFailed
from devstack.launcher.rest import Answer, Service
from devstack.launcher.stack import Stack
from tests.fakes import http_service
from tests.fakes.http_service import HttpService

OFFER = demo.Offer(
    uuid='provider',
    name='host_card',
    resource_class='PGPU',
    total=1,
    traits=('CUSTOM_X', 'OWNER_CYBORG'),
)


def story(service: HttpService) -> Any:
    """A story whose two services are that one."""
    asked = Service(service.url)
    stack = cast(Stack, SimpleNamespace(accelerator=asked, placement=asked))
    return demo._Story(stack, OFFER)


def test_an_unexpected_status_ends_it() -> None:
    with HttpService() as service, pytest.raises(LaunchFailed, match='201 expected'):
        story(service).play()


def test_a_service_that_has_gone_ends_it() -> None:
    with HttpService() as service:
        gone = Service(service.url)
    stack = cast(Stack, SimpleNamespace(accelerator=gone, placement=gone))
    with pytest.raises(LaunchFailed, match='nobody answers'):
        demo.play(stack, needs_gpu=False)


def test_a_card_that_placement_does_not_offer_ends_it() -> None:
    path = 'GET /allocation_candidates?resources=PGPU:1&required=CUSTOM_X'
    with HttpService() as service:
        service.answers[path] = http_service.Answer(body={'allocation_requests': []})
        with pytest.raises(LaunchFailed, match='offers host_card'):
            story(service)._allocate()


def test_a_request_in_another_state_ends_it() -> None:
    arq = {'uuid': 'u', 'state': 'BindFailed'}
    with HttpService() as service:
        service.answers['POST /v2/accelerator_requests'] = http_service.Answer(
            201, {'arqs': [arq]}
        )
        with pytest.raises(LaunchFailed, match='Initial'):
            story(service)._create_arq()


def test_what_does_not_happen_in_time_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, '_LIMIT', 0.0)
    with pytest.raises(LaunchFailed, match='the moon rises within 0 s'):
        demo._until(lambda: False, 'the moon rises')


def test_the_trait_asked_for_is_the_one_of_the_card() -> None:
    assert OFFER.own_trait == 'CUSTOM_X'


def test_an_answer_is_shown_when_it_is_not_the_expected_one() -> None:
    with pytest.raises(LaunchFailed, match='no such flavor'):
        demo._expect(Answer(404, {'message': 'no such flavor'}), 200)


def test_a_request_whose_host_still_cleans_is_not_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has left its instance, and the device is not free."""
    monkeypatch.setattr(demo, '_LIMIT', 0.0)
    with HttpService() as service:
        told = story(service)
        of_instance = f'/v2/accelerator_requests?instance={told._instance}'
        service.answers[f'DELETE {of_instance}'] = http_service.Answer(204)
        service.answers[f'GET {of_instance}'] = http_service.Answer(body={'arqs': []})
        service.answers['GET /v2/accelerator_requests/u'] = http_service.Answer()
        with pytest.raises(LaunchFailed, match='the request u is gone within'):
            told._delete('u')
