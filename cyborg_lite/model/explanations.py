# SPDX-License-Identifier: Apache-2.0
"""Why a device profile fits a host or does not: the words, and what they are made of.

The rules are in ``fitting.py``.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from cyborg_lite.model.device_profiles import amounts, arq_count, handle_count

_TRAIT = 'trait:'


class Verdict(enum.StrEnum):
    FITS = 'fits'
    NOT_NOW = 'not-now'
    """It would, if what is in use or closed were free."""
    NEVER = 'never'
    """Not with the devices that there are, were they all free."""


class Why(enum.StrEnum):
    """What stands in the way; programs compare these words."""

    SEVERAL_CLASSES = 'several-classes'
    MISSING_CLASS = 'missing-class'
    MISSING_TRAIT = 'missing-trait'
    FORBIDDEN_TRAIT = 'forbidden-trait'
    TOO_FEW_UNITS = 'too-few-units'
    MAINTENANCE = 'maintenance'
    UNHEALTHY = 'unhealthy'
    HOST_SILENT = 'host-silent'
    MANAGED_ELSEWHERE = 'managed-elsewhere'
    NO_FREE_UNIT = 'no-free-unit'
    NOT_OFFERED = 'not-offered'
    NOT_TOGETHER = 'not-together'
    DISABLED = 'disabled'
    STRANGERS = 'strangers'


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that stands in the way of a group, or of all groups together."""

    why: Why
    text: str
    group: int | None = None  # its place in the profile; None: of no single group
    resource_class: str = ''
    traits: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()  # names; of strangers' the uuids


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """Whether some provider of the host can serve a group now."""

    group: int
    fits: bool
    reasons: tuple[Reason, ...] = ()  # none where it fits


@dataclass(frozen=True, slots=True)
class HostVerdict:
    hostname: str
    fits: bool  # all groups, at once
    groups: tuple[GroupVerdict, ...]
    reasons: tuple[Reason, ...] = ()  # of no single group


@dataclass(frozen=True, slots=True)
class Explanation:
    verdict: Verdict
    summary: str
    hosts: tuple[HostVerdict, ...]
    warnings: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Demand:
    """What a group asks of one provider."""

    amounts: tuple[tuple[str, int], ...]  # by resource class
    required: frozenset[str]
    forbidden: frozenset[str]
    handles: int  # that its requests get

    @classmethod
    def of(cls, group: Mapping[str, str]) -> 'Demand':
        traits = {
            key.removeprefix(_TRAIT): value
            for key, value in group.items()
            if key.startswith(_TRAIT)
        }
        return cls(
            amounts=tuple(sorted(amounts(group))),
            required=frozenset(name for name in traits if traits[name] == 'required'),
            forbidden=frozenset(name for name in traits if traits[name] == 'forbidden'),
            handles=handle_count(group, arq_count(group)),
        )

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.amounts)


@dataclass(frozen=True, slots=True)
class Supply:
    """One provider of ours: what it has, and what it has left by our own books."""

    rp_uuid: str
    name: str
    hostname: str
    resource_class: str
    traits: frozenset[str]
    total: int
    free: int  # units that are neither reserved nor held by a request
    free_handles: int
    closed: Why | None = None  # None: it is open, or only full
    closed_text: str = ''


@dataclass(frozen=True, slots=True)
class Asked:
    """A group's demand, and what Placement says to it."""

    demand: Demand
    offers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Free units by class, by the uuid of each provider that can serve it now."""
    marked: frozenset[str] = frozenset()
    """Providers whose traits Placement finds right, whatever else they have."""
