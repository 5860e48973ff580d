# SPDX-License-Identifier: Apache-2.0
"""Numbers of further servers in the responses of the API."""

from cyborg_lite.api.views.explanations import ReasonView
from cyborg_lite.api.views.shapes import UUID, nullable, source
from cyborg_lite.api.views.view import View


class ShortageView(View):
    """The groups that run out of units first, and on how many hosts they do."""

    groups = [int]
    resource_classes = [str]
    traits = [str]
    hosts = int
    text = str


class HostCapacityView(View):
    """The number of further servers that fit on one host.

    If ``is_exact`` is false, more servers may fit.
    """

    hostname = str
    servers = int
    is_exact = bool
    shortage = ShortageView


class ProfileCapacityView(View):
    """The number of further servers that fit on all hosts, and on each of them.

    ``shortage`` is null if there are no hosts.
    """

    device_profile_uuid = source('profile.uuid', UUID)
    device_profile_name = source('profile.name', str)
    servers = source('capacity.servers', int)
    is_exact = source('capacity.is_exact', bool)
    shortage = source('capacity.shortage', nullable(ShortageView))
    warnings = source('capacity.warnings', [ReasonView])
    hosts = source('capacity.hosts', [HostCapacityView])
    alternatives = source('capacity.choice', [int])
