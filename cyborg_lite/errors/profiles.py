# SPDX-License-Identifier: Apache-2.0
"""Errors of device profiles."""

from cyborg_lite.errors.base import Conflict, InvalidInput, NotFound


class InvalidDeviceProfile(InvalidInput):
    """The groups of a device profile violate the grammar or a limit."""

    message = 'Invalid device profile: {reason}'


class EmptyDeviceProfile(InvalidInput):
    """The device profile has no group that requests an accelerator."""

    message = 'Device profile {name} requests no accelerator.'


class DeviceProfileNotFound(NotFound):
    """The device profile does not exist, or the caller may not see it."""

    message = 'Device profile {name} not found.'


class DeviceProfileExists(Conflict):
    """A device profile with the same name exists."""

    message = 'Device profile {name} already exists.'


class DeviceProfileDisabled(Conflict):
    """A new instance cannot use the device profile because it is disabled."""

    message = (
        'Device profile {name} is disabled. Only instances that already used it can '
        'be unshelved or evacuated.'
    )
    advice = 'Use another flavor, or enable the device profile.'


class ImpossibleDeviceProfile(Conflict):
    """No provider of any host could serve a group of the device profile."""

    message = 'Device profile {name} can never fit. {reason}'
    advice = (
        'Request resources that a single provider has, or set [api] '
        'refuse_impossible_profiles = false.'
    )


class DeviceProfileInUse(Conflict):
    """The device profile cannot be deleted or changed while ARQs use it."""

    message = 'Device profile {name} is in use by ARQs.'
    advice = 'Delete the instances that use the device profile first.'


class DeviceProfileHasAlternatives(Conflict):
    """A client that cannot read the alternatives of a profile replaces its groups."""

    message = (
        'Device profile {name} has alternatives, and a request below microversion '
        '2.6 cannot replace them.'
    )
    advice = 'Repeat the request with microversion 2.6 or later.'


class InvalidSelector(InvalidInput):
    """A selector of a device profile violates its grammar or names no attribute."""

    message = 'Character {position}, {reason}.'
