# SPDX-License-Identifier: Apache-2.0
from django.utils.translation import gettext_lazy as _

PANEL_GROUP = 'accelerators'
PANEL_GROUP_NAME = _('Accelerators')
PANEL_GROUP_DASHBOARD = 'admin'
