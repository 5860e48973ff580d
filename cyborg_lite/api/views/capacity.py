# SPDX-License-Identifier: Apache-2.0
"""Explanations and capacities of device profiles in the responses of the API."""

from typing import Any

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.microversion import V2_6
from cyborg_lite.api.views.shapes import (
    TEXT_OR_NULL,
    UUID,
    enum_of,
    nullable,
    since,
    source,
)
from cyborg_lite.api.views.view import View
from cyborg_lite.model.capacity.explanations import FitResult, ReasonCode


class ReasonView(View):
    """A reason why a host or group does not fit."""

    code = enum_of(ReasonCode)
    text = str
    group = nullable(int)
    resource_class = TEXT_OR_NULL
    traits = [str]
    providers = [str]


class GroupVerdictView(View):
    """The result for one group on one host."""

    group = int
    fits = bool
    reasons = [ReasonView]


class HostVerdictView(View):
    """The result for one host."""

    hostname = str
    fits = bool
    groups = [GroupVerdictView]
    reasons = [ReasonView]


class ExplanationView(View):
    """The result for all hosts, with a summary."""

    device_profile_uuid = source('profile.uuid', UUID)
    device_profile_name = source('profile.name', str)
    verdict = source('explanation.result', enum_of(FitResult))
    summary = source('explanation.summary', str)
    warnings = [ReasonView]
    hosts = source('explanation.hosts', [HostVerdictView])
    alternatives = since(V2_6, source('explanation.choice', [int]))

    @staticmethod
    def render_warnings(item: Any, call: Call) -> Any:
        """Return the warnings, which include the cautions since 2.6."""
        warnings, cautions = item.explanation.warnings, item.explanation.cautions
        return (*warnings, *cautions) if call.microversion >= V2_6 else warnings


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
