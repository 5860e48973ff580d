# SPDX-License-Identifier: Apache-2.0
"""Everything that waits for an operator: one table of kinds, and the items.

The page on the runbook, the alert rules, the metric, the API and the commands derive
from ``KINDS``.
"""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cyborg_lite.model.capacity.explanations import ProviderCapacity
from cyborg_lite.model.hosts.topology import Availability
from cyborg_lite.model.operations import SubjectType
from cyborg_lite.model.profiles.alternatives import list_options
from cyborg_lite.model.profiles.device_profiles import DeviceProfile, Group

LATE_SECONDS: Final = 60
"""Age after which a bind counts as late. Nova waits 300 s by default."""
DIRTY_SECONDS: Final = 600
"""Age after which a unit that a job still cleans is shown."""
MAX_ITEMS: Final = 1000  # per kind


class Severity(enum.StrEnum):
    """The urgency of a kind, and of its alert."""

    CRITICAL = 'critical'
    """Instances fail, or have lost a device."""
    WARNING = 'warning'
    """Capacity is withheld, or a later failure is certain."""
    INFO = 'info'


class AttentionKind(enum.StrEnum):
    """Kinds of items."""

    QUARANTINE = 'quarantine'
    LATE_BIND = 'late_bind'
    FAILED_JOB = 'failed_job'
    PLACEMENT_OUTDATED = 'placement_outdated'
    UNCLEAN_UNIT = 'unclean_unit'
    HELD_HANDLE = 'held_handle'
    LOST_ARQ = 'lost_arq'
    UNHEALTHY_DEVICE = 'unhealthy_device'
    CONTESTED_DEVICE = 'contested_device'
    LEAKED_ALLOCATION = 'leaked_allocation'
    UNOWNED_ALLOCATION = 'unowned_allocation'
    HOST_DOWN = 'host_down'
    CONDUCTOR_DOWN = 'conductor_down'
    NOT_READY = 'not_ready'
    DUPLICATE_AGENT = 'duplicate_agent'
    OUTDATED_KEY = 'outdated_key'
    MISSING_PRIVILEGE = 'missing_privilege'
    TYPE_SOLD_OUT = 'type_sold_out'
    UNSERVED_PROFILE = 'unserved_profile'


@dataclass(frozen=True, slots=True)
class Rule:
    """The meaning of a kind, and the command that helps."""

    severity: Severity
    meaning: str  # one sentence
    command: str  # with fields of the item in braces


_CRITICAL, _WARNING, _INFO = Severity
_PREFIX: Final = 'openstack accelerator'

