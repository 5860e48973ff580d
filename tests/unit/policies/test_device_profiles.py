# SPDX-License-Identifier: Apache-2.0
"""Tests of the policy rules for device profiles."""

from cyborg_lite.policies import base, device_profiles

RULES = {rule.name: rule for rule in device_profiles.list_rules()}


def test_every_change_requires_admin() -> None:
    readable = {
        name for name, rule in RULES.items() if rule.check_str == base.READER_OR_ADMIN
    }
    assert readable == {
        'cyborg:device_profile:get_all',
        'cyborg:device_profile:get_one',
    }
    assert {rule.check_str for name, rule in RULES.items() if name not in readable} == {
        base.ADMIN
    }


def test_readers_may_not_use_write_methods() -> None:
    for rule in RULES.values():
        if rule.check_str == base.READER_OR_ADMIN:
            assert {operation['method'] for operation in rule.operations} == {'GET'}


def test_access_list_is_guarded_in_all_methods() -> None:
    operations = RULES['cyborg:device_profile:access'].operations
    assert {operation['method'] for operation in operations} == {
        'GET',
        'POST',
        'DELETE',
    }
    assert {operation['path'] for operation in operations} == {
        '/v2/device_profiles/{device_profile}/access'
    }
