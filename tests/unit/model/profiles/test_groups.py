# SPDX-License-Identifier: Apache-2.0
"""Groups from requests, and stored groups that are parsed again."""

import pytest

from cyborg_lite.errors.profiles import InvalidDeviceProfile
from cyborg_lite.model.profiles.device_profiles import Limits
from cyborg_lite.model.profiles.groups import parse_group

GROUP = {'resources:PGPU': '1'}
SELECTOR = {**GROUP, 'accel:selector': 'device.unknown_name == 1'}


def test_attributes_of_selector_are_checked() -> None:
    with pytest.raises(InvalidDeviceProfile, match='no driver declares unknown_name'):
        parse_group('groups[0]', SELECTOR, Limits(attributes=()))
