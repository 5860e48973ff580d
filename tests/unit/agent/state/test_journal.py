# SPDX-License-Identifier: Apache-2.0
"""Tests of the journal of events that wait for the conductor."""

from pathlib import Path

import pytest

from cyborg_lite.agent.state.journal import Journal, NewEvent
from cyborg_lite.model.hosts.events import HostEventKind


def build_events(*addresses: str) -> list[NewEvent]:
    return [NewEvent(HostEventKind.HOTPLUG, address) for address in addresses]


def list_unsent(journal: Journal) -> list[tuple[int, str]]:
    return [(event.number, event.address) for event in journal.list_unsent(100)]


def reopen_journal(tmp_path: Path) -> Journal:
    journal = Journal(tmp_path / 'state')
    journal.open()
    return journal


@pytest.fixture
def joined_journal(journal: Journal) -> Journal:
    """Return a journal whose position the conductor has confirmed."""
    journal.acknowledge(0)
    return journal


def test_acknowledge_removes_received_events(joined_journal: Journal) -> None:
    joined_journal.append(build_events('a', 'b', 'c'))
    joined_journal.acknowledge(2)
    assert list_unsent(joined_journal) == [(3, 'c')]
    joined_journal.append(build_events('d'))
    assert list_unsent(joined_journal) == [(3, 'c'), (4, 'd')]


def test_reopen_after_failed_writes_continues_at_conductor_number(
    joined_journal: Journal, tmp_path: Path
) -> None:
    """The conductor has received events that the full disk does not contain."""
    joined_journal.append(build_events('a', 'b'))
    stored = (tmp_path / 'state' / 'journal.json').read_bytes()
    joined_journal.append(build_events('c', 'd', 'e'))
    joined_journal.acknowledge(5)
    (tmp_path / 'state' / 'journal.json').write_bytes(stored)
    reopened_journal = reopen_journal(tmp_path)
    reopened_journal.append(build_events('f', 'g'))
    assert not reopened_journal.is_joined
    reopened_journal.acknowledge(5)
    assert list_unsent(reopened_journal) == [(6, 'f'), (7, 'g')]
    reopened_journal.append(build_events('h'))
    reopened_journal.acknowledge(7)
    assert list_unsent(reopened_journal) == [(8, 'h')]


def test_append_full_journal_drops_oldest_events(tmp_path: Path) -> None:
    journal = Journal(tmp_path, capacity=3)
    journal.acknowledge(0)
    for address in 'abcde':
        journal.append(build_events(address))
    assert list_unsent(journal) == [(3, 'c'), (4, 'd'), (5, 'e')]


def test_append_truncates_reason(joined_journal: Journal) -> None:
    joined_journal.append([NewEvent(HostEventKind.HEALTH, 'a', reason='x' * 1000)])
    assert len(joined_journal.list_unsent(1)[0].reason) == 255
