# SPDX-License-Identifier: Apache-2.0
"""Tests of the alternatives of groups."""

from datetime import UTC, datetime
from typing import Any, Final

import pytest

from cyborg_lite.errors.profiles import InvalidDeviceProfile
from cyborg_lite.model.profiles import alternatives, grammar
from cyborg_lite.model.profiles.device_profiles import DeviceProfile, Limits

LARGE: Final = {'resources:PGPU': '1', 'trait:CUSTOM_LARGE': 'required'}
SMALL: Final = {'resources:PGPU': '1', 'trait:CUSTOM_LARGE': 'forbidden'}
SHARED: Final = {'resources:VGPU': '1'}
NIC: Final = {'resources:CUSTOM_NIC': '2'}
LIMITS: Final = Limits(attributes=(), options=3, choices=8)


def parse(*groups: Any, limits: Limits = LIMITS) -> DeviceProfile:
    body = {'name': 'p', 'groups': list(groups)}
    return grammar.parse_profile(
        body, limits, fresh_uuid='uuid', moment=datetime.now(UTC)
    )


def test_parse_profile_separates_alternatives_from_groups() -> None:
    profile = parse({**LARGE, 'alternatives': [SMALL, SHARED]}, NIC)
    assert profile.groups == (LARGE, NIC)
    assert profile.alternatives == ((SMALL, SHARED), ())
    assert profile.resource_classes() == {'PGPU', 'VGPU', 'CUSTOM_NIC'}


def test_parse_profile_without_alternatives_has_none() -> None:
    assert parse(LARGE).alternatives == ()
    assert parse({**LARGE, 'alternatives': []}).alternatives == ()


@pytest.mark.parametrize(
    ('alternatives', 'reason'),
    [
        ({}, r'groups\[0\].alternatives must be a list of at most 2'),
        ([SMALL, SHARED, NIC], 'at most 2 objects'),
        (['x'], r'groups\[0\].alternatives\[0\] must be an object'),
        ([{}], r'groups\[0\].alternatives\[0\] has no resources: key'),
        ([{**SMALL, 'alternatives': []}], r'alternatives\[0\]: alternatives must'),
        ([{'resources:VGPU': '2'}], 'needs 2 ARQs, but groups.0. needs 1'),
        ([{'resources:FPGA': 1, 'trait:CUSTOM_FPGA_XILINX': 'required'}], '2 ARQs'),
        ([LARGE], r'alternatives\[0\] has the same resources'),
        ([SHARED, {**SHARED, 'accel:x': 'y'}], r'alternatives\[1\] has the same'),
    ],
)
def test_parse_profile_invalid_alternatives_are_refused(
    alternatives: Any, reason: str
) -> None:
    with pytest.raises(InvalidDeviceProfile, match=reason):
        parse({**LARGE, 'alternatives': alternatives})


def test_parse_profile_too_many_choices_are_refused() -> None:
    group = {**LARGE, 'alternatives': [SMALL, SHARED]}
    with pytest.raises(InvalidDeviceProfile, match='have 9 combinations, at most 8'):
        parse(group, group)


def test_parse_profile_counts_largest_alternative() -> None:
    group = {**SHARED, 'alternatives': [{'resources:PGPU': '1', 'accel:x': 'y'}]}
    limits = Limits(attributes=(), options=3, accelerators=1)
    assert parse(group, limits=limits).alternatives
    with pytest.raises(InvalidDeviceProfile, match='request 2 accelerators'):
        parse(group, group, limits=limits)


def test_parse_profile_without_limit_refuses_alternatives() -> None:
    with pytest.raises(InvalidDeviceProfile, match='must start with resources:'):
        parse({**LARGE, 'alternatives': [SMALL]}, limits=Limits())


@pytest.mark.parametrize(('limits', 'fields'), [(LIMITS, 2), (Limits(), 1)])
def test_parse_change_sets_alternatives_with_groups(
    limits: Limits, fields: int
) -> None:
    change = grammar.parse_profile_change({'groups': [LARGE]}, limits)
    assert change.fields == ('groups', 'alternatives')[:fields]


@pytest.mark.parametrize(
    ('choice', 'groups'),
    [
        ((0, 0), (LARGE, NIC)),
        ((2, 0), (SHARED, NIC)),
        ((), (LARGE, NIC)),
        ((3, 1), (LARGE, NIC)),
        ((-1, 0), (LARGE, NIC)),
    ],
)
def test_apply_choice_returns_flat_groups(choice: Any, groups: Any) -> None:
    profile = parse({**LARGE, 'alternatives': [SMALL, SHARED]}, NIC)
    flat = alternatives.apply_choice(profile, choice)
    assert (flat.groups, flat.alternatives) == (groups, ())
