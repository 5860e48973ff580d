# SPDX-License-Identifier: Apache-2.0
"""Resource providers: desired providers of a host, actual providers in Placement."""

import hashlib
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from cyborg_lite.model.traits import OWNER_CYBORG

_MAX_NAME_LENGTH: Final = 200
_MAX_SYMBOL_LENGTH: Final = 255


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """A deployable that can be scheduled, as stored."""

    rp_uuid: str
    name: str
    resource_class: str
    traits: tuple[str, ...]
    total: int
    reserved: int
    # Traits and custom resource classes that this service has set in Placement; None:
    # none are recorded yet.
    published_traits: tuple[str, ...] | None = None
    device_uuid: str = ''
    driver: str = ''
    conflict: str = ''  # other manager of the device, according to Placement
    contested: str = ''  # other manager of the device, according to the agent
    group_size: int = 1  # units that are only given together


@dataclass(frozen=True, slots=True)
class ProviderInventory:
    """Inventory of one resource class."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 1
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def fully_reserved(self) -> 'ProviderInventory':
        """A copy from which nothing can be allocated any more."""
        return replace(self, reserved=self.total)


Inventories: TypeAlias = Mapping[str, ProviderInventory]
"""By resource class."""


@dataclass(frozen=True, slots=True)
class DesiredProvider:
    """A provider as Placement must have it."""

    uuid: str
    name: str
    parent_uuid: str | None  # None: a root
    inventories: Inventories
    traits: frozenset[str]
    former_traits: frozenset[str] = frozenset()  # set by this service, to be removed
    custom_class: str = ''  # custom resource class of this service; empty: none

    @property
    def published_names(self) -> frozenset[str]:
        """Custom names that Placement has because of this provider."""
        classes = {self.custom_class} if self.custom_class else set()
        return self.traits - {OWNER_CYBORG} | classes


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A provider as Placement lists it."""

    uuid: str
    name: str
    generation: int
    parent_uuid: str | None  # None: the root of its tree
    root_uuid: str


@dataclass(frozen=True, slots=True)
class ActualProvider:
    """A provider in Placement with its inventories and traits."""

    node: TreeNode
    inventories: Inventories
    traits: frozenset[str]


def build_root(hostname: str) -> DesiredProvider:
    """Return the root provider of a host that is not a compute node."""
    root_uuid = str(uuid.uuid3(uuid.NAMESPACE_DNS, hostname))
    return DesiredProvider(root_uuid, hostname, None, {}, frozenset({OWNER_CYBORG}))


def build_tree(root_uuid: str, rows: Iterable[ProviderRow]) -> list[DesiredProvider]:
    """Return a child of the root provider for each row, sorted by name."""
    providers = [_build_provider(root_uuid, row) for row in rows]
    return sorted(providers, key=lambda provider: provider.name)


def _build_provider(root_uuid: str, row: ProviderRow) -> DesiredProvider:
    traits = frozenset(map(valid_symbol, row.traits)) | {OWNER_CYBORG}
    name = valid_symbol(row.resource_class)
    custom_class = name if name.startswith('CUSTOM_') else ''
    return DesiredProvider(
        uuid=row.rp_uuid,
        name=valid_provider_name(row.name),
        parent_uuid=root_uuid,
        inventories=_build_inventories(row),
        traits=traits,
        former_traits=frozenset(row.published_traits or ()) - traits - {custom_class},
        custom_class=custom_class,
    )


def _build_inventories(row: ProviderRow) -> Inventories:
    if row.total < 1:
        # Placement rejects an inventory with a total of 0.
        return {}
    reserved = max(0, min(row.reserved, row.total))
    size = row.group_size if 1 <= row.group_size <= row.total else 1
    if size > 1 and reserved % size:
        # A group with an unavailable member cannot be given.
        reserved = min(row.total, reserved + size - reserved % size)
    inventory = ProviderInventory(
        row.total, reserved, min_unit=size, max_unit=row.total, step_size=size
    )
    return {valid_symbol(row.resource_class): inventory}


def valid_provider_name(name: str) -> str:
    """Return a unique name of a provider, cut to the length that Placement accepts."""
    if len(name) <= _MAX_NAME_LENGTH:
        return name
    suffix = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f'{name[: _MAX_NAME_LENGTH - 9]}_{suffix}'


def valid_symbol(name: str) -> str:
    """Return the name of a trait or resource class as Placement accepts it."""
    return re.sub(r'[^A-Z0-9_]', '_', name.upper())[:_MAX_SYMBOL_LENGTH]
