# SPDX-License-Identifier: Apache-2.0
"""Validation of the messages of agents other than reports."""

from collections.abc import Sequence

from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.hosts.events import HostEvent, HostHandle, RecoveryResult
from cyborg_lite.model.hosts.services import HeartbeatDetails
from cyborg_lite.model.limits import check_values


def check_heartbeat(host: str, details: HeartbeatDetails) -> None:
    """Check that a heartbeat can be stored.

    :raises InvalidInput: a value is invalid
    """
    _check_host(host)
    check_values(details)


def check_recovery_result(result: RecoveryResult) -> None:
    """Check that the result of a recovery can be stored.

    :raises InvalidInput: a value is invalid
    """
    _check_host(result.host)
    check_values(result)


def check_prepared_handles(host: str, handles: Sequence[HostHandle]) -> None:
    """Check the prepared handles of a host.

    :raises InvalidInput: a value is invalid
    """
    _check_host(host)
    check_values(tuple(handles), 'HostHandles.handles')


def check_events(host: str, events: Sequence[HostEvent]) -> None:
    """Check that events are in order and can be stored.

    :raises InvalidInput: a value is invalid, or the events are not in order
    """
    _check_host(host)
    check_values(tuple(events), 'HostEvents.events')
    numbers = [event.number for event in events]
    if numbers != sorted(set(numbers)):
        raise InvalidInput(reason='The events are not in order.')


def _check_host(host: str) -> None:
    check_values(host, 'Host.name')
    if not host:
        raise InvalidInput(reason='The message has no hostname.')
