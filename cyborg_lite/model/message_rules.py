# SPDX-License-Identifier: Apache-2.0
"""What a conductor takes from an agent beside reports: in bounds, and storable."""

from collections.abc import Iterable, Sequence
from typing import Final

from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model.host_events import HostEvent, Outcome
from cyborg_lite.model.services import Vitals
from cyborg_lite.model.text import is_storable, shown
from cyborg_lite.model.usage import Usage, figures

_MOST: Final = 16384  # handles of a host
_MOST_DEVICES: Final = 1024
_MOST_EVENTS: Final = 1000
_MOST_COUNTERS: Final = 32
_LONGEST: Final = 255
_LONGEST_ID: Final = 64
_LARGEST_NUMBER: Final = 2**62


def check_vitals(host: str, vitals: Vitals) -> None:
    """:raises InvalidInput: they cannot be stored"""
    _name(host, vitals.boot_id)
    _at_most(_MOST_DEVICES, 'devices', vitals.figures)
    for address, usage in vitals.figures.items():
        _texts(_LONGEST_ID, address)
        check_usage(usage)


def check_usage(usage: Usage) -> None:
    """:raises InvalidInput: it cannot be stored"""
    _texts(4096, usage.reason)
    _at_most(_MOST_COUNTERS, 'counters', usage.counters)
    _texts(_LONGEST_ID, *usage.counters)
    _numbers(usage.counters.values())
    known = figures(usage).values()
    # That includes what is no number and what is infinite, which JSON does not know.
    if not all(abs(figure) <= _LARGEST_NUMBER for figure in known):
        raise InvalidInput(reason=f'Of {[*known]} one cannot be kept.')


def check_outcome(outcome: Outcome) -> None:
    """:raises InvalidInput: it cannot be stored"""
    _name(outcome.host, outcome.boot_id)
    _at_most(_MOST, 'handles', (*outcome.rebuilt, *outcome.lost))
    _texts(_LONGEST_ID, *outcome.rebuilt, *outcome.lost)
    _texts(4096, *outcome.lost.values())


def check_events(host: str, events: Sequence[HostEvent]) -> None:
    """:raises InvalidInput: they cannot be stored, or are out of order"""
    _name(host, '')
    _at_most(_MOST_EVENTS, 'events', events)
    for event in events:
        _texts(_LONGEST_ID, event.address, event.arq_uuid or '')
        _texts(_LONGEST, event.reason)
    numbers = [event.number for event in events]
    _numbers(numbers)
    if numbers != sorted(set(numbers)):
        raise InvalidInput(reason='The events are not in order.')


def _name(host: str, boot_id: str) -> None:
    _texts(_LONGEST, host)
    _texts(_LONGEST_ID, boot_id)
    if not host:
        raise InvalidInput(reason='The message names no host.')


def _texts(longest: int, *values: str) -> None:
    for value in values:
        if len(value) > longest or not is_storable(value):
            reason = f'{shown(value)} is too long, or no text that can be kept.'
            raise InvalidInput(reason=reason)


def _numbers(values: Iterable[int]) -> None:
    for number in values:
        if not 0 <= number <= _LARGEST_NUMBER:
            raise InvalidInput(reason=f'{number} cannot be kept.')


def _at_most(limit: int, what: str, those: Iterable[object]) -> None:
    if sum(1 for _ in those) > limit:
        raise InvalidInput(reason=f'The message has more than {limit} {what}.')
