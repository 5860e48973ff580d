# SPDX-License-Identifier: Apache-2.0
"""Tests of every rule with every persona, through the routes that it guards."""

import dataclasses
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Final, cast
from unittest.mock import Mock, create_autospec

import pytest
from oslo_config import cfg
from oslo_policy.policy import Enforcer

from cyborg_lite import policies
from cyborg_lite.api import policy
from cyborg_lite.api.app import assemble
from cyborg_lite.api.openapi.routes import list_routes
from tests.builders.device_rows import add_device
from tests.support.api.conductor import LocalConductor
from tests.support.api.conversation import (
    ADMIN,
    MANAGER,
    MEMBER,
    OTHER_MEMBER,
    OTHER_PROJECT,
    PROJECT,
    READER,
    SERVICE_TOKEN,
    Client,
    build_configuration,
    build_persona,
    build_policy_client,
)

U: Final = 'd5ca2f11-3108-4426-a11c-a959987565df'

PERSONAS: Final = {
    'admin': ADMIN,
    'bare admin': build_persona('admin'),
    'manager': MANAGER,
    'bare manager': build_persona('manager'),
    'member': MEMBER,
    'bare member': build_persona('member'),
    'reader': READER,
    'service': build_persona('service'),
    'other role': build_persona('observer'),
    'no role': build_persona(''),
}
READERS: Final = {'admin', 'bare admin', 'manager', 'member', 'reader'}
WRITERS: Final = {'admin', 'manager', 'member', 'bare member', 'service'}
MANAGERS: Final = {'admin', 'bare admin', 'manager', 'bare manager'}
ADMINS: Final = {'admin', 'bare admin'}

READER_RULES: Final = {
    'cyborg:arq:get_all',
    'cyborg:arq:get_one',
    'cyborg:device_profile:get_all',
    'cyborg:device_profile:get_one',
    'cyborg:device_type:get_all',
    'cyborg:limit:get_all',
    'cyborg:operation:get_all',
    'cyborg:operation:get_one',
    'cyborg:usage:get',
}
WRITER_RULES: Final = {'cyborg:arq:create', 'cyborg:arq:delete', 'cyborg:arq:update'}
MANAGER_RULES: Final = {
    'cyborg:attribute:get_all',
    'cyborg:attribute:get_one',
    'cyborg:deployable:get_all',
    'cyborg:deployable:get_one',
    'cyborg:device:get_all',
    'cyborg:device:get_one',
}
OPERATIONS: Final = [
    (route.rule, route.method, route.path) for route in list_routes() if route.rule
]


def list_personas(rule: str) -> set[str]:
    """Return the personas that a rule allows: administrators, unless it is listed."""
    if rule in READER_RULES:
        return READERS
    if rule in WRITER_RULES:
        return WRITERS
    return MANAGERS if rule in MANAGER_RULES else ADMINS


def build_path(path: str) -> str:
    return re.sub('{[a-z_]+}', U, path.removeprefix('/v2'))


@pytest.fixture(scope='module')
def shared_client() -> Client:
    """Return a client for all combinations; no test changes its data."""
    return Client()


@pytest.mark.parametrize('name', PERSONAS)
@pytest.mark.parametrize(('rule', 'method', 'path'), OPERATIONS)
def test_rule_allows_exactly_its_personas(
    shared_client: Client, rule: str, method: str, path: str, name: str
) -> None:
    """The body is invalid, so the status shows whether the rule was checked first."""
    client = shared_client.as_({**PERSONAS[name], **SERVICE_TOKEN}, 'latest')
    answer = client.send(method, build_path(path), raw=b'{')
    allowed = name in list_personas(rule)
    assert (answer.status != 403) is allowed
    if not allowed:
        assert answer.fault == f"Policy doesn't allow {rule} to be performed."


