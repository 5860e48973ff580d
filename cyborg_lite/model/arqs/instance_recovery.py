# SPDX-License-Identifier: Apache-2.0
"""Plan to rebuild the ARQs of instances that a database has lost.

Placement knows how many units of which provider an instance has, the agent knows which
unit it has prepared for which ARQ, and Nova knows the host and the device profile of
the instance. A step names the word that is missing, and then writes nothing: a unit
that an instance may use is never guessed.
"""

import enum
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import uuid4

from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.arqs.audit import STATES_WITH_INSTANCE
from cyborg_lite.model.devices.cleaning import FREE_STATES, CleanState
from cyborg_lite.model.hosts.events import HostHandle
from cyborg_lite.model.inventory.host_report import CleaningPolicy
from cyborg_lite.model.profiles.device_profiles import Group

Amounts = Mapping[str, Mapping[str, int]]
"""Allocated amounts by provider and resource class."""

_MAX_TRIALS: Final = 10_000  # assignments of groups to providers that are tried
_BUILDING: Final = 'building'  # a state of Nova


class RecoveryAction(enum.StrEnum):
    """Changes that a step writes. The values are shown to operators."""

    REBUILD = 'rebuild'
    """The ARQs of an instance, and their units."""
    HOLD = 'hold'
    """Units of which an instance may use any."""
    FREE = 'free'
    """Units that an earlier step held, and that no allocation needs any more."""
    CLEAN = 'clean'
    """Free units that the database lacks uses of: they are cleaned before the next."""
    KEEP = 'keep'
    """Nothing: Nova has no such instance. Its units stay prepared or reserved."""
    NONE = 'none'
    """Nothing: a word is missing."""


@dataclass(frozen=True, slots=True)
class NovaInstance:
    """An instance as Nova describes it."""

    node: str | None  # compute node; None: the instance is on no host
    project_id: str
    device_profile: str | None  # that its flavor names
    vm_state: str
    task: str | None  # None: Nova does not change the instance


@dataclass(frozen=True, slots=True)
class StoredUnit:
    """A unit of a host as it was read. A step applies only while it is unchanged."""

    uuid: str  # of the attach handle
    rp_uuid: str
    deployable_name: str
    key: str
    resource_class: str
    traits: tuple[str, ...]
    needs_host: bool  # the agent prepares the unit
    in_use: bool  # by a process of the host
    generation: int
    cleaning: CleaningPolicy
    clean_state: CleanState
    arq_uuid: str | None  # None, with the next: no ARQ owns the unit
    instance_uuid: str | None

    @property
    def is_free(self) -> bool:
        """Return True if an ARQ could claim the unit."""
        return self.arq_uuid is None and self.clean_state in FREE_STATES

    @property
    def is_held(self) -> bool:
        """Return True if an earlier step holds the unit; the agent prepares no such."""
        return self.clean_state is CleanState.OCCUPIED and not self.needs_host


@dataclass(frozen=True, slots=True)
class StoredArq:
    """An ARQ of the database that an instance has, or that an agent has prepared."""

    uuid: str
    state: State
    instance_uuid: str | None


@dataclass(frozen=True, slots=True)
class ProfileOptions:
    """A device profile, and for each of its groups the groups that may stand for it."""

    id: int
    name: str
    groups: tuple[tuple[Mapping[str, str], ...], ...]


@dataclass(frozen=True, slots=True)
class RebuiltArq:
    """An ARQ to write, with its unit."""

    uuid: str
    group_id: int  # index of the group in the profile
    alternative: int  # index of its keys in the options of the group
    resource_class: str  # empty: the ARQ is a companion
    rp_uuid: str
    needs_unit: bool = True  # False: a companion has none
    unit: StoredUnit | None = None  # None: it has none, or its unit is not known
    # What the host has prepared. None: it need not prepare the unit.
    handle: HostHandle | None = None


@dataclass(frozen=True, slots=True)
class RecoveryStep:
    """Change for one instance, or for units of one provider."""

    hostname: str
    instance_uuid: str
    action: RecoveryAction
    reason: str  # of NONE: the word that is missing
    units: tuple[StoredUnit, ...] = ()
    arqs: tuple[RebuiltArq, ...] = ()
    profile: ProfileOptions | None = None
    project_id: str = ''
    outdated: tuple[str, ...] = ()  # ARQs that the written ones replace

    @property
    def is_change(self) -> bool:
        """Return True if the step writes something."""
        return self.action not in (RecoveryAction.KEEP, RecoveryAction.NONE)

    @property
    def subject(self) -> str:
        """The instance, or the host if the step concerns no single instance."""
        return self.instance_uuid or self.hostname

    @property
    def keys(self) -> str:
        """The keys of the units, for people."""
        return ', '.join(unit.key for unit in self.units)


