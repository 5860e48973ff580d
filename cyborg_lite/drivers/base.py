# SPDX-License-Identifier: Apache-2.0
"""The contract between the agent and a driver.

A driver is a class that an entry point of the namespace ``cyborg_lite.drivers`` names.
``Driver`` is required. Each other protocol is optional: the agent tests with
``isinstance`` whether a driver supports it. ``fake.py`` is an example of a driver.

The agent creates each driver once per process and calls ``discover`` from one thread
at a time. It calls all other methods from any thread, but makes only one change of a
device at a time: it prepares, connects or releases a handle, loads a bitstream, sets a
mode, or cleans a unit. Every error that a method raises on purpose is a
``DriverError`` or a subclass of it, see ``cyborg_lite/errors``.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

from oslo_config import cfg

from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.model.bitstreams.bitstreams import Bitstream
from cyborg_lite.model.devices.cleaning import CleanStep
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.devices.modes import DeviceMode
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory.host_report import Device, DiscoveryResult
from cyborg_lite.model.inventory.typed_attributes import AttributeDeclaration

# Values of options by name. Any: each option has its own type.
Options: TypeAlias = Mapping[str, Any]
# Reads the given options of one section of the configuration.
Section: TypeAlias = Callable[[str, Sequence[cfg.Opt]], Options]


class Driver(Protocol):
    """The required interface: discover devices."""

    NAME: ClassVar[str]
    """The entry point, as in ``[agent] enabled_drivers``, and the option section."""

    OPTIONS: ClassVar[Sequence[cfg.Opt]]
    """The options that the section ``[<NAME>]`` may set; often none."""

    def __init__(self, host: Host, options: Options) -> None:
        """Store the arguments. Must not read from the host.

        :param host: the only way to files of the host; all its paths are relative
        :param options: the value of each option of ``OPTIONS``, by name
        """

    def discover(self) -> Iterable[DiscoveryResult]:
        """Return one result per PCI function or device that the driver is for.

        The result has a reason whether or not the device is offered. A device that
        cannot be read gets a result with that reason and must not hide another one.
        The agent calls this method every few seconds: it must be read-only and must
        not start a process. Keys and infos of attach handles must not change between
        two scans, because handles in use are stored under them.
        """


@runtime_checkable
class DeclaresAttributes(Protocol):
    """A driver whose deployables have typed attributes, which selectors compare.

    The agent reports ``Deployable.typed_attributes``. A value must describe the
    hardware or the layout of the device, and must not change while an instance uses
    the device: each change causes a report to the conductor. An attribute whose value
    cannot be read is left out. A selector that needs it then does not match.
    """

    ATTRIBUTES: ClassVar[Sequence[AttributeDeclaration]]
    """The attributes that the driver may report.

    ``model/inventory/typed_attributes.py`` declares those of several drivers. No driver
    may declare their names otherwise.
    """


@runtime_checkable
class RecognizesFunctions(Protocol):
    """A driver that ``cyborg-lite-agent discover`` can suggest before it is enabled."""

    def recognizes(self, function: PciFunction) -> bool:
        """Return True if the driver supports a PCI function."""


@runtime_checkable
class ReadsLegacyConfig(Protocol):
    """A driver that also reads sections of a configuration written for Cyborg."""

    @classmethod
    def read_legacy_config(cls, section: Section) -> Options:
        """Return further options for the constructor, by name.

        :raises ConfigurationError: the sections contradict one another
        """


@runtime_checkable
class PreparesHandles(Protocol):
    """A driver with attach handles that the host must prepare (``needs_host``)."""

    def prepare(self, handle: AllocatedHandle) -> None:
        """Create what the guest attaches, at the address and uuid of the handle.

        ``instance_uuid`` of the handle names the instance.

        Must be idempotent: the agent repeats the call after a crash, and after a host
        reboot for each handle in use.

        :raises DeviceBusy: the device cannot do it now
        :raises DeviceHangs: the kernel did not answer in time, but may still do it
        :raises DriverError: it failed, and nothing is left on the host
        """

    def release(self, handle: AllocatedHandle) -> None:
        """Undo ``prepare``. Return without error if nothing is left to undo.

        ``instance_uuid`` of the handle is the one that ``prepare`` received.

        :raises DriverError: it failed; the agent retries
        """


@runtime_checkable
class ConnectsHandles(Protocol):
    """A driver with work to do on prepared handles once the instance is spawned."""

    def connect(self, handle: AllocatedHandle) -> None:
        """Complete a prepared handle whose instance Nova has spawned.

        Must be idempotent. The ARQ is Bound before and stays Bound if the call fails.
        The call may be missing if Nova does not report the instance in time. The
        conductor calls it again after a host reboot, when the handle is rebuilt.

        :raises DriverError: it failed; the conductor retries until the deadline
        """


@runtime_checkable
class ActivatesGroups(Protocol):
    """A driver whose units work together, such as the cards of a fabric partition.

    The handles set ``needs_host``. A deployable whose units are only given together
    states the number in its attribute ``group_size``: Placement then allocates
    multiples of it.
    """

    def find_group(self, handle: AllocatedHandle) -> str:
        """Return the name of the group of a handle; empty: it has none.

        The handles of one bind with the same name are the members of one group.
        """

    def activate(self, members: Sequence[AllocatedHandle]) -> None:
        """Connect the members, after each of them is prepared.

        The agent calls this method once per bind with the exact members, and again
        after a host reboot. Must be idempotent.

        :raises DriverError: the members cannot be a group, and nothing has changed
        """

    def deactivate(self, members: Sequence[AllocatedHandle]) -> None:
        """Undo ``activate``, before the first member is released.

        Return without error if nothing is left to undo.

        :raises DriverError: it failed; the agent retries
        """


@runtime_checkable
class ChecksHandles(Protocol):
    """A driver whose prepared handles can vanish while the host runs."""

    def is_prepared(self, handle: AllocatedHandle) -> bool:
        """Return True if the result of ``prepare`` exists. Must be read-only.

        :raises DriverError: the host does not show whether it exists
        """


@runtime_checkable
class TracksHandles(Protocol):
    """A driver that distinguishes its own objects on the host from foreign ones."""

    def restore_handles(self, handles: Iterable[AllocatedHandle]) -> None:
        """Accept the handles that earlier agent processes prepared.

        The agent calls this method before the first scan with the handles of all
        drivers. Afterwards the driver updates its own record. The agent calls it again
        with the handles of a card that was put into another slot.
        """


@runtime_checkable
class RestoresDevices(Protocol):
    """A driver that cannot read a device while a guest uses it."""

    def restore_device(self, device: Device) -> None:
        """Accept a device that an earlier agent process discovered.

        The agent calls this method before the first scan, once per device.
        """


@runtime_checkable
class CleansHandles(Protocol):
    """A driver that cleans units between two users.

    Its attach handles say when, in ``AttachHandle.cleaning``. The agent cleans one unit
    of a device at a time, and prepares no handle of the device meanwhile. Both methods
    run outside of an RPC call and may start processes.
    """

    def list_clean_steps(self, handle: AllocatedHandle) -> Sequence[CleanStep]:
        """Return the steps in their order; at least one. Must be read-only.

        :raises DeviceBusy: the unit is still in use; the agent asks again later
        :raises DriverError: the unit cannot be cleaned; the reason is for the operator
        """

    def run_clean_step(
        self, handle: AllocatedHandle, name: str, abort: threading.Event
    ) -> str:
        """Run a step to its end, which may take hours.

        Must be idempotent: the agent repeats an interrupted step after a restart. Must
        check that neither the host nor a guest uses the unit before it destroys data.

        :param name: of a step that ``list_clean_steps`` has returned
        :param abort: set when an operator cancels the run; only for abortable steps
        :returns: the proof for the record: the tool with its version, or what was
            compared; empty: nothing
        :raises DeviceBusy: the unit is in use; nothing has changed
        :raises CleanAborted: the step ended because of ``abort``
        :raises DriverError: the step failed; the unit is withheld
        """


@runtime_checkable
class ReadsUsage(Protocol):
    """A driver that provides telemetry of its devices."""

    def read_usage(self, device: Device) -> Usage:
        """Return the telemetry of a device; ``Usage`` states the unit of each value.

        Must be read-only and must not block longer than one sysfs read.
        """


@runtime_checkable
class LoadsBitstreams(Protocol):
    """A driver that can load bitstreams into the regions of its devices.

    Its attach handles set ``needs_host``. Otherwise the bitstream of one instance is
    still loaded when the next instance gets the handle.
    """

    def program(self, deployable: str, image: Path, bitstream: Bitstream) -> Device:
        """Load a bitstream into a region; return the device as it is read afterwards.

        Must be idempotent: the agent repeats the call after a crash. Until the load
        ends, ``discover`` must return the result from before.

        :param deployable: name of the region, or of the card if it has one region
        :param image: file whose size and digest match ``bitstream``. The header of the
            file takes precedence over the properties of the Glance image.
        :param bitstream: its ``topology`` may have a format that only the driver knows
        :raises BitstreamRefused: it does not fit the region; nothing has changed
        :raises LoadingFailed: the content of the region is unknown or wrong
        :raises DriverError: the load failed, and the region has not changed
        """


@runtime_checkable
class SetsModes(Protocol):
    """A driver whose devices have modes, such as layouts or services of a card.

    The agent calls ``set_mode`` only while no instance uses the device, and again
    after a host reboot, before it rebuilds the handles of the device.
    """

    def modes(self, device: Device) -> Sequence[DeviceMode]:
        """Return the modes that a device can have. Must be read-only.

        Must not start a process. Several modes may be current if the host does not
        show the difference. None is current while the device is between two modes.

        :returns: empty if the device has no modes, or cannot be read
        """

    def has_mode(self, device: Device, mode: str) -> bool:
        """Return True if a device may have a mode now. Must be read-only.

        :param mode: a name that ``modes`` returns now or has returned before a reboot
        """

    def declared_mode(self, device: Device) -> str | None:
        """Return the mode that the options of the driver declare, or None."""

    def set_mode(self, device: Device, mode: str) -> Device:
        """Set a mode; return the device as it is read afterwards.

        Must be idempotent, and must start from any state in which an earlier call was
        interrupted: the agent repeats the call after a crash, and calls it with the
        previous mode if the call with the new mode fails.

        :param mode: as for ``has_mode``
        :raises DeviceBusy: a guest or a program of the host uses the device
        :raises DriverError: it failed
        """


@runtime_checkable
class KeepsModes(Protocol):
    """A driver that is ``SetsModes`` and whose devices keep a mode without power.

    The agent restores no mode of such a device when the host boots: a change of the
    mode destroys the data of the device, and an instance may own the device.
    """

    KEEPS_MODES: ClassVar[bool]


@runtime_checkable
class PreparesDevices(Protocol):
    """A driver that can create objects on a device before the first handle."""

    def prepare_device(self, device: Device) -> bool:
        """Create what all handles of a device share, such as virtual functions.

        The agent calls this method at its start and after each scan, once the device
        has its mode. Must be idempotent.

        :returns: True if the device has changed
        :raises DriverError: it failed; the agent repeats the call later
        """
