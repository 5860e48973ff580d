# SPDX-License-Identifier: Apache-2.0
"""Errors of cleans, and of changes of modes and of configurations."""

from cyborg_lite.exceptions import (
    Conflict,
    CyborgError,
    DriverError,
    HandlesContended,
    InvalidInput,
)


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
    advice = (
        'Run `openstack accelerator device mode list DEVICE` to see what prevents the '
        'change.'
    )


class InvalidSettings(InvalidInput):
    """The hardware set does not declare the settings of the request."""

    message = 'Settings of hardware set {name} are invalid: {reason}'
    advice = 'Show the settings with GET /v2/devices/DEVICE/configuration.'


class ReconfigurationRefused(Conflict):
    """The configuration of a device cannot be changed now."""

    message = 'Device {uuid} cannot be configured by {name}: {reason}'
    advice = (
        'Run `openstack accelerator device hardware set list DEVICE` to see the '
        'hardware sets and what prevents the change.'
    )


class ReconfigurationDelayed(CyborgError):
    """A change of the configuration of a device cannot go on yet; it is retried."""

    code = 503
    message = 'The change of the configuration waits: {reason}'
    advice = 'Compare [conductor] hardware_sets of all conductors, and see the log.'


class PlaybookFailed(CyborgError):
    """A playbook of a hardware set failed. The device is between two states."""

    message = 'Playbook {phase} failed: {reason}'
    advice = 'Remove the cause, start the change again, then enable the device.'


class HandlesNotConfirmed(CyborgError):
    """An agent has not confirmed exactly the attach handles of a bind. Retry."""

    code = 409
    message = 'The agent has not confirmed exactly the attach handles of ARQs {arqs}.'
    advice = 'See the log of the agent; upgrade agents before conductors.'


class UnitsBeingCleaned(HandlesContended):
    """Enough handles exist, but hosts are still releasing or cleaning them. Retry."""

    message = (
        'Units of resource provider {provider} that the host is still cleaning: '
        '{number}.'
    )
    advice = (
        'Create the instance again after the clean. If the clean does not end, ask the '
        'operator to run `cyborg-lite-manage cleaning list`.'
    )


class UnitAllocated(CyborgError):
    """An instance that has no ARQ may use a unit that the database shows as unused."""

    code = 409
    message = (
        'Resource provider {provider} is allocated to instances without an ARQ: '
        '{instances}.'
    )
    advice = 'Run `cyborg-lite-manage audit`; delete each instance or its allocation.'
