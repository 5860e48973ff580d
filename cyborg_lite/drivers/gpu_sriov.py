# SPDX-License-Identifier: Apache-2.0
"""GPUs that are shared as SR-IOV virtual functions, each offered as a small GPU."""

from typing import ClassVar

from cyborg_lite.drivers.host.sysfs import PciFunction
from cyborg_lite.drivers.pci import custom_name
from cyborg_lite.drivers.shared_pci import SharedPciDriver
from cyborg_lite.model.traits import OWNER_CYBORG


class SriovGpu(SharedPciDriver):
    """Offers a GPU as a whole, or each of its virtual functions as a small GPU."""

    DEVICE_TYPE: ClassVar[str] = 'GPU'
    RESOURCE_CLASS: ClassVar[str] = 'PGPU'
    SHARED_CLASS: ClassVar[str] = 'VGPU'

    def shared_traits(self, function: PciFunction) -> tuple[str, ...]:
        """Return the traits of the virtual functions of a card."""
        model = custom_name(self.VENDOR_NAME, function.device, 'SRIOV_VF')
        return OWNER_CYBORG, model
