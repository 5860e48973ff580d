# SPDX-License-Identifier: Apache-2.0
"""The policy rule of each operation of the API, as ``requires`` names it.

Binding, unbinding and deleting the ARQs of an instance also requires a service token.
The code enforces this; no rule can disable it.
"""

from collections.abc import Mapping
from typing import Final

from cyborg_lite.policies.base import (
    ADMIN,
    MANAGER_OR_ADMIN,
    MEMBER_OR_SERVICE,
    READER_OR_ADMIN,
)

# Check and description, in the order of the API document.
RULES: Final[Mapping[str, tuple[str, str]]] = {
    'cyborg:device_profile:get_all': (READER_OR_ADMIN, 'List device profiles.'),
    'cyborg:device_profile:get_one': (READER_OR_ADMIN, 'Show a device profile.'),
    'cyborg:device_profile:create': (ADMIN, 'Create a device profile.'),
    'cyborg:device_profile:update': (ADMIN, 'Change a device profile.'),
    'cyborg:device_profile:explain': (
        ADMIN,
        'Explain on which hosts a device profile fits, and what other hosts lack.',
    ),
    'cyborg:device_profile:capacity': (
        ADMIN,
        'Count the further servers that fit on each host with a device profile.',
    ),
    'cyborg:device_profile:access': (
        ADMIN,
        'Show and change which projects may use a device profile that is not public.',
    ),
    'cyborg:device_profile:delete': (ADMIN, 'Delete device profiles.'),
    'cyborg:arq:get_all': (READER_OR_ADMIN, 'List ARQs (accelerator requests).'),
    'cyborg:arq:get_one': (
        READER_OR_ADMIN,
        'Show an ARQ, its history, and that of an instance.',
    ),
    'cyborg:arq:create': (MEMBER_OR_SERVICE, 'Create the ARQs of a device profile.'),
    'cyborg:arq:delete': (MEMBER_OR_SERVICE, 'Delete ARQs.'),
    'cyborg:arq:update': (MEMBER_OR_SERVICE, 'Bind and unbind ARQs.'),
    'cyborg:device:get_all': (MANAGER_OR_ADMIN, 'List devices.'),
    'cyborg:device:get_one': (MANAGER_OR_ADMIN, 'Show a device.'),
    'cyborg:device:update': (
        ADMIN,
        'Change the mode or the configuration of a device, or start or end its '
        'quarantine or maintenance. For the latter, cyborg:device:disable or '
        'cyborg:device:enable is checked too.',
    ),
    'cyborg:device:get_modes': (
        ADMIN,
        'Show the modes of a device and what a change would do.',
    ),
    'cyborg:device:get_events': (ADMIN, 'Show the history of a device.'),
    'cyborg:device:get_configuration': (
        ADMIN,
        'Show the hardware sets of a device and the changes of its configuration.',
    ),
    'cyborg:device:enable': (ADMIN, 'Enable a device for scheduling.'),
    'cyborg:device:disable': (ADMIN, 'Disable a device for scheduling.'),
    'cyborg:host:get_all': (ADMIN, 'List the hosts with their agents.'),
    'cyborg:host:get_one': (ADMIN, 'Show a host with its agent.'),
    'cyborg:host:update': (ADMIN, 'Disable or enable all devices of a host.'),
    'cyborg:host:delete': (ADMIN, 'Delete a host that is down, with its devices.'),
    'cyborg:host:get_topology': (
        ADMIN,
        'Show the devices of a host and the availability of their units. Only '
        'administrators see the ARQs, instances and projects that use the units.',
    ),
    'cyborg:cleaning:get_all': (
        ADMIN,
        'List the units of a device and their cleaning runs.',
    ),
    'cyborg:cleaning:retry': (
        ADMIN,
        'Clean units again whose cleaning has failed, or that were for one use.',
    ),
    'cyborg:cleaning:reset': (ADMIN, 'Reset the free units of a device.'),
    'cyborg:cleaning:accept': (
        ADMIN,
        'Declare units clean although no cleaning run has succeeded.',
    ),
    'cyborg:deployable:get_all': (MANAGER_OR_ADMIN, 'List deployables.'),
    'cyborg:deployable:get_one': (MANAGER_OR_ADMIN, 'Show a deployable.'),
    'cyborg:deployable:program': (ADMIN, 'Program a deployable with a bitstream.'),
    'cyborg:attribute:get_all': (MANAGER_OR_ADMIN, 'List attributes.'),
    'cyborg:attribute:get_one': (MANAGER_OR_ADMIN, 'Show an attribute.'),
    'cyborg:attribute:create': (ADMIN, 'Add an attribute to a deployable.'),
    'cyborg:attribute:delete': (ADMIN, 'Delete an attribute.'),
    'cyborg:bitstream:get_all': (
        ADMIN,
        'List the bitstreams in Glance that the service can read, of all projects, '
        'and show which of them a deployable accepts.',
    ),
    'cyborg:attention:get_all': (ADMIN, 'List everything that waits for an operator.'),
    'cyborg:job:get_one': (
        ADMIN,
        'Show the progress of a programming job. Users other than administrators '
        'see only the jobs of their project.',
    ),
    'cyborg:operation:get_all': (
        READER_OR_ADMIN,
        'List operations. Users other than administrators see only the operations '
        'that their project has requested.',
    ),
    'cyborg:operation:get_one': (READER_OR_ADMIN, 'Show an operation.'),
    'cyborg:operation:create': (
        ADMIN,
        'Request an audit, or a reconcile or refresh of a host.',
    ),
    'cyborg:operation:retry': (ADMIN, 'Run a waiting or failed operation now.'),
    'cyborg:operation:cancel': (
        ADMIN,
        'Cancel an operation; a conductor reverts its incomplete changes.',
    ),
    'cyborg:service:get_all': (ADMIN, 'List the daemons of the service.'),
    'cyborg:service:delete': (ADMIN, 'Delete a daemon that is down.'),
    'cyborg:usage:get': (
        READER_OR_ADMIN,
        'Show the use of units of the project, and for an admin of all projects.',
    ),
    'cyborg:device_type:get_all': (
        READER_OR_ADMIN,
        'List the types of devices that the device profiles of the project name.',
    ),
    'cyborg:limit:get_all': (
        READER_OR_ADMIN,
        'Show the limits of the project of the token, and what it uses.',
    ),
}
