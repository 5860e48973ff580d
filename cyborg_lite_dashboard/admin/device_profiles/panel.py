# SPDX-License-Identifier: Apache-2.0
"""Panel that administers device profiles."""

import horizon
from django.utils.translation import gettext_lazy as _


class AdminDeviceProfiles(horizon.Panel):
    """Device profiles in the dashboard of the administrator."""

    name = _('Device Profiles')
    slug = 'device_profiles'
    permissions = ('openstack.services.accelerator',)
    policy_rules = (('accelerator', 'cyborg:device_profile:create'),)
