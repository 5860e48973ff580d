# SPDX-License-Identifier: Apache-2.0
"""Errors of drivers and of the tools that drivers run."""

from cyborg_lite.errors.base import CyborgError


class DriverError(CyborgError):
    """A driver operation failed on one device. Other devices may work."""

    message = '{reason}'
    advice = 'Check the health of the device and the log of the agent.'


class DeviceBusy(DriverError):
    """Another process or an instance uses the device."""

    message = 'Device {address} is busy: {reason}'


class DeviceGone(DriverError):
    """The device was removed, or does not respond."""

    message = 'Device {address} does not answer.'


class ResetFailed(DriverError):
    """A device is not the same after its reset as before."""

    message = 'Device {address} has not come back from its reset: {reason}.'
    advice = 'Read the kernel log of the host, then test the device or replace it.'


class ToolTimedOut(DriverError):
    """A host tool was killed at its timeout. The state of the device is unknown."""

    message = '{tool} timed out after {seconds} s and was killed.'


class ToolMissing(DriverError):
    """A host tool that the driver needs is not installed."""

    message = '{tool} is not installed on the host.'
    advice = 'Install {tool}, or set its path in the section of the driver.'


class DeviceHangs(DriverError):
    """A kernel call on the device did not return, and may still take effect later.

    The device must not be used until the call returns or the host is rebooted.
    """

    message = 'Device {address} hangs: {what} did not return within {seconds} s.'
    advice = 'Read the kernel log, then reload the vendor driver or reboot the host.'
