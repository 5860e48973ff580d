# SPDX-License-Identifier: Apache-2.0
"""Rows of a database of OpenStack Cyborg.

The fields have the names of the columns. A column that an earlier schema lacks is None.
"""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class SourceProfile:
    """A row of ``device_profiles``."""

    id: int
    uuid: str
    name: str
    profile_json: str  # an object with the key `groups`
    description: str | None
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class SourceDevice:
    """A row of ``devices``."""

    id: int
    uuid: str
    type: str
    vendor: str
    model: str
    std_board_info: str | None  # JSON
    vendor_board_info: str | None
    hostname: str
    status: str | None  # from 2023.2 on
    device_state: str | None  # from 2026.2 on
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class SourceControlPath:
    """A row of ``controlpath_ids``: the PCI address of a device."""

    id: int
    device_id: int
    cpid_info: str  # JSON


@dataclass(frozen=True, slots=True)
class SourceDeployable:
    """A row of ``deployables``."""

    id: int
    uuid: str
    parent_id: int | None
    device_id: int
    name: str
    num_accelerators: int
    rp_uuid: str | None
    driver_name: str | None
    bitstream_id: str | None
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class SourceHandle:
    """A row of ``attach_handles``."""

    id: int
    uuid: str
    deployable_id: int
    in_use: int | None
    attach_type: str
    attach_info: str  # JSON
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class SourceAttribute:
    """A row of ``attributes``."""

    id: int
    uuid: str
    deployable_id: int
    key: str
    value: str
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class SourceArq:
    """A row of ``extended_accelerator_requests``."""

    id: int
    uuid: str
    project_id: str | None
    state: str
    device_profile_id: int
    hostname: str | None
    device_rp_uuid: str | None
    attach_handle_id: int | None
    device_profile_group_id: int
    instance_uuid: str | None
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class SourceDatabase:
    """The rows of all tables that are imported, each by id."""

    revision: str  # of the schema
    profiles: tuple[SourceProfile, ...] = ()
    devices: tuple[SourceDevice, ...] = ()
    control_paths: tuple[SourceControlPath, ...] = ()
    deployables: tuple[SourceDeployable, ...] = ()
    handles: tuple[SourceHandle, ...] = ()
    attributes: tuple[SourceAttribute, ...] = ()
    arqs: tuple[SourceArq, ...] = ()
