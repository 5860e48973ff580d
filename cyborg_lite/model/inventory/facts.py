# SPDX-License-Identifier: Apache-2.0
"""Flat form of the inventory of a host: each object under the path that identifies it.

A path begins with the identity of the device. The second element is the suffix of the
deployable: the part of its name after the name of the root deployable, empty for the
root. The third element is the key of an attach handle or an attribute. The paths of
unchanged objects never change.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Final, TypeAlias

from cyborg_lite.model.inventory.attribute_keys import build_attributes
from cyborg_lite.model.inventory.host_report import AttachHandle, Deployable, Device
from cyborg_lite.model.inventory.typed_attributes import TypedAttribute
from cyborg_lite.model.limits import REASON_MAX_LENGTH

ROOT: Final = ''
NO_DEPLOYABLES: Final = Deployable('')
"""Root of a device whose deployables are apart from it."""

DeployablePath: TypeAlias = tuple[str, str]
LeafPath: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class DeployableFacts:
    """Values of a deployable."""

    parent: str | None  # suffix of the parent; None: the root
    resource_class: str | None
    traits: tuple[str, ...]
    total: int
    reserved: int
    driver_name: str
    typed_attributes: tuple[TypedAttribute, ...] = ()  # by name


@dataclass(frozen=True, slots=True)
class HandleFacts(AttachHandle):
    """Values of an attach handle."""

    missing: bool = False  # owned by an ARQ or unclean, and no longer on the host


@dataclass(frozen=True, slots=True)
class Layout:
    """Objects of a host, by path."""

    devices: Mapping[str, Device]  # without their deployables
    deployables: Mapping[DeployablePath, DeployableFacts]
    handles: Mapping[LeafPath, HandleFacts]
    attributes: Mapping[LeafPath, str]

    def select(self, identities: Collection[str]) -> 'Layout':
        """Return the objects of some devices."""
        return Layout(
            {path: f for path, f in self.devices.items() if path in identities},
            {path: f for path, f in self.deployables.items() if path[0] in identities},
            {path: f for path, f in self.handles.items() if path[0] in identities},
            {path: v for path, v in self.attributes.items() if path[0] in identities},
        )


@dataclass(frozen=True, slots=True)
class StoredInventory:
    """Stored inventory of a host."""

    layout: Layout
    names: Mapping[DeployablePath, str]  # of deployables
    claimed: frozenset[LeafPath]  # attach handles that ARQs own, and unclean ones
    # Attributes that an admin has deleted; the layout does not contain them.
    hidden: frozenset[LeafPath] = frozenset()


def product_key(card: Device) -> str:
    """Return the key of the product; devices with different keys are never the same.

    The key has the product id if the driver reports it, because the text of the model
    may change.
    """
    return f'{card.vendor}:{card.std_board_info.get("product_id", card.model)}'


def name_suffix(name: str, root_name: str) -> str:
    """Return the suffix of a deployable, from its name and the name of its root."""
    if name == root_name:
        return ROOT
    return name.removeprefix(root_name) if name.startswith(f'{root_name}_') else name


def deployable_name(suffix: str, root_name: str) -> str:
    """Return the name of a deployable; the inverse of ``name_suffix``."""
    return (
        f'{root_name}{suffix}' if suffix == ROOT or suffix.startswith('_') else suffix
    )


def walk_deployables(
    device: Device,
) -> Iterator[tuple[str, DeployableFacts, Deployable]]:
    """Yield suffix, values and deployable for each deployable, parents first."""

    def walk(
        deployable: Deployable, parent: str | None
    ) -> Iterator[tuple[str, DeployableFacts, Deployable]]:
        """Yield the deployable and its descendants."""
        suffix = name_suffix(deployable.name, device.root.name)
        facts = DeployableFacts(
            parent=parent,
            resource_class=deployable.resource_class,
            traits=deployable.traits,
            total=deployable.total,
            reserved=deployable.reserved,
            driver_name=device.driver,
            typed_attributes=tuple(
                sorted(deployable.typed_attributes, key=lambda item: item.name)
            ),
        )
        yield suffix, facts, deployable
        for child in deployable.children:
            yield from walk(child, suffix)

    return walk(device.root, None)


def build_layout(devices: Mapping[str, tuple[Device, str]]) -> Layout:
    """Return the flat form of devices.

    :param devices: by identity each device and the hardware id to store
    """
    deployables: dict[DeployablePath, DeployableFacts] = {}
    handles: dict[LeafPath, HandleFacts] = {}
    attributes: dict[LeafPath, str] = {}
    for identity, (device, _) in devices.items():
        for suffix, facts, deployable in walk_deployables(device):
            deployables[identity, suffix] = facts
            for handle in deployable.handles:
                values = {
                    item.name: getattr(handle, item.name) for item in fields(handle)
                }
                handles[identity, suffix, handle.key] = HandleFacts(**values)
            for key, value in build_attributes(deployable).items():
                attributes[identity, suffix, key] = value
    facts_by_identity = {
        identity: replace(
            device,
            hardware_id=hardware_id,
            health_reason=device.health_reason[:REASON_MAX_LENGTH],
            root=NO_DEPLOYABLES,
        )
        for identity, (device, hardware_id) in devices.items()
    }
    return Layout(facts_by_identity, deployables, handles, attributes)
