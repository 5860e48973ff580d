# SPDX-License-Identifier: Apache-2.0
"""Device profiles as clients send them become ours, or are refused with the reason."""

from typing import Any, Final

import pytest

from cyborg_lite.api import profile_body
from cyborg_lite.api.microversion import V2_3, V2_4
from cyborg_lite.exceptions import InvalidDeviceProfile, InvalidInput
from cyborg_lite.model import uuids
from cyborg_lite.model.device_profiles import DeviceProfile, Limits, ProfileChange
from tests.unit.api.calls import call

LIMITS: Final = Limits()
GROUP: Final = {'resources:FPGA': '1'}
AVX: Final = {**GROUP, 'trait:HW_CPU_X86_AVX': 'required'}


def created(*wanted: dict[str, Any], **options: Any) -> list[DeviceProfile]:
    return profile_body.created(call(body=list(wanted), **options), LIMITS)


def changed(*patch: dict[str, Any]) -> ProfileChange:
    return profile_body.changed(call(body=list(patch), version=V2_4), LIMITS)


def replace(path: str, value: Any) -> dict[str, Any]:
    return {'op': 'replace', 'path': path, 'value': value}


def test_a_profile_without_a_uuid_gets_one_of_its_own() -> None:
    one, other = created(
        {'name': 'a', 'groups': [GROUP]}, {'name': 'b', 'groups': [GROUP]}, version=V2_4
    )
    assert uuids.canonical(one.uuid) == one.uuid != other.uuid
    assert (one.enabled, one.is_public) == (True, True)
    assert one.created_at.tzinfo is not None


def test_several_at_once_are_for_newer_clients() -> None:
    with pytest.raises(InvalidInput, match='at most 1'):
        created(*[{'name': n, 'groups': [GROUP]} for n in 'ab'], version=V2_3)


def test_switches_are_heard_from_newer_clients_alone() -> None:
    wanted = {'name': 'a', 'groups': [GROUP], 'enabled': False, 'is_public': False}
    (newer,) = created(wanted, version=V2_4)
    assert (newer.enabled, newer.is_public) == (False, False)
    (older,) = created(wanted, version=V2_3)
    assert (older.enabled, older.is_public) == (True, True)


def test_a_switch_is_true_or_false() -> None:
    wanted = {'name': 'a', 'groups': [GROUP], 'enabled': 'no'}
    with pytest.raises(InvalidDeviceProfile, match='enabled must be true or false'):
        created(wanted, version=V2_4)


def test_standard_traits_are_legal_for_newer_clients() -> None:
    assert created({'name': 'a', 'groups': [AVX]}, version=V2_4)
    with pytest.raises(InvalidDeviceProfile, match='HW_CPU_X86_AVX'):
        created({'name': 'a', 'groups': [AVX]}, version=V2_3)


def test_a_patch_changes_what_it_names_and_nothing_else() -> None:
    assert changed(replace('/description', None)) == ProfileChange(('description',))
    change = changed(replace('/name', 'b'), replace('/groups', [AVX]))
    assert set(change.fields) == {'name', 'groups'}
    assert (change.name, change.groups) == ('b', (AVX,))


@pytest.mark.parametrize(
    ('patch', 'reason'),
    [
        ([replace('name', 'b')], 'there is no path name'),
        ([replace('/', 'b')], 'there is no path /'),
        ([replace('/uuid', 'b')], 'uuid cannot be changed'),
        ([replace('/name', 'b'), replace('/name', 'c')], '/name is there twice'),
        ([replace('/groups', [])], 'groups'),
        ([replace('/groups/0', GROUP)], 'groups/0 cannot be changed'),
    ],
)
def test_a_patch_that_makes_no_sense_is_refused_with_the_reason(
    patch: list[dict[str, Any]], reason: str
) -> None:
    with pytest.raises(InvalidDeviceProfile, match=reason):
        changed(*patch)
