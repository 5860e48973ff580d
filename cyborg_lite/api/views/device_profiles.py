# SPDX-License-Identifier: Apache-2.0
"""Device profiles in the responses of the API."""

from datetime import datetime
from typing import Any, Final

from wsme import types

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.microversion import V2_4, V2_5, V2_6
from cyborg_lite.api.views.shapes import UUID, Json, nullable, since
from cyborg_lite.api.views.view import LINKS, NEXT_LINKS, ListView, View
from cyborg_lite.model.profiles.alternatives import join_alternatives
from cyborg_lite.model.profiles.device_profiles import DeviceProfile

# The value of the key `alternatives` is a list of groups, any other is a string.
_GROUP_VALUE: Final[dict[str, Any]] = {
    'type': ['string', 'array'],
    'items': {'type': 'object', 'additionalProperties': {'type': 'string'}},
}
_GROUPS: Final = types.ArrayType(types.DictType(str, Json(str, **_GROUP_VALUE)))


class ProfileView(View):
    """A device profile."""

    _path = 'v2/device_profiles/{uuid}'

    uuid = UUID
    name = str
    description = nullable(str)
    groups = _GROUPS
    created_at = datetime
    updated_at = nullable(datetime)
    enabled = since(V2_4, bool)
    is_public = since(V2_4, bool)
    generation = since(V2_5, int)
    links = LINKS

    @staticmethod
    def render_groups(profile: DeviceProfile, call: Call) -> Any:
        """Return the groups, from 2.6 on with their alternatives."""
        if call.microversion < V2_6 or not profile.alternatives:
            return profile.groups
        return join_alternatives(profile)


class WrappedProfile(View):
    """A device profile in the wrapper that clients require."""

    device_profile = ProfileView


class ProfileList(ListView):
    """A page of device profiles."""

    device_profiles = [ProfileView]
    device_profiles_links = NEXT_LINKS


class AccessList(ListView):
    """A page of the projects that may use a device profile that is not public."""

    projects = [str]
    projects_links = NEXT_LINKS
