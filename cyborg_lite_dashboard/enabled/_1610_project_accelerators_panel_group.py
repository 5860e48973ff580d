# SPDX-License-Identifier: Apache-2.0
from django.utils.translation import gettext_lazy as _

from cyborg_lite_dashboard import exceptions

ADD_INSTALLED_APPS = ['cyborg_lite_dashboard']
ADD_EXCEPTIONS = {
    'recoverable': exceptions.RECOVERABLE,
    'not_found': exceptions.NOT_FOUND,
    'unauthorized': exceptions.UNAUTHORIZED,
}

PANEL_GROUP = 'accelerators'
PANEL_GROUP_NAME = _('Accelerators')
PANEL_GROUP_DASHBOARD = 'project'
