# SPDX-License-Identifier: Apache-2.0
"""Finding the device profile that a path names."""

from cyborg_lite.api.call import Call
from cyborg_lite.exceptions import DeviceProfileNotFound
from cyborg_lite.model import uuids
from cyborg_lite.model.device_profiles import DeviceProfile
from cyborg_lite.model.profile_grammar import is_name
from cyborg_lite.model.queries import Query
from cyborg_lite.model.text import shown
from cyborg_lite.rpc.conductor import ConductorAPI


def found(conductor: ConductorAPI, call: Call, identifier: str) -> DeviceProfile:
    """By its uuid, else by a name that it has or had.

    :raises DeviceProfileNotFound: there is none that the caller sees
    """
    uuid = uuids.canonical(identifier)
    return first(conductor, call, uuid=uuid, name=identifier)


def first(conductor: ConductorAPI, call: Call, **keys: str | None) -> DeviceProfile:
    """The first profile that one of the keys, in their order, finds.

    A name may look like a UUID, so both are tried.

    :raises DeviceProfileNotFound: there is none that the caller sees
    """
    for key, value in keys.items():
        if value is not None and is_name(value):
            query = Query(filters={key: (value,)})
            for profile in conductor.list_device_profiles(call.caller, query):
                return profile
    raise DeviceProfileNotFound(name=shown(keys['name']))
