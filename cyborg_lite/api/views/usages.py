# SPDX-License-Identifier: Apache-2.0
"""Use of units in the responses of the API."""

from datetime import datetime

from cyborg_lite.api.views.shapes import nullable
from cyborg_lite.api.views.view import LINKS, NEXT_LINKS, View


class UnitUsageView(View):
    """The use of units of one resource class by a project, with one device profile.

    ``unit_hours`` is the number of units multiplied by the hours of their use.
    """

    project_id = nullable(str)
    resource_class = str
    device_profile_name = str
    unit_hours = float


class ResourceLimitView(View):
    """The limit of a resource, and what the project uses; -1 means unlimited."""

    resource = str
    limit = int
    used = int


class LimitList(View):
    """The limits of the project of the token."""

    _path = 'v2/limits'

    limits = [ResourceLimitView]
    links = LINKS


class UsageList(View):
    """The use of units in a period, by project, resource class and device profile.

    ``end`` is the present time if the end of the request lies in the future.
    """

    _path = 'v2/usages'

    start = datetime
    end = datetime
    usages = [UnitUsageView]
    usages_links = NEXT_LINKS
    links = LINKS
