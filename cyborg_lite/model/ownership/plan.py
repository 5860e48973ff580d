# SPDX-License-Identifier: Apache-2.0
"""Statement of the operator which service owns each card.

It is a mapping of hosts to mappings of cards to owners. The first host that matches and
has a matching card decides. ``*`` in a host name or for a card matches any text:

    compute-1:
      0000:3b:00.0: nova
      0000:af:00.0: {owner: cyborg, vgpu_type: nvidia-231}
    gpu-*:
      10de:1eb8: {owner: nova, vgpu_type: nvidia-222, resource_class: CUSTOM_NOVA_VGPU}
      "*": cyborg
"""

import enum
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from cyborg_lite.errors.daemons import ConfigurationError

# --- devices as agents report them, and the configuration that moves one ---


@dataclass(frozen=True, slots=True)
class OwnedDevice:
    """A reported device, and the other service that manages it."""

    hostname: str
    address: str
    vendor: str  # for PCI devices four hex digits, like the product
    product: str
    model: str
    driver: str
    conflict: str  # empty: no other service
    schedulable: bool  # False: its driver does not offer it
    reason: str  # of the health
    resource_classes: tuple[str, ...] = ()

    @property
    def has_vgpus(self) -> bool:
        """Check whether this service divides the card into vGPUs."""
        return any('VGPU' in name for name in self.resource_classes)

    @property
    def ids(self) -> str:
        """Vendor and product, as ``vendor:product``."""
        return f'{self.vendor}:{self.product}'

    @property
    def owner(self) -> str:
        """The owner as shown to operators."""
        if self.conflict:
            return 'both'
        return 'this service' if self.schedulable else 'nobody'

    @property
    def owner_reason(self) -> str:
        """Reason for a conflict, or why the device is not offered."""
        return self.conflict or ('' if self.schedulable else self.reason)


def config_lines_for_cyborg(device: OwnedDevice) -> tuple[tuple[str, str], ...]:
    """Return the settings that give the device to this service, by file."""
    lines = (
        ('nova.conf', f'no [pci] device_spec that fits {device.address}'),
        ('nova.conf', 'no [devices] enabled_mdev_types that the card can carry'),
        ('cyborg-lite.conf', f'no {device.address} in [agent] excluded_devices'),
    )
    if not device.has_vgpus:
        return lines
    own_class = 'vgpu_resource_class = CUSTOM_CYBORG_VGPU, if Nova has vGPUs as well'
    return (*lines, ('cyborg-lite.conf', f'[nvidia_gpu_driver] {own_class}'))


ANY_CARD: Final = '*'
"""The card of a rule for all cards."""

_ADDRESS: Final = re.compile(r'[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]')
_IDS: Final = re.compile(r'[0-9a-f]{4}:[0-9a-f]{4}')
_FIELDS: Final = frozenset({'owner', 'vgpu_type', 'resource_class'})
_VGPU: Final = 'VGPU'


class Owner(enum.StrEnum):
    """Owner of a card."""

    CYBORG = 'cyborg'  # this service
    NOVA = 'nova'
    NOBODY = 'nobody'


@dataclass(frozen=True, slots=True)
class OwnershipRule:
    """The owner of the cards of a host that match."""

    host: str  # may contain `*`
    card: str  # address, `vendor:product` or `*`
    owner: Owner
    vgpu_type: str = ''  # empty: the whole card
    resource_class: str = ''  # of the vGPUs; empty: VGPU

    @property
    def is_address(self) -> bool:
        """Return True if the rule names one card."""
        return _ADDRESS.fullmatch(self.card) is not None

    @property
    def vgpu_class(self) -> str:
        """Resource class of the vGPUs of the card; empty if it is not divided."""
        return (self.resource_class or _VGPU) if self.vgpu_type else ''

    def covers_host(self, hostname: str) -> bool:
        """Check whether the rule concerns a host."""
        return fnmatchcase(hostname, self.host)

    def covers(self, hostname: str, address: str, ids: str) -> bool:
        """Check whether the rule concerns a card.

        :param ids: ``vendor:product`` in hex digits
        """
        names = (ANY_CARD, address.lower(), ids.lower())
        return self.covers_host(hostname) and self.card in names


@dataclass(frozen=True, slots=True)
class OwnershipPlan:
    """The rules, in order. An empty plan states nothing."""

    rules: tuple[OwnershipRule, ...] = ()

    def find_rule(self, hostname: str, address: str, ids: str) -> OwnershipRule | None:
        """Return the first rule for a card, or None if no owner is stated."""
        matches = (r for r in self.rules if r.covers(hostname, address, ids))
        return next(matches, None)

    def list_rules(self, hostname: str) -> tuple[OwnershipRule, ...]:
        """Return the rules for a host, one for each card."""
        rules: dict[str, OwnershipRule] = {}
        for rule in self.rules:
            if rule.covers_host(hostname):
                rules.setdefault(rule.card, rule)
        return tuple(rules.values())


