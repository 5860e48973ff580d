# SPDX-License-Identifier: Apache-2.0
"""Tests of the base rules: which roles each of them allows."""

import pytest
from oslo_config import cfg
from oslo_policy import policy

from cyborg_lite.policies.base import BASE_RULES

TARGET = {'project_id': 'lab', 'user_id': 'joe'}


@pytest.fixture(scope='module')
def enforcer() -> policy.Enforcer:
    conf = cfg.ConfigOpts()
    conf([], project='cyborg-lite', default_config_files=[], default_config_dirs=[])
    enforcer = policy.Enforcer(conf)
    enforcer.register_defaults(
        [policy.RuleDefault(name, check) for name, (check, _) in BASE_RULES.items()]
    )
    return enforcer


def list_allowed_roles(enforcer: policy.Enforcer, rule: str, project: str) -> set[str]:
    """Return the roles that pass a rule, with a token of the project."""
    roles = ('admin', 'manager', 'member', 'reader', 'service', 'observer')
    return {
        role
        for role in roles
        if enforcer.enforce(
            rule, TARGET, {'roles': [role], 'project_id': project, 'user_id': 'joe'}
        )
    }


@pytest.mark.parametrize(
    ('rule', 'own_project', 'other_project'),
    [
        ('admin_api', {'admin'}, {'admin'}),
        ('project_manager_or_admin', {'admin', 'manager'}, {'admin'}),
        ('project_member_or_admin', {'admin', 'member'}, {'admin'}),
        ('project_reader_or_admin', {'admin', 'reader'}, {'admin'}),
        ('project_member_or_service', {'member', 'service'}, {'service'}),
        ('project_admin_api', {'admin'}, set()),
        ('deny', set(), set()),
    ],
)
def test_rule_allows_roles_in_own_and_other_project(
    enforcer: policy.Enforcer, rule: str, own_project: set[str], other_project: set[str]
) -> None:
    assert list_allowed_roles(enforcer, rule, 'lab') == own_project
    assert list_allowed_roles(enforcer, rule, 'other') == other_project


def test_admin_rule_ignores_case_of_role(enforcer: policy.Enforcer) -> None:
    assert enforcer.enforce('admin_api', TARGET, {'roles': ['Admin']})


def test_legacy_owner_rule_allows_any_role_of_project(
    enforcer: policy.Enforcer,
) -> None:
    assert 'observer' in list_allowed_roles(enforcer, 'admin_or_owner', 'lab')
    assert list_allowed_roles(enforcer, 'admin_or_owner', 'other') == {'admin'}
