# SPDX-License-Identifier: Apache-2.0
"""Map of the API: the controller of each path."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cyborg_lite.api.controllers import (
    arqs,
    attributes,
    bitstreams,
    cleanings,
    deployables,
    device_events,
    device_profiles,
    devices,
    hosts,
    jobs,
    openapi,
    profile_access,
    profile_capacity,
    profile_explain,
    services,
    usages,
    versions,
)
from cyborg_lite.api.resource import Resource
from cyborg_lite.exceptions import NotFound
from cyborg_lite.model.text import format_value

ROUTES: Final[Mapping[str, type[Resource]]] = {
    '/': versions.RootDocument,
    '/v2': versions.VersionDocument,
    '/v2/openapi.json': openapi.OpenApiDocument,
    '/v2/device_profiles': device_profiles.ProfileCollection,
    '/v2/device_profiles/{device_profile}': device_profiles.ProfileResource,
    '/v2/device_profiles/{device_profile}/access': profile_access.ProfileAccess,
    '/v2/device_profiles/{device_profile}/capacity': (
        profile_capacity.ProfileCapacityResource
    ),
    '/v2/device_profiles/{device_profile}/explain': profile_explain.ProfileExplain,
    '/v2/accelerator_requests': arqs.ArqCollection,
    '/v2/accelerator_requests/{uuid}': arqs.ArqResource,
    '/v2/accelerator_requests/{uuid}/events': arqs.ArqEvents,
    '/v2/devices': devices.DeviceCollection,
    '/v2/devices/{uuid}': devices.DeviceResource,
    '/v2/devices/{uuid}/modes': devices.DeviceModes,
    '/v2/devices/{uuid}/events': device_events.DeviceEvents,
    '/v2/devices/{uuid}/configuration': devices.DeviceConfiguration,
    '/v2/devices/{uuid}/enable': devices.EnableDevice,
    '/v2/devices/{uuid}/disable': devices.DisableDevice,
    '/v2/devices/{uuid}/cleanings': cleanings.CleaningCollection,
    '/v2/devices/{uuid}/cleanings/retry': cleanings.RetryCleaning,
    '/v2/devices/{uuid}/cleanings/accept': cleanings.AcceptUnits,
    '/v2/hosts': hosts.HostCollection,
    '/v2/hosts/{name}': hosts.HostResource,
    '/v2/hosts/{name}/topology': hosts.HostTopologyResource,
    '/v2/deployables': deployables.DeployableCollection,
    '/v2/deployables/{uuid}': deployables.DeployableResource,
    '/v2/deployables/{uuid}/program': deployables.ProgramDeployable,
    '/v2/deployables/{uuid}/program/{same_uuid}': deployables.ProgramDeployableAlias,
    '/v2/attributes': attributes.AttributeCollection,
    '/v2/attributes/{uuid}': attributes.AttributeResource,
    '/v2/bitstreams': bitstreams.BitstreamCollection,
    '/v2/jobs': jobs.JobCollection,
    '/v2/jobs/{uuid}': jobs.JobResource,
    '/v2/jobs/{uuid}/retry': jobs.RetryJob,
    '/v2/jobs/{uuid}/cancel': jobs.CancelJob,
    '/v2/services': services.ServiceCollection,
    '/v2/services/{uuid}': services.ServiceResource,
    '/v2/usages': usages.UsageCollection,
}

_VERSION: Final = 'v2'


@dataclass(slots=True)
class _Node:
    """A path segment with the segments below it."""

    controller: type[Resource] | None = None  # None: no path of ROUTES ends here
    literals: dict[str, '_Node'] = field(default_factory=dict)
    parameter: '_Node | None' = None  # None: no path parameter stands below


def find_controller(path: str) -> tuple[type[Resource], list[str]]:
    """Return the controller of a path and the values of the path parameters.

    A slash at the end makes no difference. Some service catalogs lack the version, so
    the paths below ``/v2`` are also served at the root.

    :param path: decoded path that starts with a slash, without the mount prefix
    :raises NotFound: no path of ``ROUTES`` matches
    """
    segments = path.split('/')[1:]
    if segments and not segments[-1]:
        segments = segments[:-1]
    if segments and segments[0] != _VERSION:
        segments = [_VERSION, *segments]
    node = _ROOT
    identifiers = []
    for segment in segments:
        child = node.literals.get(segment)
        if child is None:
            child = node.parameter
            identifiers.append(segment)
        if child is None:
            raise NotFound(what='Resource', name=format_value(segment))
        node = child
    if node.controller is None:
        raise NotFound(what='Resource', name=format_value(path))
    return node.controller, identifiers


def _build_tree() -> _Node:
    root = _Node()
    for path, controller in ROUTES.items():
        node = root
        for segment in path.split('/')[1:]:
            if segment.startswith('{'):
                node.parameter = node.parameter or _Node()
                node = node.parameter
            elif segment:
                node = node.literals.setdefault(segment, _Node())
        node.controller = controller
    return root


_ROOT: Final = _build_tree()
