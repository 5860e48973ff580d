# SPDX-License-Identifier: Apache-2.0
"""Types, use and limits of units in the responses of the API."""

from datetime import datetime

from cyborg_lite.api.views.shapes import nullable, source
from cyborg_lite.api.views.view import LINKS, NEXT_LINKS, View


class UnitUsageView(View):
    """The use of units of one resource class by a project, with one device profile.

    ``unit_hours`` is the number of units multiplied by the hours of their use.
    """

    project_id = nullable(str)
    resource_class = str
    device_profile_name = str
    unit_hours = float


class DeviceTypeView(View):
    """A type of units that device profiles can request.

    ``description`` is a unit in words. ``is_available`` and ``free_units`` are null if
    the operator does not show them. ``memory_mib`` is of one unit.
    """

    description = source('type.description', str)
    type = source('type.type', str)
    vendor = source('type.vendor', str)
    model = source('type.model', str)
    resource_class = source('type.resource_class', str)
    memory_mib = source('type.memory_mib', nullable(int))
    device_profiles = source('type.device_profiles', [str])
    is_available = nullable(bool)
    free_units = nullable(int)


class DeviceTypeList(View):
    """The types of devices that the device profiles of the project name."""

    _path = 'v2/device_types'

    device_types = [DeviceTypeView]
    links = LINKS


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
