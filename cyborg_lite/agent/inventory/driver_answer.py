# SPDX-License-Identifier: Apache-2.0
"""Validates the results of a driver, so that one faulty card affects no other.

The conductor rejects a whole report because of one invalid value in it. The agent
therefore removes the device of an invalid result from the report.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from cyborg_lite import codec
from cyborg_lite.errors.base import CyborgError, InvalidInput
from cyborg_lite.model.inventory import report_rules
from cyborg_lite.model.inventory.host_report import Device, DiscoveryResult, HostReport
from cyborg_lite.model.text import format_value

_MAX_FAULT: Final = 400  # characters of the reason


@dataclass(frozen=True, slots=True)
class DriverScope:
    """The name of a driver and the objects that it must not claim."""

    hostname: str
    driver: str
    other_claims: Collection[str] = ()  # objects that devices of other drivers claim


@dataclass(frozen=True, slots=True)
class DriverAnswer:
    """The valid results of a scan, and what is wrong with the others."""

    results: tuple[DiscoveryResult, ...]
    faults: tuple[str, ...] = ()
    withheld: frozenset[str] = frozenset()  # addresses of the invalid devices


def list_claims(device: Device) -> Iterator[str]:
    """Yield addresses and deployable names, which only one driver may report.

    The addresses are those of the device and of all functions that guests can get. One
    driver may offer a virtual function that another offers as part of its card.
    """
    claims = [device.control_address]
    for deployable in device.root.walk():
        claims.append(deployable.name)
        # A key is an address, or an address and a number after a slash.
        claims += (handle.key.partition('/')[0] for handle in deployable.handles)
    yield from dict.fromkeys(claims)


def validate_results(
    results: Iterable[DiscoveryResult], scope: DriverScope
) -> DriverAnswer:
    """Validate each result of a driver by itself.

    A function whose device is invalid stays in the answer, without the device and with
    the reason. A result that names no function of the driver is dropped.

    :raises CyborgError: the driver reports too much, or no result can be used
    :raises Exception: the answer is not a sequence of results
    """
    valid: dict[str, DiscoveryResult] = {}  # by address
    names: set[str] = set()  # of deployables
    faults = []
    addresses = set()
    for result in results:
        try:
            _check_result(result, scope)
            _check_unique(result, valid, names)
        except Exception as error:  # noqa: BLE001  # a driver may return anything
            # The caller logs the faults.
            faults.append(_describe(result, error))
            try:
                withheld = replace(result, device=None, reason=faults[-1])
                _check_result(withheld, scope)
                _check_unique(withheld, valid, names)
            except Exception:  # noqa: BLE001  # as above
                continue  # not even the function is valid
            result = withheld
            addresses.add(result.address)
        valid[result.address] = result
        names.update(_list_names(result))
    if faults and not valid:
        raise InvalidInput(reason=faults[0])
    devices = tuple(item.device for item in valid.values() if item.device is not None)
    report_rules.check_report(HostReport(scope.hostname, '', devices))
    return DriverAnswer(tuple(valid.values()), tuple(faults), frozenset(addresses))


def _describe(result: object, error: Exception) -> str:
    """Return one line about an invalid result."""
    address = format_value(getattr(result, 'address', type(result).__name__))
    text = error.text if isinstance(error, CyborgError) else repr(error)
    printable = ''.join(char if char.isprintable() else ' ' for char in text)
    return f'invalid result for {address}: {printable[:_MAX_FAULT]}'


def _check_unique(
    result: DiscoveryResult, valid: Mapping[str, DiscoveryResult], names: set[str]
) -> None:
    """Check that an earlier result of the same answer has the same function or names.

    :raises InvalidInput: it does
    """
    if result.address in valid:
        raise InvalidInput(reason=f'PCI function {result.address} is reported twice.')
    for name in _list_names(result):
        if name in names:
            raise InvalidInput(reason=f'{format_value(name)} is reported twice.')


def _list_names(result: DiscoveryResult) -> Iterator[str]:
    if result.device is not None:
        yield from (deployable.name for deployable in result.device.root.walk())


def _check_result(result: DiscoveryResult, scope: DriverScope) -> None:
    codec.decode(DiscoveryResult, codec.encode(result))
    driver, address = scope.driver, result.address
    if result.driver != driver:
        reason = f'Driver {driver} reported {address} for driver {result.driver}.'
        raise InvalidInput(reason=reason)
    if result.device is None:
        return
    report_rules.check_report(HostReport(scope.hostname, '', (result.device,)))
    if result.device.control_address != address:
        reason = (
            f'Driver {driver} reported device {result.device.control_address} '
            f'for PCI function {address}.'
        )
        raise InvalidInput(reason=reason)
    for claim in list_claims(result.device):
        if claim in scope.other_claims:
            reason = f'Driver {driver} claimed {claim}, which another driver claims.'
            raise InvalidInput(reason=reason)
