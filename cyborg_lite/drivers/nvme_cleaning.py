# SPDX-License-Identifier: Apache-2.0
"""Clean steps of NVMe drives: sanitize, format with erase, or discard.

What a drive supports is in its Identify Controller data (NVM Express Base
Specification, Identify Controller Data Structure: OACS, FNA, SANICAP). The tools are
``nvme`` of nvme-cli and ``blkdiscard`` of util-linux.
"""

import enum
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from oslo_config import cfg

from cyborg_lite.drivers.host import disk_use
from cyborg_lite.drivers.host.sysfs import PciFunction
from cyborg_lite.drivers.host.tools import ToolRunner, run_or_raise
from cyborg_lite.errors.drivers import DeviceBusy, DriverError
from cyborg_lite.model.devices.cleaning import CleanStep

_HOST_DRIVER: Final = 'nvme'
_QUERY_SECONDS: Final = 60.0
_ERASE_SECONDS: Final = 86_000.0  # formats and discards block until they end
_POLL_SECONDS: Final = 5.0  # between two reads of the sanitize log
_VERIFY: Final = CleanStep('verify', 'nothing')
_ZERO_OUT: Final = '--zeroout'  # of blkdiscard

# Sanitize Status, bits 2:0 of SSTAT in the Sanitize Status log page.
_STATUS_MASK: Final = 0x7
_SUCCEEDED: Final = (1, 4)
_IN_PROGRESS: Final = 2


class CleanMethod(enum.StrEnum):
    """Methods that the operator can choose."""

    AUTO = 'auto'
    SANITIZE = 'sanitize'
    FORMAT = 'format'
    DISCARD = 'discard'


OPTIONS: Final[Sequence[cfg.Opt]] = (
    cfg.StrOpt(
        'clean_method',
        default=CleanMethod.AUTO.value,
        choices=[method.value for method in CleanMethod],
        help="""
How a drive is erased: `sanitize`, `format` with secure erase, or `discard`
(zeroes all blocks). `auto` takes the first of them that the drive supports.
Sanitize also erases blocks that no namespace shows; the other methods do not.
""",
    ),
)


@dataclass(frozen=True, slots=True)
class _Action:
    """An erase of a whole drive."""

    method: CleanMethod
    step: CleanStep
    argument: str  # of the tool
    # Bits that a field of Identify Controller must have, by field.
    needs: Mapping[str, int] = field(default_factory=dict)


# The best first.
_ACTIONS: Final = (
    _Action(
        CleanMethod.SANITIZE,
        CleanStep('sanitize-crypto', 'the keys of all data of the drive', seconds=30),
        '--sanact=4',
        {'sanicap': 0x1},
    ),
    _Action(
        CleanMethod.SANITIZE,
        CleanStep('sanitize-block', 'all data of the drive', seconds=600),
        '--sanact=2',
        {'sanicap': 0x2},
    ),
    _Action(
        CleanMethod.FORMAT,
        CleanStep('format-crypto', 'the keys of all namespaces', seconds=30),
        '--ses=2',
        {'oacs': 0x2, 'fna': 0x4},
    ),
    _Action(
        CleanMethod.FORMAT,
        CleanStep('format-erase', 'all data of the namespaces', seconds=1800),
        '--ses=1',
        {'oacs': 0x2},
    ),
    _Action(
        CleanMethod.DISCARD,
        CleanStep('discard', 'all data of the namespaces', seconds=1800),
        _ZERO_OUT,
    ),
)
_ACTIONS_BY_STEP: Final = {action.step.name: action for action in _ACTIONS}


