# SPDX-License-Identifier: Apache-2.0
"""Search for the device profile that a path names."""

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.microversion import V2_6
from cyborg_lite.errors.profiles import DeviceProfileNotFound
from cyborg_lite.model import uuids
from cyborg_lite.model.profiles.alternatives import apply_choice
from cyborg_lite.model.profiles.device_profiles import DeviceProfile
from cyborg_lite.model.profiles.grammar import is_valid_name
from cyborg_lite.model.queries import Query
from cyborg_lite.model.text import format_value
from cyborg_lite.rpc.interface import Conductor


def find_profile(conductor: Conductor, call: Call, identifier: str) -> DeviceProfile:
    """Return a profile by its uuid, or else by its current or a former name.

    :raises DeviceProfileNotFound: no profile that the caller may see matches
    """
    uuid = uuids.normalize_uuid(identifier)
    return find_first_profile(conductor, call, uuid=uuid, name=identifier)


def find_first_profile(
    conductor: Conductor, call: Call, **keys: str | None
) -> DeviceProfile:
    """Return the first profile that matches a key, in the order of the keys.

    A name may look like a UUID, so both are tried.

    :raises DeviceProfileNotFound: no profile that the caller may see matches
    """
    for key, value in keys.items():
        if value is not None and is_valid_name(value):
            query = Query(filters={key: (value,)})
            for profile in conductor.list_device_profiles(call.caller, query):
                return profile
    raise DeviceProfileNotFound(name=format_value(keys['name']))


def choose_alternatives(
    conductor: Conductor, call: Call, profile: DeviceProfile
) -> DeviceProfile:
    """Return a profile as a client without alternatives must see it.

    Such a client, mostly Nova, reads the groups that fit a host now. From 2.6 on the
    profile does not change. A profile without alternatives needs no call.
    """
    if call.microversion >= V2_6 or not profile.alternatives:
        return profile
    choice = conductor.choose_alternatives(call.caller, profile.uuid)
    return apply_choice(profile, choice)
