# SPDX-License-Identifier: Apache-2.0
"""Groups from requests, and stored groups that are parsed again."""

import pytest

from cyborg_lite.errors.profiles import InvalidDeviceProfile
from cyborg_lite.model.profiles.device_profiles import Limits
from cyborg_lite.model.profiles.groups import parse_group, parse_groups

GROUP = {'resources:PGPU': '1'}
SELECTOR = {**GROUP, 'accel:selector': 'device.unknown_name == 1'}


def test_parse_groups_returns_alternatives_apart() -> None:
    alternative = {'resources:VGPU': '1'}
    value = [{**GROUP, 'alternatives': [alternative]}]
    groups, further = parse_groups(value, Limits(attributes=()))
    assert (groups, further) == ((GROUP,), ((alternative,),))


def test_attributes_of_selector_are_checked() -> None:
    with pytest.raises(InvalidDeviceProfile, match='no driver declares unknown_name'):
        parse_group('groups[0]', SELECTOR, Limits(attributes=()))


@pytest.mark.parametrize('value', [None, [], {}, [GROUP] * 3])
def test_parse_groups_refuses_other_numbers(value: object) -> None:
    with pytest.raises(InvalidDeviceProfile, match='list of 1 to 2'):
        parse_groups(value, Limits(groups=2))
