# SPDX-License-Identifier: Apache-2.0
"""AI processors that are given to a guest as a whole."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from oslo_config import cfg, types

from cyborg_lite.drivers.host import mdev
from cyborg_lite.drivers.host.sysfs import PciFunction
from cyborg_lite.drivers.pci.driver import PciDriver

_RESOURCE_CLASS: Final = cfg.Opt(
    'resource_class',
    type=types.String(regex='^CUSTOM_[A-Z0-9_]{1,248}$'),
    default='CUSTOM_NPU',
    help="""
Resource class of the processors in Placement. Change it before the first
allocation, for example to tell processors of different vendors apart.
""",
)


_WORKS: Final = 'operational'
# Before kernel 5.17, from it on, and while only a hard reset helps.
_FAULTS: Final = frozenset({'malfunction', 'disabled', 'needs reset'})


class AiChip(PciDriver):
    """Base of the drivers for AI processors; a driver is data."""

    CLASSES: ClassVar[tuple[str, ...]] = ('1200',)
    DEVICE_TYPE: ClassVar[str] = 'AICHIP'
    TRAIT_PREFIX: ClassVar[str] = 'AICHIP'
    RESOURCE_CLASS: ClassVar[str] = 'CUSTOM_NPU'
    IS_LIMITED: ClassVar[bool] = True
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (*PciDriver.OPTIONS, _RESOURCE_CLASS)

    def find_host_user(self, function: PciFunction) -> str | None:
        """Return a mediated device of the processor, such as a vNPU."""
        return mdev.find_user(function)


class Ascend(AiChip):
    """Driver for Huawei Ascend processors."""

    NAME: ClassVar[str] = 'ascend_driver'


class Gaudi(AiChip):
    """Driver for Habana Gaudi processors."""

    NAME: ClassVar[str] = 'habana_driver'

    def find_fault(self, function: PciFunction) -> str | None:
        """Return the status of a processor that does not work (kernel: ABI/habanalabs).

        The words and their case differ between kernels.
        """
        for entry, status in _list_statuses(function):
            if status.lower() in _FAULTS:
                return f'status of {entry}: {status}'
        return None

    def find_obstacle(self, function: PciFunction) -> str | None:
        """Return a status in which the processor does not work yet, or as any card."""
        for entry, status in _list_statuses(function):
            if status.lower() != _WORKS:
                return f'status of {entry}: {status or "it cannot be read"}'
        return super().find_obstacle(function)


def _list_statuses(function: PciFunction) -> Iterator[tuple[str, str]]:
    """Yield the names of the kernel for a processor, each with its status."""
    for directory, prefix in (('habanalabs', 'hl'), ('accel', 'accel')):
        for entry in function.names(directory):
            path = f'{directory}/{entry}'
            files = f'{path}/status', f'{path}/device/status'
            if entry.startswith(prefix):
                yield entry, next(filter(None, map(function.text, files)), '')
