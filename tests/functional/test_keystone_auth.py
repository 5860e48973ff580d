# SPDX-License-Identifier: Apache-2.0
"""Authentication and authorization of the API with a real Keystone."""

from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.api.app import assemble
from cyborg_lite.clients import session
from cyborg_lite.conf import placement as section
from tests.servers.keystone import PASSWORD, Person, RealKeystone, keystone
from tests.support.api.conductor import LocalConductor
from tests.support.api.conversation import Client

__all__ = ['keystone']

PROFILE = [{'name': 'gpu', 'groups': [{'resources:PGPU': '1'}]}]
COLLECTIONS = [
    '/device_profiles',
    '/accelerator_requests',
    '/devices',
    '/deployables',
    '/attributes',
]


@dataclass(frozen=True)
class People:
    """Persons of the project lab, one of the project shop, and two services."""

    admin: Person
    manager: Person
    member: Person
    reader: Person
    shopkeeper: Person
    nova: Person
    cyborg: Person


@dataclass(frozen=True)
class Cloud:
    keystone: RealKeystone
    client: Client
    people: People

    def with_token(self, token: str | None, service: str | None = None) -> Client:
        headers = {} if token is None else {'X-Auth-Token': token}
        if service is not None:
            headers['X-Service-Token'] = service
        return self.client.as_(headers)

    def as_(self, person: Person, service: Person | None = None) -> Client:
        with_it = self.keystone.token_of(service) if service else None
        return self.with_token(self.keystone.token_of(person), with_it)

    def requests_of(self, person: Person) -> list[str]:
        """Return the uuids of new ARQs."""
        if (
            not self.as_(self.people.admin)
            .get('/device_profiles')
            .json['device_profiles']
        ):
            assert (
                self.as_(self.people.admin).post('/device_profiles', PROFILE).status
                == 201
            )
        return [arq['uuid'] for arq in self.as_(person).create_arqs('gpu')]


@pytest.fixture(scope='module')
def people(keystone: RealKeystone) -> People:
    lab, shop, service = map(keystone.project, ('lab', 'shop', 'service'))
    return People(
        admin=keystone.person('lab-admin', lab, 'admin'),
        manager=keystone.person('manager', lab, 'manager'),
        member=keystone.person('member', lab, 'member'),
        reader=keystone.person('reader', lab, 'reader'),
        shopkeeper=keystone.person('shopkeeper', shop, 'member'),
        nova=keystone.person('nova', service, 'service'),
        cyborg=keystone.person('cyborg', service, 'service'),
    )


@pytest.fixture
def cloud(keystone: RealKeystone, people: People, tmp_path: Path) -> Cloud:
    return Cloud(keystone, _service(keystone, people.cyborg, tmp_path), people)


def _service(keystone: RealKeystone, cyborg: Person, directory: Path) -> Client:
    file = directory / 'cyborg-lite.conf'
    file.write_text(
        f"""
[keystone_authtoken]
www_authenticate_uri = {keystone.url}
auth_type = password
auth_url = {keystone.url}
username = {cyborg.user}
password = {PASSWORD}
user_domain_id = default
project_id = {cyborg.project_id}
"""
    )
    conf = configuration.parse([], 'cyborg-lite-api', config_files=[str(file)])
    conductor = LocalConductor()
    return Client(conductor, assemble(conf, conductor.client), headers={})


def patch(uuid: str, instance: str) -> dict[str, list[dict[str, str]]]:
    values = {
        'hostname': 'compute-1',
        'device_rp_uuid': str(uuid4()),
        'instance_uuid': instance,
    }
    return {
        uuid: [
            {'path': f'/{name}', 'op': 'add', 'value': value}
            for name, value in values.items()
        ]
    }


def test_revoked_token_returns_401(cloud: Cloud) -> None:
    token = cloud.keystone.token_of(cloud.people.admin)
    cloud.keystone.revoke(token)
    assert cloud.with_token(token).get('/accelerator_requests').status == 401


@pytest.mark.parametrize('scope', ['none', 'system', 'domain'])
def test_token_without_project_opens_no_collection(cloud: Cloud, scope: str) -> None:
    keystone, admin = cloud.keystone, cloud.people.admin
    keystone.grant_domain(admin, 'admin')
    tokens = {
        'none': lambda: keystone.token(cloud.people.member.user),
        'system': lambda: keystone.token('admin', {'system': {'all': True}}),
        'domain': lambda: keystone.token(admin.user, {'domain': {'id': 'default'}}),
    }
    outsider = cloud.with_token(tokens[scope]())
    assert {outsider.get(path).status for path in COLLECTIONS} == {403}


