# SPDX-License-Identifier: Apache-2.0
"""Validation of host reports: only the agent's host, within limits, no duplicates.

A report must not affect another host or fail within a transaction.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.inventory.host_report import Deployable, HostReport
from cyborg_lite.model.limits import check_values
from cyborg_lite.model.text import format_value

_MAX_OBJECTS: Final = 16384  # deployables of a host, or attach handles


def check_report(report: HostReport) -> None:
    """Check that a report can be stored and concerns its own host only.

    :raises InvalidInput: a value is invalid
    """
    check_values(report)
    if not report.hostname:
        raise InvalidInput(reason='The report has no hostname.')
    if not all(device.control_address for device in report.devices):
        raise InvalidInput(reason='A device has no address.')
    _check_unique('address', (device.control_address for device in report.devices))
    deployables = [item for device in report.devices for item in device.root.walk()]
    handles = sum(len(item.handles) for item in deployables)
    if max(len(deployables), handles) > _MAX_OBJECTS:
        reason = f'The report has more than {_MAX_OBJECTS} deployables or handles.'
        raise InvalidInput(reason=reason)
    _check_names(report.hostname, [deployable.name for deployable in deployables])
    for deployable in deployables:
        _check_deployable(deployable)


def _check_names(hostname: str, names: list[str]) -> None:
    _check_unique('deployable', names)
    for name in names:
        # Names are unique in the cloud. The prefix prevents a clash with other hosts.
        if not name.startswith(f'{hostname}_'):
            reason = (
                f'The name of deployable {format_value(name)} does not start with '
                f'{format_value(hostname)}_.'
            )
            raise InvalidInput(reason=reason)


def _check_deployable(deployable: Deployable) -> None:
    attributes = deployable.typed_attributes
    label = f'typed attribute of {deployable.name}'
    _check_unique(label, (attribute.name for attribute in attributes))
    for attribute in attributes:
        fault = typed_attributes.find_fault(attribute)
        if fault is not None:
            reason = f'{deployable.name} has an invalid typed attribute: {fault}.'
            raise InvalidInput(reason=reason)
    keys = (handle.key for handle in deployable.handles)
    _check_unique(f'attach handle of {deployable.name}', keys)


def _check_unique(label: str, values: Iterable[str]) -> None:
    for value, number in Counter(values).items():
        if number > 1:
            raise InvalidInput(
                reason=f'The report has {label} {format_value(value)} twice.'
            )