@dataclass(frozen=True, slots=True)
class HostWitnesses:
    """Words of the database and the three witnesses about one host."""

    hostname: str
    units: Sequence[StoredUnit]
    # By provider: the amounts of its consumers by resource class.
    allocations: Mapping[str, Amounts]
    prepared: Sequence[HostHandle] | None  # None: the agent does not answer
    # Consumers and providers of the allocations that two looks found without an ARQ.
    unowned: Collection[tuple[str, str]] = ()
    # None as a value: Nova has no such instance. An absent one was not read.
    instances: Mapping[str, NovaInstance | None] = field(default_factory=dict)
    arqs: Sequence[StoredArq] = ()
    profiles: Mapping[str, ProfileOptions] = field(default_factory=dict)  # by name
    is_quarantined: bool = False  # the database has lost changes

    def list_suspects(self) -> frozenset[str]:
        """Return the instances whose ARQs the database may lack."""
        owners = {
            (unit.deployable_name, unit.key): unit.arq_uuid for unit in self.units
        }
        holders = {
            handle.instance_uuid
            for handle in self.prepared or ()
            if owners.get(handle.unit) != handle.arq_uuid
        }
        consumers = {consumer for consumer, _ in self.unowned}
        return frozenset(consumers | holders - {''})

    def list_questions(self) -> frozenset[str]:
        """Return the instances for which Nova must be asked.

        An ARQ of the database that owns a unit of a suspect may be outdated.
        """
        suspects = self.list_suspects()
        if not suspects:
            return suspects
        return suspects | {u.instance_uuid for u in self.units if u.instance_uuid}

    def find_amounts(self, instance: str) -> Amounts:
        """Return the allocation of an instance on the providers of the host."""
        return {
            provider: consumers[instance]
            for provider, consumers in self.allocations.items()
            if instance in consumers
        }


def plan_host(facts: HostWitnesses) -> tuple[RecoveryStep, ...]:
    """Return the steps of a host; each changes other units than all before it."""
    planner = _Planner(facts)
    steps = [planner.plan(instance) for instance in sorted(facts.list_suspects())]
    holds = [step for step in map(planner.hold, steps) if step is not None]
    further = *planner.free(), *planner.clean(), *planner.report_unknown()
    return (*steps, *holds, *further)


