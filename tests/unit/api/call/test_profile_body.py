# SPDX-License-Identifier: Apache-2.0
"""Tests of the parser of device profiles."""

from typing import Any, Final

import pytest

from cyborg_lite.api.call import profile_body
from cyborg_lite.api.microversion import V2_3, V2_4
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.profiles import InvalidDeviceProfile
from cyborg_lite.model import uuids
from cyborg_lite.model.profiles.device_profiles import (
    DeviceProfile,
    Limits,
    ProfileChange,
)
from tests.support.api.calls import build_call

LIMITS: Final = Limits()
GROUP: Final = {'resources:FPGA': '1'}
AVX: Final = {**GROUP, 'trait:HW_CPU_X86_AVX': 'required'}


def parse_profiles(*body: dict[str, Any], **options: Any) -> list[DeviceProfile]:
    return profile_body.parse_profiles(build_call(body=list(body), **options), LIMITS)


def parse_change(*patch: dict[str, Any]) -> ProfileChange:
    return profile_body.parse_profile_change(
        build_call(body=list(patch), version=V2_4), LIMITS
    )


def replace(path: str, value: Any) -> dict[str, Any]:
    return {'op': 'replace', 'path': path, 'value': value}


def test_parse_profile_without_uuid_creates_uuid() -> None:
    first, second = parse_profiles(
        {'name': 'a', 'groups': [GROUP]}, {'name': 'b', 'groups': [GROUP]}, version=V2_4
    )
    assert uuids.normalize_uuid(first.uuid) == first.uuid != second.uuid
    assert (first.enabled, first.is_public) == (True, True)
    assert first.created_at.tzinfo is not None


def test_parse_profiles_several_require_2_4() -> None:
    with pytest.raises(InvalidInput, match='at most 1'):
        parse_profiles(*[{'name': n, 'groups': [GROUP]} for n in 'ab'], version=V2_3)


def test_parse_profile_switches_require_2_4() -> None:
    body = {'name': 'a', 'groups': [GROUP], 'enabled': False, 'is_public': False}
    (newer,) = parse_profiles(body, version=V2_4)
    assert (newer.enabled, newer.is_public) == (False, False)
    (older,) = parse_profiles(body, version=V2_3)
    assert (older.enabled, older.is_public) == (True, True)


def test_parse_profile_switch_must_be_boolean() -> None:
    body = {'name': 'a', 'groups': [GROUP], 'enabled': 'no'}
    with pytest.raises(InvalidDeviceProfile, match='enabled must be true or false'):
        parse_profiles(body, version=V2_4)


def test_parse_profile_standard_traits_require_2_4() -> None:
    assert parse_profiles({'name': 'a', 'groups': [AVX]}, version=V2_4)
    with pytest.raises(InvalidDeviceProfile, match='HW_CPU_X86_AVX'):
        parse_profiles({'name': 'a', 'groups': [AVX]}, version=V2_3)


def test_parse_change_contains_only_patched_fields() -> None:
    assert parse_change(replace('/description', None)) == ProfileChange(
        ('description',)
    )
    change = parse_change(replace('/name', 'b'), replace('/groups', [AVX]))
    assert set(change.fields) == {'name', 'groups'}
    assert (change.name, change.groups) == ('b', (AVX,))


@pytest.mark.parametrize(
    ('patch', 'reason'),
    [
        ([replace('name', 'b')], 'the path name does not exist'),
        ([replace('/', 'b')], 'the path / does not exist'),
        ([replace('/uuid', 'b')], 'uuid cannot be changed'),
        ([replace('/name', 'b'), replace('/name', 'c')], '/name is repeated'),
        ([replace('/groups', [])], 'groups'),
        ([replace('/groups/0', GROUP)], 'groups/0 cannot be changed'),
    ],
)
def test_parse_change_invalid_names_reason(
    patch: list[dict[str, Any]], reason: str
) -> None:
    with pytest.raises(InvalidDeviceProfile, match=reason):
        parse_change(*patch)
