# SPDX-License-Identifier: Apache-2.0
"""Errors of resource providers in Placement."""

from cyborg_lite.errors.base import Conflict, CyborgError


class PlacementConflict(CyborgError):
    """The generation of the provider changed between read and write."""

    code = 409
    message = 'Resource provider {provider} was changed by another client.'


class HostSyncBusy(CyborgError):
    """Another worker does not finish the Placement sync job of the host in time."""

    code = 503
    message = 'Placement is not updated for host {host}: its sync job takes too long.'
    advice = 'Run `openstack accelerator operation list` to see its error, then retry.'


class ProviderInUse(Conflict):
    """The provider cannot be deleted or reduced while allocations use it."""

    message = 'Resource provider {provider} has allocations or child providers.'
    advice = 'Run `openstack resource provider show --allocations {provider}`.'


class ProviderExists(Conflict):
    """Another provider uses the name or uuid."""

    message = 'Another resource provider already has the name or uuid of {name}.'


class ComputeNodeAbsent(CyborgError):
    """Placement has no root provider with the name of the host. The job is retried."""

    code = 503
    message = 'Placement has no compute node provider named {host}.'
    advice = (
        'Start nova-compute on {host}, or set [DEFAULT] host of its agent to the '
        'hypervisor hostname that Nova uses. If {host} is not a compute node, add it '
        'to [conductor] hosts_without_compute.'
    )