class _Planner:
    """Plans the steps of one host."""

    def __init__(self, facts: HostWitnesses) -> None:
        self._facts = facts
        self._suspects = facts.list_suspects()
        self._units: defaultdict[str, list[StoredUnit]] = defaultdict(list)
        for unit in facts.units:
            self._units[unit.rp_uuid].append(unit)
        self._prepared = {handle.unit: handle for handle in facts.prepared or ()}
        self._taken_uuids: set[str] = set()  # uuids of the handles of the steps so far

    def plan(self, instance: str) -> RecoveryStep:
        """Return the step of an instance."""
        amounts = self._facts.find_amounts(instance)
        units = tuple(
            unit
            for unit in self._facts.units
            if self._find_handle(unit, instance) is not None
        )
        step = self._build_step(RecoveryAction.NONE, '', units, instance)
        nova_instance = self._facts.instances.get(instance)
        reason = self._find_obstacle(instance, amounts)
        if instance in self._facts.instances and nova_instance is None:
            reason = (
                'Nova has no such instance. Its units are released when it has no '
                'allocation either: run cyborg-lite-manage audit --apply later.'
            )
            return replace(step, action=RecoveryAction.KEEP, reason=reason)
        if reason or nova_instance is None:
            return replace(step, reason=reason)
        profile = self._facts.profiles[nova_instance.device_profile or '']
        choices = _assign_groups(profile, amounts, self._units)
        if choices is None:
            reason = (
                f'Its allocation does not match the groups of device profile '
                f'{profile.name}: import the profile as it was, or delete the instance.'
            )
            return replace(step, reason=reason)
        arqs = tuple(self._build_arqs(instance, profile, choices))
        if reason := self._find_contradiction(instance, arqs, units):
            return replace(step, reason=reason)
        units = tuple(arq.unit for arq in arqs if arq.unit is not None)
        self._taken_uuids |= {unit.uuid for unit in units}
        replaced = {item.uuid for item in self._list_replaced(instance, arqs)}
        owners = {unit.arq_uuid for unit in units if unit.arq_uuid}
        return replace(
            step,
            action=RecoveryAction.REBUILD,
            reason=f'{len(arqs)} ARQs of device profile {profile.name}',
            units=units,
            arqs=arqs,
            profile=profile,
            project_id=nova_instance.project_id,
            outdated=tuple(sorted(replaced | owners)),
        )

    def _build_step(
        self,
        action: RecoveryAction,
        reason: str,
        units: tuple[StoredUnit, ...] = (),
        instance: str = '',
    ) -> RecoveryStep:
        return RecoveryStep(self._facts.hostname, instance, action, reason, units)

    def _find_handle(self, unit: StoredUnit, instance: str) -> HostHandle | None:
        handle = self._prepared.get((unit.deployable_name, unit.key))
        return handle if handle and handle.instance_uuid == instance else None

    def _find_obstacle(self, instance: str, amounts: Amounts) -> str:
        """Return the word that is missing for an instance; empty: none is."""
        if instance not in self._facts.instances:
            return 'Nova is not configured.'
        nova_instance = self._facts.instances[instance]
        if nova_instance is not None and (reason := self._find_fault(nova_instance)):
            return reason
        if not amounts:
            return 'Placement has no allocation: heal the allocations of the instance.'
        units = [unit for provider in amounts for unit in self._units[provider]]
        if self._facts.prepared is None and any(unit.needs_host for unit in units):
            return 'The agent of the host does not answer.'
        return ''

    def _find_fault(self, nova_instance: NovaInstance) -> str:
        """Return why the word of Nova does not suffice; empty: it does."""
        task, state = nova_instance.task, nova_instance.vm_state
        if task is not None or state == _BUILDING:
            return f'Nova changes the instance ({task or state}).'
        if not self._is_here(nova_instance):
            return f'Nova has the instance on {nova_instance.node or "no host"}.'
        if nova_instance.device_profile is None:
            return 'Its flavor names no device profile.'
        if nova_instance.device_profile not in self._facts.profiles:
            return (
                f'Device profile {nova_instance.device_profile} is missing: import it.'
            )
        return ''

    def _is_here(self, nova_instance: NovaInstance) -> bool:
        return (nova_instance.node or '').casefold() == self._facts.hostname.casefold()

    # --- units ---

    def _build_arqs(
        self, instance: str, profile: ProfileOptions, choices: Sequence[tuple[int, str]]
    ) -> Iterator[RebuiltArq]:
        """Yield the ARQs of an instance; one has no unit if its unit is not known."""
        units = {
            provider: self._list_units(instance, provider)
            for provider in {provider for _, provider in choices}
        }
        for group_id, (alternative, provider) in enumerate(choices):
            keys = profile.groups[group_id][alternative]
            requirements = Group.parse(keys).requirements
            for number, name in enumerate(requirements.unit_classes):
                needs_unit = number < requirements.handle_count
                is_known = needs_unit and bool(units[provider])
                unit = units[provider].pop(0) if is_known else None
                handle = None if unit is None else self._find_handle(unit, instance)
                yield RebuiltArq(
                    handle.arq_uuid if handle else str(uuid4()),
                    group_id,
                    alternative,
                    name,
                    provider,
                    needs_unit,
                    unit,
                    handle,
                )

    def _list_units(self, instance: str, provider: str) -> list[StoredUnit]:
        """Return the units of a provider that the instance certainly has."""
        units = self._units[provider]
        if any(unit.needs_host for unit in units):
            return [unit for unit in units if self._find_handle(unit, instance)]
        candidates = self._list_candidates(provider)
        is_alone = self._list_users(provider) == [instance]
        amount = sum(self._facts.allocations[provider][instance].values())
        return candidates if is_alone and amount == len(candidates) else []

    def _list_candidates(self, provider: str) -> list[StoredUnit]:
        """Return the units of a provider that an instance without an ARQ may use."""
        return [
            unit
            for unit in self._units[provider]
            if unit.uuid not in self._taken_uuids
            and not unit.in_use
            and (
                unit.is_free
                or unit.is_held
                or self._is_outdated(unit)
                # The end of a cleaning run of the unit may be lost.
                or (
                    self._facts.is_quarantined
                    and unit.arq_uuid is None
                    and unit.clean_state != CleanState.OCCUPIED
                )
            )
        ]

    def _list_users(self, provider: str) -> list[str]:
        """Return the consumers of a provider whose units are not known."""
        consumers = self._facts.allocations.get(provider, {})
        return sorted(self._suspects & consumers.keys())

    def _is_outdated(self, unit: StoredUnit) -> bool:
        """Return True if Nova and Placement say that the ARQ of a unit is gone."""
        instance = unit.instance_uuid
        if unit.arq_uuid is None or instance is None:
            return False
        if instance in self._suspects:
            return True  # its other ARQs prove that Nova has replaced all of them
        if instance in self._facts.allocations.get(unit.rp_uuid, {}):
            return False
        nova_instance = self._facts.instances.get(instance)
        if nova_instance is None:
            return instance in self._facts.instances
        return not self._is_here(nova_instance)

    def _find_contradiction(
        self, instance: str, arqs: Sequence[RebuiltArq], prepared: Sequence[StoredUnit]
    ) -> str:
        """Return why the units of the ARQs are not certain; empty: they are.

        :param prepared: the units that the host has prepared for the instance
        """
        for provider in sorted({arq.rp_uuid for arq in arqs}):
            of_provider = [arq for arq in arqs if arq.rp_uuid == provider]
            if any(arq.needs_unit and arq.unit is None for arq in of_provider):
                return self._explain_lack(provider)
        if len(prepared) > sum(arq.handle is not None for arq in arqs):
            return 'Its host has prepared more units than Placement has allocated.'
        for item in self._list_replaced(instance, arqs):
            if item.instance_uuid and item.state not in STATES_WITH_INSTANCE:
                return f'ARQ {item.uuid} is in state {item.state}: wait for its end.'
        return self._find_other_owner(arqs)

    def _find_other_owner(self, arqs: Sequence[RebuiltArq]) -> str:
        """Return why the database contradicts a unit; empty: it does not."""
        units = {arq.unit.uuid for arq in arqs if arq.unit is not None}
        names = {arq.uuid for arq in arqs}
        names |= {arq.handle.uuid for arq in arqs if arq.handle is not None}
        for unit in self._facts.units:
            is_chosen = unit.uuid in units
            if is_chosen and unit.arq_uuid and not self._is_outdated(unit):
                return (
                    f'ARQ {unit.arq_uuid} of instance {unit.instance_uuid} owns unit '
                    f'{unit.key} in the database, and neither Nova nor Placement says '
                    'that the instance has left it.'
                )
            if not is_chosen and names & {unit.arq_uuid, unit.uuid}:
                return f'Unit {unit.key} has the same ARQ or uuid in the database.'
        return ''

    def _explain_lack(self, provider: str) -> str:
        units = self._units[provider]
        name = units[0].deployable_name if units else provider
        if any(unit.needs_host for unit in units):
            return f'Its host has not prepared all units that are allocated on {name}.'
        return (
            f'The host does not say which unit of {name} it uses: '
            f'{len(self._list_candidates(provider))} units and '
            f'{len(self._list_users(provider))} instances come into question.'
        )

    def _list_replaced(
        self, instance: str, arqs: Sequence[RebuiltArq]
    ) -> list[StoredArq]:
        """Return the ARQs of the database that an instance does not have any more."""
        arq_uuids = {arq.uuid for arq in arqs}
        return [
            item
            for item in self._facts.arqs
            if item.instance_uuid == instance or item.uuid in arq_uuids
        ]

    # --- units whose instance is not known ---

    def hold(self, step: RecoveryStep) -> RecoveryStep | None:
        """Return a step that holds all units that an instance may use, if any."""
        if step.action is RecoveryAction.REBUILD:
            return None
        amounts = self._facts.find_amounts(step.instance_uuid)
        units = [
            unit
            for provider in sorted(amounts)
            for unit in self._list_candidates(provider)
            if unit.is_free and not unit.needs_host
        ]
        if not units:
            return None
        self._taken_uuids |= {unit.uuid for unit in units}
        return replace(
            step,
            action=RecoveryAction.HOLD,
            reason=f'Instance {step.instance_uuid} may use one of these units.',
            units=tuple(units),
        )

    def free(self) -> Iterator[RecoveryStep]:
        """Yield a step for each provider whose held units nobody can use any more."""
        for provider, units in sorted(self._units.items()):
            units_on_hold = tuple(
                u for u in units if u.is_held and u.uuid not in self._taken_uuids
            )
            if units_on_hold and not self._list_users(provider):
                reason = 'No allocation without an ARQ needs these units any more.'
                yield self._build_step(RecoveryAction.FREE, reason, units_on_hold)

    def clean(self) -> Iterator[RecoveryStep]:
        """Yield a step for the free units that may have data of a lost use."""
        units = tuple(
            unit
            for unit in self._facts.units
            if unit.is_free
            and unit.cleaning is not CleaningPolicy.NEVER
            and unit.uuid not in self._taken_uuids
            and (unit.deployable_name, unit.key) not in self._prepared
        )
        if units and self._facts.is_quarantined:
            reason = 'The database may lack a use of these units.'
            yield self._build_step(RecoveryAction.CLEAN, reason, units)

    def report_unknown(self) -> Iterator[RecoveryStep]:
        """Yield what the agent does not say, and handles that nothing explains."""
        is_silent = self._facts.prepared is None
        if is_silent and any(unit.needs_host for unit in self._facts.units):
            reason = 'The agent of the host does not answer.'
            yield self._build_step(RecoveryAction.NONE, reason)
        units = {(unit.deployable_name, unit.key): unit for unit in self._facts.units}
        for handle in self._facts.prepared or ():
            unit = units.get(handle.unit)
            reason = ''
            if unit is None:
                reason = f'No device of the host has unit {handle.key}.'
            elif not handle.instance_uuid and unit.arq_uuid != handle.arq_uuid:
                reason = 'The host does not know the instance of the unit.'
            if reason:
                reason = f'{reason} It stays prepared for ARQ {handle.arq_uuid}.'
                members, instance = (unit,) if unit else (), handle.instance_uuid
                yield self._build_step(RecoveryAction.NONE, reason, members, instance)


