# SPDX-License-Identifier: Apache-2.0
"""Events wait for the conductor in order, and each one counts once."""

from pathlib import Path

import pytest

from cyborg_lite.agent.journal import Journal, News
from cyborg_lite.model.host_events import HostEventKind


def news(*addresses: str) -> list[News]:
    return [News(HostEventKind.HOTPLUG, address) for address in addresses]


def waiting(journal: Journal) -> list[tuple[int, str]]:
    return [(event.number, event.address) for event in journal.waiting(100)]


def reopened(tmp_path: Path) -> Journal:
    journal = Journal(tmp_path / 'state')
    journal.open()
    return journal


@pytest.fixture
def joined(journal: Journal) -> Journal:
    """One of which the conductor has heard."""
    journal.heard(0)
    return journal


def test_events_are_numbered_in_their_order(joined: Journal) -> None:
    joined.note(news('a', 'b'))
    joined.note(news('c'))
    assert waiting(joined) == [(1, 'a'), (2, 'b'), (3, 'c')]


def test_what_was_heard_waits_no_more(joined: Journal) -> None:
    joined.note(news('a', 'b', 'c'))
    joined.heard(2)
    assert waiting(joined) == [(3, 'c')]
    joined.note(news('d'))
    assert waiting(joined) == [(3, 'c'), (4, 'd')]


def test_all_of_it_outlives_the_process(joined: Journal, tmp_path: Path) -> None:
    joined.note(news('a', 'b'))
    joined.heard(1)
    again = reopened(tmp_path)
    assert again.joined
    assert again.waiting(9) == joined.waiting(9)
    again.heard(2)
    # Numbers are not given twice, though no event is left.
    last = reopened(tmp_path)
    last.note(news('c'))
    assert waiting(last) == [(3, 'c')]


def test_a_journal_that_was_lost_goes_on_where_the_conductor_is(
    journal: Journal,
) -> None:
    """Its events would be taken for old ones otherwise."""
    journal.note(news('a', 'b'))
    assert not journal.joined
    journal.heard(41)
    assert waiting(journal) == [(42, 'a'), (43, 'b')]
    journal.heard(43)
    assert waiting(journal) == []


def test_the_oldest_go_when_there_is_no_room(tmp_path: Path) -> None:
    journal = Journal(tmp_path, room=3)
    journal.heard(0)
    for address in 'abcde':
        journal.note(news(address))
    assert waiting(journal) == [(3, 'c'), (4, 'd'), (5, 'e')]


def test_a_page_is_the_oldest(joined: Journal) -> None:
    joined.note(news('a', 'b', 'c'))
    assert [event.address for event in joined.waiting(2)] == ['a', 'b']


def test_no_news_is_not_written(joined: Journal, tmp_path: Path) -> None:
    file = tmp_path / 'state' / 'journal.json'
    file.unlink()
    joined.note([])
    joined.heard(0)
    assert not file.exists()


def test_a_reason_is_cut_to_what_can_be_kept(joined: Journal) -> None:
    joined.note([News(HostEventKind.HEALTH, 'a', reason='x' * 1000)])
    assert len(joined.waiting(1)[0].reason) == 255


def test_a_damaged_journal_starts_anew(joined: Journal, tmp_path: Path) -> None:
    joined.note(news('a'))
    (tmp_path / 'state' / 'journal.json').write_text('{')
    again = reopened(tmp_path)
    assert waiting(again) == []
    assert not again.joined