KINDS: Final[Mapping[AttentionKind, Rule]] = {
    AttentionKind.QUARANTINE: Rule(
        _CRITICAL,
        'The database has lost changes; nothing is bound, released or cleaned.',
        'cyborg-lite-manage recover --plan',
    ),
    AttentionKind.LATE_BIND: Rule(
        _CRITICAL,
        f'A bind has not ended for more than {LATE_SECONDS} s; Nova waits for it.',
        f'{_PREFIX} request event list --instance {{subject_id}}',
    ),
    AttentionKind.FAILED_JOB: Rule(
        _WARNING,
        'A job has failed and is not repeated.',
        f'{_PREFIX} operation retry {{subject_id}}',
    ),
    AttentionKind.PLACEMENT_OUTDATED: Rule(
        _WARNING,
        'Placement does not have the inventory of a host.',
        f'{_PREFIX} operation create reconcile --host {{hostname}} --wait',
    ),
    AttentionKind.UNCLEAN_UNIT: Rule(
        _WARNING,
        'A unit is withheld because it is not clean.',
        f'{_PREFIX} device clean retry {{subject_id}}',
    ),
    AttentionKind.HELD_HANDLE: Rule(
        _WARNING,
        'A host has prepared an attach handle that no ARQ owns.',
        f'{_PREFIX} host topology {{hostname}}',
    ),
    AttentionKind.LOST_ARQ: Rule(
        _CRITICAL,
        'The device of a bound ARQ is gone, failed or missing.',
        f'{_PREFIX} request show {{subject_id}}',
    ),
    AttentionKind.UNHEALTHY_DEVICE: Rule(
        _WARNING,
        'A device has failed, or a health rule or an operator withholds it.',
        f'{_PREFIX} device record export {{subject_id}}',
    ),
    AttentionKind.CONTESTED_DEVICE: Rule(
        _WARNING,
        'Another service manages a device, too; it is not schedulable.',
        'cyborg-lite-manage ownership --host {hostname}',
    ),
    AttentionKind.LEAKED_ALLOCATION: Rule(
        _WARNING,
        'A deleted server still has an allocation; its units are lost.',
        f'{_PREFIX} operation create audit --apply --wait',
    ),
    AttentionKind.UNOWNED_ALLOCATION: Rule(
        _WARNING,
        'A server has allocated units, but it has no ARQ.',
        'openstack server show {subject_id}',
    ),
    AttentionKind.HOST_DOWN: Rule(
        _CRITICAL,
        'The agent of a host sends no heartbeats; free units are reserved.',
        'systemctl status cyborg-lite-agent',
    ),
    AttentionKind.CONDUCTOR_DOWN: Rule(
        _WARNING,
        'A conductor sends no heartbeats.',
        'systemctl status cyborg-lite-conductor',
    ),
    AttentionKind.NOT_READY: Rule(
        _CRITICAL,
        'A daemon runs, but it cannot serve.',
        'systemctl status {subject_name}',
    ),
    AttentionKind.DUPLICATE_AGENT: Rule(
        _WARNING,
        'Two agents have the name of one host; the second one is refused.',
        'systemctl disable --now cyborg-lite-agent',
    ),
    AttentionKind.OUTDATED_KEY: Rule(
        _WARNING,
        'A daemon signs with a key that ends when the secret is replaced.',
        'cyborg-lite-manage agent {subject_id}',
    ),
    AttentionKind.MISSING_PRIVILEGE: Rule(
        _WARNING,
        'The agent has no privileges for a device that it must prepare.',
        'cyborg-lite-agent discover',
    ),
    AttentionKind.TYPE_SOLD_OUT: Rule(
        _INFO,
        'No unit is free for a group of a device profile.',
        f'{_PREFIX} profile explain {{subject_name}}',
    ),
    AttentionKind.UNSERVED_PROFILE: Rule(
        _WARNING,
        'No device has what a group of a device profile requests.',
        f'{_PREFIX} profile explain {{subject_name}}',
    ),
}


@dataclass(frozen=True, slots=True)
class AttentionItem:
    """Something that waits for an operator."""

    kind: AttentionKind
    since: datetime | None  # None: not known
    subject_type: SubjectType
    subject_id: str  # a uuid, or the name of a host
    subject_name: str  # for people
    hostname: str  # empty: it belongs to no host
    reason: str

    @property
    def severity(self) -> Severity:
        """The severity of the kind."""
        return KINDS[self.kind].severity

    @property
    def command(self) -> str:
        """The command with which an operator begins."""
        return KINDS[self.kind].command.format(
            subject_id=self.subject_id,
            subject_name=self.subject_name,
            hostname=self.hostname,
        )


def check_profiles(
    profiles: Iterable[DeviceProfile], deployables: Iterable[ProviderCapacity]
) -> tuple[AttentionItem, ...]:
    """Return the enabled profiles that no device, or no free unit, serves.

    A required trait that no deployable has is ignored: operators add such traits in
    Placement.

    :param deployables: of all hosts
    """
    stock = tuple(deployables)
    traits = frozenset().union(*(item.traits for item in stock))
    items = (_check_profile(item, stock, traits) for item in profiles if item.enabled)
    return tuple(item for item in items if item is not None)


def _check_profile(
    profile: DeviceProfile,
    stock: tuple[ProviderCapacity, ...],
    traits: frozenset[str],
) -> AttentionItem | None:
    for index in range(len(profile.groups)):
        groups = list_options(profile, index)
        options = [Group.parse(item).requirements for item in groups]
        candidates = [
            item
            for option in options
            for item in stock
            if item.resource_class in option.resource_classes
            and option.required & traits <= item.traits
            and not option.forbidden & item.traits
        ]
        names = ' or '.join(
            ' '.join((*option.resource_classes, *sorted(option.required)))
            for option in options
        )
        kind, fault = AttentionKind.UNSERVED_PROFILE, 'no device has that.'
        if candidates:
            kind, fault = AttentionKind.TYPE_SOLD_OUT, 'no unit is free.'
        if not any(item.states.get(Availability.FREE, 0) for item in candidates):
            return AttentionItem(
                kind,
                None,
                SubjectType.DEVICE_PROFILE,
                profile.uuid,
                profile.name,
                '',
                f'Group {index} requests {names}: {fault}',
            )
    return None
