# SPDX-License-Identifier: Apache-2.0
"""Statement which service owns each card, and the owner that a device has."""

from dataclasses import replace

import pytest

from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.model.ownership.plan import (
    OwnedDevice,
    Owner,
    OwnershipPlan,
    parse_plan,
)

FIRST, SECOND, T4 = '0000:3b:00.0', '0000:af:00.0', '10de:1eb8'
PLAN = parse_plan(
    {
        'compute-1': {FIRST.upper(): 'nova', SECOND: 'cyborg'},
        'compute-*': {T4: 'nobody', '*': 'cyborg'},
    }
)


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
        ({'compute-1': {FIRST: {'owner': 'nova'}}}, 'the owner must be one of'),
        ({'compute-1': {'first': 'nova'}}, 'card first: use a PCI address'),
    ],
)
def test_parse_plan_invalid_content_raises(content: object, text: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        parse_plan(content)
    assert text in raised.value.text


# --- the owner of a device ---


DEVICE = OwnedDevice(
    hostname='compute-1',
    address='0000:3b:00.0',
    vendor='10de',
    product='1eb8',
    model='Tesla T4',
    driver='NVIDIA',
    conflict='',
    schedulable=True,
    reason='',
)


@pytest.mark.parametrize(
    ('device', 'owner', 'reason'),
    [
        (DEVICE, 'this service', ''),
        (replace(DEVICE, schedulable=False, reason='no IOMMU'), 'nobody', 'no IOMMU'),
        (replace(DEVICE, conflict='Nova has it.'), 'both', 'Nova has it.'),
        (
            replace(DEVICE, conflict='Nova has it.', schedulable=False),
            'both',
            'Nova has it.',
        ),
    ],
)
def test_owner_follows_conflict_and_offer(
    device: OwnedDevice, owner: str, reason: str
) -> None:
    assert (device.owner, device.owner_reason) == (owner, reason)
