# SPDX-License-Identifier: Apache-2.0
"""The PCI cards of one driver: which functions they are, and how they are described.

The offers of ``driver.py``, ``groups.py`` and ``shared.py`` use this description.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from typing import ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.base import Options
from cyborg_lite.drivers.host import telemetry
from cyborg_lite.drivers.host.kernel import CHANGE_TIMEOUT, Writer
from cyborg_lite.drivers.host.passthrough import IommuGroups
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.pci.card_memory import CardMemory
from cyborg_lite.drivers.pci.function_cleaning import CardFacts, can_clean
from cyborg_lite.drivers.pci.function_groups import FunctionGroups
from cyborg_lite.drivers.pci.functions import (
    attributes,
    custom_name,
    handle_info,
    name_companion,
    read_link_rate,
)
from cyborg_lite.drivers.pci.names import VENDOR_NAMES
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.hosts.topology import BRIDGES_KEY, format_bridges
from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.inventory.attribute_keys import GROUP_SIZE
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    CleaningPolicy,
    Deployable,
    Device,
    DiscoveryResult,
    HandleType,
    Health,
)
from cyborg_lite.model.inventory.typed_attributes import (
    AttributeDeclaration,
    TypedAttribute,
)
from cyborg_lite.model.traits import OWNER_CYBORG

_DRIVERS: Final = tomllib.loads(
    (resources.files(__package__) / 'drivers.toml').read_text(encoding='utf-8')
)
LOST: Final = 'lost: its config space reads all ones'
BOOT_VGA: Final = 'boot VGA of the host'


def cleaning_option(default: CleaningPolicy) -> cfg.StrOpt:
    """Return the option for the occasion at which units are cleaned."""
    return cfg.StrOpt(
        'cleaning',
        default=default.value,
        choices=[policy.value for policy in CleaningPolicy],
        help="""
When a unit is cleaned: after each use, `always` (also before its first use), or
`never`. With `one-time` a unit is withheld after its first use until an
operator has it cleaned. A cleaning run resets a PCI function and compares it
with what it was, or erases an NVMe drive. It does not concern vGPUs, which are
removed after each use. A device profile can replace the value with
accel:cleaning. With `never` the next instance can read what the last one left.
""",
    )


class PciCards:
    """The cards of one vendor, as class variables; a method where hardware differs.

    ``drivers.toml`` has the class variables of the drivers of this repository.
    """

    NAME: ClassVar[str]
    VENDOR: ClassVar[str]  # four hex digits
    # In traits, and the driver name in the API; empty: that of the vendor of a card.
    VENDOR_NAME: ClassVar[str] = ''
    # Of the traits of vendor and product; empty: one trait has both.
    TRAIT_PREFIX: ClassVar[str] = ''
    CLASSES: ClassVar[tuple[str, ...]]  # prefixes of the class codes of the cards
    DEVICE_TYPE: ClassVar[str]  # GPU, FPGA, AICHIP, QAT, NIC, SSD, PCI
    RESOURCE_CLASS: ClassVar[str]
    # Model name by device id, or by both ids in drivers for several vendors.
    MODELS: ClassVar[Mapping[str, str]] = {}
    IS_LIMITED: ClassVar[bool] = False  # True: cards of other models are ignored
    # Host drivers from which a card may be unbound for a guest; empty: all drivers.
    HOST_DRIVERS: ClassVar[tuple[str, ...]] = ()
    SIGNALS: ClassVar[Sequence[str]] = telemetry.SIGNALS
    ATTRIBUTES: ClassVar[Sequence[AttributeDeclaration]] = (
        typed_attributes.LINK_SPEED,
        typed_attributes.NUMA_NODE,
    )

    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        cfg.BoolOpt(
            'offer_without_reset',
            default=False,
            help="""
