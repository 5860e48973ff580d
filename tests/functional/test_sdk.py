# SPDX-License-Identifier: Apache-2.0
"""Every method of the OpenStack SDK's accelerator proxy, with a real Keystone."""

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar
from uuid import uuid4

import openstack
import pytest
from openstack import exceptions
from openstack.accelerator.v2._proxy import Proxy
from openstack.connection import Connection

from tests.fakes.bitstream_files import gbs, image
from tests.fakes.keystone_cloud import KeystoneCloud, cloud_with_cards
from tests.fakes.real_glance import RealGlance, real_glance
from tests.fakes.real_keystone import PASSWORD, RealKeystone, keystone
from tests.fakes.stack import ADMIN, Instance, expect

__all__ = ['keystone', 'real_glance']

Test = TypeVar('Test', bound=Callable[..., None])

NEWEST: Final = {**ADMIN, 'OpenStack-API-Version': 'accelerator 2.4'}
NOBODY: Final = 'dddddddd-dddd-4ddd-8ddd-dddddddddddd'
CHECKED: Final[set[str]] = set()


def tells(*methods: str) -> Callable[[Test], Test]:
    """Which methods a test is about."""
    CHECKED.update(methods)
    return lambda test: test


@pytest.fixture(scope='module')
def cloud(
    keystone: RealKeystone,
    real_glance: RealGlance,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[KeystoneCloud]:
    directory = tmp_path_factory.mktemp('sdk')
    with cloud_with_cards(keystone, real_glance, directory) as made:
        yield made


def connect(cloud: KeystoneCloud) -> Connection:
    """As an administrator whose password Keystone knows."""
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


# Any: the SDK makes its proxies known by a descriptor that says nothing of them.
@pytest.fixture(scope='module')
def sdk(cloud: KeystoneCloud) -> Iterator[Any]:
    with connect(cloud) as connection:
        yield connection.accelerator


@pytest.fixture(scope='module')
def as_nova(cloud: KeystoneCloud) -> Iterator[Any]:
    """The same person, beside whom a service speaks."""
    with connect(cloud) as connection:
        headers = connection.session.additional_headers
        headers['X-Service-Token'] = cloud.token(cloud.service)
        yield connection.accelerator


def test_every_method_of_the_proxy_is_checked_here() -> None:
    public = {
        name
        for name, member in vars(Proxy).items()
        if callable(member) and not name.startswith('_')
    }
    assert len(public) >= 24
    assert public == CHECKED, 'write a test that tells of the new method'


# --- devices ---


@tells('devices', 'get_device', 'disable_device', 'enable_device', 'wait_for_status')
def test_a_device_is_found_and_rests_and_works_again(
    cloud: KeystoneCloud, sdk: Any
) -> None:
    (device,) = sdk.devices(vendor='0xABCD')
    assert sdk.get_device(device.id).type == 'FPGA'
    assert list(sdk.devices(type='GPU')) == []
    provider = cloud.provider_of('FPGA')
    for act, status, reserved in (
        (sdk.disable_device, 'maintaining', 16),
        (sdk.enable_device, 'enabled', 0),
    ):
        act(device.id)
        settled = sdk.wait_for_status(device, status, interval=0.01, wait=60)
        assert settled.status == sdk.get_device(device).status == status
        assert cloud.inventory(provider)['FPGA']['reserved'] == reserved
    with pytest.raises(exceptions.NotFoundException, match='not found'):
        sdk.get_device(NOBODY)


def test_devices_come_in_pages(sdk: Any) -> None:
    """The SDK asks again with the last one until it gets none."""
    every = [one.id for one in sdk.devices()]
    assert len(every) == 2
    assert [one.id for one in sdk.devices(limit=1)] == every


# --- deployables ---


@tells('deployables', 'get_deployable')
def test_deployables_are_listed_and_shown(sdk: Any) -> None:
    deployables = list(sdk.deployables())
    assert {one.num_accelerators for one in deployables} == {1, 16}
    for deployable in deployables:
        shown = sdk.get_deployable(deployable.id)
        assert shown.to_dict().items() >= {'name': deployable.name}.items()
    with pytest.raises(exceptions.NotFoundException, match='not found'):
        sdk.get_deployable(NOBODY)


@pytest.mark.filterwarnings('ignore:The .update_:PendingDeprecationWarning')
@tells('patch_deployable', 'update_deployable')
def test_an_image_is_loaded_into_a_card(
    cloud: KeystoneCloud, sdk: Any, real_glance: RealGlance
) -> None:
    uploaded = real_glance.upload(gbs(), image().tags, image().properties)
    (card,) = (one for one in sdk.deployables() if one.num_accelerators == 1)
    value = [{'image_uuid': uploaded}]
    patch = [{'path': '/program', 'op': 'replace', 'value': value}]
    assert sdk.patch_deployable(card.id, patch).id == card.id
    answer = cloud.api().ask('GET', f'/v2/deployables/{card.id}')
    assert expect(answer, 200)['bitstream_id'] == uploaded
    (fake,) = (one for one in sdk.deployables() if one.num_accelerators == 16)
    with pytest.raises(exceptions.HttpException, match='cannot be programmed'):
        sdk.patch_deployable(fake.id, patch)
    # The older method calls itself, and nothing is ever sent.
    with pytest.raises(RecursionError):
        sdk.update_deployable(card.id, patch)


# --- device profiles ---


@tells(
    'create_device_profile',
    'device_profiles',
    'get_device_profile',
    'delete_device_profile',
)
def test_a_profile_is_made_shown_and_deleted(sdk: Any) -> None:
    wanted = {'name': 'sdk', 'groups': [{'resources:FPGA': '1'}]}
    made = sdk.create_device_profile(**wanted)
    assert made.name == 'sdk'
    for identifier in (made.id, 'sdk'):
        assert sdk.get_device_profile(identifier).groups == wanted['groups']
    assert made.id in [one.id for one in sdk.device_profiles()]
    assert [one.id for one in sdk.device_profiles(name='sdk')] == [made.id]
    with pytest.raises(exceptions.ConflictException, match='sdk already exists'):
        sdk.create_device_profile(**wanted)
    sdk.delete_device_profile(made.id, ignore_missing=False)
    with pytest.raises(exceptions.NotFoundException):
        sdk.get_device_profile(made.id)
    sdk.delete_device_profile(made.id)
    with pytest.raises(exceptions.BadRequestException, match='resources:NOPE'):
        sdk.create_device_profile(name='sdk', groups=[{'resources:NOPE': '1'}])


# --- accelerator requests ---


@tells(
    'create_accelerator_request',
    'accelerator_requests',
    'get_accelerator_request',
    'delete_accelerator_request',
    'wait_for_delete',
)
def test_a_request_is_made_shown_and_deleted(cloud: KeystoneCloud, sdk: Any) -> None:
    profile = cloud.create_profile('FPGA')
    made = sdk.create_accelerator_request(device_profile_name=profile)
    assert (made.state, made.device_profile_name) == ('Initial', profile)
    shown = sdk.get_accelerator_request(made.uuid)
    assert (shown.state, shown.device_profile_group_id) == ('Initial', 0)
    assert made.uuid in [one.uuid for one in sdk.accelerator_requests()]
    sdk.delete_accelerator_request(made.uuid, ignore_missing=False)
    sdk.wait_for_delete(shown, interval=0.01, wait=60)
    assert made.uuid not in [one.uuid for one in sdk.accelerator_requests()]
    with pytest.raises(exceptions.NotFoundException):
        sdk.delete_accelerator_request(made.uuid, ignore_missing=False)
    with pytest.raises(exceptions.NotFoundException, match='nope not found'):
        sdk.create_accelerator_request(device_profile_name='nope')


@pytest.mark.filterwarnings('ignore:The .update_:PendingDeprecationWarning')
@tells('patch_accelerator_request', 'update_accelerator_request')
def test_a_request_is_bound_and_unbound(
    cloud: KeystoneCloud, sdk: Any, as_nova: Any
) -> None:
    profile = cloud.create_profile('FPGA')
    uuid = sdk.create_accelerator_request(device_profile_name=profile).uuid
    instance = Instance(cloud, cloud.provider_of('FPGA'), {'FPGA': 1}, arqs=[uuid])
    instance.allocate()
    where = {
        '/hostname': cloud.host,
        '/device_rp_uuid': instance.provider,
        '/instance_uuid': instance.uuid,
    }
    bind = [{'path': k, 'op': 'add', 'value': v} for k, v in where.items()]
    with pytest.raises(exceptions.ForbiddenException, match='a service token'):
        sdk.patch_accelerator_request(uuid, bind)
    as_nova.patch_accelerator_request(uuid, bind)
    cloud.until(instance.resolved, 'Nova hears of the request')
    bound = sdk.get_accelerator_request(uuid)
    settled = sdk.wait_for_status(bound, 'Bound', attribute='state', wait=60)
    assert settled.attach_handle_type == 'TEST_PCI'
    assert [one.uuid for one in sdk.accelerator_requests(instance=instance.uuid)] == [
        uuid
    ]
    # The older name of the same method.
    unbind = [{'path': path, 'op': 'remove'} for path in where]
    as_nova.update_accelerator_request(uuid, unbind)
    assert sdk.get_accelerator_request(uuid).state == 'Unbound'
    sdk.delete_accelerator_request(uuid, ignore_missing=False)


# --- attributes ---


@tells('create_attribute', 'attributes', 'get_attribute', 'delete_attribute')
def test_attributes_are_made_listed_and_deleted(sdk: Any) -> None:
    key = f'rack-{uuid4().hex[:8]}'
    made = sdk.create_attribute(deployable_id=1, key=key, value='7')
    assert (made.key, made.value) == (key, '7')
    assert sdk.get_attribute(made.uuid).value == '7'
    assert made.uuid in [one.uuid for one in sdk.attributes(deployable_id=1)]
    sdk.delete_attribute(made.uuid, ignore_missing=False)
    assert key not in [one.key for one in sdk.attributes()]
    with pytest.raises(exceptions.NotFoundException):
        sdk.get_attribute(made.uuid)


# --- what the SDK has no methods for ---


def test_services_are_listed(cloud: KeystoneCloud) -> None:
    answer = cloud.api(NEWEST).ask('GET', '/v2/services?state=up')
    services = expect(answer, 200)['services']
    assert {one['host'] for one in services} == {cloud.host}


def test_what_a_bound_request_tells(cloud: KeystoneCloud) -> None:
    instance = cloud.boot('FPGA')
    cloud.until(instance.resolved)
    api, (uuid,) = cloud.api(NEWEST), instance.arqs
    arq = expect(api.ask('GET', f'/v2/accelerator_requests/{uuid}'), 200)
    device = expect(api.ask('GET', f'/v2/devices/{arq["device_uuid"]}'), 200)
    assert device['arqs'] == [uuid]
    assert {'Initial', 'BindStarted', 'Bound'} <= set(arq['state_times'])
    path = f'/v2/accelerator_requests/{uuid}/events'
    events = expect(api.ask('GET', path), 200)['events']
    assert (events[0]['step'], events[-1]['step']) == ('Initial', 'Bound')
    instance.delete()
    cloud.until(instance.gone)
