# SPDX-License-Identifier: Apache-2.0
"""Effects of changes of hardware that are not made: what vanishes and what appears."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cyborg_lite.db.present_hardware import PresentDevice
from cyborg_lite.model.device_errors import ModeRefused
from cyborg_lite.model.explanations import ProviderCapacity, ReasonCode
from cyborg_lite.model.forecasting import AssumedProvider
from cyborg_lite.model.forecasts import ChangeEffect, NewDevice
from cyborg_lite.model.inventory import HandleType
from cyborg_lite.model.jobs import JobState
from cyborg_lite.model.modes import DevicePlan, OfferedInventory
from cyborg_lite.model.providers import valid_symbol
from cyborg_lite.model.services import ServiceState
from cyborg_lite.model.traits import OWNER_CYBORG
from cyborg_lite.model.typed_attributes import OF_ONE_CARD

_MAX_NAMED: Final = 10  # ARQs that a warning names


@dataclass(frozen=True, slots=True)
class AssumedChange:
    """The effect of one change, with its providers."""

    effect: ChangeEffect
    removed: tuple[str, ...] = ()  # uuids of providers
    added: tuple[AssumedProvider, ...] = ()


def remove_device(device: PresentDevice) -> AssumedChange:
    """Return the effect of the removal of a device."""
    warnings = _warn_used(device, 'They lose the device.')
    effect = ChangeEffect(
        device.hostname,
        device.uuid,
        vanishes=tuple(offer for _, offer in device.providers),
        warnings=warnings,
    )
    return AssumedChange(effect, tuple(uuid for uuid, _ in device.providers))


def change_mode(
    device: PresentDevice,
    plan: DevicePlan,
    mode: str,
    present: Mapping[str, ProviderCapacity],
) -> AssumedChange:
    """Return the effect of another mode of a device.

    :param present: capacities by uuid of the provider
    :raises ModeRefused: the device has no such mode, or its inventory is changing
    """
    target = plan.find(mode)
    if target is None:
        names = ', '.join(item.mode for item in plan.plans) or 'none'
        reason = f'it has no such mode. Its modes: {names}.'
        raise ModeRefused(uuid=device.uuid, mode=mode, reason=reason)
    if plan.change is not None and plan.change.state != JobState.FAILED:
        reason = 'its mode is being changed already.'
        raise ModeRefused(uuid=device.uuid, mode=mode, reason=reason)
    removed = _find_vanishing(device, target.vanishes)
    if removed is None:
        reason = 'the database does not have its present inventory yet. Retry later.'
        raise ModeRefused(uuid=device.uuid, mode=mode, reason=reason)
    hint = 'The mode can change after they are deleted, and the forecast is for then.'
    effect = ChangeEffect(
        device.hostname,
        device.uuid,
        mode,
        target.appears,
        target.vanishes,
        _warn_used(device, hint),
    )
    added = tuple(
        _assume_offer(device, f'{device.uuid}/{index}', offer, present)
        for index, offer in enumerate(target.appears)
    )
    return AssumedChange(effect, removed, added)


def _find_vanishing(
    device: PresentDevice, vanishes: Sequence[OfferedInventory]
) -> tuple[str, ...] | None:
    """Return the providers that vanish; None: the database lacks one of them."""
    missing = Counter(vanishes)
    removed = []
    for uuid, offer in device.providers:
        if missing[offer]:
            missing[offer] -= 1
            removed.append(uuid)
    return None if missing.total() else tuple(removed)


def _assume_offer(
    device: PresentDevice,
    key: str,
    offer: OfferedInventory,
    present: Mapping[str, ProviderCapacity],
) -> AssumedProvider:
    """Return a provider of a device in another mode.

    The agent does not report the typed attributes in that mode, nor the type of the
    attach handles. Handles of a resource class that the device has now keep their
    type. All others count as of every type that Nova might refuse.
    """
    similar = [
        present[uuid]
        for uuid, item in device.providers
        if item.resource_class == offer.resource_class and uuid in present
    ]
    capacity = replace(
        _build_capacity(key, device.hostname, offer),
        closed=device.closed,
        closed_text=device.closed_text,
        has_mdev=not similar or any(item.has_mdev for item in similar),
        has_unmanaged=not similar or any(item.has_unmanaged for item in similar),
    )
    return AssumedProvider(
        capacity, device.attributes, device.is_reliable, has_known_handles=bool(similar)
    )


def add_devices(
    number: int, device: NewDevice, hosts: Collection[str], states: Mapping[str, str]
) -> AssumedChange:
    """Return the effect of new devices.

    :param number: of the change, which distinguishes its providers
    :param hosts: that the service knows
    :param states: of the agents, by host
    """
    is_known = device.hostname in hosts
    state = states.get(device.hostname) if is_known else ServiceState.UP
    offers = [
        OfferedInventory(name, total, tuple(sorted(device.traits)))
        for name, total in sorted(device.amounts.items())
    ] * device.count
    attributes = (*OF_ONE_CARD, *device.attributes)
    added = []
    for index, offer in enumerate(offers):
        capacity = _build_capacity(f'{number}/{index}', device.hostname, offer)
        has_mdev = device.handle_type is HandleType.MDEV
        capacity = replace(capacity, has_mdev=has_mdev)
        if state == ServiceState.DOWN:
            text = 'The agent of the host is down.'
            code = ReasonCode.HOST_SILENT
            capacity = replace(capacity, closed=code, closed_text=text)
        added.append(AssumedProvider(capacity, attributes, state == ServiceState.UP))
    warnings: tuple[str, ...] = ()
    if not is_known:
        warnings = ('The service does not know the host: a new host is assumed.',)
    elif state != ServiceState.UP:
        warnings = ('The agent of the host is not up.',)
    effect = ChangeEffect(device.hostname, appears=tuple(offers), warnings=warnings)
    return AssumedChange(effect, (), tuple(added))


def _build_capacity(
    key: str, hostname: str, offer: OfferedInventory
) -> ProviderCapacity:
    """Return the capacity of a new provider, all of whose units are free.

    :param key: stands for the uuid, which the provider does not have yet
    """
    return ProviderCapacity(
        rp_uuid=f'new/{key}',
        name=f'{hostname} (new)',
        hostname=hostname,
        resource_class=valid_symbol(offer.resource_class),
        traits=frozenset(map(valid_symbol, offer.traits)) | {OWNER_CYBORG},
        total=offer.total,
        free=offer.total,
        free_handles=offer.total,
    )


def _warn_used(device: PresentDevice, hint: str) -> tuple[str, ...]:
    if not device.arqs:
        return ()
    names = ', '.join(device.arqs[:_MAX_NAMED])
    further = len(device.arqs) - _MAX_NAMED
    if further > 0:
        names += f' and {further} more'
    return (f'ARQs use the device: {names}. {hint}',)
