# SPDX-License-Identifier: Apache-2.0
"""GPUs that are shared as SR-IOV virtual functions, each offered as a small GPU."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from oslo_config import cfg

from cyborg_lite.drivers.function_groups import GROUPS_OPTION
from cyborg_lite.drivers.grouped_pci import GroupedPciDriver
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.pci import custom_name
from cyborg_lite.drivers.shared_pci import SharedPciDriver
from cyborg_lite.drivers.vgpu_class import VGPU, VGPU_CLASS
from cyborg_lite.model.traits import OWNER_CYBORG


class SriovGpu(GroupedPciDriver, SharedPciDriver):
    """Offers a GPU as a whole, or each of its virtual functions as a small GPU."""

    DEVICE_TYPE: ClassVar[str] = 'GPU'
    RESOURCE_CLASS: ClassVar[str] = 'PGPU'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        *SharedPciDriver.OPTIONS,
        VGPU_CLASS,
        GROUPS_OPTION,
    )

    # Any: each option has its own type.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        super().__init__(host, options)
        self._vgpu_class: str = options.get('vgpu_resource_class', VGPU)

    def shared_class(self, function: PciFunction) -> str:
        """Return the resource class of virtual functions."""
        return self._vgpu_class

    def shared_traits(self, function: PciFunction) -> tuple[str, ...]:
        """Return the traits of the virtual functions of a card."""
        model = custom_name(self.VENDOR_NAME, function.device, 'SRIOV_VF')
        return OWNER_CYBORG, model
