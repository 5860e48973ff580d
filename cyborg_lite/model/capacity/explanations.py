# SPDX-License-Identifier: Apache-2.0
"""Data of an explanation why a device profile fits a host or does not fit.

The rules are in ``fitting.py`` and ``obstacles.py``.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from cyborg_lite.model.devices.cleaning import UncleanUnit
from cyborg_lite.model.hosts.topology import Availability
from cyborg_lite.model.profiles.device_profiles import GroupRequirements


class FitResult(enum.StrEnum):
    """Result for a device profile and all hosts."""

    FITS = 'fits'
    NOT_NOW = 'not-now'
    """It fits once allocated or closed providers are free again."""
    NEVER = 'never'
    """It does not fit the present devices, even if all were free."""


class ReasonCode(enum.StrEnum):
    """Obstacles. Clients compare these values."""

    SEVERAL_CLASSES = 'several-classes'
    MISSING_CLASS = 'missing-class'
    MISSING_TRAIT = 'missing-trait'
    FORBIDDEN_TRAIT = 'forbidden-trait'
    TOO_FEW_UNITS = 'too-few-units'
    MAINTENANCE = 'maintenance'
    UNHEALTHY = 'unhealthy'
    WITHHELD = 'withheld'
    HOST_SILENT = 'host-silent'
    MANAGED_ELSEWHERE = 'managed-elsewhere'
    MDEV_NOT_ATTACHED = 'mdev-not-attached'
    UNMANAGED_NOT_ATTACHED = 'unmanaged-not-attached'
    NO_FREE_UNIT = 'no-free-unit'
    NOT_OFFERED = 'not-offered'
    NOT_TOGETHER = 'not-together'
    DISABLED = 'disabled'
    STRANGERS = 'strangers'
    MANY_CANDIDATES = 'many-candidates'
    IMAGE_REFUSED = 'image-refused'
    NOT_CONSIDERED = 'not-considered'


@dataclass(frozen=True, slots=True)
class Reason:
    """Obstacle for a group, or for all groups together."""

    code: ReasonCode
    text: str
    group: int | None = None  # index in the profile; None: all groups together
    resource_class: str = ''
    traits: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()  # names; uuids of foreign providers


@dataclass(frozen=True, slots=True)
class GroupFit:
    """Result for one group on one host."""

    group: int
    fits: bool
    reasons: tuple[Reason, ...] = ()  # empty if it fits


@dataclass(frozen=True, slots=True)
class HostFit:
    """Result for one host and all groups at once."""

    hostname: str
    fits: bool
    groups: tuple[GroupFit, ...]
    reasons: tuple[Reason, ...] = ()  # obstacles for all groups together


@dataclass(frozen=True, slots=True)
class Explanation:
    """The results of all hosts for one device profile."""

    result: FitResult
    summary: str
    hosts: tuple[HostFit, ...]
    warnings: tuple[Reason, ...]
    # Index of the explained alternative of each group; empty: no group has any.
    choice: tuple[int, ...] = ()
    # Warnings that clients before microversion 2.6 do not know.
    cautions: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderCapacity:
    """A provider of this service, with its free capacity according to the database."""

    rp_uuid: str
    name: str
    hostname: str
    resource_class: str
    traits: frozenset[str]
    total: int
    free: int  # units that are neither reserved nor allocated
    free_handles: int
    closed: ReasonCode | None = None  # None: open; it may still be full
    closed_text: str = ''
    has_mdev: bool = False
    has_unmanaged: bool = False  # functions that must keep their driver
    closed_for_guest: ReasonCode | None = None  # None: Nova can attach its handles
    closed_for_guest_text: str = ''
    unclean: tuple[UncleanUnit, ...] = ()
    unowned: int = 0  # units that consumers without an ARQ have allocated
    # Free units that do not fit on an elastic card beside those in use, or whose group
    # has another unit that is not free.
    unfitting: int = 0
    states: Mapping[Availability, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupCandidates:
    """A group, and the providers that Placement returns for it."""

    requirements: GroupRequirements
    offers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Free units by resource class, by uuid of each provider that fits now."""
    trait_matches: frozenset[str] = frozenset()
    """Uuids of the providers with matching traits, regardless of their inventory."""
    for_guest: bool = True  # Nova attaches the accelerators to the instance
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Why the requested bitstream cannot be loaded, by uuid of the provider."""
