# SPDX-License-Identifier: Apache-2.0
"""Methods of the accelerator proxy of the OpenStack SDK, with a real Keystone."""

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar
from uuid import uuid4

import openstack
import pytest
from openstack import exceptions
from openstack.accelerator.v2._proxy import Proxy
from openstack.connection import Connection

from tests.builders.bitstream_files import gbs, image
from tests.servers.glance import RealGlance, real_glance
from tests.servers.keystone import PASSWORD, keystone
from tests.servers.keystone_cloud import KeystoneCloud, cloud
from tests.servers.stack import ADMIN, Instance, expect

__all__ = ['cloud', 'keystone', 'real_glance']

Test = TypeVar('Test', bound=Callable[..., None])

NEWEST: Final = {**ADMIN, 'OpenStack-API-Version': 'accelerator 2.4'}
NOBODY: Final = 'dddddddd-dddd-4ddd-8ddd-dddddddddddd'
CHECKED: Final[set[str]] = set()


def covers(*methods: str) -> Callable[[Test], Test]:
    """Return a decorator that lists the methods of a test."""
    CHECKED.update(methods)
    return lambda test: test


def connect(cloud: KeystoneCloud) -> Connection:
    """Connect as an administrator with a password in Keystone."""
    return openstack.connect(
        load_yaml_config=False,
        load_envvars=False,
        auth_url=cloud.keystone.url,
        username=cloud.admin.user,
        password=PASSWORD,
        project_id=cloud.admin.project_id,
        user_domain_id='default',
        accelerator_default_microversion='2.3',
    )


# Any: the SDK creates its proxies by a descriptor without types.
@pytest.fixture(scope='module')
def sdk(cloud: KeystoneCloud) -> Iterator[Any]:
    with connect(cloud) as connection:
        yield connection.accelerator


@pytest.fixture(scope='module')
def as_nova(cloud: KeystoneCloud) -> Iterator[Any]:
    """Connect as the same person with a service token."""
    with connect(cloud) as connection:
        headers = connection.session.additional_headers
        headers['X-Service-Token'] = cloud.token(cloud.service)
        yield connection.accelerator


def test_every_proxy_method_has_a_test() -> None:
    public = {
        name
        for name, member in vars(Proxy).items()
        if callable(member) and not name.startswith('_')
    }
    assert len(public) >= 24
    assert public == CHECKED, 'write a test that tells of the new method'


# --- devices ---


@covers('devices', 'get_device', 'disable_device', 'enable_device', 'wait_for_status')
def test_device_find_disable_enable(cloud: KeystoneCloud, sdk: Any) -> None:
    (device,) = sdk.devices(vendor='0xABCD')
    assert sdk.get_device(device.id).type == 'FPGA'
    assert list(sdk.devices(type='GPU')) == []
    provider = cloud.provider_of('FPGA')
    for act, status, reserved in (
        (sdk.disable_device, 'maintaining', 16),
        (sdk.enable_device, 'enabled', 0),
    ):
        act(device.id)
        final = sdk.wait_for_status(device, status, interval=0.01, wait=60)
        assert final.status == sdk.get_device(device).status == status
        assert cloud.inventory(provider)['FPGA']['reserved'] == reserved
    with pytest.raises(exceptions.NotFoundException, match='not found'):
        sdk.get_device(NOBODY)


def test_devices_are_paged(sdk: Any) -> None:
    """The SDK requests pages until one is empty."""
    device_ids = [resource.id for resource in sdk.devices()]
    assert len(device_ids) == 2
    assert [resource.id for resource in sdk.devices(limit=1)] == device_ids


# --- deployables ---


@covers('deployables', 'get_deployable')
def test_deployables_list_and_get(sdk: Any) -> None:
    deployables = list(sdk.deployables())
    assert {resource.num_accelerators for resource in deployables} == {1, 16}
    for deployable in deployables:
        fetched = sdk.get_deployable(deployable.id)
        assert fetched.to_dict().items() >= {'name': deployable.name}.items()
    with pytest.raises(exceptions.NotFoundException, match='not found'):
        sdk.get_deployable(NOBODY)


@pytest.mark.filterwarnings('ignore:The .update_:PendingDeprecationWarning')
@covers('patch_deployable', 'update_deployable')
def test_deployable_program_loads_image(
    cloud: KeystoneCloud, sdk: Any, real_glance: RealGlance
) -> None:
    uploaded = real_glance.upload(gbs(), image().tags, image().properties)
    (card,) = (
        resource for resource in sdk.deployables() if resource.num_accelerators == 1
    )
    value = [{'image_uuid': uploaded}]
    patch = [{'path': '/program', 'op': 'replace', 'value': value}]
    assert sdk.patch_deployable(card.id, patch).id == card.id
    answer = cloud.api().ask('GET', f'/v2/deployables/{card.id}')
    assert expect(answer, 200)['bitstream_id'] == uploaded
    (fake,) = (
        resource for resource in sdk.deployables() if resource.num_accelerators == 16
    )
    with pytest.raises(exceptions.HttpException, match='cannot be programmed'):
        sdk.patch_deployable(fake.id, patch)
    # The older method calls itself, so nothing is sent.
    with pytest.raises(RecursionError):
        sdk.update_deployable(card.id, patch)


# --- device profiles ---


