# SPDX-License-Identifier: Apache-2.0
"""Numbers of further servers in the responses of the API."""

from typing import Self

from cyborg_lite.api.views.explanations import ReasonView
from cyborg_lite.api.views.shapes import UUID, nullable
from cyborg_lite.api.views.view import View
from cyborg_lite.model.device_profiles import DeviceProfile
from cyborg_lite.model.server_capacity import HostCapacity, ProfileCapacity, Shortage


class ShortageView(View):
    """The groups that run out of units first, and on how many hosts they do."""

    groups = [int]
    resource_classes = [str]
    traits = [str]
    hosts = int
    text = str

    @classmethod
    def build(cls, shortage: Shortage) -> Self:
        """Build the view."""
        return cls(
            groups=list(shortage.groups),
            resource_classes=list(shortage.resource_classes),
            traits=list(shortage.traits),
            hosts=shortage.hosts,
            text=shortage.text,
        )


class HostCapacityView(View):
    """The number of further servers that fit on one host.

    If ``is_exact`` is false, more servers may fit.
    """

    hostname = str
    servers = int
    is_exact = bool
    shortage = ShortageView

    @classmethod
    def build(cls, capacity: HostCapacity) -> Self:
        """Build the view."""
        return cls(
            hostname=capacity.hostname,
            servers=capacity.servers,
            is_exact=capacity.is_exact,
            shortage=ShortageView.build(capacity.shortage),
        )


class ProfileCapacityView(View):
    """The number of further servers that fit on all hosts, and on each of them.

    ``shortage`` is null if there are no hosts.
    """

    device_profile_uuid = UUID
    device_profile_name = str
    servers = int
    is_exact = bool
    shortage = nullable(ShortageView)
    warnings = [ReasonView]
    hosts = [HostCapacityView]
    alternatives = [int]

    @classmethod
    def build(cls, profile: DeviceProfile, capacity: ProfileCapacity) -> Self:
        """Build the view."""
        shortage = capacity.shortage and ShortageView.build(capacity.shortage)
        return cls(
            device_profile_uuid=profile.uuid,
            device_profile_name=profile.name,
            servers=capacity.servers,
            is_exact=capacity.is_exact,
            shortage=shortage,
            warnings=[ReasonView.build(reason) for reason in capacity.warnings],
            hosts=[HostCapacityView.build(host) for host in capacity.hosts],
            alternatives=list(capacity.choice),
        )
