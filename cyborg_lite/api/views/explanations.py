# SPDX-License-Identifier: Apache-2.0
"""Explanations of device profiles in the responses of the API."""

from typing import Self

from wsme import types

from cyborg_lite.api.call import Call
from cyborg_lite.api.microversion import V2_20, V2_28
from cyborg_lite.api.views.shapes import UUID, enum_of, nullable, since
from cyborg_lite.api.views.view import View
from cyborg_lite.model.device_profiles import DeviceProfile
from cyborg_lite.model.explanations import (
    Explanation,
    FitResult,
    GroupFit,
    HostFit,
    Reason,
    ReasonCode,
)


class ReasonView(View):
    """A reason why a host or group does not fit."""

    code = enum_of(ReasonCode)
    text = str
    group = nullable(int)
    resource_class = nullable(str)
    traits = [str]
    providers = [str]

    @classmethod
    def build(cls, reason: Reason) -> Self:
        """Build the view."""
        return cls(
            code=reason.code.value,
            text=reason.text,
            group=reason.group,
            resource_class=reason.resource_class or None,
            traits=list(reason.traits),
            providers=list(reason.providers),
        )


class GroupVerdictView(View):
    """The result for one group on one host."""

    group = int
    fits = bool
    reasons = [ReasonView]

    @classmethod
    def build(cls, verdict: GroupFit) -> Self:
        """Build the view."""
        return cls(
            group=verdict.group,
            fits=verdict.fits,
            reasons=[ReasonView.build(reason) for reason in verdict.reasons],
        )


class HostVerdictView(View):
    """The result for one host."""

    hostname = str
    fits = bool
    groups = [GroupVerdictView]
    reasons = [ReasonView]

    @classmethod
    def build(cls, verdict: HostFit) -> Self:
        """Build the view."""
        return cls(
            hostname=verdict.hostname,
            fits=verdict.fits,
            groups=[GroupVerdictView.build(group) for group in verdict.groups],
            reasons=[ReasonView.build(reason) for reason in verdict.reasons],
        )


class ExplanationView(View):
    """The result for all hosts, with a summary."""

    device_profile_uuid = UUID
    device_profile_name = str
    verdict = enum_of(FitResult)
    summary = str
    warnings = [ReasonView]
    hosts = [HostVerdictView]
    alternatives = since(V2_20, [int])

    @classmethod
    def build(
        cls, profile: DeviceProfile, explanation: Explanation, call: Call
    ) -> Self:
        """Build the view."""
        has_cautions = call.microversion >= V2_28
        cautions = explanation.cautions if has_cautions else ()
        warnings = (*explanation.warnings, *cautions)
        return cls(
            device_profile_uuid=profile.uuid,
            device_profile_name=profile.name,
            verdict=explanation.result.value,
            summary=explanation.summary,
            warnings=[ReasonView.build(reason) for reason in warnings],
            hosts=[HostVerdictView.build(host) for host in explanation.hosts],
            # Unset fields are omitted.
            alternatives=list(explanation.choice)
            if call.microversion >= V2_20
            else types.Unset,
        )