def parse_plan(content: object) -> OwnershipPlan:
    """Return the plan in the content of a file. All scalars are strings.

    :raises ConfigurationError: the content is not a valid plan
    """
    rules = tuple(_parse_hosts(content or {}))
    for rule in rules:
        if rule.owner is Owner.NOVA and rule.card == ANY_CARD:
            reason = f'host {rule.host}: Nova needs the address or ids of its cards.'
            raise _error(reason)
    return OwnershipPlan(rules)


def _parse_hosts(content: object) -> Iterator[OwnershipRule]:
    for host, cards in _items(content, 'the file'):
        for card, value in _items(cards, f'host {host}'):
            yield _parse_card(host, card.lower(), value)


def _parse_card(host: str, card: str, value: object) -> OwnershipRule:
    subject = f'host {host}, card {card}'
    if not (card == ANY_CARD or _ADDRESS.fullmatch(card) or _IDS.fullmatch(card)):
        raise _error(f'{subject}: use a PCI address, vendor:product or "*".')
    fields = {'owner': value} if isinstance(value, str) else _items(value, subject)
    texts = {name: str(text) for name, text in dict(fields).items()}
    unknown = ', '.join(sorted(texts.keys() - _FIELDS))
    if unknown:
        raise _error(f'{subject}: unknown key {unknown}.')
    try:
        owner = Owner(texts.pop('owner', ''))
    except ValueError:
        owners = ', '.join(Owner)
        raise _error(f'{subject}: the owner must be one of {owners}.') from None
    return OwnershipRule(host, card, owner, **texts)


def _items(value: object, subject: str) -> list[tuple[str, object]]:
    if not isinstance(value, Mapping):
        raise _error(f'{subject} must contain a mapping.')
    return [(str(key), item) for key, item in value.items()]


def _error(reason: str) -> ConfigurationError:
    return ConfigurationError(reason=f'Ownership file: {reason}')


# --- comparison with the devices ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OwnershipProblem:
    """A card whose owner differs from the plan, or a host with a conflict."""

    hostname: str
    address: str  # empty: the host as a whole
    owner: str  # as stated; empty: none
    reason: str


def check_devices(
    plan: OwnershipPlan, devices: Iterable[OwnedDevice], hosts: Iterable[str]
) -> tuple[OwnershipProblem, ...]:
    """Return the differences between the plan and the devices that agents report.

    :param hosts: the hosts to check
    """
    reported = list(devices)
    problems: list[OwnershipProblem] = []
    for hostname in hosts:
        own = [device for device in reported if device.hostname == hostname]
        problems += _check_host(plan, hostname, own)
    return tuple(problems)


def _check_host(
    plan: OwnershipPlan, hostname: str, devices: Iterable[OwnedDevice]
) -> Iterator[OwnershipProblem]:
    by_address = {device.address.lower(): device for device in devices}
    for address, device in by_address.items():
        rule = plan.find_rule(hostname, address, device.ids)
        owner, reason = (rule.owner if rule else ''), _find_fault(rule, device)
        if reason:
            yield OwnershipProblem(hostname, address, owner, reason)
    for rule in plan.rules:
        is_named = rule.host == hostname and rule.is_address
        if is_named and rule.owner is Owner.CYBORG and rule.card not in by_address:
            reason = 'The agent does not report the card.'
            yield OwnershipProblem(hostname, rule.card, rule.owner, reason)
    shared = _find_shared_class(plan, hostname)
    if shared:
        yield OwnershipProblem(hostname, '', '', shared)


def _find_fault(rule: OwnershipRule | None, device: OwnedDevice) -> str:
    """Return why a reported device contradicts its rule, or an empty string."""
    if rule is None:
        return 'The file states no owner.'
    if rule.owner is not Owner.CYBORG:
        return (
            'This service reports the card. Set [agent] ownership_file or '
            'excluded_devices on the host.'
        )
    if device.schedulable and rule.vgpu_class not in ('', *device.resource_classes):
        classes = ' and '.join(device.resource_classes)
        return f'This service offers it as {classes} and not as {rule.vgpu_class}.'
    return device.owner_reason


def _find_shared_class(plan: OwnershipPlan, hostname: str) -> str:
    rules = plan.list_rules(hostname)
    classes = [
        {rule.vgpu_class for rule in rules if rule.owner is owner} - {''}
        for owner in (Owner.CYBORG, Owner.NOVA)
    ]
    shared = ' and '.join(sorted(classes[0] & classes[1]))
    if not shared:
        return ''
    return (
        f'Both services have vGPUs of class {shared}. Nova takes all allocations of a '
        'class as its own. Set resource_class for one of them.'
    )


