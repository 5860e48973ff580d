# SPDX-License-Identifier: Apache-2.0
"""Tests of authentication with Keystone."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from oslo_config import cfg

from cyborg_lite.api.app import assemble
from cyborg_lite.conf import api as api_options
from cyborg_lite.errors.daemons import ConfigurationError
from tests.doubles.keystone import FakeKeystone, Token
from tests.support.api.conductor import LocalConductor
from tests.support.api.conversation import ADMIN, PROJECT, Client, build_configuration
from tests.support.wall_clock import STEPS, step_wall_clock

MEMBER = ('member', 'reader')
TOKENS = {
    'admin': Token(('admin', 'manager', *MEMBER), project_id=PROJECT),
    'member': Token(MEMBER, project_id=PROJECT),
    'unscoped': Token(),
    'nova': Token(('service',), user_id='n' * 32, project_id='s' * 32),
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
        conductor = LocalConductor()
        client = Client(conductor, assemble(conf, conductor.client), headers={})
        yield Cloud(keystone, client)


def test_valid_token_identifies_caller(cloud: Cloud) -> None:
    assert cloud.with_tokens('member').get('/device_profiles').status == 200
    (caller,) = cloud.client.conductor.callers
    assert (caller.user_id, caller.project_id) == ('a' * 32, PROJECT)
    assert caller.roles == list(MEMBER)
    assert (caller.is_admin, caller.service_request) == (False, False)


@pytest.mark.parametrize('token', [None, '', 'unknown', 'x' * 5000, '\xff', 'a b', ' '])
def test_invalid_token_returns_401(cloud: Cloud, token: str | None) -> None:
    answer = cloud.with_tokens(token).get('/device_profiles')
    assert answer.status == 401
    assert (
        answer.headers['WWW-Authenticate'] == 'Keystone uri="http://keystone.example"'
    )
    error = answer.json['error']
    assert (error['code'], error['title']) == (401, 'Unauthorized')
    assert answer.headers['OpenStack-API-Maximum-Version'] == '2.7'
    assert answer.headers['X-Openstack-Request-Id']


def test_identity_headers_of_client_are_ignored(cloud: Cloud) -> None:
    """Otherwise any client could claim to be an administrator."""
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
def test_service_token_is_validated(
    cloud: Cloud, service: str | None, status: int
) -> None:
    client = cloud.with_tokens('member', service)
    answer = client.delete(f'/accelerator_requests?instance={INSTANCE}')
    assert answer.status == status


def test_keystone_unreachable_returns_503(cloud: Cloud) -> None:
    cloud.keystone.is_down = True
    answer = cloud.with_tokens('member').get('/device_profiles')
    assert answer.status == 503
    assert answer.headers['Retry-After']
    assert answer.fault


def test_keystone_unconfigured_raises() -> None:
    conf = build_configuration(auth_strategy='keystone')
    with pytest.raises(ConfigurationError, match='auth_type'):
        assemble(conf, LocalConductor().client)


@pytest.mark.parametrize('step', STEPS)
def test_validation_after_clock_step_does_not_wait(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    assert cloud.with_tokens('admin').get('/device_profiles').status == 200
    step_wall_clock(monkeypatch, step)
    assert cloud.with_tokens('member').get('/device_profiles').status == 200
    assert cloud.keystone.validated == ['admin', 'member']
