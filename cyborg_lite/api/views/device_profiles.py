# SPDX-License-Identifier: Apache-2.0
"""Device profiles in the responses of the API."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, Self

from wsme import types

from cyborg_lite.api.call import Call
from cyborg_lite.api.microversion import V2_4, V2_20, V2_21
from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.selection import select_view
from cyborg_lite.api.views.shapes import UUID, Shape, nullable, optional, since
from cyborg_lite.api.views.view import View
from cyborg_lite.model.alternatives import join_alternatives
from cyborg_lite.model.device_profiles import DeviceProfile

# The value of the key `alternatives` is a list of groups, any other is a string.
_GROUP_VALUE: Final[dict[str, Any]] = {
    'type': ['string', 'array'],
    'items': {'type': 'object', 'additionalProperties': {'type': 'string'}},
}


class _GroupValue(Shape):
    """The value of a key of a group."""

    def __init__(self) -> None:
        super().__init__(str, **_GROUP_VALUE)

    def validate(self, value: Any) -> Any:
        """Return the value; WSME has no type for a choice of types."""
        return value


class ProfileView(View):
    """A device profile."""

    uuid = UUID
    name = str
    description = nullable(str)
    groups = types.ArrayType(types.DictType(str, _GroupValue()))
    created_at = datetime
    updated_at = nullable(datetime)
    enabled = since(V2_4, bool)
    is_public = since(V2_4, bool)
    generation = since(V2_21, int)
    links = [Link]

    @classmethod
    def build(cls, profile: DeviceProfile, call: Call) -> Self:
        """Build the view."""
        is_newer = call.microversion >= V2_4
        view = cls(
            uuid=profile.uuid,
            name=profile.name,
            description=profile.description,
            groups=_build_groups(profile, call),
            created_at=profile.created_at,
            updated_at=profile.updated_at,
            # Unset fields are omitted.
            enabled=profile.enabled if is_newer else types.Unset,
            is_public=profile.is_public if is_newer else types.Unset,
            generation=(
                profile.generation if call.microversion >= V2_21 else types.Unset
            ),
            links=Link.build_self_links(
                call.links, f'v2/device_profiles/{profile.uuid}'
            ),
        )
        return select_view(view, call.fields)


# Any: the value of a key of a group.
def _build_groups(profile: DeviceProfile, call: Call) -> list[dict[str, Any]]:
    """Return the groups, from 2.20 on with their alternatives."""
    if call.microversion < V2_20 or not profile.alternatives:
        return [dict(group) for group in profile.groups]
    return join_alternatives(profile)


class WrappedProfile(View):
    """A device profile in the wrapper that clients require."""

    device_profile = ProfileView

    @classmethod
    def build(cls, profile: DeviceProfile, call: Call) -> Self:
        """Build the view."""
        return cls(device_profile=ProfileView.build(profile, call))


class ProfileList(View):
    """A page of device profiles."""

    device_profiles = [ProfileView]
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


class AccessList(View):
    """The projects that may use a device profile that is not public."""

    projects = [str]
