# SPDX-License-Identifier: Apache-2.0
"""Tests of the policy rules for ARQs."""

from cyborg_lite.policies import arqs, base

RULES = {rule.name: rule for rule in arqs.list_rules()}


def list_operations(name: str) -> set[str]:
    """Return HTTP method and path of each route that a rule guards."""
    operations = RULES[f'cyborg:arq:{name}'].operations
    return {f'{operation["method"]} {operation["path"]}' for operation in operations}


def test_services_may_write_and_readers_may_read() -> None:
    checks = {name.rpartition(':')[2]: rule.check_str for name, rule in RULES.items()}
    assert checks == {
        'get_all': base.READER_OR_ADMIN,
        'get_one': base.READER_OR_ADMIN,
        'create': base.MEMBER_OR_SERVICE,
        'delete': base.MEMBER_OR_SERVICE,
        'update': base.MEMBER_OR_SERVICE,
    }


def test_history_has_rule_of_single_arq() -> None:
    assert 'GET /v2/accelerator_requests/{uuid}/events' in list_operations('get_one')


def test_bulk_and_single_operations_share_rule() -> None:
    for name, method in (('delete', 'DELETE'), ('update', 'PATCH')):
        path = f'{method} /v2/accelerator_requests'
        assert list_operations(name) == {path, f'{path}/{{uuid}}'}
