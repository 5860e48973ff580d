# SPDX-License-Identifier: Apache-2.0
"""Panel with the accelerator requests of the project."""

import horizon
from django.utils.translation import gettext_lazy as _


class AcceleratorRequests(horizon.Panel):
    """Accelerator requests in the dashboard of the project."""

    name = _('Accelerator Requests')
    slug = 'accelerator_requests'
    permissions = ('openstack.services.accelerator',)
    policy_rules = (('accelerator', 'cyborg:arq:get_all'),)
