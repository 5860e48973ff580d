# SPDX-License-Identifier: Apache-2.0
"""Errors of cleans and of changes of modes."""

from cyborg_lite.exceptions import Conflict, DriverError


class CleanAborted(DriverError):
    """A clean step ended before it was complete."""

    message = 'The step was aborted by an operator.'
    advice = 'Retry the clean, or accept the unit as clean.'


class CleaningRefused(Conflict):
    """No unit of the device waits for the decision of an operator."""

    message = 'Device {uuid} has no unit to {action}: {reason}'
    advice = 'List the units with `cyborg-lite-manage cleaning list`.'


class ModeUnknown(DriverError):
    """A change of the mode of a device failed, and so did its rollback."""

    message = 'Device {address} has no known mode: {reason}'
    advice = (
        'Check the device and the log of the agent, then change the mode again and '
        'enable the device.'
    )


class ModeRefused(Conflict):
    """The mode of a device cannot be changed now."""

    message = 'Device {uuid} cannot change its mode to {mode}: {reason}'
    advice = 'Run cyborg-lite-manage mode plan HOST to see what stands in the way.'
