# SPDX-License-Identifier: Apache-2.0
"""Clean steps of NVMe drives: sanitize, format with erase, or discard.

What a drive supports is in its Identify Controller data (NVM Express Base
Specification, Identify Controller Data Structure: OACS, FNA, SANICAP). The tools are
``nvme`` of nvme-cli and ``blkdiscard`` of util-linux.
"""

import enum
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from oslo_config import cfg

from cyborg_lite.drivers.host import disk_use
from cyborg_lite.drivers.host.sysfs import PciFunction
from cyborg_lite.drivers.host.tools import ToolRunner
from cyborg_lite.errors.drivers import DeviceBusy, DriverError
from cyborg_lite.model.devices.cleaning import CleanStep
from cyborg_lite.model.inventory.host_report import CleaningPolicy

_HOST_DRIVER: Final = 'nvme'
_QUERY_SECONDS: Final = 60.0
_ERASE_SECONDS: Final = 86_000.0  # formats and discards block until they end
_POLL_SECONDS: Final = 5.0  # between two reads of the sanitize log
_VERIFY: Final = CleanStep('verify', 'nothing')

_FORMAT_SUPPORTED: Final = 0x2  # OACS
_CRYPTO_FORMAT_SUPPORTED: Final = 0x4  # FNA
_CRYPTO_SANITIZE_SUPPORTED: Final = 0x1  # SANICAP
_BLOCK_SANITIZE_SUPPORTED: Final = 0x2  # SANICAP
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
        'cleaning',
        default=CleaningPolicy.AFTER_USE.value,
        choices=[policy.value for policy in CleaningPolicy],
        help="""
When a drive is erased: after each use, `always` (also before its first use), or
`never`. With `one-time` a drive is withheld after its first use until an
operator has it cleaned. A device profile can replace the value with
accel:cleaning. With `never` the next instance can read what the last one left.
""",
    ),
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
    argument: str = ''  # of the tool


_CRYPTO_SANITIZE: Final = _Action(
    CleanMethod.SANITIZE,
    CleanStep('sanitize-crypto', 'the keys of all data of the drive', seconds=30),
    '--sanact=4',
)
_BLOCK_SANITIZE: Final = _Action(
    CleanMethod.SANITIZE,
    CleanStep('sanitize-block', 'all data of the drive', seconds=600),
    '--sanact=2',
)
_CRYPTO_FORMAT: Final = _Action(
    CleanMethod.FORMAT,
    CleanStep('format-crypto', 'the keys of all namespaces', seconds=30),
    '--ses=2',
)
_ERASE_FORMAT: Final = _Action(
    CleanMethod.FORMAT,
    CleanStep('format-erase', 'all data of the namespaces', seconds=1800),
    '--ses=1',
)
_DISCARD: Final = _Action(
    CleanMethod.DISCARD,
    CleanStep('discard', 'all data of the namespaces', seconds=1800),
    '--zeroout',
)
_ACTIONS: Final = {
    action.step.name: action
    for action in (
        _CRYPTO_SANITIZE,
        _BLOCK_SANITIZE,
        _CRYPTO_FORMAT,
        _ERASE_FORMAT,
        _DISCARD,
    )
}


class NvmeCleaner:
    """Erases NVMe drives. It keeps no state, so a later process can go on."""

    def __init__(
        self, run: ToolRunner, method: CleanMethod, poll_seconds: float = _POLL_SECONDS
    ) -> None:
        self._tool = run
        self._method = method
        self._poll_seconds = poll_seconds

    def list_steps(self, function: PciFunction) -> tuple[CleanStep, ...]:
        """Return the steps for a drive.

        :raises DeviceBusy: a guest has the drive, or it is being set up
        :raises DriverError: the host uses it, or it does not support the method
        """
        check_unused(function)
        identity = self._identify(_find_controller(function))
        for action in _list_supported(identity):
            if self._method in (CleanMethod.AUTO, action.method):
                return action.step, _VERIFY
        reason = f'Drive {function.address} does not support {self._method}.'
        raise DriverError(reason=reason)

    def run_step(self, function: PciFunction, name: str) -> str:
        """Run a step; return the tool with its version.

        :raises DeviceBusy: a guest has the drive, or it is being set up
        :raises DriverError: the host uses it, or the step failed
        """
        check_unused(function)
        if name == _VERIFY.name:
            return ''
        action = _ACTIONS[name]
        if action.method is CleanMethod.SANITIZE:
            self._sanitize(_find_controller(function), action.argument)
        for disk in disk_use.list_namespaces(function):
            device = f'/dev/{disk.path.rpartition("/")[2]}'
            if action.method is CleanMethod.FORMAT:
                self._run('nvme', 'format', device, action.argument)
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
        is_query = command[1] not in ('format', _DISCARD.argument)
        seconds = _QUERY_SECONDS if is_query else _ERASE_SECONDS
        result = self._tool(command, seconds)
        if result.status != 0:
            reason = f'{" ".join(command)} failed: {result.summary}.'
            raise DriverError(reason=reason)
        return result.output.strip() or command[0]


def check_unused(function: PciFunction) -> None:
    """Check that neither the host nor a guest uses a drive.

    :raises DeviceBusy: a guest has the drive, or it is being set up
    :raises DriverError: the host uses it
    """
    if function.driver != _HOST_DRIVER:
        reason = f'it is bound to {function.driver or "no driver"}, not to nvme.'
        raise DeviceBusy(address=function.address, reason=reason)
    disks = disk_use.list_namespaces(function)
    if not disks:
        reason = 'its namespaces cannot be found.'
        raise DeviceBusy(address=function.address, reason=reason)
    user = disk_use.find_disk_user(disks)
    if user is not None:
        reason = f'Drive {function.address} is in use by the host: {user}.'
        raise DriverError(reason=reason)


def _find_controller(function: PciFunction) -> str:
    """Return the device file of the controller of a drive.

    :raises DeviceBusy: it has none yet
    """
    for name in function.names('nvme'):
        if re.fullmatch(r'nvme\d+', name):
            return f'/dev/{name}'
    reason = 'it has no controller yet.'
    raise DeviceBusy(address=function.address, reason=reason)


def _list_supported(identity: Callable[[str], int]) -> Iterator[_Action]:
    """Yield the erases that a drive supports, the best first."""
    capabilities = identity('sanicap')
    if capabilities & _CRYPTO_SANITIZE_SUPPORTED:
        yield _CRYPTO_SANITIZE
    if capabilities & _BLOCK_SANITIZE_SUPPORTED:
        yield _BLOCK_SANITIZE
    if identity('oacs') & _FORMAT_SUPPORTED:
        if identity('fna') & _CRYPTO_FORMAT_SUPPORTED:
            yield _CRYPTO_FORMAT
        yield _ERASE_FORMAT
    yield _DISCARD
