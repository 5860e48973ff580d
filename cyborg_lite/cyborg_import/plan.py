# SPDX-License-Identifier: Apache-2.0
"""The rows that an import inserts, and what it reports about the others."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.inventory import host_report
from cyborg_lite.model.inventory.facts import HandleFacts
from cyborg_lite.model.profiles.device_profiles import DeviceProfile


class Table(enum.StrEnum):
    """Tables of this service that an import fills, in the order of insertion."""

    PROFILES = 'device_profiles'
    DEVICES = 'devices'
    DEPLOYABLES = 'deployables'
    ATTRIBUTES = 'attributes'
    ARQS = 'arqs'
    HANDLES = 'attach_handles'


class NoteKind(enum.StrEnum):
    """The treatment of a row that an import reports."""

    REFUSED = 'refused'
    """The row is not imported."""
    CHANGED = 'changed'
    """The row is imported, but differs from the source or from the cloud."""


@dataclass(frozen=True, slots=True)
class ImportNote:
    """A sentence about a row of the source."""

    kind: NoteKind
    table: Table
    uuid: str
    reason: str


@dataclass(frozen=True, slots=True)
class NewDevice:
    """A device to insert."""

    uuid: str
    hostname: str
    facts: host_report.Device
    status: DeviceStatus
    status_reason: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewDeployable:
    """A deployable to insert."""

    uuid: str
    device_uuid: str
    parent_uuid: str | None  # None: the root of its device
    root_uuid: str | None  # None: as above
    name: str
    rp_uuid: str | None  # None: it cannot be scheduled
    resource_class: str | None  # None: as above
    traits: tuple[str, ...]
    total: int
    driver_name: str
    bitstream_id: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewAttribute:
    """An attribute to insert."""

    uuid: str
    deployable_uuid: str
    key: str
    value: str
    reported: bool  # by a driver; otherwise an admin has added it
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewHandle:
    """An attach handle to insert."""

    uuid: str
    deployable_uuid: str
    facts: HandleFacts
    arq_uuid: str | None  # the owner; None: free
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewArq:
    """An ARQ to insert."""

    uuid: str
    state: State
    profile_uuid: str
    profile_name: str
    group_id: int
    group: Mapping[str, str]
    project_id: str | None
    hostname: str | None  # None: not bound; also the next three
    rp_uuid: str | None
    instance_uuid: str | None
    instance_slot: int | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class StoredRows:
    """The content of the database before an import."""

    uuids: Mapping[Table, frozenset[str]] = field(default_factory=dict)
    # Current and former names of device profiles, with the uuid of the profile.
    profile_names: Mapping[str, str] = field(default_factory=dict)
    hardware_ids: frozenset[tuple[str, str]] = frozenset()  # with the host
    rp_uuids: frozenset[str] = frozenset()
    instances: frozenset[str] = frozenset()  # with ARQs

    def has(self, table: Table, uuid: str) -> bool:
        """Check whether a row is stored already."""
        return uuid in self.uuids.get(table, frozenset())


@dataclass(frozen=True, slots=True)
class CloudRows:
    """The answers of Placement and Nova about the rows of the source."""

    rp_uuids: frozenset[str]  # existing providers
    compute_nodes: frozenset[str]  # hosts with a root provider
    # Providers that an instance has allocated, by instance.
    allocations: Mapping[str, frozenset[str]]
    missing_instances: frozenset[str] | None  # None: Nova is not configured


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """The result of planning an import."""

    profiles: tuple[DeviceProfile, ...] = ()
    devices: tuple[NewDevice, ...] = ()
    deployables: tuple[NewDeployable, ...] = ()
    attributes: tuple[NewAttribute, ...] = ()
    arqs: tuple[NewArq, ...] = ()
    handles: tuple[NewHandle, ...] = ()
    notes: tuple[ImportNote, ...] = ()
    stored: Mapping[Table, int] = field(default_factory=dict)  # rows imported before

    def list_uuids(self) -> dict[Table, list[str]]:
        """Return the uuids of the rows to insert, by table."""
        return {
            Table.PROFILES: [row.uuid for row in self.profiles],
            Table.DEVICES: [row.uuid for row in self.devices],
            Table.DEPLOYABLES: [row.uuid for row in self.deployables],
            Table.ATTRIBUTES: [row.uuid for row in self.attributes],
            Table.ARQS: [row.uuid for row in self.arqs],
            Table.HANDLES: [row.uuid for row in self.handles],
        }

    def count_refused(self, table: Table) -> int:
        """Return the number of rows of a table that are not imported."""
        return sum(
            note.table is table and note.kind is NoteKind.REFUSED for note in self.notes
        )
