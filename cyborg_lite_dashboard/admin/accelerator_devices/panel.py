# SPDX-License-Identifier: Apache-2.0
"""Panel with the devices of all hosts."""

import horizon
from django.utils.translation import gettext_lazy as _


class AcceleratorDevices(horizon.Panel):
    """Devices in the dashboard of the administrator."""

    name = _('Accelerator Devices')
    slug = 'accelerator_devices'
    permissions = ('openstack.services.accelerator',)
    policy_rules = (('accelerator', 'cyborg:host:get_topology'),)