@pytest.mark.parametrize('name', PERSONAS)
def test_rule_requires_project_scope(shared_client: Client, name: str) -> None:
    headers = {**PERSONAS[name], **SERVICE_TOKEN}
    del headers['X-Project-Id']
    client = shared_client.as_(headers, 'latest')
    for rule, method, path in OPERATIONS:
        answer = client.send(method, build_path(path))
        assert answer.status == 403
        assert rule in answer.fault


def test_every_rule_guards_an_operation_and_documents_are_public() -> None:
    names = {rule.name for rule in policies.list_rules() if 'cyborg:' in rule.name}
    assert names == {rule for rule, _, _ in OPERATIONS}
    public = {route.path for route in list_routes() if not route.rule}
    assert public == {'/', '/v2', '/v2/openapi.json'}


def test_rule_override_is_used(tmp_path: Path) -> None:
    client = build_policy_client(
        tmp_path, '"cyborg:device:get_all": "rule:project_reader_or_admin"'
    )
    assert client.as_(READER).get('/devices').status == 200
    assert client.as_(READER).get('/deployables').status == 403


@pytest.mark.parametrize(
    'rule', ['admin_api', 'project_manager_or_admin', 'project_manager_api']
)
def test_base_rule_override_is_used(tmp_path: Path, rule: str) -> None:
    client = build_policy_client(tmp_path, f'"{rule}": "role:observer"')
    assert client.as_(build_persona('observer')).get('/devices').status == 200


@pytest.mark.parametrize(
    'rule', ['public_api', 'allow', 'deny', 'default', 'is_admin', 'admin_or_owner']
)
def test_policy_file_may_use_legacy_rules(tmp_path: Path, rule: str) -> None:
    client = build_policy_client(tmp_path, f'"cyborg:device:get_all": "rule:{rule}"')
    served = {'allow', 'admin_or_owner', 'default'}
    assert (client.as_(READER).get('/devices').status == 200) is (rule in served)
    everybody = {*served, 'is_admin'}
    assert (client.get('/devices').status == 200) is (rule in everybody)


@pytest.mark.parametrize('rule', ['cyborg:arq:update', 'cyborg:arq:delete'])
def test_policy_file_cannot_waive_service_token(tmp_path: Path, rule: str) -> None:
    client = build_policy_client(tmp_path, f'"{rule}": "@"')
    body = {U: [{'op': 'remove', 'path': '/hostname'}]}
    assert client.patch('/accelerator_requests', body).status == 403
    assert client.delete(f'/accelerator_requests?instance={U}').status == 403


def test_policy_file_cannot_waive_project_scope(tmp_path: Path) -> None:
    client = build_policy_client(tmp_path, '"cyborg:arq:get_all": "@"')
    assert (
        client.as_(build_persona('admin', None)).get('/accelerator_requests').status
        == 403
    )


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the times of the clock of the policy; the last one is the present."""
    moments = [0.0]
    clock = SimpleNamespace(monotonic=lambda: moments[-1])
    monkeypatch.setattr(policy, 'time', clock)
    return moments


def test_policy_file_changed_is_read_without_restart(
    tmp_path: Path, moments: list[float]
) -> None:
    client = build_policy_client(tmp_path, '"cyborg:device:get_all": "role:observer"')
    assert client.get('/devices').status == 403
    file = tmp_path / 'policy.yaml'
    file.write_text('"cyborg:device:get_all": "role:admin"')
    # The library reads a file with a later time only.
    os.utime(file, (2**31, 2**31))
    moments.append(5.0)
    assert client.get('/devices').status == 200
    assert client.as_(MANAGER).get('/devices').status == 403
    file.unlink()
    moments.append(10.0)
    assert client.as_(MANAGER).get('/devices').status == 200


def test_policy_files_are_searched_once_per_interval(
    moments: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    conf, conductor = build_configuration(), LocalConductor()
    client = Client(conductor, assemble(conf, conductor.client))
    searches = create_autospec(conf.find_file, side_effect=conf.find_file)
    monkeypatch.setattr(conf, 'find_file', searches)
    for now in (0.0, 4.9, 5.0):
        moments.append(now)
        for _ in range(10):
            assert client.get('/devices').status == 200
    # The policy file and the policy directory.
    assert searches.call_count == 2 * 2


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Return the checks of rules by the library."""
    method = Enforcer.authorize
    checks = create_autospec(method, side_effect=method)
    monkeypatch.setattr(Enforcer, 'authorize', checks)
    return cast(Mock, checks)


