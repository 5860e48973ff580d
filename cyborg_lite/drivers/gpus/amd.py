# SPDX-License-Identifier: Apache-2.0
"""AMD Instinct and Radeon PRO GPUs: whole cards, or virtual functions of GIM.

The number of virtual functions is a setting of GIM and not of this driver.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.gpus.sriov import SriovGpu
from cyborg_lite.drivers.host.sysfs import PciFunction
from cyborg_lite.drivers.pci.card_rules import VGPU_CLASS
from cyborg_lite.drivers.pci.driver import PciDriver
from cyborg_lite.drivers.pci.function_cleaning import CardFacts
from cyborg_lite.drivers.pci.function_groups import GROUPS_OPTION
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory.host_report import Device

_RAS: Final = {'ras_uncorrected': 'ue', 'ras_corrected': 'ce'}


class AmdGpu(SriovGpu):
    """Driver for AMD GPUs; reads telemetry of amdgpu (gpu/amdgpu/thermal.rst)."""

    NAME: ClassVar[str] = 'amd_gpu_driver'
    SIGNALS: ClassVar[Sequence[str]] = (
        *SriovGpu.SIGNALS,
        *_RAS,
        'log_ras_uncorrected',
    )
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        *PciDriver.OPTIONS,
        VGPU_CLASS,
        GROUPS_OPTION,
    )

    def read_serial(self, function: PciFunction) -> str | None:
        """Return the unique id of the card, which amdgpu exposes while bound."""
        return function.text('unique_id')

    def read_reset_facts(self, function: PciFunction) -> CardFacts:
        version = function.text('vbios_version')
        facts = {**super().read_reset_facts(function), **_read_ras(function)}
        return {**facts, 'VBIOS': version} if version else facts

    def read_usage(self, device: Device) -> Usage:
        card = PciFunction(self._host, device.control_address)
        usage = super().read_usage(device)
        if card.is_suspended or card.is_lost:
            return usage
        return replace(
            usage,
            busy_percent=card.number('gpu_busy_percent'),
            memory_used=card.number('mem_info_vram_used'),
            memory_total=card.number('mem_info_vram_total'),
            counters={**usage.counters, **_read_ras(card)},
        )


def _read_ras(card: PciFunction) -> dict[str, int]:
    """Return the RAS errors of all blocks of a card (kernel: gpu/amdgpu/ras.rst).

    The result is empty if a file of a block cannot be read.
    """
    names = [name for name in card.names('ras') if name.endswith('_err_count')]
    texts = [card.text(f'ras/{name}') or '' for name in names]
    counts = {
        signal: [re.search(rf'^{word}: (\d{{1,18}})$', text, re.M) for text in texts]
        for signal, word in _RAS.items()
    }
    return {
        signal: sum(int(match[1]) for match in matches if match)
        for signal, matches in counts.items()
        if matches and all(matches)
    }
