# SPDX-License-Identifier: Apache-2.0
"""Errors of devices, their cleaning, modes and configurations."""

from cyborg_lite.errors.base import Conflict, CyborgError, InvalidInput, NotFound
from cyborg_lite.errors.drivers import DriverError


class InvalidDevicePatch(InvalidInput):
    """The JSON patch of a device is malformed or not allowed."""

    message = 'Invalid device patch: {reason}'


class DeviceNotFound(NotFound):
    """The device does not exist, or the caller may not see it."""

    message = 'Device {uuid} not found.'


class DeployableNotFound(NotFound):
    """The deployable does not exist, or the caller may not see it."""

    message = 'Deployable {uuid} not found.'


class AttributeNotFound(NotFound):
    """The attribute does not exist, or the caller may not see it."""

    message = 'Attribute {uuid} not found.'


class AttributeExists(Conflict):
    """The deployable already has an attribute with the same key."""

    message = 'Attribute {key} of deployable {deployable} already exists.'
    advice = 'Delete the attribute first.'


class DeployableInUse(Conflict):
    """The deployable cannot be programmed: an ARQ or a job uses it or its device."""

    message = 'Deployable {uuid} cannot be programmed: {reason}'
    advice = 'Delete the instances that use the device first.'


class DeviceInUse(Conflict):
    """ARQs use the device, and the caller has not said who decides about them."""

    message = 'Device {uuid} is in use by the ARQs {arqs}.'
    advice = 'Delete the instances first, or give the name of the person who decides.'


class CleanAborted(DriverError):
    """A cleaning step ended before it was complete."""

    message = 'The step was aborted by an operator.'
    advice = 'Retry the cleaning run, or accept the unit as clean.'


class CleaningRefused(Conflict):
    """No unit of the device waits for the decision of an operator."""

    message = 'Device {uuid} has no unit to {action}: {reason}'
    advice = 'List the units with `openstack accelerator device clean list DEVICE`.'


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
