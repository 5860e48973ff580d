# SPDX-License-Identifier: Apache-2.0
"""Device profiles as clients read them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Self

from wsme import types

from cyborg_lite.api.call import Call
from cyborg_lite.api.microversion import V2_4
from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.shapes import UUID, nullable, optional, since
from cyborg_lite.model.device_profiles import DeviceProfile


class ProfileView(types.Base):  # type: ignore[misc]  # untyped base
    uuid = UUID
    name = str
    description = nullable(str)
    groups = types.ArrayType(types.DictType(str, str))
    created_at = datetime
    updated_at = nullable(datetime)
    enabled = since(V2_4, bool)
    is_public = since(V2_4, bool)
    links = [Link]  # noqa: RUF012  # a type, as WSME has it

    @classmethod
    def showing(cls, profile: DeviceProfile, call: Call) -> Self:
        newer = call.microversion >= V2_4
        return cls(
            uuid=profile.uuid,
            name=profile.name,
            description=profile.description,
            groups=[dict(group) for group in profile.groups],
            created_at=profile.created_at,
            updated_at=profile.updated_at,
            # What is unset is left out.
            enabled=profile.enabled if newer else types.Unset,
            is_public=profile.is_public if newer else types.Unset,
            links=Link.to_self(call.links, f'v2/device_profiles/{profile.uuid}'),
        )


class WrappedProfile(types.Base):  # type: ignore[misc]  # untyped base
    """Clients find one profile in a wrapper, and nothing else."""

    device_profile = ProfileView

    @classmethod
    def showing(cls, profile: DeviceProfile, call: Call) -> Self:
        return cls(device_profile=ProfileView.showing(profile, call))


class ProfileList(types.Base):  # type: ignore[misc]  # untyped base
    device_profiles = [ProfileView]  # noqa: RUF012  # a type, as WSME has it
    device_profiles_links = since(V2_4, optional([Link]))

    @classmethod
    def showing(
        cls, profiles: Iterable[DeviceProfile], call: Call, more: Any = types.Unset
    ) -> Self:
        """:param more: as ``paging.next_page`` has it"""
        shown = [ProfileView.showing(one, call) for one in profiles]
        return cls(device_profiles=shown, device_profiles_links=more)


def created(profiles: Sequence[DeviceProfile], call: Call) -> ProfileView | ProfileList:
    """The one that was created, bare; of several, which 2.4 may create, the list."""
    if len(profiles) == 1:
        return ProfileView.showing(profiles[0], call)
    return ProfileList.showing(profiles, call)


class AccessList(types.Base):  # type: ignore[misc]  # untyped base
    projects = [str]  # noqa: RUF012  # a type, as WSME has it