# --- configuration of both services for the cards of a plan ---


NOVA_FILE: Final = 'nova.conf'
OWN_FILE: Final = 'cyborg-lite.conf'
FLAVORS: Final = 'flavors'
"""Commands for the flavors of Nova, instead of a file."""

_DRIVER: Final = 'nvidia_gpu_driver'


@dataclass(frozen=True, slots=True)
class ConfigLine:
    """A line of a configuration file, or a command."""

    file: str
    section: str  # empty: the line is a command
    text: str


def build_config(rules: Sequence[OwnershipRule]) -> tuple[ConfigLine, ...]:
    """Return the lines for a host, by file and section.

    :param rules: rules for the host
    """
    of_nova = [rule for rule in rules if rule.owner is Owner.NOVA]
    own = [rule for rule in rules if rule.owner is Owner.CYBORG]
    return (
        *_pci_lines(rule for rule in of_nova if not rule.vgpu_type),
        *_mdev_lines([rule for rule in of_nova if rule.vgpu_type]),
        *_exclusion_lines(rule for rule in rules if rule.owner is not Owner.CYBORG),
        *_driver_lines([rule for rule in own if rule.vgpu_type]),
        *_flavor_lines([rule for rule in of_nova if rule.vgpu_type]),
    )


def _pci_lines(rules: Iterable[OwnershipRule]) -> Iterator[ConfigLine]:
    for rule in rules:
        vendor, _, product = rule.card.partition(':')
        spec = {'vendor_id': vendor, 'product_id': product}
        if rule.is_address:
            spec = {'address': rule.card}
        yield ConfigLine(NOVA_FILE, 'pci', f'device_spec = {json.dumps(spec)}')


def _mdev_lines(rules: Sequence[OwnershipRule]) -> Iterator[ConfigLine]:
    by_type: dict[str, list[OwnershipRule]] = defaultdict(list)
    for rule in rules:
        by_type[rule.vgpu_type].append(rule)
    if by_type:
        types = ', '.join(by_type)
        yield ConfigLine(NOVA_FILE, 'devices', f'enabled_mdev_types = {types}')
    for vgpu_type, of_type in by_type.items():
        section = f'mdev_{vgpu_type}'
        addresses = ', '.join(rule.card for rule in of_type if rule.is_address)
        if addresses:
            yield ConfigLine(NOVA_FILE, section, f'device_addresses = {addresses}')
        for name in dict.fromkeys(rule.resource_class for rule in of_type):
            if name:
                yield ConfigLine(NOVA_FILE, section, f'mdev_class = {name}')


def _exclusion_lines(rules: Iterable[OwnershipRule]) -> Iterator[ConfigLine]:
    cards = ', '.join(dict.fromkeys(rule.card for rule in rules))
    if cards:
        yield ConfigLine(OWN_FILE, 'agent', f'excluded_devices = {cards}')


def _driver_lines(rules: Sequence[OwnershipRule]) -> Iterator[ConfigLine]:
    pairs = ', '.join(f'{rule.card} = {rule.vgpu_type}' for rule in rules)
    if pairs:
        yield ConfigLine(OWN_FILE, _DRIVER, f'vgpu_types = {pairs}')
    for name in dict.fromkeys(rule.resource_class for rule in rules):
        if name:
            yield ConfigLine(OWN_FILE, _DRIVER, f'vgpu_resource_class = {name}')


def _flavor_lines(rules: Sequence[OwnershipRule]) -> Iterator[ConfigLine]:
    """Yield the commands that keep other flavors off providers of this service."""
    for name in dict.fromkeys(rule.vgpu_class for rule in rules):
        properties = f'resources:{name}=1 --property trait:OWNER_CYBORG=forbidden'
        command = f'openstack flavor set FLAVOR --property {properties}'
        yield ConfigLine(FLAVORS, '', command)


def config_lines_for_nova(device: OwnedDevice) -> tuple[tuple[str, str], ...]:
    """Return the lines that give a device to Nova only, by file.

    TYPE stands for the vGPU type. A class of its own separates the vGPUs of Nova from
    those of this service.
    """
    vgpus = ('TYPE', 'CUSTOM_NOVA_VGPU') if device.has_vgpus else ()
    rule = OwnershipRule(device.hostname, device.address, Owner.NOVA, *vgpus)
    lines = [
        (line.file, f'[{line.section}] {line.text}' if line.section else line.text)
        for line in build_config([rule])
    ]
    if not device.has_vgpus:
        ids = {'vendor_id': device.vendor, 'product_id': device.product}
        alias = {**ids, 'name': f'{device.vendor}-{device.product}'}
        lines.insert(1, (NOVA_FILE, f'[pci] alias = {json.dumps(alias)}'))
    return tuple(lines)
