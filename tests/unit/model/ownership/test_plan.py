# SPDX-License-Identifier: Apache-2.0
"""Statement which service owns each card, and its comparison with the devices."""

from typing import Any

import pytest

from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.model.ownership.plan import (
    OwnedDevice,
    Owner,
    OwnershipPlan,
    check_devices,
    parse_plan,
)

FIRST, SECOND, T4 = '0000:3b:00.0', '0000:af:00.0', '10de:1eb8'
PLAN = parse_plan(
    {
        'compute-1': {FIRST.upper(): 'nova', SECOND: {'owner': 'cyborg'}},
        'compute-*': {T4: 'nobody', '*': 'cyborg'},
    }
)


def device(
    hostname: str = 'compute-1', address: str = SECOND, **values: Any
) -> OwnedDevice:
    fields = {
        'vendor': '10de',
        'product': '1eb8',
        'model': 'T4',
        'driver': 'NVIDIA',
        'conflict': '',
        'schedulable': True,
        'reason': '',
    }
    return OwnedDevice(hostname, address, **{**fields, **values})


@pytest.mark.parametrize(
    ('hostname', 'address', 'ids', 'owner'),
    [
        ('compute-1', FIRST, T4, Owner.NOVA),
        ('compute-1', SECOND.upper(), T4, Owner.CYBORG),
        ('compute-1', '0000:01:00.0', T4, Owner.NOBODY),
        ('compute-2', FIRST, '10DE:1EB8', Owner.NOBODY),
        ('compute-2', FIRST, '10de:2235', Owner.CYBORG),
        ('other', FIRST, T4, None),
    ],
)
def test_find_rule_first_match_decides(
    hostname: str, address: str, ids: str, owner: Owner | None
) -> None:
    rule = PLAN.find_rule(hostname, address, ids)
    assert (rule and rule.owner) == owner


def test_list_rules_keeps_first_rule_of_card() -> None:
    plan = parse_plan({'a': {'*': 'cyborg'}, '*': {'*': 'nobody', T4: 'nova'}})
    owners = {rule.card: rule.owner for rule in plan.list_rules('a')}
    assert owners == {'*': Owner.CYBORG, T4: Owner.NOVA}


@pytest.mark.parametrize('content', [None, {}])
def test_parse_plan_empty_file_states_nothing(content: object) -> None:
    assert parse_plan(content) == OwnershipPlan()


@pytest.mark.parametrize(
    ('content', 'text'),
    [
        (['compute-1'], 'the file must contain a mapping'),
        ({'compute-1': 'nova'}, 'host compute-1 must contain a mapping'),
        (
            {'compute-1': {FIRST: 'me'}},
            f'card {FIRST}: the owner must be one of cyborg',
        ),
        ({'compute-1': {FIRST: {}}}, 'the owner must be one of'),
        ({'compute-1': {'first': 'nova'}}, 'card first: use a PCI address'),
        ({'compute-1': {FIRST: {'owner': 'nova', 'type': 'x'}}}, 'unknown key type'),
        ({'compute-1': {'*': 'nova'}}, 'Nova needs the address'),
        ({'compute-1': {FIRST: ['nova']}}, 'must contain a mapping'),
    ],
)
def test_parse_plan_invalid_content_raises(content: object, text: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        parse_plan(content)
    assert text in raised.value.text


def reasons(plan: OwnershipPlan, *devices: OwnedDevice) -> list[tuple[str, str, str]]:
    problems = check_devices(plan, devices, ['compute-1'])
    return [(item.address, item.owner, item.reason) for item in problems]


def test_check_devices_matching_plan_has_no_problem() -> None:
    assert reasons(PLAN, device()) == []
    assert reasons(PLAN, device(), device('other', FIRST)) == []


def test_check_devices_names_each_difference() -> None:
    conflict = 'Managed twice: by driver NVIDIA of this service, and by Nova'
    (problem,) = reasons(PLAN, device(conflict=conflict))
    assert problem == (SECOND, 'cyborg', conflict)
    (problem,) = reasons(PLAN, device(schedulable=False, reason='boot VGA'))
    assert problem == (SECOND, 'cyborg', 'boot VGA')
    (problem,) = reasons(PLAN, device(), device(address=FIRST))
    assert problem[:2] == (FIRST, 'nova')
    assert 'This service reports the card' in problem[2]
    (problem,) = reasons(PLAN)
    assert problem == (SECOND, 'cyborg', 'The agent does not report the card.')
    (problem,) = reasons(parse_plan({}), device())
    assert problem == (SECOND, '', 'The file states no owner.')


def test_check_devices_shared_class_is_problem() -> None:
    of_cyborg: dict[str, object] = {'owner': 'cyborg', 'vgpu_type': 'nvidia-231'}
    of_nova = {'owner': 'nova', 'vgpu_type': 'nvidia-231'}
    shared = parse_plan({'compute-1': {FIRST: of_nova, SECOND: of_cyborg}})
    (problem,) = reasons(shared, device(resource_classes=('VGPU',)))
    assert 'vGPUs of class VGPU' in problem[2]
    apart = {**of_cyborg, 'resource_class': 'CUSTOM_CYBORG_VGPU'}
    plan = parse_plan({'compute-1': {FIRST: of_nova, SECOND: apart}})
    assert reasons(plan, device(resource_classes=('CUSTOM_CYBORG_VGPU',))) == []
    (problem,) = reasons(plan, device(resource_classes=('VGPU',)))
    assert problem[2] == (
        'This service offers it as VGPU and not as CUSTOM_CYBORG_VGPU.'
    )