class NvmeCleaner:
    """Erases NVMe drives. It keeps no state, so a later process can go on."""

    def __init__(
        self, run: ToolRunner, method: CleanMethod, poll_seconds: float = _POLL_SECONDS
    ) -> None:
        self._tool = run
        self._method = method
        self._poll_seconds = poll_seconds

    def list_steps(self, function: PciFunction) -> tuple[CleanStep, ...]:
        """Return the steps for a drive; for the errors see ``CleansHandles``."""
        identity = self._identify(check_unused(function))
        for action in _ACTIONS:
            is_supported = all(identity(key) & bit for key, bit in action.needs.items())
            if is_supported and self._method in (CleanMethod.AUTO, action.method):
                return action.step, _VERIFY
        reason = f'Drive {function.address} does not support {self._method}.'
        raise DriverError(reason=reason)

    def run_step(self, function: PciFunction, name: str) -> str:
        """Run a step; return its proof: the tool with its version."""
        controller = check_unused(function)
        if name == _VERIFY.name:
            return ''
        action = _ACTIONS_BY_STEP[name]
        if action.method is CleanMethod.SANITIZE:
            self._sanitize(controller, action.argument)
        for disk in disk_use.list_namespaces(function):
            device = f'/dev/{disk.path.rpartition("/")[2]}'
            if action.method is CleanMethod.FORMAT:
                # Without --force nvme waits 10 s for Ctrl-C.
                self._run('nvme', 'format', device, action.argument, '--force')
            elif action.method is CleanMethod.DISCARD:
                self._run('blkdiscard', action.argument, device)
        if action.method is CleanMethod.DISCARD:
            return self._run('blkdiscard', '--version')
        return self._run('nvme', 'version').splitlines()[0]

    def _identify(self, controller: str) -> Callable[[str], int]:
        """Return a function that reads a number of Identify Controller."""
        text = self._run('nvme', 'id-ctrl', controller, '--output-format=json')

        def read(field: str) -> int:
            match = re.search(rf'"{field}"\s*:\s*(\d+)', text)
            return int(match[1]) if match else 0

        return read

    def _sanitize(self, controller: str, action: str) -> None:
        """Start a sanitize, unless one runs, and wait for its end.

        The drive goes on by itself, also after a reset or a restart of the agent.
        """
        if self._read_sanitize_status(controller) != _IN_PROGRESS:
            self._run('nvme', 'sanitize', controller, action)
        pause = threading.Event()
        while True:
            status = self._read_sanitize_status(controller)
            if status in _SUCCEEDED:
                return
            if status != _IN_PROGRESS:
                reason = f'The sanitize of {controller} ended with status {status}.'
                raise DriverError(reason=reason)
            pause.wait(self._poll_seconds)

    def _read_sanitize_status(self, controller: str) -> int:
        text = self._run('nvme', 'sanitize-log', controller)
        match = re.search(r'\(SSTAT\)\s*:\s*(0x[0-9a-fA-F]+|\d+)', text)
        if match is None:
            reason = f'nvme shows no sanitize status of {controller}.'
            raise DriverError(reason=reason)
        return int(match[1], 0) & _STATUS_MASK

    def _run(self, *command: str) -> str:
        """Run a tool to its end and return its output.

        :raises DriverError: it fails
        """
        is_query = command[1] not in ('format', _ZERO_OUT)
        seconds = _QUERY_SECONDS if is_query else _ERASE_SECONDS
        return run_or_raise(self._tool, command, seconds).strip() or command[0]


def check_unused(function: PciFunction) -> str:
    """Check that neither the host nor a guest uses a drive.

    :returns: the device file of its controller
    :raises DeviceBusy: a guest has the drive, or it is being set up
    :raises DriverError: the host uses it
    """
    controller = find_controller(function)
    disks = disk_use.list_namespaces(function)
    if not disks:
        reason = 'its namespaces cannot be found.'
        raise DeviceBusy(address=function.address, reason=reason)
    user = disk_use.find_disk_user(disks)
    if user is not None:
        reason = f'Drive {function.address} is in use by the host: {user}.'
        raise DriverError(reason=reason)
    return controller


def find_controller(function: PciFunction) -> str:
    """Return the device file of the controller of a drive.

    :raises DeviceBusy: a guest has the drive, or it has no controller yet
    """
    if function.driver != _HOST_DRIVER:
        reason = f'it is bound to {function.driver or "no driver"}, not to nvme.'
        raise DeviceBusy(address=function.address, reason=reason)
    for name in function.names('nvme'):
        if re.fullmatch(r'nvme\d+', name):
            return f'/dev/{name}'
    raise DeviceBusy(address=function.address, reason='it has no controller yet.')