@covers(
    'create_device_profile',
    'device_profiles',
    'get_device_profile',
    'delete_device_profile',
)
def test_profile_create_get_delete(sdk: Any) -> None:
    profile_body = {'name': 'sdk', 'groups': [{'resources:FPGA': '1'}]}
    created = sdk.create_device_profile(**profile_body)
    assert created.name == 'sdk'
    for identifier in (created.id, 'sdk'):
        assert sdk.get_device_profile(identifier).groups == profile_body['groups']
    assert created.id in [resource.id for resource in sdk.device_profiles()]
    assert [resource.id for resource in sdk.device_profiles(name='sdk')] == [created.id]
    with pytest.raises(exceptions.ConflictException, match='sdk already exists'):
        sdk.create_device_profile(**profile_body)
    sdk.delete_device_profile(created.id, ignore_missing=False)
    with pytest.raises(exceptions.NotFoundException):
        sdk.get_device_profile(created.id)
    sdk.delete_device_profile(created.id)
    with pytest.raises(exceptions.BadRequestException, match='resources:NOPE'):
        sdk.create_device_profile(name='sdk', groups=[{'resources:NOPE': '1'}])


# --- ARQs ---


@covers(
    'create_accelerator_request',
    'accelerator_requests',
    'get_accelerator_request',
    'delete_accelerator_request',
    'wait_for_delete',
)
def test_arq_create_get_delete(cloud: KeystoneCloud, sdk: Any) -> None:
    profile = cloud.create_profile('FPGA')
    created = sdk.create_accelerator_request(device_profile_name=profile)
    assert (created.state, created.device_profile_name) == ('Initial', profile)
    fetched = sdk.get_accelerator_request(created.uuid)
    assert (fetched.state, fetched.device_profile_group_id) == ('Initial', 0)
    assert created.uuid in [resource.uuid for resource in sdk.accelerator_requests()]
    sdk.delete_accelerator_request(created.uuid, ignore_missing=False)
    sdk.wait_for_delete(fetched, interval=0.01, wait=60)
    assert created.uuid not in [
        resource.uuid for resource in sdk.accelerator_requests()
    ]
    with pytest.raises(exceptions.NotFoundException):
        sdk.delete_accelerator_request(created.uuid, ignore_missing=False)
    with pytest.raises(exceptions.NotFoundException, match='nope not found'):
        sdk.create_accelerator_request(device_profile_name='nope')


@pytest.mark.filterwarnings('ignore:The .update_:PendingDeprecationWarning')
@covers('patch_accelerator_request', 'update_accelerator_request')
def test_arq_bind_and_unbind(cloud: KeystoneCloud, sdk: Any, as_nova: Any) -> None:
    profile = cloud.create_profile('FPGA')
    uuid = sdk.create_accelerator_request(device_profile_name=profile).uuid
    instance = Instance(cloud, cloud.provider_of('FPGA'), {'FPGA': 1}, arqs=[uuid])
    instance.allocate()
    binding = {
        '/hostname': cloud.host,
        '/device_rp_uuid': instance.provider,
        '/instance_uuid': instance.uuid,
    }
    bind = [{'path': k, 'op': 'add', 'value': v} for k, v in binding.items()]
    with pytest.raises(exceptions.ForbiddenException, match='a service token'):
        sdk.patch_accelerator_request(uuid, bind)
    as_nova.patch_accelerator_request(uuid, bind)
    cloud.until(instance.is_resolved, 'Nova receives the event')
    bound = sdk.get_accelerator_request(uuid)
    final = sdk.wait_for_status(bound, 'Bound', attribute='state', wait=60)
    assert final.attach_handle_type == 'TEST_PCI'
    assert [
        resource.uuid for resource in sdk.accelerator_requests(instance=instance.uuid)
    ] == [uuid]
    # older name of the same method
    unbind = [{'path': path, 'op': 'remove'} for path in binding]
    as_nova.update_accelerator_request(uuid, unbind)
    assert sdk.get_accelerator_request(uuid).state == 'Unbound'
    sdk.delete_accelerator_request(uuid, ignore_missing=False)


# --- attributes ---


@covers('create_attribute', 'attributes', 'get_attribute', 'delete_attribute')
def test_attributes_create_list_delete(sdk: Any) -> None:
    key = f'rack-{uuid4().hex[:8]}'
    created = sdk.create_attribute(deployable_id=1, key=key, value='7')
    assert (created.key, created.value) == (key, '7')
    assert sdk.get_attribute(created.uuid).value == '7'
    assert created.uuid in [
        resource.uuid for resource in sdk.attributes(deployable_id=1)
    ]
    sdk.delete_attribute(created.uuid, ignore_missing=False)
    assert key not in [resource.key for resource in sdk.attributes()]
    with pytest.raises(exceptions.NotFoundException):
        sdk.get_attribute(created.uuid)


# --- calls without SDK methods ---


def test_services_are_listed(cloud: KeystoneCloud) -> None:
    answer = cloud.api(NEWEST).ask('GET', '/v2/services?state=up')
    services = expect(answer, 200)['services']
    assert {resource['host'] for resource in services} == {cloud.host}


def test_bound_arq_has_companion_fields(cloud: KeystoneCloud) -> None:
    instance = cloud.boot_bound('FPGA')
    api, (uuid,) = cloud.api(NEWEST), instance.arqs
    arq = expect(api.ask('GET', f'/v2/accelerator_requests/{uuid}'), 200)
    device = expect(api.ask('GET', f'/v2/devices/{arq["device_uuid"]}'), 200)
    assert device['arqs'] == [uuid]
    assert {'Initial', 'BindStarted', 'Bound'} <= set(arq['state_times'])
    path = f'/v2/accelerator_requests/{uuid}/events'
    events = expect(api.ask('GET', path), 200)['events']
    assert (events[0]['step'], events[-1]['step']) == ('Initial', 'Bound')
    instance.end()
