# SPDX-License-Identifier: Apache-2.0
"""Every rule against every persona, through the routes that it guards."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from oslo_config import cfg

from cyborg_lite import policies
from cyborg_lite.api import policy
from cyborg_lite.api.app import assemble
from cyborg_lite.api.controllers.root import Root
from cyborg_lite.api.controllers.v2 import V2
from cyborg_lite.api.resource import Resource
from cyborg_lite.exceptions import NotFound
from tests.fakes.conductor import FakeConductor
from tests.unit.api.conversation import (
    ADMIN,
    MANAGER,
    MEMBER,
    READER,
    SERVICE_TOKEN,
    Client,
    configuration,
    persona,
)

U: Final = 'd5ca2f11-3108-4426-a11c-a959987565df'

PERSONAS: Final = {
    'admin': ADMIN,
    'bare admin': persona('admin'),
    'manager': MANAGER,
    'bare manager': persona('manager'),
    'member': MEMBER,
    'bare member': persona('member'),
    'reader': READER,
    'service': persona('service'),
    'other role': persona('observer'),
    'no role': persona(''),
}
READERS: Final = {'admin', 'bare admin', 'manager', 'member', 'reader'}
WRITERS: Final = {'admin', 'manager', 'member', 'bare member', 'service'}
MANAGERS: Final = {'admin', 'bare admin', 'manager', 'bare manager'}
ADMINS: Final = {'admin', 'bare admin'}

# What may follow a path somewhere.
SEGMENTS: Final = (
    'v2',
    'device_profiles',
    'accelerator_requests',
    'devices',
    'deployables',
    'attributes',
    'bitstreams',
    'jobs',
    'services',
    'enable',
    'disable',
    'program',
    'events',
    'access',
    'explain',
    U,
)

# A rule, who passes, and the requests that ask for it. None of them is a legal one
# beyond what the rule looks at: they show that it is looked at first.
ROUTES: Final = [
    ('cyborg:device_profile:get_all', READERS, ['GET /device_profiles']),
    ('cyborg:device_profile:get_one', READERS, [f'GET /device_profiles/{U}']),
    ('cyborg:device_profile:create', ADMINS, ['POST /device_profiles']),
    ('cyborg:device_profile:update', ADMINS, [f'PATCH /device_profiles/{U}']),
    (
        'cyborg:device_profile:access',
        ADMINS,
        [
            f'GET /device_profiles/{U}/access',
            f'POST /device_profiles/{U}/access',
            f'DELETE /device_profiles/{U}/access',
        ],
    ),
    (
        'cyborg:device_profile:explain',
        ADMINS,
        [f'POST /device_profiles/{U}/explain'],
    ),
    (
        'cyborg:device_profile:delete',
        ADMINS,
        ['DELETE /device_profiles', f'DELETE /device_profiles/{U}'],
    ),
    ('cyborg:arq:get_all', READERS, ['GET /accelerator_requests']),
    (
        'cyborg:arq:get_one',
        READERS,
        [f'GET /accelerator_requests/{U}', f'GET /accelerator_requests/{U}/events'],
    ),
    ('cyborg:arq:create', WRITERS, ['POST /accelerator_requests']),
    (
        'cyborg:arq:delete',
        WRITERS,
        ['DELETE /accelerator_requests', f'DELETE /accelerator_requests/{U}'],
    ),
    (
        'cyborg:arq:update',
        WRITERS,
        ['PATCH /accelerator_requests', f'PATCH /accelerator_requests/{U}'],
    ),
    ('cyborg:device:get_all', MANAGERS, ['GET /devices']),
    ('cyborg:device:get_one', MANAGERS, [f'GET /devices/{U}']),
    ('cyborg:device:update', ADMINS, [f'PATCH /devices/{U}']),
    ('cyborg:service:get_all', ADMINS, ['GET /services']),
    ('cyborg:device:enable', ADMINS, [f'POST /devices/{U}/enable']),
    ('cyborg:device:disable', ADMINS, [f'POST /devices/{U}/disable']),
    ('cyborg:deployable:get_all', MANAGERS, ['GET /deployables']),
    ('cyborg:deployable:get_one', MANAGERS, [f'GET /deployables/{U}']),
    (
        'cyborg:deployable:program',
        ADMINS,
        [f'PATCH /deployables/{U}/program', f'PATCH /deployables/{U}/program/{U}'],
    ),
    ('cyborg:attribute:get_all', MANAGERS, ['GET /attributes']),
    ('cyborg:attribute:get_one', MANAGERS, [f'GET /attributes/{U}']),
    ('cyborg:attribute:create', ADMINS, ['POST /attributes']),
    ('cyborg:attribute:delete', ADMINS, [f'DELETE /attributes/{U}']),
    ('cyborg:bitstream:get_all', ADMINS, ['GET /bitstreams']),
    ('cyborg:job:get_one', ADMINS, [f'GET /jobs/{U}']),
]
CASES: Final = [
    (rule, name, request, name in allowed)
    for rule, allowed, requests in ROUTES
    for name in PERSONAS
    for request in requests
]


@pytest.fixture(scope='module')
def shared() -> Client:
    """One service for the whole matrix, which changes nothing in it."""
    return Client()


@pytest.mark.parametrize(('rule', 'name', 'request_', 'allowed'), CASES)
def test_a_rule_lets_in_its_personas_alone(
    shared: Client, rule: str, name: str, request_: str, allowed: bool
) -> None:
    method, path = request_.split()
    headers = {**PERSONAS[name], **SERVICE_TOKEN}
    answer = shared.as_(headers, '2.4').send(method, path, raw=b'{')
    assert (answer.status != 403) is allowed
    if not allowed:
        assert answer.fault == f"Policy doesn't allow {rule} to be performed."


@pytest.mark.parametrize('name', PERSONAS)
def test_every_persona_is_refused_without_a_project(shared: Client, name: str) -> None:
    headers = {**PERSONAS[name], **SERVICE_TOKEN}
    del headers['X-Project-Id']
    for rule, _, requests in ROUTES:
        for request in requests:
            method, path = request.split()
            answer = shared.as_(headers, '2.4').send(method, path)
            assert answer.status == 403
            assert rule in answer.fault


def test_every_rule_guards_a_route_and_every_route_has_a_rule() -> None:
    ours = {rule.name for rule in policies.list_rules() if 'cyborg:' in rule.name}
    assert ours == {rule for rule, _, _ in ROUTES}


def below(resource: Resource) -> Iterator[Resource]:
    """All controllers under this one, found as a request would find them."""
    for segment in SEGMENTS:
        with suppress(NotFound):
            child = resource.below(segment)
            yield child
            yield from below(child)


def test_no_controller_forgot_its_rule() -> None:
    backing: Any = None  # controllers look at it only when they answer
    guarded = {kind for kind in map(type, below(Root(backing))) if kind is not V2}
    rules = {
        getattr(kind, method).rule
        for kind in guarded
        for method in ('get', 'post', 'patch', 'delete')
        if hasattr(kind, method)
    }
    assert rules == {rule for rule, _, _ in ROUTES}


# --- the operator's file ----------------------------------------------------------


def ruled(tmp_path: Path, text: str) -> Client:
    (tmp_path / 'policy.yaml').write_text(text)
    conf = configuration()
    conductor = FakeConductor()
    assemble(conf, conductor)
    path = str(tmp_path / 'policy.yaml')
    conf.set_override('policy_file', path, group='oslo_policy')
    return Client(conductor, assemble(conf, conductor))


def test_a_rule_can_be_overridden(tmp_path: Path) -> None:
    client = ruled(tmp_path, '"cyborg:device:get_all": "rule:project_reader_or_admin"')
    assert client.as_(READER).get('/devices').status == 200
    assert client.as_(READER).get('/deployables').status == 403


@pytest.mark.parametrize(
    ('rule', 'check'),
    [
        ('admin_api', 'role:observer'),
        ('project_manager_or_admin', 'role:observer'),
        ('project_manager_api', 'role:observer'),
    ],
)
def test_a_base_rule_can_be_overridden(tmp_path: Path, rule: str, check: str) -> None:
    client = ruled(tmp_path, f'"{rule}": "{check}"')
    assert client.as_(persona('observer')).get('/devices').status == 200


@pytest.mark.parametrize(
    'rule', ['public_api', 'allow', 'deny', 'default', 'is_admin', 'admin_or_owner']
)
def test_files_of_deployed_clouds_may_use_the_old_names(
    tmp_path: Path, rule: str
) -> None:
    client = ruled(tmp_path, f'"cyborg:device:get_all": "rule:{rule}"')
    served = {'allow', 'admin_or_owner', 'default'}
    assert (client.as_(READER).get('/devices').status == 200) is (rule in served)
    everybody = {*served, 'is_admin'}
    assert (client.get('/devices').status == 200) is (rule in everybody)


@pytest.mark.parametrize('rule', ['cyborg:arq:update', 'cyborg:arq:delete'])
def test_no_file_waives_the_service_token(tmp_path: Path, rule: str) -> None:
    client = ruled(tmp_path, f'"{rule}": "@"')
    body = {U: [{'op': 'remove', 'path': '/hostname'}]}
    assert client.patch('/accelerator_requests', body).status == 403
    assert client.delete(f'/accelerator_requests?instance={U}').status == 403


def test_no_file_lets_in_a_token_without_a_project(tmp_path: Path) -> None:
    client = ruled(tmp_path, '"cyborg:arq:get_all": "@"')
    assert client.as_(persona('admin', None)).get('/accelerator_requests').status == 403


def test_the_commands_of_the_library_get_the_rules_and_the_operators_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules, file = tmp_path / 'rules.yaml', tmp_path / 'cyborg-lite.conf'
    rules.write_text('"cyborg:device:get_all": "!"')
    file.write_text(f'[oslo_policy]\npolicy_file = {rules}\n')
    monkeypatch.setattr(cfg, 'CONF', cfg.ConfigOpts())
    command = ['oslopolicy-list-redundant', '--namespace', 'cyborg_lite']
    monkeypatch.setattr('sys.argv', [*command, '--config-file', str(file)])

    enforcer = policy.generator_enforcer()
    names = {rule.name for rule in policies.list_rules()}
    assert names == enforcer.registered_rules.keys()
    enforcer.load_rules()
    assert str(enforcer.rules['cyborg:device:get_all']) == '!'
