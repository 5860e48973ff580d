# SPDX-License-Identifier: Apache-2.0
"""Why a device profile fits or does not, as clients read it."""

from typing import Self

from wsme import types

from cyborg_lite.api.views.shapes import UUID, nullable, one_of
from cyborg_lite.model.device_profiles import DeviceProfile
from cyborg_lite.model.explanations import (
    Explanation,
    GroupVerdict,
    HostVerdict,
    Reason,
    Verdict,
    Why,
)


class ReasonView(types.Base):  # type: ignore[misc]  # untyped base
    code = one_of(Why)
    text = str
    group = nullable(int)
    resource_class = nullable(str)
    traits = [str]  # noqa: RUF012  # a type, as WSME has it
    providers = [str]  # noqa: RUF012  # a type, as WSME has it

    @classmethod
    def showing(cls, reason: Reason) -> Self:
        return cls(
            code=reason.why.value,
            text=reason.text,
            group=reason.group,
            resource_class=reason.resource_class or None,
            traits=list(reason.traits),
            providers=list(reason.providers),
        )


class GroupVerdictView(types.Base):  # type: ignore[misc]  # untyped base
    group = int
    fits = bool
    reasons = [ReasonView]  # noqa: RUF012  # a type, as WSME has it

    @classmethod
    def showing(cls, verdict: GroupVerdict) -> Self:
        return cls(
            group=verdict.group,
            fits=verdict.fits,
            reasons=[ReasonView.showing(one) for one in verdict.reasons],
        )


class HostVerdictView(types.Base):  # type: ignore[misc]  # untyped base
    hostname = str
    fits = bool
    groups = [GroupVerdictView]  # noqa: RUF012  # a type, as WSME has it
    reasons = [ReasonView]  # noqa: RUF012  # a type, as WSME has it

    @classmethod
    def showing(cls, verdict: HostVerdict) -> Self:
        return cls(
            hostname=verdict.hostname,
            fits=verdict.fits,
            groups=[GroupVerdictView.showing(one) for one in verdict.groups],
            reasons=[ReasonView.showing(one) for one in verdict.reasons],
        )


class ExplanationView(types.Base):  # type: ignore[misc]  # untyped base
    device_profile_uuid = UUID
    device_profile_name = str
    verdict = one_of(Verdict)
    summary = str
    warnings = [ReasonView]  # noqa: RUF012  # a type, as WSME has it
    hosts = [HostVerdictView]  # noqa: RUF012  # a type, as WSME has it

    @classmethod
    def showing(cls, profile: DeviceProfile, explanation: Explanation) -> Self:
        return cls(
            device_profile_uuid=profile.uuid,
            device_profile_name=profile.name,
            verdict=explanation.verdict.value,
            summary=explanation.summary,
            warnings=[ReasonView.showing(one) for one in explanation.warnings],
            hosts=[HostVerdictView.showing(one) for one in explanation.hosts],
        )
