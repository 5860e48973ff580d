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
