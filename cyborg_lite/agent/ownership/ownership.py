# SPDX-License-Identifier: Apache-2.0
"""Excludes devices of other owners, and marks devices that Nova claims as well."""

import logging
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final

from oslo_log import log

from cyborg_lite.agent.ownership.nova_files import NovaFiles
from cyborg_lite.drivers.host.sysfs import Host, PciFunction, pci_address
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.model.inventory.host_report import Device, DiscoveryResult, Health
from cyborg_lite.model.limits import REASON_MAX_LENGTH
from cyborg_lite.model.ownership.nova_config import NovaDeviceClaim, NovaPciFunction
from cyborg_lite.model.ownership.plan import Owner, OwnershipPlan

LOG = log.getLogger(__name__)

_MDEV_TYPES: Final = 'mdev_supported_types'
_IDS: Final = re.compile('[0-9a-f]{4}:[0-9a-f]{4}')
# Part of an address or of ids. Targets of SPDK have names with other characters.
_PART: Final = re.compile(r'[0-9a-fx:.*]+')


class Ownership:
    """Compares devices with the options of the operator and of Nova."""

    def __init__(
        self,
        host: Host,
        nova_files: Sequence[str],
        excluded: Collection[str],
        optional_files: Collection[str] = (),
        read_plan: Callable[[], OwnershipPlan] = OwnershipPlan,
    ) -> None:
        """Store the arguments.

        :param nova_files: files, and directories whose ``*.conf`` files are read
        :param optional_files: files and directories that may be missing
        :param excluded: PCI addresses and ``vendor:device`` ids of excluded devices
        :param read_plan: returns the present ownership file
        :raises ConfigurationError: an excluded device is malformed
        """
        self._host = host
        self._nova_files = NovaFiles(nova_files, optional_files)
        self._excluded = frozenset(map(_parse_excluded, excluded))
        self._read_plan = read_plan
        self._logged_reasons: dict[str, str] = {}  # by address

    def amend(self, result: DiscoveryResult) -> DiscoveryResult:
        """Remove an excluded device, or mark a device that Nova claims."""
        device = result.device
        if device is None:
            return result
        if self._excluded & {result.address.lower(), result.ids.lower()}:
            reason = 'excluded by [agent] excluded_devices'
            return replace(result, reason=reason, device=None)
        claim = self._nova_files.load().find_claim(self._functions(device))
        rule = self._read_plan().find_rule(self._host.name, result.address, result.ids)
        if rule is not None and rule.owner is not Owner.CYBORG:
            return self._withhold(result, device, rule.owner, claim)
        reason = ''
        if claim is not None:
            reason = (
                f'Managed twice: by driver {device.driver} of this service, and by '
                f'Nova, whose configuration contains {claim.source}'
            )[:REASON_MAX_LENGTH]
        self._log_conflict(device, reason)
        if not reason:
            return result
        conflicting = replace(device, health=Health.CONFLICT, health_reason=reason)
        return replace(result, reason=reason, device=conflicting)

    def _withhold(
        self,
        result: DiscoveryResult,
        device: Device,
        owner: Owner,
        claim: NovaDeviceClaim | None,
    ) -> DiscoveryResult:
        """Return the result without its device, which has another owner."""
        reason, fault = f'belongs to {owner} by the ownership file', ''
        if owner is Owner.NOVA and claim is None and self._nova_files.is_known:
            fault = 'the configuration of Nova does not contain it'
        if owner is Owner.NOBODY and claim is not None:
            fault = f'the configuration of Nova contains {claim.source}'
        if fault:
            reason = f'{reason}, but {fault}'
        if fault != self._logged_reasons.get(device.control_address, ''):
            self._logged_reasons[device.control_address] = fault
            level = logging.WARNING if fault else logging.INFO
            LOG.log(level, 'Device %s %s', device.control_address, reason)
        return replace(result, reason=reason, device=None)

    def _log_conflict(self, device: Device, reason: str) -> None:
        if reason == self._logged_reasons.get(device.control_address, ''):
            return
        self._logged_reasons[device.control_address] = reason
        if reason:
            LOG.warning('Device %s is not offered. %s', device.control_address, reason)
        else:
            LOG.info(
                'Device %s is offered again: Nova does not claim it any more',
                device.control_address,
            )

    def _functions(self, device: Device) -> Iterator[NovaPciFunction]:
        """Yield the PCI functions of a device, as the PCI tracker of Nova sees them."""
        keys = (
            unit.key for deployable in device.root.walk() for unit in deployable.handles
        )
        addresses = {device.control_address, *(key.partition('/')[0] for key in keys)}
        for address in sorted(addresses):
            if pci_address(address) is not None:
                yield self._to_nova_function(PciFunction(self._host, address), device)

    def _to_nova_function(
        self, function: PciFunction, device: Device
    ) -> NovaPciFunction:
        parent = function.physfn
        interfaces = set(function.names('net'))
        if parent is not None:
            interfaces |= set(PciFunction(self._host, parent).names('net'))
        return NovaPciFunction(
            address=function.address,
            vendor=function.vendor or device.vendor,
            product=function.device or device.std_board_info.get('product_id', '0'),
            parent=parent,
            interfaces=frozenset(interfaces),
            mdev_types=frozenset(function.names(_MDEV_TYPES)),
        )


def _parse_excluded(entry: str) -> str:
    """Return an excluded device as results name it.

    :raises ConfigurationError: it is a part of an address or of ids
    """
    text = entry.strip().lower()
    address = pci_address(text)
    if address is None and _PART.fullmatch(text) and not _IDS.fullmatch(text):
        reason = (
            f'{entry} in [agent] excluded_devices is neither a PCI address such as '
            '0000:3b:00.0 nor ids such as 10de:1eb8.'
        )
        raise ConfigurationError(reason=reason)
    return address or text
