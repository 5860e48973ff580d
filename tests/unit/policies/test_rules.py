# SPDX-License-Identifier: Apache-2.0
"""The rules as operators know them: by name, documented, with project scope."""

from io import StringIO
from unittest import mock

import pytest
from oslo_config import cfg
from oslo_policy import generator, policy

from cyborg_lite import policies

RULES = {rule.name: rule for rule in policies.list_rules()}
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


def test_each_rule_has_one_name() -> None:
    assert len(RULES) == len(policies.list_rules())


def test_operators_find_the_base_rules_by_name() -> None:
    assert {name for name in RULES if not name.startswith('cyborg:')} == BASE


@pytest.mark.parametrize('name', sorted(RULES.keys() - BASE))
def test_a_rule_of_a_route_is_documented_and_of_project_scope(name: str) -> None:
    rule = RULES[name]
    assert isinstance(rule, policy.DocumentedRuleDefault)
    assert rule.scope_types == ['project']
    assert rule.description.endswith('.')
    assert all(one['path'].startswith('/v2/') for one in rule.operations)


def test_every_rule_parses_and_refers_to_rules_that_exist() -> None:
    conf = cfg.ConfigOpts()
    conf([], project='cyborg-lite', default_config_files=[], default_config_dirs=[])
    enforcer = policy.Enforcer(conf)
    enforcer.register_defaults(list(RULES.values()))
    enforcer.load_rules()
    assert enforcer.check_rules(raise_on_violation=True)


def test_the_sample_file_shows_every_rule() -> None:
    found = {'cyborg_lite': policies.list_rules()}
    output = StringIO()
    with (
        mock.patch.object(
            generator, 'get_policies_dict', autospec=True, return_value=found
        ),
        mock.patch('sys.stdout', output),
    ):
        # What the command calls; it writes to standard output.
        generator._generate_sample(['cyborg_lite'])
    for name in RULES:
        assert f'"{name}":' in output.getvalue()
