# SPDX-License-Identifier: Apache-2.0
"""The vendor tool ``sriov-manage``, which enables the virtual functions of a card."""

from typing import Final

from cyborg_lite.drivers.host.kernel import Writer, last_line
from cyborg_lite.drivers.host.sysfs import PciFunction
from cyborg_lite.errors.drivers import DeviceBusy

_TOOL: Final = 'sriov-manage'
SRIOV_MANAGE: Final = f'usr/lib/nvidia/{_TOOL}'  # below the root of the host
# The tool fails with this word while a process uses the management library.
_LOCKED: Final = 'unbindLock'
_ATTEMPTS: Final = 3


class SriovManage:
    """Enables virtual functions with the tool: the kernel driver refuses a number."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def enable(self, card: PciFunction) -> None:
        self._run(card, '-e')

    def disable(self, card: PciFunction) -> None:
        self._run(card, '-d')

    def _run(self, card: PciFunction, flag: str) -> None:
        output = ''
        for _ in range(_ATTEMPTS):
            status, output = self._writer.run(
                card.address, SRIOV_MANAGE, flag, card.address
            )
            if status == 0:
                return
            if _LOCKED not in output:
                break
        reason = f'{_TOOL} {flag} failed: {last_line(output)}'
        raise DeviceBusy(address=card.address, reason=reason)
