# SPDX-License-Identifier: Apache-2.0
"""Selection of the vGPU types that a card offers, and the deployables for them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cyborg_lite.drivers.nvidia.capacity import may_have_type
from cyborg_lite.drivers.nvidia.layout import Vgpu, VgpuLayout, VgpuMode, VgpuType
from cyborg_lite.drivers.pci.card_rules import VGPU
from cyborg_lite.drivers.pci.functions import attributes, custom_name, handle_info
from cyborg_lite.drivers.prepared_handles import PreparedHandles
from cyborg_lite.model.capacity.carving import Size
from cyborg_lite.model.inventory.attribute_keys import PLACES
from cyborg_lite.model.inventory.host_report import AttachHandle, Deployable, HandleType
from cyborg_lite.model.inventory.typed_attributes import TypedAttribute
from cyborg_lite.model.traits import OWNER_CYBORG


def vgpu_type_label(key: str) -> str:
    """Return the vGPU type in the key of a handle; empty if the key is an address."""
    return key.split('/')[1] if '/' in key else ''


def is_own(vgpu: Vgpu, prepared: PreparedHandles) -> bool:
    """Return True if this service created a vGPU.

    An mdev has the uuid of its handle. Without mdevs the address identifies it.
    """
    if vgpu.uuid is not None:
        return prepared.has_uuid(vgpu.uuid)
    return bool(prepared.list_at(vgpu.address))


def find_type_label(vgpu: Vgpu, prepared: PreparedHandles) -> str | None:
    """Return the type of an own vGPU that is not an mdev, or None if it is foreign."""
    labels = (vgpu_type_label(item.key) for item in prepared.list_at(vgpu.address))
    return next(filter(None, labels), None)


@dataclass(frozen=True, slots=True)
class VgpuSelection:
    """The vGPU types that a card offers, and why they differ from the configuration."""

    types: tuple[VgpuType, ...] = ()  # empty: the card offers nothing
    reason: str = ''  # empty: the card offers what is configured
    foreign: tuple[Vgpu, ...] = ()  # vGPUs that this service did not create
    is_blocked: bool = False  # foreign vGPUs exclude the types: all is reserved


def select_types(
    layout: VgpuLayout, configured: Sequence[str], prepared: PreparedHandles
) -> VgpuSelection:
    """Select the vGPU types that a card offers.

    vGPUs in use keep their type until they are released.

    :param configured: types as the operator writes them; empty: whole card
    """
    own = [vgpu for vgpu in layout.existing if is_own(vgpu, prepared)]
    foreign = tuple(vgpu for vgpu in layout.existing if not is_own(vgpu, prepared))
    running = _types_of(layout, own)
    if not configured:
        if not running:
            return VgpuSelection(reason=str(layout), foreign=foreign)
        reason = _refusal('The change to a whole card', own, running)
        return VgpuSelection(running, reason, foreign)
    types, error = _resolve_types(layout, configured)
    if error:
        if not running:
            return VgpuSelection(reason=error, foreign=foreign)
        return VgpuSelection(running, error, foreign)
    labels = {item.label for item in types}
    retained = tuple(item for item in running if item.label not in labels)
    if retained:
        # Types in GPU instances can coexist; all other types exclude one another.
        coexist = _all_use_instances((*types, *retained))
        reason = _refusal(f'The change to {_names(types)}', own, retained)
        selected = (*types, *retained) if coexist else retained
        return VgpuSelection(selected, reason, foreign)
    return _select_beside_foreign(layout, types, foreign)


def _select_beside_foreign(
    layout: VgpuLayout, types: tuple[VgpuType, ...], foreign: tuple[Vgpu, ...]
) -> VgpuSelection:
    """Select the configured types as far as foreign vGPUs allow."""
    foreign_types = [item for item in _types_of(layout, foreign) if item not in types]
    if foreign_types and not _all_use_instances((*types, *foreign_types)):
        ids = {item.id for item in foreign_types}
        count = sum(vgpu.type_id in ids for vgpu in foreign)
        reason = (
            f'in use by another program: {count} vGPUs of {_names(foreign_types)} '
            f'exclude vGPUs of {_names(types)}'
        )
        return VgpuSelection(types, reason, foreign, is_blocked=True)
    if not layout.existing and not any(item.is_creatable for item in types):
        cause = 'the GPU instances (MIG) for it do not exist'
        if not _all_use_instances(types):
            cause = 'the vendor driver offers none on an empty card; check MIG mode'
        return VgpuSelection(reason=f'no {_names(types)} can be created: {cause}')
    return VgpuSelection(types, '; '.join(_list_remarks(layout, foreign)), foreign)


def _list_remarks(layout: VgpuLayout, foreign: Sequence[Vgpu]) -> Iterator[str]:
    """Yield the causes that reduce the capacity of a card."""
    if foreign:
        names = ', '.join(vgpu.uuid or vgpu.address for vgpu in foreign)
        yield f'vGPUs of another program: {names}'
    if layout.unusable:
        yield f'no vGPU can be created on {", ".join(layout.unusable)}'


def _resolve_types(
    layout: VgpuLayout, configured: Sequence[str]
) -> tuple[tuple[VgpuType, ...], str]:
    """Return the configured types, or no types and the reason."""
    types = []
    for text in configured:
        vgpu_type = layout.find_type(text) or _infer_type(layout, text)
        if vgpu_type is None:
            listed = ', '.join(f'{item.id} ({item.name})' for item in layout.types)
            reason = f'the card has no vGPU type {text}; it has: {listed or "none"}'
            return (), reason
        types.append(vgpu_type)
    if len(types) > 1 and not _all_use_instances(types):
        reason = f'a card runs only one of {_names(types)} at a time: configure one'
        return (), reason
    return tuple(types), ''


def _infer_type(layout: VgpuLayout, text: str) -> VgpuType | None:
    """Return a type that a full card does not list, if its name contains its size."""
    if layout.mode is not VgpuMode.VENDOR_VFIO or not layout.existing:
        return None
    inferred = VgpuType('', text, available=0)
    return inferred if inferred.memory else None


def _types_of(layout: VgpuLayout, vgpus: Iterable[Vgpu]) -> tuple[VgpuType, ...]:
    types = {layout.type_of(vgpu): None for vgpu in vgpus}
    return tuple(item for item in types if item is not None)


def _refusal(change: str, own: Sequence[Vgpu], running: Sequence[VgpuType]) -> str:
    ids = {item.id for item in running}
    count = sum(vgpu.type_id in ids for vgpu in own)
    return f'{change} is refused while {count} vGPUs of {_names(running)} are in use'


def _all_use_instances(types: Iterable[VgpuType]) -> bool:
    return all(item.uses_gpu_instance for item in types)


def _names(types: Iterable[VgpuType]) -> str:
    return ' and '.join(item.label for item in types)


@dataclass(frozen=True, slots=True)
class VgpuCard:
    """A card with the vGPUs that it offers."""

    name: str  # of the root deployable
    address: str
    product: str  # device id, four hex digits
    layout: VgpuLayout
    selection: VgpuSelection
    totals: Mapping[str, int]  # capacity by label of the type
    memory: int | None = None  # MiB; None: unknown
    more_traits: tuple[str, ...] = ()  # beside those of ``list_traits``
    driver: tuple[TypedAttribute, ...] = ()  # of the vendor driver of the host
    resource_class: str = VGPU
    # Places of an elastic card, by label of the type. Empty: the card is not elastic.
    sizes: Mapping[str, Size] = field(default_factory=dict)


def list_traits(product: str, vgpu_type: VgpuType) -> tuple[str, ...]:
    """Return the traits of the vGPUs of a type.

    :param product: device id of the card
    """
    return OWNER_CYBORG, custom_name('NVIDIA', product, vgpu_type.label)


def build_deployable(card: VgpuCard) -> Deployable:
    """Return the root deployable of a card.

    The root itself offers a time-sliced type. Each type that runs in GPU instances
    gets its own child.
    """
    types = card.selection.types
    if not any(item.uses_gpu_instance for item in types):
        (vgpu_type,) = types
        addresses = tuple(_list_addresses(card, vgpu_type, frozenset()))
        return _build_deployable(card, vgpu_type, card.name, addresses)
    children, assigned = [], frozenset[str]()
    for vgpu_type in types:
        addresses = tuple(_list_addresses(card, vgpu_type, assigned))
        name = f'{card.name}_{vgpu_type.label}'
        children.append(_build_deployable(card, vgpu_type, name, addresses))
        assigned |= frozenset(addresses)
    return Deployable(card.name, children=tuple(children))


def reserve_all(root: Deployable) -> Deployable:
    """Return the deployable with its whole inventory reserved."""
    return replace(
        root,
        reserved=root.total,
        children=tuple(reserve_all(child) for child in root.children),
    )


def _list_addresses(
    card: VgpuCard, vgpu_type: VgpuType, assigned: frozenset[str]
) -> Iterator[str]:
    """Yield the address of the function of each attach handle, in order.

    Types that coexist use separate ranges of virtual functions. The ranges depend on
    all types of the card, whether or not they are configured, so that handles keep
    their addresses when the configuration changes.
    """
    total = card.totals[vgpu_type.label]
    if card.layout.mode is VgpuMode.MDEV:
        yield from [card.address] * total
        return
    virtual = card.layout.enabled
    start = 0
    if vgpu_type.uses_gpu_instance:
        start = sum(
            item.max_per_card or 0
            for item in card.layout.types
            if item.uses_gpu_instance and item.id < vgpu_type.id
        )
    rotated = [virtual[(start + n) % len(virtual)] for n in range(len(virtual))]
    free = [address for address in rotated if address not in assigned]
    preferred = sorted(free, key=lambda address: _rank(card, vgpu_type, address))
    selected = set(preferred[:total])
    yield from (address for address in free if address in selected)


def _rank(card: VgpuCard, vgpu_type: VgpuType, address: str) -> int:
    """Return the rank of a virtual function; the lowest ranks get the handles.

    A vGPU in a GPU instance of another size takes a virtual function, but no capacity
    of the type. An own vGPU keeps its handle when such a vGPU disappears.
    """
    vgpus = [vgpu for vgpu in card.layout.existing if vgpu.address == address]
    if not vgpu_type.uses_gpu_instance or not vgpus:
        return 1
    if not may_have_type(card.layout, vgpus[0], vgpu_type, card.memory):
        return 2
    return 1 if vgpus[0] in card.selection.foreign else 0


def _build_deployable(
    card: VgpuCard, vgpu_type: VgpuType, name: str, addresses: tuple[str, ...]
) -> Deployable:
    foreign = [
        vgpu
        for vgpu in card.selection.foreign
        if may_have_type(card.layout, vgpu, vgpu_type, card.memory)
    ]
    is_mdev = card.layout.mode is VgpuMode.MDEV
    # A foreign vGPU at the address of a handle blocks this handle. Elsewhere it
    # reduces the capacity by one.
    elsewhere = [vgpu for vgpu in foreign if is_mdev or vgpu.address not in addresses]
    blocked = {vgpu.address for vgpu in card.selection.foreign}
    blocked |= set(card.layout.unusable)
    traits = (*list_traits(card.product, vgpu_type), *card.more_traits)
    handles = tuple(
        _build_handle(card.layout.mode, vgpu_type, address, number)
        for number, address in enumerate(addresses)
    )
    if not (is_mdev or card.selection.is_blocked):
        handles = tuple(
            replace(handle, in_use=address in blocked)
            for handle, address in zip(handles, addresses, strict=True)
        )
    total, size = len(addresses), card.sizes.get(vgpu_type.label)
    return Deployable(
        name=name,
        resource_class=card.resource_class,
        traits=traits,
        total=total,
        reserved=total if card.selection.is_blocked else min(total, len(elsewhere)),
        handles=handles,
        attributes={
            **attributes(card.resource_class, traits),
            'vgpu_type': vgpu_type.label,
            **({PLACES: str(size)} if size else {}),
        },
        typed_attributes=(*vgpu_type.typed_attributes, *card.driver),
    )


def _build_handle(
    mode: VgpuMode, vgpu_type: VgpuType, address: str, number: int
) -> AttachHandle:
    info = handle_info(address)
    if mode is VgpuMode.VENDOR_VFIO:
        # managed=False: libvirt must not rebind the function. Bound to another driver
        # it stays unusable until all virtual functions of the card are recreated.
        key = f'{address}/{vgpu_type.label}'
        return AttachHandle(key, HandleType.PCI, info, needs_host=True, managed=False)
    key = f'{address}/{vgpu_type.id}'
    if mode is VgpuMode.MDEV:
        key = f'{key}/{number}'
    info |= {'asked_type': vgpu_type.id, 'vgpu_mark': f'{vgpu_type.id}_{number}'}
    return AttachHandle(key, HandleType.MDEV, info, needs_host=True)


def summarize_offer(
    root: Deployable, selection: VgpuSelection, existing: Sequence[Vgpu]
) -> str:
    """Return the offer of a card in one line."""
    deployables = [item for item in root.walk() if item.resource_class]
    types = ', '.join(
        f'{item.attributes["vgpu_type"]} x{item.total}' for item in deployables
    )
    text = f'vGPUs: {types}; {len(existing)} exist'
    return f'{text}; {selection.reason}' if selection.reason else text
