# SPDX-License-Identifier: Apache-2.0
"""Calls of the conductor about device profiles that extend other ones.

A conductor of an earlier release would ignore the inheritance of a profile, so it gets
such a call only if it can serve it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from cyborg_lite.exceptions import ServiceUnavailable
from cyborg_lite.model.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.earlier_peers import is_unsupported
from cyborg_lite.rpc.transport import Caller

_SINCE: Final = '1.19'
_FIELDS: Final = frozenset({'extends', 'own_groups'})


def select_since(profiles: Iterable[DeviceProfile]) -> str:
    """Return the interface version that can create the profiles."""
    inherits = any(profile.inheritance is not None for profile in profiles)
    return _SINCE if inherits else '1.0'


# Any: arguments of `Caller.call`, which have several types.
def expect_inheritance(
    change: ProfileChange, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call with the version that can serve the change."""
    if _FIELDS.isdisjoint(change.fields):
        return dict(arguments)
    return {**arguments, 'since': _SINCE}


# Any: a JSON value.
def list_profiles(
    caller: Caller, context: RequestContext, query: Query, *, parents: bool
) -> Any:
    """Return the answer to a query for device profiles.

    :param parents: True: with their inheritance. A conductor of an earlier release has
        no profile that extends another one.
    """
    method, text = 'list_device_profiles', wire.dump(query)
    if parents:
        try:
            return caller.call(context, method, since=_SINCE, query=text, parents=True)
        except ServiceUnavailable as error:
            if not is_unsupported(error):
                raise
    return caller.call(context, method, since='1.0', query=text)
