# SPDX-License-Identifier: Apache-2.0
"""Tests of the policy rules: names, documentation, scope."""

from io import StringIO
from unittest import mock

import pytest
from oslo_config import cfg
from oslo_policy import generator, policy

from cyborg_lite.api.openapi.routes import list_rules
from cyborg_lite.policies import base

RULES = {rule.name: rule for rule in list_rules()}
DOCUMENTED = {
    name: rule
    for name, rule in RULES.items()
    if isinstance(rule, policy.DocumentedRuleDefault)
}
BASE = {
    'admin_api',
    'project_admin_api',
    'project_member_api',
    'project_reader_api',
    'project_manager_api',
    'project_member_or_admin',
    'project_reader_or_admin',
    'project_manager_or_admin',
    'project_member_or_service',
    'service_api',
    'public_api',
    'allow',
    'deny',
    'default',
    'is_admin',
    'admin_or_owner',
    'admin_or_user',
}


def test_rule_names_are_unique() -> None:
    assert len(RULES) == len(list_rules())


def test_base_rules_have_stable_names() -> None:
    assert {name for name in RULES if not name.startswith('cyborg:')} == BASE


@pytest.mark.parametrize('name', sorted(RULES.keys() - BASE))
def test_route_rules_are_documented_with_project_scope(name: str) -> None:
    rule = DOCUMENTED[name]
    assert rule.scope_types == ['project']
    assert rule.description.endswith('.')
    assert all(operation['path'].startswith('/v2/') for operation in rule.operations)


def test_readers_may_change_nothing() -> None:
    for rule in DOCUMENTED.values():
        if rule.check_str == base.READER_OR_ADMIN:
            assert {operation['method'] for operation in rule.operations} == {'GET'}


def test_services_may_write_arqs_only() -> None:
    writable = {
        name for name, rule in RULES.items() if rule.check_str == base.MEMBER_OR_SERVICE
    }
    assert writable == {f'cyborg:arq:{name}' for name in ('create', 'delete', 'update')}


def test_rules_guard_all_their_routes() -> None:
    operations = DOCUMENTED['cyborg:arq:get_one'].operations
    assert [operation['path'] for operation in operations] == [
        '/v2/accelerator_requests/{uuid}',
        '/v2/accelerator_requests/{uuid}/events',
        '/v2/instance_events',
    ]
    access = DOCUMENTED['cyborg:device_profile:access'].operations
    assert [operation['method'] for operation in access] == ['GET', 'POST', 'DELETE']


def test_rules_parse_and_refer_to_existing_rules() -> None:
    conf = cfg.ConfigOpts()
    conf([], project='cyborg-lite', default_config_files=[], default_config_dirs=[])
    enforcer = policy.Enforcer(conf)
    enforcer.register_defaults(list(RULES.values()))
    enforcer.load_rules()
    assert enforcer.check_rules(raise_on_violation=True)


def test_sample_file_contains_every_rule() -> None:
    rules = {'cyborg_lite': list_rules()}
    output = StringIO()
    with (
        mock.patch.object(
            generator, 'get_policies_dict', autospec=True, return_value=rules
        ),
        mock.patch('sys.stdout', output),
    ):
        # The function that the command calls; it writes to standard output.
        generator._generate_sample(['cyborg_lite'])
    for name in RULES:
        assert f'"{name}":' in output.getvalue()
