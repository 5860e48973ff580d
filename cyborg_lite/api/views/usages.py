# SPDX-License-Identifier: Apache-2.0
"""Use of units in the responses of the API."""

from datetime import UTC, datetime
from typing import Self

from cyborg_lite.api.call import Call
from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.shapes import nullable
from cyborg_lite.api.views.view import View
from cyborg_lite.model.usages import UnitUsage, UsageQuery, UsageReport


class UnitUsageView(View):
    """The use of units of one resource class by a project, with one device profile.

    ``unit_hours`` is the number of units multiplied by the hours of their use.
    """

    project_id = nullable(str)
    resource_class = str
    device_profile_name = str
    unit_hours = float

    @classmethod
    def build(cls, usage: UnitUsage) -> Self:
        """Build the view."""
        return cls(
            project_id=usage.project_id,
            resource_class=usage.resource_class,
            device_profile_name=usage.device_profile_name,
            unit_hours=usage.unit_hours,
        )


class UsageList(View):
    """The use of units in a period, by project, resource class and device profile.

    ``end`` is the present time if the end of the request lies in the future.
    """

    start = datetime
    end = datetime
    usages = [UnitUsageView]
    links = [Link]

    @classmethod
    def build(cls, query: UsageQuery, report: UsageReport, call: Call) -> Self:
        """Build the view."""
        return cls(
            start=_to_time(query.start),
            end=_to_time(report.end),
            usages=[UnitUsageView.build(usage) for usage in report.usages],
            links=Link.build_self_links(call.links, 'v2/usages'),
        )


def _to_time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