def test_rule_result_is_remembered_until_reload(
    tmp_path: Path, moments: list[float], checks: Mock
) -> None:
    client = build_policy_client(
        tmp_path, f'"cyborg:device:get_all": "project_id:{PROJECT}"'
    )
    for now, count in ((0.0, 4), (5.0, 8)):
        moments.append(now)
        for _ in range(10):
            assert client.as_(MEMBER).get('/devices').status == 200
            assert client.as_(OTHER_MEMBER).get('/devices').status == 403
        # Each of two callers: the rule, and the rule of administrators.
        assert checks.call_count == count


def test_rule_that_asks_server_is_not_remembered(tmp_path: Path, checks: Mock) -> None:
    check = 'role:admin or http://127.0.0.1/%(project_id)s'
    client = build_policy_client(tmp_path, f'"cyborg:device:get_all": "{check}"')
    for _ in range(10):
        assert client.get('/devices').status == 200
    assert checks.call_count == 20


def test_remembered_results_are_limited(
    checks: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, '_MAX_RESULTS', 2)
    client = Client()
    for _ in range(2):
        assert client.as_(MANAGER).get('/devices').status == 200
        assert client.as_(READER).get('/devices').status == 403
    assert checks.call_count == 8


def test_generator_enforcer_has_rules_and_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules, file = tmp_path / 'rules.yaml', tmp_path / 'cyborg-lite.conf'
    rules.write_text('"cyborg:device:get_all": "!"')
    file.write_text(f'[oslo_policy]\npolicy_file = {rules}\n')
    monkeypatch.setattr(cfg, 'CONF', cfg.ConfigOpts())
    command = ['oslopolicy-list-redundant', '--namespace', 'cyborg_lite']
    monkeypatch.setattr('sys.argv', [*command, '--config-file', str(file)])

    enforcer = policy.load_generator_enforcer()
    names = {rule.name for rule in policies.list_rules()}
    assert names == enforcer.registered_rules.keys()
    enforcer.load_rules()
    assert str(enforcer.rules['cyborg:device:get_all']) == '!'


@pytest.mark.parametrize('role', ['admin', 'Admin', 'ADMIN'])
def test_admin_role_in_any_case_sees_all_projects(role: str) -> None:
    client = Client()
    client.create_profile('dp1')
    (arq,) = client.as_(MEMBER).create_arqs()
    admin = client.as_(build_persona(f'{role},reader', OTHER_PROJECT), '2.4')
    uuids = [arq['uuid'] for arq in admin.get('/accelerator_requests').json['arqs']]
    assert uuids == [arq['uuid']]
    device = add_device(client.conductor.database)
    users = dataclasses.replace(device, arqs=(arq['uuid'],))
    client.conductor.answers['list_devices'] = (users,)
    assert admin.get(f'/devices/{device.uuid}').json['arqs'] == [arq['uuid']]
    assert client.conductor.callers[-1].is_admin


def test_admin_rule_overridden_decides_who_sees_all_projects(tmp_path: Path) -> None:
    client = build_policy_client(tmp_path, 'admin_api: "role:operator"')
    operator = build_persona('operator', OTHER_PROJECT)
    group = {'resources:FPGA': '1'}
    body = [{'name': 'dp1', 'groups': [group]}]
    assert client.as_(operator).post('/device_profiles', body).status == 201
    (arq,) = client.as_(MEMBER).create_arqs()
    path = f'/accelerator_requests/{arq["uuid"]}'
    assert client.as_(operator).get(path).status == 200
    other_admin = build_persona('admin,reader', OTHER_PROJECT)
    assert client.as_(other_admin).get(path).status == 404
