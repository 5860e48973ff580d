# SPDX-License-Identifier: Apache-2.0
"""The OpenStack SDK against the service in one process, as users and admins run it."""

from collections.abc import Iterator

import pytest
from keystoneauth1 import session
from keystoneauth1.token_endpoint import Token
from openstack import exceptions
from openstack.connection import Connection

from tests.fakes.stack import ADMIN, Cloud, expect

NEWEST = {**ADMIN, 'OpenStack-API-Version': 'accelerator 2.4'}


@pytest.fixture(scope='module')
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    directory = tmp_path_factory.mktemp('clients')
    made = Cloud(
        directory,
        transport_url='local://',
        connection=f'sqlite:///{directory}/db.sqlite',
    )
    with made:
        made.start('standalone')
        made.provider_of('FPGA')
        yield made


@pytest.fixture(scope='module')
def sdk(cloud: Cloud) -> Iterator[Connection]:
    """An administrator, by a token that the service without Keystone knows."""
    endpoint = f'http://127.0.0.1:{cloud.port}/v2'
    connection = Connection(
        session=session.Session(auth=Token(endpoint, 'admin')),
        accelerator_endpoint_override=endpoint,
    )
    yield connection
    connection.close()


def test_a_device_is_found_and_rests_and_works_again(
    cloud: Cloud, sdk: Connection
) -> None:
    (device,) = sdk.accelerator.devices()
    assert sdk.accelerator.get_device(device.id).type == 'FPGA'
    assert list(sdk.accelerator.devices(type='GPU')) == []
    for act, status in (
        (sdk.accelerator.disable_device, 'maintaining'),
        (sdk.accelerator.enable_device, 'enabled'),
    ):
        act(device.id)
        answer = cloud.api(NEWEST).ask('GET', f'/v2/devices/{device.id}')
        assert expect(answer, 200)['status'] == status


def test_services_are_listed(cloud: Cloud) -> None:
    answer = cloud.api(NEWEST).ask('GET', '/v2/services?state=up')
    services = expect(answer, 200)['services']
    assert {one['host'] for one in services} == {cloud.host}


def test_what_a_bound_request_tells(cloud: Cloud) -> None:
    instance = cloud.boot('FPGA')
    cloud.until(instance.resolved)
    api, (uuid,) = cloud.api(NEWEST), instance.arqs
    arq = expect(api.ask('GET', f'/v2/accelerator_requests/{uuid}'), 200)
    device = expect(api.ask('GET', f'/v2/devices/{arq["device_uuid"]}'), 200)
    assert device['arqs'] == [uuid]
    assert {'Initial', 'BindStarted', 'Bound'} <= set(arq['state_times'])
    path = f'/v2/accelerator_requests/{uuid}/events'
    events = expect(api.ask('GET', path), 200)['events']
    assert (events[0]['step'], events[-1]['step']) == ('BindStarted', 'Bound')
    instance.delete()
    cloud.until(instance.gone)


def test_deployables_are_listed_and_shown(sdk: Connection) -> None:
    deployables = list(sdk.accelerator.deployables())
    assert deployables
    for deployable in deployables:
        shown = sdk.accelerator.get_deployable(deployable.id)
        assert shown.name == deployable.name


def test_a_profile_is_made_shown_and_deleted(sdk: Connection) -> None:
    wanted = {'name': 'sdk', 'groups': [{'resources:FPGA': '1'}]}
    made = sdk.accelerator.create_device_profile(**wanted)
    assert made.name == 'sdk'
    assert sdk.accelerator.get_device_profile(made.id).groups == wanted['groups']
    assert made.id in [one.id for one in sdk.accelerator.device_profiles()]
    sdk.accelerator.delete_device_profile(made.id, ignore_missing=False)
    with pytest.raises(exceptions.NotFoundException):
        sdk.accelerator.get_device_profile(made.id)


def test_a_request_is_made_shown_and_deleted(cloud: Cloud, sdk: Connection) -> None:
    profile = cloud.create_profile('FPGA')
    made = sdk.accelerator.create_accelerator_request(device_profile_name=profile)
    (waiting,) = sdk.accelerator.accelerator_requests()
    shown = sdk.accelerator.get_accelerator_request(waiting.id)
    assert (shown.state, shown.device_profile_name) == ('Initial', profile)
    assert made is not None
    sdk.accelerator.delete_accelerator_request(waiting.id, ignore_missing=False)
    assert list(sdk.accelerator.accelerator_requests()) == []
    with pytest.raises(exceptions.NotFoundException):
        sdk.accelerator.delete_accelerator_request(waiting.id, ignore_missing=False)


def test_attributes_are_made_listed_and_deleted(cloud: Cloud, sdk: Connection) -> None:
    wanted = {'deployable_id': 1, 'key': 'rack', 'value': '7'}
    expect(cloud.api().ask('POST', '/v2/attributes', wanted), 201)
    (made,) = [one for one in sdk.accelerator.attributes() if one.key == 'rack']
    assert sdk.accelerator.get_attribute(made.id).value == '7'
    sdk.accelerator.delete_attribute(made.id, ignore_missing=False)
    assert 'rack' not in [one.key for one in sdk.accelerator.attributes()]