# --- groups and providers ---


def _assign_groups(
    profile: ProfileOptions,
    amounts: Amounts,
    units: Mapping[str, Sequence[StoredUnit]],
) -> tuple[tuple[int, str], ...] | None:
    """Return the option and the provider of each group.

    All groups together request exactly what is allocated. Nova takes the units of a
    group from one provider. Providers with the traits of the group come first: an
    operator may have removed a trait since.

    :returns: None: no assignment fits
    """
    remaining = Counter[tuple[str, str]]()
    for provider, by_class in amounts.items():
        for name, amount in by_class.items():
            remaining[provider, name] = amount
    traits = {
        provider: frozenset(rows[0].traits) if rows else frozenset()
        for provider, rows in units.items()
    }
    trials = iter(range(_MAX_TRIALS))

    def search(index: int) -> tuple[tuple[int, str], ...] | None:
        if index == len(profile.groups):
            return None if any(remaining.values()) else ()
        for option, provider, name, amount in _list_options(
            profile.groups[index], remaining, traits
        ):
            if next(trials, None) is None:
                return None
            remaining[provider, name] -= amount
            following = search(index + 1)
            remaining[provider, name] += amount
            if following is not None:
                return ((option, provider), *following)
        return None

    return search(0)


def _list_options(
    options: Iterable[Mapping[str, str]],
    remaining: Mapping[tuple[str, str], int],
    traits: Mapping[str, frozenset[str]],
) -> list[tuple[int, str, str, int]]:
    """Return option, provider, resource class and amount of a group, best first."""
    fitting = []
    for number, keys in enumerate(options):
        requirements = Group.parse(keys).requirements
        if len(requirements.amounts) != 1:
            continue
        ((name, amount),) = requirements.amounts
        for (provider, resource_class), free_amount in sorted(remaining.items()):
            if resource_class == name and free_amount >= amount:
                own = traits.get(provider, frozenset())
                faults = len(requirements.required - own | requirements.forbidden & own)
                fitting.append((faults, number, provider, name, amount))
    return [item[1:] for item in sorted(fitting)]
