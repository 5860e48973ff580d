# SPDX-License-Identifier: Apache-2.0
"""Tests of the demo: each unexpected answer is a failure."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from devstack.launcher import demo, sample_bitstreams
from devstack.launcher.accelerators import Accelerator
from devstack.launcher.failure import LaunchFailed
from devstack.launcher.rest import Answer, Service
from devstack.launcher.stack import Stack
from tests.doubles import http_service
from tests.doubles.http_service import HttpService

ACCELERATOR = Accelerator(
    uuid='provider',
    name='host_card',
    resource_class='PGPU',
    total=1,
    reserved=0,
    traits=('CUSTOM_X', 'OWNER_CYBORG'),
)


def life_cycle(
    service: HttpService,
    accelerator: Accelerator = ACCELERATOR,
    has_sample_host: bool = True,
) -> Any:
    """Return a life cycle that uses one fake service for both services."""
    client = Service(service.url)
    stack = SimpleNamespace(
        accelerator=client, placement=client, has_sample_host=has_sample_host
    )
    return demo._LifeCycle(cast(Stack, stack), accelerator)


@pytest.mark.parametrize('has_sample_host', [True, False])
def test_only_sample_host_loads_bitstream(has_sample_host: bool) -> None:
    trait, image = next(iter(sample_bitstreams.IMAGES.items()))
    fpga = replace(ACCELERATOR, resource_class='FPGA', traits=(trait,))
    with HttpService() as service:
        cycle = life_cycle(service, fpga, has_sample_host)
    assert cycle._image == (image if has_sample_host else None)


@pytest.mark.parametrize('loaded', [None, 'other'])
def test_check_loaded_other_image_raises(loaded: str | None) -> None:
    deployable = {'rp_uuid': ACCELERATOR.uuid, 'bitstream_id': loaded}
    with HttpService() as service:
        service.answers['GET /v2/deployables'] = http_service.Answer(
            body={'deployables': [deployable]}
        )
        cycle = life_cycle(service)
        cycle._image = 'image'
        with pytest.raises(LaunchFailed, match='image is loaded'):
            cycle._check_loaded()


def test_run_unreachable_service_raises() -> None:
    with HttpService() as service:
        stopped = Service(service.url)
    stack = SimpleNamespace(
        accelerator=stopped, placement=stopped, resource_classes={'FPGA'}
    )
    with pytest.raises(LaunchFailed, match='no connection'):
        demo.run(cast(Stack, stack))


def test_allocate_without_candidate_raises() -> None:
    path = 'GET /allocation_candidates?resources=PGPU:1&required=CUSTOM_X'
    with HttpService() as service:
        service.answers[path] = http_service.Answer(body={'allocation_requests': []})
        with pytest.raises(LaunchFailed, match='candidate for host_card'):
            life_cycle(service)._allocate()


def test_create_arqs_unexpected_state_raises() -> None:
    arq = {'uuid': 'u', 'state': 'BindFailed'}
    with HttpService() as service:
        service.answers['POST /v2/accelerator_requests'] = http_service.Answer(
            201, {'arqs': [arq]}
        )
        with pytest.raises(LaunchFailed, match='Initial'):
            life_cycle(service)._create_arqs()


def test_wait_until_timeout_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, '_TIMEOUT', 0.0)
    with pytest.raises(LaunchFailed, match='it is ready within 0 s'):
        demo._wait_until(lambda: False, 'it is ready')


def test_expect_other_status_shows_body() -> None:
    with pytest.raises(LaunchFailed, match='no such flavor'):
        demo._expect(Answer(404, {'message': 'no such flavor'}), 200)


def test_delete_waits_until_arq_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ARQ has left its instance, but the host has not released the device."""
    monkeypatch.setattr(demo, '_TIMEOUT', 0.0)
    with HttpService() as service:
        cycle = life_cycle(service)
        path = f'/v2/accelerator_requests?instance={cycle._instance}'
        service.answers[f'DELETE {path}'] = http_service.Answer(204)
        service.answers[f'GET {path}'] = http_service.Answer(body={'arqs': []})
        service.answers['GET /v2/accelerator_requests/u'] = http_service.Answer()
        with pytest.raises(LaunchFailed, match='the ARQs u are deleted within'):
            cycle._delete(['u'])
