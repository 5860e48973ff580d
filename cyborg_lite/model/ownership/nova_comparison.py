# SPDX-License-Identifier: Apache-2.0
"""Comparison of the ownership file with the configuration of Nova.

Only entries that name a card are compared: an entry of Nova with ids matches a card
whose rule states the ids, and an entry with addresses a card whose rule states the
address. The agent compares the rest, because it reads both from the card.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from cyborg_lite.model.ownership.nova_config import (
    NovaConfig,
    NovaDeviceClaim,
    NovaPciFunction,
)
from cyborg_lite.model.ownership.plan import (
    ANY_CARD,
    Owner,
    OwnershipPlan,
    OwnershipProblem,
    OwnershipRule,
)

# Fields of a device spec that a rule with an address or with ids is compared with.
_ADDRESS_FIELDS: Final = frozenset({'address'})
_ID_FIELDS: Final = frozenset({'vendor_id', 'product_id'})
_NO_ADDRESS: Final = '0000:00:00.0'
_NO_ID: Final = '0000'


def check_nova_config(
    plan: OwnershipPlan, hostname: str, config: NovaConfig
) -> tuple[OwnershipProblem, ...]:
    """Return the differences between the plan and the configuration of Nova.

    :param hostname: the host whose nova-compute has the configuration
    """
    return (
        *(_problem(hostname, '', '', text) for text in _mistakes(config)),
        *_check_rules(plan, hostname, config),
    )


def _problem(hostname: str, card: str, owner: str, reason: str) -> OwnershipProblem:
    return OwnershipProblem(hostname, card, owner, reason)


def _mistakes(config: NovaConfig) -> Iterator[str]:
    for entry in config.mistakes:
        yield f'The configuration of Nova has an invalid entry: {entry}.'


def _check_rules(
    plan: OwnershipPlan, hostname: str, config: NovaConfig
) -> Iterator[OwnershipProblem]:
    for rule in plan.list_rules(hostname):
        if rule.card == ANY_CARD:
            continue
        claims = [claim for claim in config.claims if _names(claim, rule)]
        reason = _find_fault(rule, claims)
        if reason:
            yield _problem(hostname, rule.card, rule.owner, reason)


def _find_fault(rule: OwnershipRule, claims: Sequence[NovaDeviceClaim]) -> str:
    """Return why the entries of Nova contradict a rule, or an empty string."""
    if rule.owner is not Owner.NOVA:
        entry = claims[0].source if claims else ''
        return f'The configuration of Nova contains {entry}.' if entry else ''
    if not rule.vgpu_type:
        pci_claims = [claim for claim in claims if claim.spec is not None]
        return '' if pci_claims else 'No [pci] device_spec of Nova contains the card.'
    divided = [claim for claim in claims if claim.mdev_type == rule.vgpu_type]
    if not divided:
        return f'Nova does not create vGPUs of type {rule.vgpu_type} on the card.'
    classes = {claim.resource_class for claim in divided}
    if rule.vgpu_class not in classes:
        return (
            f'[mdev_{rule.vgpu_type}] mdev_class of Nova is {classes.pop()} and not '
            f'{rule.vgpu_class}.'
        )
    return ''


def _names(claim: NovaDeviceClaim, rule: OwnershipRule) -> bool:
    """Check whether an entry of Nova names the card of a rule."""
    if claim.spec is None:
        if claim.addresses:
            return rule.card in claim.addresses
        # The type is for all cards that support it, as far as they are for Nova.
        return rule.owner is Owner.NOVA and rule.vgpu_type == claim.mdev_type
    if rule.is_address:
        fields, function = _ADDRESS_FIELDS, NovaPciFunction(rule.card, _NO_ID, _NO_ID)
    else:
        vendor, _, product = rule.card.partition(':')
        fields, function = _ID_FIELDS, NovaPciFunction(_NO_ADDRESS, vendor, product)
    spec = {field: value for field, value in claim.spec.items() if field in fields}
    return bool(spec) and NovaDeviceClaim(claim.source, spec).covers(function)
