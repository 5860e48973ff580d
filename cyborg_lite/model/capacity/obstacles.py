# SPDX-License-Identifier: Apache-2.0
"""Obstacles between a group of a device profile and the present providers.

One provider serves a whole group, because Nova sends each group to Placement as one
request group.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from cyborg_lite.model.capacity.explanations import (
    GroupCandidates,
    ProviderCapacity,
    Reason,
    ReasonCode,
)
from cyborg_lite.model.devices.cleaning import CleanState, UncleanUnit
from cyborg_lite.model.profiles.device_profiles import GroupRequirements
from cyborg_lite.model.profiles.selectors import TRAIT_PREFIX

_MAX_NAMED: Final = 3  # units of one provider that a reason names


def can_serve_now(group: GroupCandidates, provider: ProviderCapacity) -> bool:
    """Check whether the provider can serve the group now."""
    is_offered = provider.rp_uuid in group.offers and provider.closed is None
    if group.for_guest and provider.closed_for_guest is not None:
        return False
    is_offered &= provider.rp_uuid not in group.refusals
    return is_offered and provider.free_handles >= group.requirements.handle_count


def can_serve_when_free(group: GroupCandidates, provider: ProviderCapacity) -> bool:
    """Check whether the provider could serve the group if all its units were free."""
    ((name, amount),) = group.requirements.amounts
    is_enough = provider.resource_class == name and provider.total >= amount
    is_loadable = provider.rp_uuid not in group.refusals
    return is_enough and is_loadable and _has_matching_traits(group, provider)


def _has_matching_traits(group: GroupCandidates, provider: ProviderCapacity) -> bool:
    # Operators may add traits in Placement, which are not in the database.
    required, forbidden = group.requirements.required, group.requirements.forbidden
    is_match = required <= provider.traits and not forbidden & provider.traits
    return is_match or provider.rp_uuid in group.trait_matches


def check_single_class(requirements: GroupRequirements, index: int) -> Reason | None:
    """Return a reason if the group requests several resource classes."""
    if len(requirements.amounts) == 1:
        return None
    names = ' and '.join(requirements.resource_classes)
    text = f'No provider has {names} together. Use a separate group for each class.'
    return Reason(ReasonCode.SEVERAL_CLASSES, text, index)


def explain_provider(
    index: int, group: GroupCandidates, provider: ProviderCapacity
) -> Reason:
    """Return the first obstacle for a provider of the right resource class."""
    code, text, traits = next(_list_obstacles(group, provider))
    (name,) = group.requirements.resource_classes
    return Reason(code, text, index, name, traits, (provider.name,))


def _list_obstacles(
    group: GroupCandidates, provider: ProviderCapacity
) -> Iterator[tuple[ReasonCode, str, tuple[str, ...]]]:
    """Yield code, text and traits of the obstacles, the most direct one first."""
    requirements = group.requirements
    ((name, amount),) = requirements.amounts
    if provider.rp_uuid in group.refusals:
        yield ReasonCode.IMAGE_REFUSED, group.refusals[provider.rp_uuid], ()
    if not _has_matching_traits(group, provider):
        yield _find_trait_obstacle(requirements, provider)
    if provider.total < amount:
        text = f'It has {provider.total} {name}, but one provider must serve {amount}.'
        yield ReasonCode.TOO_FEW_UNITS, text, ()
    if provider.closed is not None:
        yield provider.closed, provider.closed_text, ()
    if group.for_guest and provider.closed_for_guest is not None:
        yield provider.closed_for_guest, provider.closed_for_guest_text, ()
    if provider.free < amount or provider.free_handles < requirements.handle_count:
        free = min(provider.free, provider.free_handles)
        text = f'{free} of {provider.total} units are free, {amount} are requested.'
        yield ReasonCode.NO_FREE_UNIT, text + _describe_occupied(provider), ()
    text = (
        'Placement does not offer the provider. Its inventory is not updated yet, or '
        'it has allocations, reservations or traits that this service did not create.'
    )
    yield ReasonCode.NOT_OFFERED, text, ()


def _find_trait_obstacle(
    requirements: GroupRequirements, provider: ProviderCapacity
) -> tuple[ReasonCode, str, tuple[str, ...]]:
    missing = tuple(sorted(requirements.required - provider.traits))
    if missing:
        text = f'It lacks trait {", ".join(missing)}.'
        if all(trait.startswith(TRAIT_PREFIX) for trait in missing):
            text = 'It does not match the selector of the group.'
        return ReasonCode.MISSING_TRAIT, text, missing
    present = tuple(sorted(requirements.forbidden & provider.traits))
    text = f'It has the forbidden trait {", ".join(present)}.'
    return ReasonCode.FORBIDDEN_TRAIT, text, present


def _describe_occupied(provider: ProviderCapacity) -> str:
    """Return sentences about units that are allocated elsewhere or not clean."""
    text = f' Consumers without an ARQ have allocated {provider.unowned}.'
    texts = [text] if provider.unowned else []
    if provider.unfitting:
        text = 'do not fit beside those in use, or whose group is not complete'
        texts.append(f' Units that {text}: {provider.unfitting}.')
    texts += [f' {_describe_unit(unit)}' for unit in provider.unclean[:_MAX_NAMED]]
    further = len(provider.unclean) - _MAX_NAMED
    if further > 0:
        texts.append(f' Further units that are not clean: {further}.')
    return ''.join(texts)


def _describe_unit(unit: UncleanUnit) -> str:
    reason = unit.reason.rstrip('.')
    match unit.state:
        case CleanState.FAILED:
            text = f'Unit {unit.unit} is clean_failed and waits for an operator'
        case CleanState.USED:
            text = f'Unit {unit.unit} was for one use and waits for an operator'
        case CleanState.OCCUPIED:
            text = f'Unit {unit.unit} is prepared on its host, but no ARQ owns it'
        case _ if unit.progress:
            text = f'Unit {unit.unit} is being cleaned, at step {unit.progress}'
        case _:
            text = f'Unit {unit.unit} waits for its clean'
    return f'{text}: {reason}.' if reason else f'{text}.'


def explain_all_providers(
    index: int, group: GroupCandidates, providers: Sequence[ProviderCapacity]
) -> Reason | None:
    """Return the obstacle for all providers, even if free; None if one could serve."""
    requirements = group.requirements
    mixture = check_single_class(requirements, index)
    if mixture is not None:
        return mixture
    ((name, amount),) = requirements.amounts
    of_class = [item for item in providers if item.resource_class == name]
    if not of_class:
        text = f'No host has any {name}.'
        if name == 'GPU':
            text = 'Placement has no resource class GPU: request PGPU or VGPU.'
        return Reason(ReasonCode.MISSING_CLASS, text, index, name)
    loadable = [item for item in of_class if item.rp_uuid not in group.refusals]
    if not loadable:
        refusal = group.refusals[of_class[0].rp_uuid]
        text = f'No {name} can load the bitstream. {refusal}'
        return Reason(ReasonCode.IMAGE_REFUSED, text, index, name)
    matching = [item for item in loadable if _has_matching_traits(group, item)]
    if not matching:
        return _explain_traits(index, requirements, loadable)
    largest = max(provider.total for provider in matching)
    if largest < amount:
        text = (
            f'The group requests {amount} {name}. One provider serves a whole group, '
            f'and the largest that fits has {largest}. Split the group.'
        )
        return Reason(ReasonCode.TOO_FEW_UNITS, text, index, name)
    return None


def _explain_traits(
    index: int, requirements: GroupRequirements, providers: Sequence[ProviderCapacity]
) -> Reason:
    (name,) = requirements.resource_classes
    present = frozenset[str]().union(*(provider.traits for provider in providers))
    missing = tuple(sorted(requirements.required - present))
    if missing:
        text = f'No provider of {name} has trait {", ".join(missing)}.'
        if all(trait.startswith(TRAIT_PREFIX) for trait in missing):
            text = (
                f'No provider of {name} matches the selector of the group or what its '
                f'units must share.'
            )
        return Reason(ReasonCode.MISSING_TRAIT, text, index, name, missing)
    if requirements.required:
        text = f'No provider of {name} has all required traits and no forbidden trait.'
        required = tuple(sorted(requirements.required))
        return Reason(ReasonCode.MISSING_TRAIT, text, index, name, required)
    text = f'Every provider of {name} has a forbidden trait.'
    forbidden = tuple(sorted(requirements.forbidden))
    return Reason(ReasonCode.FORBIDDEN_TRAIT, text, index, name, forbidden)
