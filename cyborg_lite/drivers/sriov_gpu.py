# SPDX-License-Identifier: Apache-2.0
"""GPUs that share themselves as virtual functions, each as good as a small card."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from oslo_config import cfg, types

from cyborg_lite.drivers import vfio, vgpu_rules
from cyborg_lite.drivers.held import Held
from cyborg_lite.drivers.kernel import CHANGE_TIMEOUT, Writer
from cyborg_lite.drivers.pci import (
    OWNER,
    PciDriver,
    attributes,
    custom_name,
    handle_address,
    handle_info,
)
from cyborg_lite.drivers.sysfs import Host, PciFunction
from cyborg_lite.drivers.virtual_functions import (
    NumberOfFunctions,
    VirtualFunctions,
    planned,
)
from cyborg_lite.exceptions import DriverError
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.inventory import Deployable, Finding, HandleType, Unit

VIRTUAL_FUNCTIONS: Final = cfg.ListOpt(
    'virtual_functions',
    default=[],
    item_type=types.String(regex=r'[^=\s]+\s*=\s*\d+'),
    help="""
Cards that are shared: `card = number` pairs, the first that fits a card
decides. The card is its PCI address or its ids as in 8086:56c0; `*` in it
stands for anything. So many virtual functions are made when the first server
wants one, and removed after the last. A card that already has some is shared
by those; one that no pair fits is whole.
""",
)


class SriovGpu(PciDriver):
    """Offers a card whole, or the virtual functions that it has or can be given."""

    SHARED_CLASS: ClassVar[str] = 'VGPU'

    # Any: as the options of drivers are.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        super().__init__(host, options)
        pairs = vgpu_rules.parse(options.get('virtual_functions', ()))
        self._counts = vgpu_rules.Rules(pairs)
        self._held = Held()
        seconds = options.get('change_timeout', CHANGE_TIMEOUT.default)
        self._writer = Writer(host.root, host.kernel, seconds)
        switch = NumberOfFunctions(self._writer, self._wanted)
        self._virtual = VirtualFunctions(host, switch)

    def recall(self, handles: Iterable[HeldHandle]) -> None:
        self._held.add(handles)

    def prepare(self, handle: HeldHandle) -> None:
        self._writer.check(handle.address)
        card = PciFunction(self._host, handle.address)
        self._held.add([handle])
        try:
            self._virtual.make(card, handle_address(handle.info))
        except DriverError:
            self._held.remove(handle.uuid)
            raise

    def release(self, handle: HeldHandle) -> None:
        self._writer.check(handle.address)
        self._held.remove(handle.uuid)
        if not self._held.any_of(handle.address) and not self._in_use(handle.address):
            self._virtual.unmake(PciFunction(self._host, handle.address))

    def is_prepared(self, handle: HeldHandle) -> bool:
        return PciFunction(self._host, handle_address(handle.info)).present

    def judge_card(self, function: PciFunction) -> Finding:
        if function.virtfns:
            return self._shared(function, function.virtfns)
        wanted = self._wanted(function)
        if not wanted or function.guest_driver:
            return super().judge_card(function)
        places = planned(function, wanted)
        if wanted > (function.number('sriov_totalvfs') or 0) or not places:
            return self.withheld(function, f'it cannot have {wanted} virtual functions')
        return self._shared(function, places)

    def virtual_state(self, function: PciFunction) -> str:
        state = super().virtual_state(function)
        obstacle = self.obstacle(function)
        return f'{state}: {obstacle or "free, or with a guest"}'

    def _shared(self, function: PciFunction, places: Iterable[str]) -> Finding:
        units = tuple(self._units(function, places))
        if not units:
            reason = 'none of its virtual functions can be passed through'
            return self.withheld(function, reason)
        traits = (
            OWNER,
            custom_name(self.VENDOR_NAME, function.device, 'SRIOV_VF'),
        )
        root = Deployable(
            name=self.name_of(function),
            resource_class=self.SHARED_CLASS,
            traits=traits,
            total=len(units),
            units=units,
            attributes=attributes(self.SHARED_CLASS, traits),
        )
        reason = f'{len(units)} virtual functions'
        return self.finding(function, reason, self.device(function, root))

    def _units(self, card: PciFunction, places: Iterable[str]) -> Iterator[Unit]:
        on_demand = self._wanted(card) > 0
        for address in places:
            virtual = PciFunction(self._host, address)
            if not virtual.present or not self.obstacle(virtual):
                info = handle_info(address)
                yield Unit(address, HandleType.PCI, info, needs_host=on_demand)

    def _wanted(self, function: PciFunction) -> int:
        """Virtual functions that the operator wants of a card; 0: it is whole."""
        found = self._counts.wanted(function.address, function.ids)
        return int(found[0]) if found else 0

    def _in_use(self, address: str) -> bool:
        """Whether any guest has a virtual function of the card, ours or not."""
        card = PciFunction(self._host, address)
        files = [
            file
            for virtual in card.virtfns
            for file in vfio.device_files(self._host, f'sys/bus/pci/devices/{virtual}')
        ]
        return bool(self._writer.holders(address, files))
