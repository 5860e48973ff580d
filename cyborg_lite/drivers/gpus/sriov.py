# SPDX-License-Identifier: Apache-2.0
"""GPUs that are shared as SR-IOV virtual functions, each offered as a small GPU."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.base import Options
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.pci.card_rules import VGPU, VGPU_CLASS
from cyborg_lite.drivers.pci.driver import GroupedPciDriver
from cyborg_lite.drivers.pci.function_groups import GROUPS_OPTION
from cyborg_lite.drivers.pci.functions import custom_name
from cyborg_lite.drivers.pci.shared import SharedPciDriver
from cyborg_lite.model.inventory.typed_attributes import (
    MAX_POWER,
    AttributeDeclaration,
    TypedAttribute,
)
from cyborg_lite.model.traits import OWNER_CYBORG

# Microwatts: the highest limit that amdgpu accepts (kernel: gpu/amdgpu/thermal.rst),
# and the thermal design power of i915 and xe (kernel: ABI/testing/
# sysfs-driver-intel-i915-hwmon and sysfs-driver-intel-xe-hwmon).
_POWER_FILES: Final = ('power1_cap_max', 'power1_rated_max')
_MICRO: Final = 1_000_000


class SriovGpu(GroupedPciDriver, SharedPciDriver):
    """Offers a GPU as a whole, or each of its virtual functions as a small GPU."""

    DEVICE_TYPE: ClassVar[str] = 'GPU'
    RESOURCE_CLASS: ClassVar[str] = 'PGPU'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        *SharedPciDriver.OPTIONS,
        VGPU_CLASS,
        GROUPS_OPTION,
    )

    ATTRIBUTES: ClassVar[Sequence[AttributeDeclaration]] = (
        *GroupedPciDriver.ATTRIBUTES,
        MAX_POWER,
    )

    def __init__(self, host: Host, options: Options) -> None:
        super().__init__(host, options)
        self._vgpu_class: str = options.get('vgpu_resource_class', VGPU)

    def list_attributes(self, function: PciFunction) -> Iterator[TypedAttribute]:
        yield from super().list_attributes(function)
        # The host driver would wake up a suspended card.
        if not function.is_suspended:
            power = _read_power(function)
            if power:
                yield MAX_POWER.of(power)

    def shared_class(self, function: PciFunction) -> str:
        return self._vgpu_class

    def shared_traits(self, function: PciFunction) -> tuple[str, ...]:
        model = custom_name(self.VENDOR_NAME, function.device, 'SRIOV_VF')
        return OWNER_CYBORG, model


def _read_power(function: PciFunction) -> int | None:
    """Return the highest power of a card in watts, or None if no file says it."""
    for monitor in function.names('hwmon'):
        for name in _POWER_FILES:
            power = function.number(f'hwmon/{monitor}/{name}')
            if power is not None and power > 0:
                return power // _MICRO
    return None
