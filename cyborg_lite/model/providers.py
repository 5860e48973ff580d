# SPDX-License-Identifier: Apache-2.0
"""Resource providers: those that a host should have, and those that Placement has."""

import hashlib
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

OWNER: Final = 'OWNER_CYBORG'
OWNER_NOVA: Final = 'OWNER_NOVA'

_LONGEST_NAME: Final = 200
_LONGEST_SYMBOL: Final = 255


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """A deployable that can be scheduled, as the database has it."""

    rp_uuid: str
    name: str
    resource_class: str
    traits: tuple[str, ...]
    total: int
    reserved: int
    # Traits of ours that Placement was told of it; None: nothing was recorded yet.
    told: tuple[str, ...] | None = None
    device_uuid: str = ''
    driver: str = ''
    conflict: str = ''  # who else manages the device, as last seen in Placement
    contested: str = ''  # likewise, as the agent found out on the host


@dataclass(frozen=True, slots=True)
class Inventory:
    """So many units of one resource class."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 1
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def closed(self) -> 'Inventory':
        """The same, and nothing of it can be allocated any more."""
        return replace(self, reserved=self.total)


Inventories: TypeAlias = Mapping[str, Inventory]
"""By resource class."""


@dataclass(frozen=True, slots=True)
class WantedProvider:
    uuid: str
    name: str
    parent_uuid: str | None  # None: it is a root
    inventories: Inventories
    traits: frozenset[str]
    formerly: frozenset[str] = frozenset()  # those of ours that it is to lose


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
    """A provider as Placement has it, whole."""

    node: TreeNode
    inventories: Inventories
    traits: frozenset[str]


def own_root(hostname: str) -> WantedProvider:
    """What the providers of a host are below that is no compute node."""
    own = str(uuid.uuid3(uuid.NAMESPACE_DNS, hostname))
    return WantedProvider(own, hostname, None, {}, frozenset({OWNER}))


def wanted_tree(root_uuid: str, rows: Iterable[ProviderRow]) -> list[WantedProvider]:
    """Each row as a child of the host's own provider, in the order of their names."""
    wanted = [_wanted(root_uuid, row) for row in rows]
    return sorted(wanted, key=lambda provider: provider.name)


def _wanted(root_uuid: str, row: ProviderRow) -> WantedProvider:
    traits = frozenset(map(legal_symbol, row.traits)) | {OWNER}
    return WantedProvider(
        uuid=row.rp_uuid,
        name=legal_name(row.name),
        parent_uuid=root_uuid,
        inventories=_inventories(row),
        traits=traits,
        formerly=frozenset(row.told or ()) - traits,
    )


def _inventories(row: ProviderRow) -> Inventories:
    if row.total < 1:
        # Placement knows no inventory of nothing.
        return {}
    reserved = max(0, min(row.reserved, row.total))
    inventory = Inventory(row.total, reserved, max_unit=row.total)
    return {legal_symbol(row.resource_class): inventory}


def legal_name(name: str) -> str:
    """The name of a provider, cut to what Placement accepts and still its own."""
    if len(name) <= _LONGEST_NAME:
        return name
    own = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f'{name[: _LONGEST_NAME - 9]}_{own}'


def legal_symbol(name: str) -> str:
    """The name of a trait or a resource class as Placement accepts it."""
    return re.sub(r'[^A-Z0-9_]', '_', name.upper())[:_LONGEST_SYMBOL]
