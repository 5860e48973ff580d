# SPDX-License-Identifier: Apache-2.0
"""Errors of device profiles."""

from cyborg_lite.exceptions import Conflict


class DeviceProfileHasAlternatives(Conflict):
    """A client that cannot read the alternatives of a profile replaces its groups."""

    message = (
        'Device profile {name} has alternatives, and a request below microversion '
        '2.20 cannot replace them.'
    )
    advice = 'Repeat the request with microversion 2.20 or later.'


class DeviceProfileExtends(Conflict):
    """A client replaces the groups of a profile that extends another one."""

    message = (
        'The groups of device profile {name} cannot be replaced, because it extends '
        'another one. Change own_groups with microversion 2.25 or later.'
    )
    advice = 'Change own_groups or extends with microversion 2.25 or later.'


class DeviceProfileIsExtended(Conflict):
    """The device profile cannot be deleted, because other ones extend it."""

    message = 'Device profile {name} is extended by {children}.'
    advice = 'Delete these device profiles first, or let them extend another one.'


class InvalidDescendants(Conflict):
    """A change of a device profile makes profiles that extend it invalid."""

    message = (
        'The change of device profile {name} is refused, because of device profiles '
        'that extend it: {reason}'
    )
    advice = 'Change these device profiles first.'