def test_admin_reads_every_collection(cloud: Cloud) -> None:
    admin = cloud.as_(cloud.people.admin)
    assert {admin.get(path).status for path in COLLECTIONS} == {200}


def test_hardware_collections_require_manager(cloud: Cloud) -> None:
    hardware = ['/devices', '/deployables', '/attributes']
    for person, status in ((cloud.people.manager, 200), (cloud.people.member, 403)):
        client = cloud.as_(person)
        assert {client.get(path).status for path in hardware} == {status}


def test_reader_reads_and_member_creates(cloud: Cloud) -> None:
    (uuid,) = cloud.requests_of(cloud.people.member)
    reader = cloud.as_(cloud.people.reader)
    assert reader.get(f'/accelerator_requests/{uuid}').status == 200
    body = {'device_profile_name': 'gpu'}
    assert reader.post('/accelerator_requests', body).status == 403


def test_profile_creation_requires_admin(cloud: Cloud) -> None:
    for person in (
        cloud.people.manager,
        cloud.people.member,
        cloud.people.reader,
        cloud.people.nova,
    ):
        assert cloud.as_(person).post('/device_profiles', PROFILE).status == 403
    assert cloud.as_(cloud.people.admin).post('/device_profiles', PROFILE).status == 201


def test_arqs_of_other_project_are_hidden(cloud: Cloud) -> None:
    (uuid,) = cloud.requests_of(cloud.people.member)
    shopkeeper = cloud.as_(cloud.people.shopkeeper)
    assert shopkeeper.get(f'/accelerator_requests/{uuid}').status == 404
    assert shopkeeper.get('/accelerator_requests').json == {'arqs': []}
    assert (
        cloud.as_(cloud.people.admin).get(f'/accelerator_requests/{uuid}').status == 200
    )


def test_bind_requires_service_token(cloud: Cloud) -> None:
    (uuid,) = cloud.requests_of(cloud.people.member)
    instance = str(uuid4())
    for person in (cloud.people.member, cloud.people.admin):
        refused = cloud.as_(person).patch(
            '/accelerator_requests', patch(uuid, instance)
        )
        assert refused.status == 403
        assert 'requires a service token' in refused.fault.lower()
    nova = cloud.as_(cloud.people.member, service=cloud.people.nova)
    assert nova.patch('/accelerator_requests', patch(uuid, instance)).status == 202
    assert nova.delete(f'/accelerator_requests?instance={instance}').status == 204


def test_service_reads_arqs_of_every_project(cloud: Cloud) -> None:
    """After an evacuation the ARQs of an instance may belong to an administrator."""
    (uuid,) = cloud.requests_of(cloud.people.member)
    instance = str(uuid4())
    nova = cloud.as_(cloud.people.member, service=cloud.people.nova)
    assert nova.patch('/accelerator_requests', patch(uuid, instance)).status == 202
    other_client = cloud.as_(cloud.people.shopkeeper, service=cloud.people.nova)
    arqs = other_client.get(f'/accelerator_requests?instance={instance}').json['arqs']
    assert [arq['uuid'] for arq in arqs] == [uuid]


def test_own_requests_carry_a_renewed_token(cloud: Cloud, tmp_path: Path) -> None:
    """Keystone is the called service, because it knows its own tokens."""
    file = tmp_path / 'client.conf'
    file.write_text(
        f"""
[placement]
auth_type = password
auth_url = {cloud.keystone.url}
username = {cloud.people.nova.user}
password = {PASSWORD}
user_domain_id = default
project_id = {cloud.people.nova.project_id}
endpoint_override = {cloud.keystone.url}
"""
    )
    conf = cfg.ConfigOpts()
    conf.register_opts(section.OPTIONS, group=section.GROUP)
    conf(['--config-file', str(file)])
    remote = session.connect(conf, section.GROUP, 'Keystone')
    assert remote is not None
    first = remote.send('GET', '/auth/projects')
    cloud.keystone.revoke(first.request.headers['X-Auth-Token'])
    second_answer = remote.send('GET', '/auth/projects')
    assert second_answer.json()['projects'][0]['id'] == cloud.people.nova.project_id
