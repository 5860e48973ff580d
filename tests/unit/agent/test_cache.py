# SPDX-License-Identifier: Apache-2.0
"""What the agent prepared and found is known to its next process."""

from pathlib import Path

import pytest

from cyborg_lite.agent.cache import Cache, Kept
from tests.fakes.drivers import finding, handle


def reopened(tmp_path: Path) -> Cache:
    cache = Cache(tmp_path / 'state')
    cache.open()
    return cache


def test_an_empty_memory_is_no_obstacle(tmp_path: Path) -> None:
    cache = reopened(tmp_path)
    assert cache.kept == {}
    assert cache.findings is None


def test_an_intent_is_kept_and_is_not_ready(cache: Cache, tmp_path: Path) -> None:
    cache.intend([handle(uuid='a'), handle(uuid='b')])
    expected = {uuid: Kept(handle(uuid=uuid)) for uuid in ('a', 'b')}
    assert reopened(tmp_path).kept == expected


def test_what_is_ready_is_so_for_one_boot(cache: Cache, tmp_path: Path) -> None:
    cache.intend([handle(uuid='a'), handle(uuid='b')])
    cache.ready(['a'], 'boot-1')
    boots = {uuid: kept.boot_id for uuid, kept in reopened(tmp_path).kept.items()}
    assert boots == {'a': 'boot-1', 'b': None}


def test_to_prepare_once_more_what_is_ready_does_not_undo_it(cache: Cache) -> None:
    cache.intend([handle(uuid='a')])
    cache.ready(['a'], 'boot-1')
    cache.intend([handle(uuid='a')])
    assert cache.kept['a'].boot_id == 'boot-1'


def test_what_was_released_is_forgotten(cache: Cache, tmp_path: Path) -> None:
    cache.intend([handle(uuid='a'), handle(uuid='b')])
    cache.forget(['a', 'unheard-of'])
    assert set(reopened(tmp_path).kept) == {'b'}


def test_devices_that_were_found_are_kept(cache: Cache, tmp_path: Path) -> None:
    offered, refused = finding(), finding('0000:02:00.0', offered=False)
    cache.keep_findings([offered, refused])
    assert reopened(tmp_path).findings == [offered]


def test_nothing_is_written_where_nothing_has_changed(
    cache: Cache, tmp_path: Path
) -> None:
    cache.keep_findings([finding()])
    cache.intend([handle(uuid='a')])
    for file in (tmp_path / 'state').iterdir():
        file.unlink()
    cache.keep_findings([finding()])
    cache.intend([handle(uuid='a')])
    cache.forget(['b'])
    assert list((tmp_path / 'state').iterdir()) == []


@pytest.mark.parametrize('name', ['handles.json', 'findings.json'])
def test_a_damaged_file_costs_what_was_in_it_and_no_more(
    cache: Cache, tmp_path: Path, name: str
) -> None:
    cache.intend([handle(uuid='a')])
    cache.keep_findings([finding()])
    (tmp_path / 'state' / name).write_text('{"v": 1, "content": [{"handle": 7}]}')
    again = reopened(tmp_path)
    assert (again.kept == {}) == (name == 'handles.json')
    assert (again.findings is None) == (name == 'findings.json')


def test_what_cannot_be_written_is_known_as_long_as_the_process_lives(
    tmp_path: Path,
) -> None:
    (tmp_path / 'state').write_text('an obstacle')
    cache = reopened(tmp_path)
    cache.intend([handle(uuid='a')])
    assert set(cache.kept) == {'a'}


def test_whoever_only_reads_changes_nothing(cache: Cache, tmp_path: Path) -> None:
    cache.intend([handle(uuid='a')])
    (tmp_path / 'state' / 'findings.json').write_text('{')
    before = sorted((tmp_path / 'state').iterdir())
    reader = Cache(tmp_path / 'state', read_only=True)
    reader.open()
    assert set(reader.kept) == {'a'}
    assert sorted((tmp_path / 'state').iterdir()) == before
