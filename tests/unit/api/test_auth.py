# SPDX-License-Identifier: Apache-2.0
"""With Keystone, a caller is who its token says, and nobody else."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from oslo_config import cfg

from cyborg_lite.api import auth
from cyborg_lite.api.app import assemble
from cyborg_lite.conf import api as api_options
from cyborg_lite.exceptions import ConfigurationError
from tests.fakes.conductor import FakeConductor
from tests.fakes.keystone import FakeKeystone, Token
from tests.unit.api.conversation import ADMIN, PROJECT, Client, configuration

MEMBER = ('member', 'reader')
TOKENS = {
    'admin': Token(('admin', 'manager', *MEMBER), project_id=PROJECT),
    'member': Token(MEMBER, project_id=PROJECT),
    'unscoped': Token(),
    'domain': Token(('admin',), domain_id='default'),
    'system': Token(('admin', 'reader'), system=True),
    'nova': Token(('service',), user_id='n' * 32, project_id='s' * 32),
    'no-service': Token(('admin',), project_id=PROJECT),
    'system-service': Token(('service',), system=True),
}
INSTANCE = 'e6463ae6-ef41-41b7-b171-95f3754f140f'


@dataclass
class Cloud:
    keystone: FakeKeystone
    client: Client

    def with_tokens(self, user: str | None, service: str | None = None) -> Client:
        headers = {} if user is None else {'X-Auth-Token': user}
        if service is not None:
            headers['X-Service-Token'] = service
        return self.client.as_(headers)


CONFIGURATION = """
[api]
auth_strategy = keystone
[keystone_authtoken]
auth_type = v3password
auth_url = {url}
www_authenticate_uri = http://keystone.example
username = cyborg
password = secret
user_domain_id = default
project_name = service
project_domain_id = default
http_request_max_retries = 0
"""


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    with FakeKeystone(TOKENS) as keystone:
        file = tmp_path / 'api.conf'
        file.write_text(CONFIGURATION.format(url=keystone.url))
        conf = cfg.ConfigOpts()
        conf.register_opts(api_options.OPTIONS, group=api_options.GROUP)
        conf([], project='cyborg-lite', default_config_files=[str(file)])
        conductor = FakeConductor()
        client = Client(conductor, assemble(conf, conductor), headers={})
        yield Cloud(keystone, client)


def test_a_valid_token_is_served(cloud: Cloud) -> None:
    assert cloud.with_tokens('member').get('/device_profiles').status == 200
    (caller,) = cloud.client.conductor.callers
    assert (caller.user_id, caller.project_id) == ('a' * 32, PROJECT)
    assert caller.roles == list(MEMBER)
    assert (caller.is_admin, caller.service_request) == (False, False)


@pytest.mark.parametrize('token', [None, '', 'unknown', 'x' * 5000, '\xff', 'a b', ' '])
def test_without_a_valid_token_it_is_401(cloud: Cloud, token: str | None) -> None:
    answer = cloud.with_tokens(token).get('/device_profiles')
    assert answer.status == 401
    assert (
        answer.headers['WWW-Authenticate'] == 'Keystone uri="http://keystone.example"'
    )
    error = answer.json['error']
    assert (error['code'], error['title']) == (401, 'Unauthorized')
    assert answer.headers['OpenStack-API-Maximum-Version'] == '2.4'
    assert answer.headers['X-Openstack-Request-Id']


@pytest.mark.parametrize('path', ['', '/'])
def test_version_documents_need_no_token(cloud: Cloud, path: str) -> None:
    client = cloud.with_tokens(None)
    assert client.get(path).status == 200
    client.prefix = ''
    assert client.get(path).status == 200
    assert client.get('/healthcheck').status == 200
    assert not cloud.keystone.validated


def test_identity_headers_of_a_client_count_for_nothing(cloud: Cloud) -> None:
    """Else everybody were an administrator who says so."""
    forged = {
        **ADMIN,
        'X-Service-Roles': 'service',
        'X-Identity-Status': 'Confirmed',
        'X-Service-Identity-Status': 'Confirmed',
        'X-Role': 'admin',
        'X-Tenant-Id': PROJECT,
    }
    client = cloud.client.as_(forged)
    assert client.get('/device_profiles').status == 401

    member = cloud.client.as_({**forged, 'X-Auth-Token': 'member'})
    assert member.get('/devices').status == 403
    assert member.get('/accelerator_requests').status == 200
    caller = cloud.client.conductor.callers[-1]
    assert caller.roles == list(MEMBER)
    assert not caller.is_admin
    assert not caller.service_request

    unscoped = cloud.client.as_({**forged, 'X-Auth-Token': 'unscoped'})
    assert unscoped.get('/device_profiles').status == 403


@pytest.mark.parametrize('token', ['unscoped', 'domain', 'system'])
@pytest.mark.parametrize(
    'collection',
    ['device_profiles', 'accelerator_requests', 'devices', 'deployables', 'attributes'],
)
def test_a_token_without_a_project_is_refused(
    cloud: Cloud, token: str, collection: str
) -> None:
    for headers in ({}, {'OpenStack-System-Scope': 'all', 'X-Project-Id': PROJECT}):
        client = cloud.client.as_({'X-Auth-Token': token, **headers})
        answer = client.get(f'/{collection}')
        assert answer.status == 403
        assert 'project' in answer.fault
    assert not cloud.client.conductor.callers


@pytest.mark.parametrize(
    ('service', 'status'),
    [
        (None, 403),
        ('nova', 204),
        ('system-service', 204),
        ('unknown', 401),
        ('member', 401),
    ],
)
def test_a_service_proves_itself_by_a_second_token(
    cloud: Cloud, service: str | None, status: int
) -> None:
    client = cloud.with_tokens('member', service)
    answer = client.delete(f'/accelerator_requests?instance={INSTANCE}')
    assert answer.status == status


def test_no_token_of_an_admin_is_a_services(cloud: Cloud) -> None:
    client = cloud.with_tokens('admin', 'no-service')
    answer = client.delete(f'/accelerator_requests?instance={INSTANCE}')
    assert answer.status in (401, 403)


def test_roles_of_service_tokens_are_required_by_us_too(cloud: Cloud) -> None:
    """Where an operator told the middleware to take any token as a service's."""
    environ = {'HTTP_X_PROJECT_ID': PROJECT, 'HTTP_X_SERVICE_ROLES': 'admin, member'}
    assert not auth.caller(environ, {'service'}).service_request
    environ['HTTP_X_SERVICE_ROLES'] = 'member, service'
    assert auth.caller(environ, {'service'}).service_request


def test_a_keystone_that_is_away_is_a_503(cloud: Cloud) -> None:
    cloud.keystone.away = True
    answer = cloud.with_tokens('member').get('/device_profiles')
    assert answer.status == 503
    assert answer.headers['Retry-After']
    assert answer.fault


def test_keystone_must_be_configured() -> None:
    conf = configuration(auth_strategy='keystone')
    with pytest.raises(ConfigurationError, match='auth_type'):
        assemble(conf, FakeConductor())
