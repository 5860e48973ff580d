# SPDX-License-Identifier: Apache-2.0
"""Panel with the device profiles that the project may use."""

import horizon
from django.utils.translation import gettext_lazy as _


class DeviceProfiles(horizon.Panel):
    """Device profiles in the dashboard of the project."""

    name = _('Device Profiles')
    slug = 'device_profiles'
    permissions = ('openstack.services.accelerator',)
    policy_rules = (('accelerator', 'cyborg:device_profile:get_all'),)
