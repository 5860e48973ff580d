# SPDX-License-Identifier: Apache-2.0
"""Tests of the cache of prepared handles and discovery results."""

from dataclasses import replace
from pathlib import Path

from cyborg_lite.agent.state.cache import Cache, PreparedHandle
from tests.doubles.drivers import discovery_result, handle


def reopen_cache(tmp_path: Path) -> Cache:
    cache = Cache(tmp_path / 'state')
    cache.open()
    return cache


def test_add_handles_is_stored_as_not_prepared(cache: Cache, tmp_path: Path) -> None:
    cache.add_handles([handle(uuid='a'), handle(uuid='b')])
    expected = {uuid: PreparedHandle(handle(uuid=uuid)) for uuid in ('a', 'b')}
    assert reopen_cache(tmp_path).handles == expected


def test_mark_prepared_stores_boot_id(cache: Cache, tmp_path: Path) -> None:
    cache.add_handles([handle(uuid='a'), handle(uuid='b')])
    cache.mark_prepared(['a'], 'boot-1')
    boots = {
        uuid: handle_state.boot_id
        for uuid, handle_state in reopen_cache(tmp_path).handles.items()
    }
    assert boots == {'a': 'boot-1', 'b': None}


def test_add_handles_again_preserves_boot_id(cache: Cache) -> None:
    cache.add_handles([handle(uuid='a')])
    cache.mark_prepared(['a'], 'boot-1')
    cache.add_handles([handle(uuid='a')])
    assert cache.handles['a'].boot_id == 'boot-1'


def test_add_handles_of_later_claim_is_not_prepared(cache: Cache) -> None:
    cache.add_handles([handle(uuid='a')])
    cache.mark_prepared(['a'], 'boot-1')
    later = replace(handle(uuid='a'), generation=1)
    cache.add_handles([later])
    assert cache.handles == {'a': PreparedHandle(later)}


def test_remove_handles_is_stored(cache: Cache, tmp_path: Path) -> None:
    cache.add_handles([handle(uuid='a'), handle(uuid='b')])
    cache.remove_handles(['a', 'unheard-of'])
    assert set(reopen_cache(tmp_path).handles) == {'b'}


def test_save_results_stores_offered_devices_only(cache: Cache, tmp_path: Path) -> None:
    offered_result, refused_result = (
        discovery_result(),
        discovery_result('0000:02:00.0', is_offered=False),
    )
    cache.save_results([offered_result, refused_result])
    assert reopen_cache(tmp_path).results == [offered_result]


def test_save_unchanged_content_writes_no_file(cache: Cache, tmp_path: Path) -> None:
    cache.save_results([discovery_result()])
    cache.add_handles([handle(uuid='a')])
    for file in (tmp_path / 'state').iterdir():
        file.unlink()
    cache.save_results([discovery_result()])
    cache.add_handles([handle(uuid='a')])
    cache.remove_handles(['b'])
    assert list((tmp_path / 'state').iterdir()) == []


def test_unwritable_directory_preserves_handles_in_memory(tmp_path: Path) -> None:
    (tmp_path / 'state').write_text('an obstacle')
    cache = reopen_cache(tmp_path)
    cache.add_handles([handle(uuid='a')])
    assert set(cache.handles) == {'a'}


def test_read_only_cache_writes_no_file(cache: Cache, tmp_path: Path) -> None:
    cache.add_handles([handle(uuid='a')])
    (tmp_path / 'state' / 'findings.json').write_text('{')
    before = sorted((tmp_path / 'state').iterdir())
    reader = Cache(tmp_path / 'state', read_only=True)
    reader.open()
    assert set(reader.handles) == {'a'}
    assert sorted((tmp_path / 'state').iterdir()) == before
