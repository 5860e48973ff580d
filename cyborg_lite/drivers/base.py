# SPDX-License-Identifier: Apache-2.0
"""What a driver is. A driver author reads this file and ``fake.py``, no other.

A driver is a class that stevedore finds under ``cyborg_lite.drivers``. It is made
once, with the host it shall look at, and must do nothing until it is asked.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

from oslo_config import cfg

from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.model.bitstreams import Bitstream
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.inventory import Device, Finding
from cyborg_lite.model.usage import Usage

# Reads one section of the configuration. Any: each option has its own type.
Section: TypeAlias = Callable[[str, Sequence[cfg.Opt]], Mapping[str, Any]]


class Driver(Protocol):
    """The whole duty: say what is there."""

    NAME: ClassVar[str]
    """Its entry point, as operators write it in ``[agent] enabled_drivers``."""

    OPTIONS: ClassVar[Sequence[cfg.Opt]]
    """What can be configured, in a section of that name; often nothing."""

    # Any: each option has its own type, which the driver that brings it knows.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None: ...

    def discover(self) -> Iterable[Finding]:
        """Judge every function that is this driver's business, offered or not.

        Read-only, starts no process, and one bad device hides no other: what cannot
        be read is a finding with that reason. Called every few seconds, from any
        thread but never twice at once.
        """
        ...


@runtime_checkable
class Inheriting(Protocol):
    """For drivers that also hear sections of a configuration that is older than us."""

    @classmethod
    def inherited(cls, section: Section) -> Mapping[str, Any]:
        """What these sections say, as further options for the constructor.

        :raises ConfigurationError: they contradict one another
        """
        ...


@runtime_checkable
class Preparing(Protocol):
    """For drivers whose handles need something on the host before a guest starts."""

    def prepare(self, handle: HeldHandle) -> None:
        """Make the handle usable, on the same function and under the same uuid always.

        Called again after a crash; then finds it done. Called after a reboot of the
        host for each handle in use; then makes it true again.

        :raises DriverError: it cannot be; nothing is left behind
        """
        ...

    def release(self, handle: HeldHandle) -> None:
        """Undo ``prepare``. What is not there any more is done.

        :raises DriverError: it cannot be now; it is tried again
        """
        ...


@runtime_checkable
class Checking(Protocol):
    """For drivers whose preparations a host may lose while it runs."""

    def is_prepared(self, handle: HeldHandle) -> bool:
        """Whether what ``prepare`` has made is there. Read-only, from any thread."""
        ...


@runtime_checkable
class Recalling(Protocol):
    """For drivers that must tell what the agent made from what strangers made."""

    def recall(self, handles: Iterable[HeldHandle]) -> None:
        """Handles that earlier processes of the agent prepared and did not release.

        Called before the first look, with the handles of all drivers. From then on the
        driver keeps count itself.
        """
        ...


@runtime_checkable
class Remembering(Protocol):
    """For drivers to whom a guest hides what is in the device that it has."""

    def remember(self, device: Device) -> None:
        """What an earlier process of the agent found. Called before the first look."""
        ...


@runtime_checkable
class Measuring(Protocol):
    """For drivers that can tell how a device is doing."""

    def usage(self, device: Device) -> Usage:
        """Changes nothing, and blocks no longer than a read from sysfs does."""
        ...


@runtime_checkable
class Programmable(Protocol):
    """For drivers that can load another function into a device.

    Its units say that they need the host: only then is it undone at their release.
    """

    def program(self, deployable: str, image: Path, wanted: Bitstream) -> Device:
        """Load a file into a region; the device as the hardware shows it afterwards.

        The file is what ``wanted`` says, byte for byte, but what stands in it counts
        above what its properties say. Called again after a crash; then finds it done.
        Meanwhile ``discover`` answers what was true before. ``wanted.topology`` may be
        in a form that the driver alone reads; then the parts that it shows count.

        :raises BitstreamRefused: it does not fit; nothing was touched
        :raises LoadingFailed: what the region holds now is not known, or is wrong
        :raises DriverError: it could not be loaded, and the region is as it was
        """
        ...
