# SPDX-License-Identifier: Apache-2.0
"""Map of the API: the controller of each path."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from cyborg_lite.api.call.resource import Resource
from cyborg_lite.api.controllers import (
    arqs,
    bitstreams,
    cleanings,
    deployables,
    device_profiles,
    devices,
    hosts,
    operations,
    usages,
    versions,
)
from cyborg_lite.errors.base import NotFound
from cyborg_lite.model.text import format_value

ROUTES: Final[Mapping[str, type[Resource]]] = {
    '/': versions.RootDocument,
    '/v2': versions.VersionDocument,
    '/v2/openapi.json': versions.OpenApiDocument,
    '/v2/device_profiles': device_profiles.ProfileCollection,
    '/v2/device_profiles/{device_profile}': device_profiles.ProfileResource,
    '/v2/device_profiles/{device_profile}/access': device_profiles.ProfileAccess,
    '/v2/device_profiles/{device_profile}/capacity': (
        device_profiles.ProfileCapacityResource
    ),
    '/v2/device_profiles/{device_profile}/explain': device_profiles.ProfileExplain,
    '/v2/accelerator_requests': arqs.ArqCollection,
    '/v2/accelerator_requests/{uuid}': arqs.ArqResource,
    '/v2/accelerator_requests/{uuid}/events': arqs.ArqEvents,
    '/v2/instance_events': arqs.InstanceEvents,
    '/v2/devices': devices.DeviceCollection,
    '/v2/devices/{uuid}': devices.DeviceResource,
    '/v2/devices/{uuid}/modes': devices.DeviceModes,
    '/v2/devices/{uuid}/events': devices.DeviceEvents,
    '/v2/devices/{uuid}/configuration': devices.DeviceConfiguration,
    '/v2/devices/{uuid}/enable': devices.EnableDevice,
    '/v2/devices/{uuid}/disable': devices.DisableDevice,
    '/v2/devices/{uuid}/cleanings': cleanings.CleaningCollection,
    '/v2/devices/{uuid}/cleanings/retry': cleanings.RetryCleaning,
    '/v2/devices/{uuid}/cleanings/accept': cleanings.AcceptUnits,
    '/v2/devices/{uuid}/reset': cleanings.ResetDevice,
    '/v2/hosts': hosts.HostCollection,
    '/v2/hosts/{name}': hosts.HostResource,
    '/v2/hosts/{name}/topology': hosts.HostTopologyResource,
    '/v2/deployables': deployables.DeployableCollection,
    '/v2/deployables/{uuid}': deployables.DeployableResource,
    '/v2/deployables/{uuid}/program': deployables.ProgramDeployable,
    '/v2/deployables/{uuid}/program/{same_uuid}': deployables.ProgramDeployableAlias,
    '/v2/attributes': deployables.AttributeCollection,
    '/v2/attributes/{uuid}': deployables.AttributeResource,
    '/v2/bitstreams': bitstreams.BitstreamCollection,
    '/v2/attention': operations.AttentionCollection,
    '/v2/operations': operations.OperationCollection,
    '/v2/operations/{uuid}': operations.OperationResource,
    '/v2/operations/{uuid}/retry': operations.RetryOperation,
    '/v2/operations/{uuid}/cancel': operations.CancelOperation,
    '/v2/jobs': operations.JobCollection,
    '/v2/jobs/{uuid}': operations.JobResource,
    '/v2/services': hosts.ServiceCollection,
    '/v2/services/{uuid}': hosts.ServiceResource,
    '/v2/usages': usages.UsageCollection,
    '/v2/limits': usages.LimitCollection,
    '/v2/device_types': usages.DeviceTypeCollection,
}

_VERSION: Final = 'v2'
_PATTERNS: Final = [
    (re.compile(re.sub(r'{\w+}', '([^/]*)', path)), controller)
    for path, controller in ROUTES.items()
]


def find_controller(path: str) -> tuple[type[Resource], list[str]]:
    """Return the controller of a path and the values of the path parameters.

    A slash at the end makes no difference. Some service catalogs lack the version, so
    the paths below ``/v2`` are also served at the root.

    :param path: decoded path that starts with a slash, without the mount prefix
    :raises NotFound: no path of ``ROUTES`` matches; the error has the first unknown
        segment
    """
    segments = path.removesuffix('/').split('/')[1:]
    if segments and segments[0] != _VERSION:
        segments = [_VERSION, *segments]
    match = _match(segments)
    if match is None:
        # A path stands in ``ROUTES`` if another path begins with it.
        unknown = next(
            segment
            for number, segment in enumerate(segments, 1)
            if _match(segments[:number]) is None
        )
        raise NotFound(what='Resource', name=format_value(unknown))
    return match


def _match(segments: Sequence[str]) -> tuple[type[Resource], list[str]] | None:
    path = '/' + '/'.join(segments)
    for pattern, controller in _PATTERNS:
        match = pattern.fullmatch(path)
        if match is not None:
            return controller, list(match.groups())
    return None
