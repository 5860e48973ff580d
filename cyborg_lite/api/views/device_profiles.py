# SPDX-License-Identifier: Apache-2.0
"""Device profiles in the responses of the API."""

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
    """A device profile."""

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
    def build(cls, profile: DeviceProfile, call: Call) -> Self:
        """Build the view."""
        is_newer = call.microversion >= V2_4
        return cls(
            uuid=profile.uuid,
            name=profile.name,
            description=profile.description,
            groups=[dict(group) for group in profile.groups],
            created_at=profile.created_at,
            updated_at=profile.updated_at,
            # Unset fields are omitted.
            enabled=profile.enabled if is_newer else types.Unset,
            is_public=profile.is_public if is_newer else types.Unset,
            links=Link.build_self_links(
                call.links, f'v2/device_profiles/{profile.uuid}'
            ),
        )


class WrappedProfile(types.Base):  # type: ignore[misc]  # untyped base
    """A device profile in the wrapper that clients require."""

    device_profile = ProfileView

    @classmethod
    def build(cls, profile: DeviceProfile, call: Call) -> Self:
        """Build the view."""
        return cls(device_profile=ProfileView.build(profile, call))


class ProfileList(types.Base):  # type: ignore[misc]  # untyped base
    """A page of device profiles."""

    device_profiles = [ProfileView]  # noqa: RUF012  # a type, as WSME has it
    device_profiles_links = since(V2_4, optional([Link]))

    @classmethod
    def build(
        cls,
        profiles: Iterable[DeviceProfile],
        call: Call,
        next_links: Any = types.Unset,
    ) -> Self:
        """Build the view.

        :param next_links: result of ``paging.build_next_link``
        """
        views = [ProfileView.build(profile, call) for profile in profiles]
        return cls(device_profiles=views, device_profiles_links=next_links)


def build_created_view(
    profiles: Sequence[DeviceProfile], call: Call
) -> ProfileView | ProfileList:
    """Return the view of a single profile, or of the list that 2.4 may create."""
    if len(profiles) == 1:
        return ProfileView.build(profiles[0], call)
    return ProfileList.build(profiles, call)


class AccessList(types.Base):  # type: ignore[misc]  # untyped base
    """The projects that may use a device profile that is not public."""

    projects = [str]  # noqa: RUF012  # a type, as WSME has it
