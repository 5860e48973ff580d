# SPDX-License-Identifier: Apache-2.0
"""Validation of the messages of agents other than reports: limits and storable text."""

from collections.abc import Iterable, Sequence
from typing import Final

from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.devices.cleaning import (
    MAX_STEP_NAME,
    MAX_STEPS,
    MAX_TOOL,
    CleanProgress,
)
from cyborg_lite.model.devices.telemetry import MAX_COUNTERS, Usage, telemetry_values
from cyborg_lite.model.hosts.events import HostEvent, HostHandle, RecoveryResult
from cyborg_lite.model.hosts.services import HeartbeatDetails
from cyborg_lite.model.limits import REASON_MAX_LENGTH
from cyborg_lite.model.text import format_value, is_storable

_MAX_HANDLES: Final = 16384  # of a host
_MAX_DEVICES: Final = 1024
_MAX_EVENTS: Final = 1000
_MAX_NAME: Final = 255
_MAX_ID: Final = 64
_MAX_IDENTITY: Final = 36
_MAX_LONG_REASON: Final = 4096  # cut before it is stored
_MAX_NUMBER: Final = 2**62
_MAX_GENERATION: Final = 2**30  # the column has 31 bits, and later claims add to it


def check_heartbeat(host: str, details: HeartbeatDetails) -> None:
    """Check that a heartbeat can be stored.

    :raises InvalidInput: a value is invalid
    """
    _check_host(host, details.boot_id)
    _check_texts(_MAX_IDENTITY, details.identity, details.mark.arq_uuid)
    _check_numbers((details.mark.incarnation,), _MAX_GENERATION)
    _check_numbers((details.mark.step, details.mark.period))
    _check_count(_MAX_DEVICES, 'devices', details.telemetry)
    for address, usage in details.telemetry.items():
        _check_texts(_MAX_ID, address)
        check_usage(usage)


def check_usage(usage: Usage) -> None:
    """Check that telemetry can be stored.

    :raises InvalidInput: a value is invalid
    """
    _check_texts(_MAX_LONG_REASON, usage.reason)
    _check_count(MAX_COUNTERS, 'counters', usage.counters)
    _check_texts(_MAX_ID, *usage.counters)
    _check_numbers(usage.counters.values())
    values = telemetry_values(usage).values()
    # This also rejects NaN and infinity, which JSON does not have.
    if not all(abs(value) <= _MAX_NUMBER for value in values):
        raise InvalidInput(reason=f'One of the values {[*values]} cannot be stored.')


def check_recovery_result(result: RecoveryResult) -> None:
    """Check that the result of a recovery can be stored.

    :raises InvalidInput: a value is invalid
    """
    _check_host(result.host, result.boot_id)
    _check_count(_MAX_HANDLES, 'handles', (*result.rebuilt, *result.lost))
    _check_count(_MAX_HANDLES, 'handles', result.connecting)
    _check_texts(_MAX_ID, *result.rebuilt, *result.lost, *result.connecting)
    _check_texts(_MAX_LONG_REASON, *result.lost.values())


def check_prepared_handles(host: str, handles: Sequence[HostHandle]) -> None:
    """Check the prepared handles of a host.

    :raises InvalidInput: a value is invalid
    """
    _check_host(host, '')
    _check_count(_MAX_HANDLES, 'handles', handles)
    for handle in handles:
        _check_texts(_MAX_ID, handle.uuid, handle.arq_uuid, handle.instance_uuid)
        _check_texts(_MAX_NAME, handle.deployable_name, handle.key)
    _check_numbers((handle.generation for handle in handles), _MAX_GENERATION)


def check_events(host: str, events: Sequence[HostEvent]) -> None:
    """Check that events are in order and can be stored.

    :raises InvalidInput: a value is invalid, or the events are not in order
    """
    _check_host(host, '')
    _check_count(_MAX_EVENTS, 'events', events)
    for event in events:
        _check_texts(_MAX_ID, event.address, event.arq_uuid or '')
        _check_texts(REASON_MAX_LENGTH, event.reason)
    numbers = [event.number for event in events]
    _check_numbers(numbers)
    if numbers != sorted(set(numbers)):
        raise InvalidInput(reason='The events are not in order.')


def check_clean_progress(progress: CleanProgress) -> None:
    """Check that the progress of a cleaning run can be stored.

    :raises InvalidInput: a value is invalid
    """
    _check_texts(_MAX_ID, progress.session)
    _check_texts(_MAX_LONG_REASON, progress.reason)
    _check_count(MAX_STEPS, 'steps', progress.steps)
    _check_count(MAX_STEPS, 'results', progress.results)
    names = [step.name for step in progress.steps]
    _check_texts(MAX_STEP_NAME, *names, *(item.name for item in progress.results))
    _check_texts(MAX_TOOL, *(item.tool for item in progress.results))
    _check_texts(_MAX_LONG_REASON, *(item.error for item in progress.results))


def _check_host(host: str, boot_id: str) -> None:
    _check_texts(_MAX_NAME, host)
    _check_texts(_MAX_ID, boot_id)
    if not host:
        raise InvalidInput(reason='The message has no hostname.')


def _check_texts(max_length: int, *values: str) -> None:
    for value in values:
        if len(value) > max_length or not is_storable(value):
            reason = (
                f'{format_value(value)} has more than {max_length} characters, or '
                f'characters that cannot be stored.'
            )
            raise InvalidInput(reason=reason)


def _check_numbers(values: Iterable[int], largest: int = _MAX_NUMBER) -> None:
    for number in values:
        if not 0 <= number <= largest:
            raise InvalidInput(reason=f'{number} cannot be stored.')


def _check_count(limit: int, label: str, items: Iterable[object]) -> None:
    if sum(1 for _ in items) > limit:
        raise InvalidInput(reason=f'The message has more than {limit} {label}.')