Offer cards that the kernel cannot reset. The next guest may be able to read
what the previous guest left in such a card. Turn it on only if all guests
trust one another.
""",
        ),
        cleaning_option(CleaningPolicy.NEVER),
    )

    def __init_subclass__(cls) -> None:
        for key, value in _DRIVERS.get(vars(cls).get('NAME', ''), {}).items():
            setattr(cls, key.upper(), tuple(value) if type(value) is list else value)

    def __init__(self, host: Host, options: Options) -> None:
        self._host = host
        self._options = options
        seconds = options.get('change_timeout', CHANGE_TIMEOUT.default)
        self._writer = Writer(host.root, host.kernel, seconds)
        self.memory = CardMemory()
        self._iommu_groups = IommuGroups()
        self.groups = FunctionGroups(host, options.get('groups', ()))

    # --- which functions are cards, and what prevents their passthrough ---

    def recognizes(self, function: PciFunction) -> bool:
        """Return True if a function is a card of this driver or a VF of such a card."""
        return self.is_own_vendor(function) and self.is_card_function(function)

    def is_own_vendor(self, function: PciFunction) -> bool:
        """Return True if a function is of a vendor of this driver."""
        return function.vendor == self.VENDOR

    def is_card_function(self, function: PciFunction) -> bool:
        """Return True if a function of this vendor is a card or a VF of a card."""
        if not function.pci_class.startswith(self.CLASSES):
            return False
        if not self.IS_LIMITED:
            return True
        physical = PciFunction(self._host, function.physfn or function.address)
        if function.is_virtual and not physical.device:
            return True  # an unreadable card must not hide its virtual functions
        return not {physical.device, physical.ids}.isdisjoint(self.MODELS)

    def find_fault(self, function: PciFunction) -> str | None:
        """Return why a card is out of order, or None if it works.

        Such a card keeps its provider, with the whole inventory reserved.
        """
        return None

    def find_host_user(self, function: PciFunction) -> str | None:
        """Return what on the host uses a function, or None if nothing does."""
        return None

    def find_obstacle(self, function: PciFunction) -> str | None:
        """Return why a guest cannot have a function, or None if it can."""
        user = self.find_host_user(function)
        if user is not None:
            return f'in use by the host: {user}'
        return self.find_passthrough_obstacle(function)

    def find_passthrough_obstacle(self, function: PciFunction) -> str | None:
        """Return why passthrough of a function is impossible, or None."""
        obstacle = self.find_group_obstacle(function)
        if obstacle is not None:
            return obstacle
        is_allowed = not self.HOST_DRIVERS or function.driver in self.HOST_DRIVERS
        if function.has_host_driver and not is_allowed:
            return f'in use by the host: bound to {function.driver}'
        return self.find_reset_obstacle(function)

    def find_group_obstacle(self, function: PciFunction) -> str | None:
        """Return why the IOMMU group of a function prevents passthrough, or None."""
        together = self.groups.find(function.address)
        return self._iommu_groups.find_obstacle(function, self.recognizes, together)

    def find_reset_obstacle(self, function: PciFunction) -> str | None:
        """Return that the kernel cannot reset a function, or None if it can."""
        if function.is_resettable or self._options['offer_without_reset']:
            return None
        return 'the kernel cannot reset it between two guests'

    # --- how a card is described ---

    def traits(self, function: PciFunction) -> tuple[str, ...]:
        """Return the traits of the resource provider of a whole card.

        A vendor without a name has no trait.
        """
        prefix, name = self.TRAIT_PREFIX, self.VENDOR_NAME
        if not prefix:
            return (OWNER_CYBORG, custom_name(name, function.device))
        name = name or VENDOR_NAMES.get(function.vendor, '')
        vendor = [custom_name(prefix, name)] if name else []
        product = custom_name(prefix, 'PRODUCT_ID', function.device)
        return (OWNER_CYBORG, *vendor, product)

    def resource_class(self, function: PciFunction) -> str:
        """Return the resource class of a whole card."""
        return str(self._options.get('resource_class') or self.RESOURCE_CLASS)

    def shared_traits(self, function: PciFunction) -> tuple[str, ...]:
        """Return the traits of the provider of the virtual functions of a card."""
        return self.traits(function)

    def shared_class(self, function: PciFunction) -> str:
        """Return the resource class of the virtual functions of a card."""
        return self.resource_class(function)

    def device_type(self, function: PciFunction) -> str:
        """Return the type of the device, as in ``DEVICE_TYPE``."""
        return self.DEVICE_TYPE

    def model_name(self, function: PciFunction) -> str:
        """Return the name of the model, or the ids of an unknown model."""
        name = self.MODELS.get(function.ids) or self.MODELS.get(function.device)
        return name or function.ids

    def vendor_name(self, function: PciFunction) -> str:
        """Return the name or id of the vendor, which the API shows as driver name."""
        return self.VENDOR_NAME or VENDOR_NAMES.get(function.vendor, function.vendor)

    def root_name(self, function: PciFunction) -> str:
        """Return the name of the root deployable and of its resource provider."""
        return f'{self._host.name}_{function.address}'

    def read_serial(self, function: PciFunction) -> str | None:
        """Return the serial number or uuid of the card, or None if not readable."""
        return None

    def hardware_id(self, function: PciFunction) -> str:
        """Return the serial number of the card, or its address without one."""
        serial = self.read_serial(function)
        key = function.address, function.ids
        if serial:
            self.memory.serials[key] = serial
        # Some kernel drivers expose the serial only while bound. The memory keeps the
        # identity of the device while it is bound to vfio-pci.
        return self.memory.serials.get(key, function.address)

    def read_reset_facts(self, function: PciFunction) -> CardFacts:
        """Return what the host driver of a card shows, and no reset may change.

        A text must stay the same. A number must not grow.
        """
        serial = self.read_serial(function)
        return {'serial number': serial} if serial else {}

    def board_info(self, function: PciFunction) -> dict[str, str]:
        """Return the constant facts of a card.

        A kernel driver or a link speed changes with the guest, and each change causes
        a report to the conductor.
        """
        board = {'product_id': function.device, 'class': function.pci_class}
        if function.subsystem:
            board['subsystem'] = function.subsystem
        if function.numa_node is not None:
            board['numa_node'] = str(function.numa_node)
        if function.bridges:
            board[BRIDGES_KEY] = format_bridges(function.bridges)
        return board

    def list_attributes(self, function: PciFunction) -> Iterator[TypedAttribute]:
        """Yield the typed attributes of each deployable of a card that has units."""
        if function.numa_node is not None:
            yield typed_attributes.NUMA_NODE.of(function.numa_node)
        # The kernel reads the config space, which would wake up a suspended card.
        if not function.is_suspended:
            rate = read_link_rate(function, 'max_link_speed')
            if rate is not None:
                yield typed_attributes.LINK_SPEED.of(rate)
        yield from self.groups.list_attributes(function)

    def read_usage(self, device: Device) -> Usage:
        return telemetry.read_usage(PciFunction(self._host, device.control_address))

    def describe_offer(self, function: PciFunction) -> str:
        """Return the reason in the result of a whole card that is offered."""
        companions = [
            f'beside {sibling.address} ({name_companion(sibling)})'
            for sibling in function.siblings
            if self.is_own_vendor(sibling) and not self.is_card_function(sibling)
        ]
        return ', '.join(['whole card', *companions])

    # --- devices and results ---

    def build_handle(self, card: PciFunction, function: PciFunction) -> AttachHandle:
        """Return the attach handle of a function of a card, or of the card itself."""
        address, policy = function.address, CleaningPolicy.NEVER
        # The operator offers a function without reset as the last guest leaves it. A
        # virtual function that does not exist yet has the abilities of its card.
        source = function if function.is_present else card
        if can_clean(source):
            policy = CleaningPolicy(self._options.get('cleaning', policy))
        info = handle_info(address)
        return AttachHandle(address, HandleType.PCI, info, cleaning=policy)

    def build_whole(self, function: PciFunction) -> Deployable:
        """Return the deployable of a card, or of the group that it begins."""
        members = self.groups.list_members(function)
        traits = dict.fromkeys(self.traits(function))
        for member in members:
            traits |= dict.fromkeys(self._list_member_traits(member))
        if not members:
            handles = [self.build_handle(function, function)]
            return self.build_root(function, tuple(traits), handles)
        handles = []
        for member in members:
            owner = member if self.recognizes(member) else function
            handle = self.build_handle(owner, member)
            handles.append(replace(handle, needs_host=True))
        root = self.build_root(function, tuple(traits), handles)
        size = {GROUP_SIZE: str(len(handles))}
        return replace(root, attributes={**root.attributes, **size})

    def build_root(
        self,
        function: PciFunction,
        traits: tuple[str, ...],
        handles: Sequence[AttachHandle],
        resource_class: str = '',
    ) -> Deployable:
        """Return a root deployable.

        :param resource_class: empty: that of a whole card
        """
        resource_class = resource_class or self.resource_class(function)
        return Deployable(
            name=self.root_name(function),
            resource_class=resource_class,
            traits=traits,
            total=len(handles),
            handles=tuple(handles),
            attributes=attributes(resource_class, traits),
        )

    def build_reserved(
        self, function: PciFunction, root: Deployable, reason: str
    ) -> DiscoveryResult:
        """Return the result for a failed card with the whole inventory reserved."""
        root = replace(root, reserved=root.total)
        device = self.build_device(function, root, Health.FAILED, reason)
        return self.build_result(function, reason, device)

    def build_withheld(
        self, function: PciFunction, reason: str, health: Health = Health.OK
    ) -> DiscoveryResult:
        """Return the result for a card that is reported but not offered."""
        root = Deployable(self.root_name(function))
        device = self.build_device(function, root, health, reason)
        return self.build_result(function, reason, device)

    def build_result(
        self, function: PciFunction, reason: str, device: Device | None = None
    ) -> DiscoveryResult:
        """Return a result of this driver; without a device nothing is reported."""
        return DiscoveryResult(
            address=function.address,
            ids=function.ids,
            pci_class=function.pci_class,
            driver=self.NAME,
            reason=reason,
            device=device,
        )

    def build_device(
        self,
        function: PciFunction,
        root: Deployable,
        health: Health = Health.OK,
        reason: str = '',
    ) -> Device:
        """Return the device of a card.

        :param reason: of the health
        """
        items = self.memory.complete_attributes(
            function, self.list_attributes(function)
        )
        return Device(
            type=self.device_type(function),
            vendor=function.vendor,
            model=self.model_name(function),
            driver=self.vendor_name(function),
            control_address=function.address,
            hardware_id=self.hardware_id(function),
            root=_add_attributes(root, items),
            std_board_info=self.board_info(function),
            health=health,
            health_reason=reason,
        )

    def find_whole_obstacle(self, function: PciFunction) -> str | None:
        """Return why no group can have the whole card, or None if one can."""
        if function.is_virtual:
            return 'a virtual function'
        return 'it has virtual functions' if function.virtfns else None

    def _list_member_traits(self, member: PciFunction) -> Sequence[str]:
        if not member.is_present:
            return ()
        if self.recognizes(member):
            return self.traits(member)
        return (custom_name('WITH', name_companion(member)),)


def _add_attributes(
    deployable: Deployable, attributes: Sequence[TypedAttribute]
) -> Deployable:
    """Return the deployable and its children with further typed attributes.

    The own attributes of a deployable take precedence.
    """
    children = tuple(
        _add_attributes(child, attributes) for child in deployable.children
    )
    if deployable.resource_class is None:
        return replace(deployable, children=children)
    own = {attribute.name for attribute in deployable.typed_attributes}
    host_attributes = (item for item in attributes if item.name not in own)
    return replace(
        deployable,
        children=children,
        typed_attributes=(*deployable.typed_attributes, *host_attributes),
    )
