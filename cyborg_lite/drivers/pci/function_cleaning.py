# SPDX-License-Identifier: Apache-2.0
"""Clean steps of any PCI function: a reset with proof, or the erase of an NVMe drive.

A reset clears what the specification of the device says, for example its registers and
queues. The kernel chooses the method (kernel: ABI/testing/sysfs-bus-pci, ``reset``) and
writes the config space again. vfio-pci also resets a function when a guest opens and
closes it, but goes on if the reset fails (Linux: drivers/vfio/pci/vfio_pci_core.c). So
this step resets the function itself, and compares what it shows before and afterwards.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cyborg_lite.drivers.host import vfio
from cyborg_lite.drivers.host.kernel import Writer, to_driver_error
from cyborg_lite.drivers.host.sysfs import PciFunction
from cyborg_lite.drivers.nvme_cleaning import NvmeCleaner
from cyborg_lite.drivers.pci.functions import read_link_rate
from cyborg_lite.errors.drivers import DeviceGone, DriverError, ResetFailed
from cyborg_lite.model.devices.cleaning import RESET_STEP, CleanStep

# What a reset must not change: a text stays the same, a number does not grow.
CardFacts = Mapping[str, str | int]

_NVME: Final = '010802'  # class code: NVM Express controller
_BUS: Final = 'sys/bus/pci'
_RESET: Final = CleanStep(
    RESET_STEP, 'the state of the function that its reset clears', seconds=5
)
# Bytes of the config space of an endpoint (PCI Local Bus Specification, 6.1).
_REGISTERS: Final = {
    'ids': slice(0x00, 0x04),
    'class': slice(0x08, 0x0C),
    'BARs': slice(0x10, 0x28),
    'subsystem': slice(0x2C, 0x30),
}
_HEADER: Final = 64  # bytes; unprivileged processes can read no more


@dataclass(frozen=True, slots=True)
class _Reading:
    """Registers and link of a function, read while no host driver has it."""

    registers: Mapping[str, bytes]  # of the config space, by name
    lanes: int | None
    rate: int | None  # megatransfers per second


def can_clean(function: PciFunction) -> bool:
    """Return True if there are steps for a function."""
    return function.is_resettable or function.pci_class == _NVME


class FunctionCleaner:
    """Resets PCI functions and erases NVMe drives."""

    def __init__(
        self,
        writer: Writer,
        drives: NvmeCleaner,
        read_facts: Callable[[PciFunction], CardFacts],
    ) -> None:
        """Store the arguments.

        :param read_facts: returns what the driver of the host shows of a function
        """
        self._writer = writer
        self._drives = drives
        self._read_facts = read_facts

    def list_steps(self, function: PciFunction) -> Sequence[CleanStep]:
        """Return the steps for a function; for the errors see ``CleansHandles``."""
        if function.pci_class == _NVME:
            return self._drives.list_steps(function)
        if function.is_present:
            self._check(function)
        return (_RESET,)

    def run_step(self, function: PciFunction, name: str) -> str:
        """Run a step; return its proof.

        A virtual function that was removed after its last use has no state.
        """
        if function.pci_class == _NVME:
            return self._drives.run_step(function, name)
        if not function.is_present:
            return ''
        self._check(function)
        return self._reset(function)

    def _check(self, function: PciFunction) -> None:
        if function.is_lost:
            raise DeviceGone(address=function.address)
        vfio.check_closed(self._writer, function)
        if not function.is_resettable:
            reason = f'The kernel cannot reset {function.address}.'
            raise DriverError(reason=reason)

    def _reset(self, function: PciFunction) -> str:
        """Reset a function without its host driver; return the proof.

        Most host drivers do not notice a reset, so the function leaves its driver
        before, as for libvirt before it gives the function to a guest.

        :raises ResetFailed: the function is not the same as before
        """
        method = function.text('reset_method') or 'reset'
        driver = function.driver if function.has_host_driver else None
        facts = self._read_facts(function)
        if driver is not None:
            self._write(function, f'drivers/{driver}/unbind')
        try:
            before = _read(function)
            self._writer.set_value(function.address, 'reset', '1', 'it cannot be reset')
            proof = _compare(function, before, _read(function))
        finally:
            if driver is not None:
                self._write(function, 'drivers_probe')
        later = PciFunction(function.host, function.address)  # reads anew
        if later.driver != function.driver:
            fault = f'driver {driver} does not bind it again'
            raise ResetFailed(address=function.address, reason=fault)
        proof += _compare_facts(later, facts, self._read_facts(later))
        bound = [f'driver {driver}'] if driver else []
        return f'{method.split()[0]}: same {", ".join([*proof, *bound])}'

    def _write(self, function: PciFunction, name: str) -> None:
        """Write the address of a function to a file of the PCI bus."""
        address = function.address
        try:
            self._writer.write(address, f'{_BUS}/{name}', address)
        except OSError as error:
            raise to_driver_error(address, f'{name} fails', error) from None


def _read(function: PciFunction) -> _Reading:
    """Read a function.

    :raises ResetFailed: its config space does not answer
    """
    header = function.host.raw(function.path('config'), _HEADER) or b''
    if len(header) < _HEADER or not header.strip(b'\xff'):
        reason = 'its config space does not answer'
        raise ResetFailed(address=function.address, reason=reason)
    return _Reading(
        {name: header[part] for name, part in _REGISTERS.items()},
        function.number('current_link_width'),
        read_link_rate(function, 'current_link_speed'),
    )


def _compare(function: PciFunction, before: _Reading, after: _Reading) -> list[str]:
    """Return what is the same after a reset. A link may be faster, because it was idle.

    :raises ResetFailed: something has changed
    """
    for name, content in before.registers.items():
        if after.registers[name] != content:
            change = f'{content.hex()} before, {after.registers[name].hex()} now'
            reason = f'its {name} have changed: {change}'
            raise ResetFailed(address=function.address, reason=reason)
    pairs = (before.lanes, after.lanes), (before.rate, after.rate)
    for earlier, now in pairs:
        if earlier is not None and (now is None or now < earlier):
            reason = f'its link was x{before.lanes} at {before.rate} MT/s, and is '
            reason += f'x{after.lanes} at {after.rate} MT/s'
            raise ResetFailed(address=function.address, reason=reason)
    link = [] if before.lanes is None else [f'link x{after.lanes}']
    return [*before.registers, *link]


def _compare_facts(
    function: PciFunction, before: CardFacts, after: CardFacts
) -> list[str]:
    """Return the names of the facts that the host driver shows of a card.

    :raises ResetFailed: a text has changed, a number has grown, or a fact that was
        shown before the reset is not shown any more
    """
    for name, old in before.items():
        if name not in after:
            reason = f'its {name} was {old}, and cannot be read now'
            raise ResetFailed(address=function.address, reason=reason)
        new = after[name]
        is_worse = isinstance(old, int) and isinstance(new, int) and new > old
        if is_worse or (isinstance(old, str) and new != old):
            reason = f'its {name} was {old}, and is {new}'
            raise ResetFailed(address=function.address, reason=reason)
    return list(before)
