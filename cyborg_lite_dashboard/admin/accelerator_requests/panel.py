# SPDX-License-Identifier: Apache-2.0
"""Panel with the accelerator requests of all projects."""

import horizon
from django.utils.translation import gettext_lazy as _


class AdminAcceleratorRequests(horizon.Panel):
    """Accelerator requests in the dashboard of the administrator."""

    name = _('Accelerator Requests')
    slug = 'accelerator_requests'
    permissions = ('openstack.services.accelerator',)
    policy_rules = (('accelerator', 'admin_api'),)
