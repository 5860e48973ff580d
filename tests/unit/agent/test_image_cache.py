# SPDX-License-Identifier: Apache-2.0
"""Images come whole, are kept within bounds, and leave nothing behind that is wrong."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.image_cache import ImageCache
from cyborg_lite.exceptions import BitstreamRefused, DriverError, ServiceUnavailable
from cyborg_lite.model.bitstreams import Bitstream
from tests.fakes.bitstream_files import IMAGE_ID, bitstream
from tests.fakes.images import FakeImages

_CONTENT = bytes(range(256)) * 4


@pytest.fixture
def source() -> FakeImages:
    source = FakeImages()
    source.contents[IMAGE_ID] = _CONTENT
    return source


def _cache(tmp_path: Path, source: FakeImages, **limits: int) -> ImageCache:
    bounds = {'largest': 10_000, 'capacity': 10_000, **limits}
    return ImageCache(tmp_path / 'images', source, **bounds)


def _left(tmp_path: Path) -> list[str]:
    directory = tmp_path / 'images'
    return sorted(os.listdir(directory)) if directory.exists() else []


def _numbered(number: int, source: FakeImages) -> Bitstream:
    content = bytes([number]) * 1000
    uuid = f'00000000-0000-4000-8000-{number:012d}'
    source.contents[uuid] = content
    return bitstream(content, id=uuid)


def test_an_image_is_kept_under_its_digest(tmp_path: Path, source: FakeImages) -> None:
    wanted = bitstream(_CONTENT)
    with _cache(tmp_path, source).fetched(wanted) as path:
        assert path.read_bytes() == _CONTENT
        assert path.name == f'sha512-{hashlib.sha512(_CONTENT).hexdigest()}'
        assert path.stat().st_mode & 0o777 == 0o400
    assert _left(tmp_path) == [path.name]


def test_what_is_there_is_not_fetched_again(tmp_path: Path, source: FakeImages) -> None:
    for cache in (_cache(tmp_path, source), _cache(tmp_path, source)):
        with cache.fetched(bitstream(_CONTENT)):
            pass
    assert source.fetched == [IMAGE_ID]


def test_what_was_damaged_on_the_disk_is_fetched_anew(
    tmp_path: Path, source: FakeImages
) -> None:
    cache = _cache(tmp_path, source)
    with cache.fetched(bitstream(_CONTENT)) as path:
        path.chmod(0o600)
        path.write_bytes(b'?' + _CONTENT[1:])
    with cache.fetched(bitstream(_CONTENT)) as path:
        assert path.read_bytes() == _CONTENT
    assert len(source.fetched) == 2


def test_what_a_process_left_that_died_goes_with_the_next_image(
    tmp_path: Path, source: FakeImages
) -> None:
    part = tmp_path / f'images/sha512-{"ab" * 64}.part'
    part.parent.mkdir()
    part.write_bytes(b'some')
    (tmp_path / 'images/mine').touch()
    with _cache(tmp_path, source).fetched(bitstream(_CONTENT)) as path:
        assert _left(tmp_path) == ['mine', path.name]


def test_a_bad_hash_is_refused_and_nothing_left(
    tmp_path: Path, source: FakeImages
) -> None:
    wanted = bitstream(_CONTENT, hash_value='ab' * 64)
    with (
        pytest.raises(BitstreamRefused, match='came damaged'),
        _cache(tmp_path, source).fetched(wanted),
    ):
        pass
    assert _left(tmp_path) == []


def test_more_than_it_should_be_is_refused_and_nothing_left(
    tmp_path: Path, source: FakeImages
) -> None:
    wanted = bitstream(_CONTENT, size=500)
    with (
        pytest.raises(BitstreamRefused, match='more than the 500 bytes'),
        _cache(tmp_path, source).fetched(wanted),
    ):
        pass
    assert _left(tmp_path) == []


def test_one_that_is_too_large_is_not_begun(tmp_path: Path, source: FakeImages) -> None:
    cache = _cache(tmp_path, source, largest=100)
    with (
        pytest.raises(BitstreamRefused, match='more than the host takes'),
        cache.fetched(bitstream(_CONTENT)),
    ):
        pass
    assert source.fetched == []
    assert _left(tmp_path) == []


def test_a_glance_that_goes_away_leaves_nothing(
    tmp_path: Path, source: FakeImages
) -> None:
    source.away = True
    with (
        pytest.raises(ServiceUnavailable),
        _cache(tmp_path, source).fetched(bitstream(_CONTENT)),
    ):
        pass
    assert _left(tmp_path) == []


@pytest.mark.parametrize(
    ('algorithm', 'digest'),
    [('..', '/etc/passwd'), ('sha512', '../../x'), ('md5', 'a' * 32), ('', '')],
)
def test_a_digest_that_is_none_never_becomes_a_path(
    algorithm: str, digest: str, tmp_path: Path, source: FakeImages
) -> None:
    wanted = replace(bitstream(_CONTENT), hash_algo=algorithm, hash_value=digest)
    with (
        pytest.raises(BitstreamRefused, match='no digest'),
        _cache(tmp_path, source).fetched(wanted),
    ):
        pass
    assert source.fetched == []


def test_what_was_not_used_for_longest_makes_room(
    tmp_path: Path, source: FakeImages
) -> None:
    cache = _cache(tmp_path, source, capacity=2500)
    images = [_numbered(number, source) for number in (1, 2, 3)]
    for age, wanted in ((200, images[0]), (100, images[1])):
        with cache.fetched(wanted) as path:
            pass
        os.utime(path, (age, age))
    with cache.fetched(images[2]):
        pass
    kept = set(_left(tmp_path))
    digests = [f'sha512-{each.hash_value}' for each in images]
    assert kept == {digests[0], digests[2]}


def test_what_is_in_use_is_not_dropped(tmp_path: Path, source: FakeImages) -> None:
    cache = _cache(tmp_path, source, capacity=1500)
    first, second = _numbered(1, source), _numbered(2, source)
    with cache.fetched(first) as one, cache.fetched(second) as other:
        assert one.exists()
        assert other.exists()


def test_files_of_others_are_left_alone(tmp_path: Path, source: FakeImages) -> None:
    directory = tmp_path / 'images'
    directory.mkdir()
    (directory / 'loaded.json').write_text('{}' * 5000)
    cache = _cache(tmp_path, source, capacity=100)
    with cache.fetched(bitstream(_CONTENT)):
        pass
    assert 'loaded.json' in _left(tmp_path)


def test_what_a_dead_process_left_is_begun_again(
    tmp_path: Path, source: FakeImages
) -> None:
    directory = tmp_path / 'images'
    directory.mkdir()
    digest = hashlib.sha512(_CONTENT).hexdigest()
    (directory / f'sha512-{digest}.part').write_bytes(b'half')
    with _cache(tmp_path, source).fetched(bitstream(_CONTENT)) as path:
        assert path.read_bytes() == _CONTENT
    assert _left(tmp_path) == [path.name]


def test_a_link_in_its_place_is_not_followed(
    tmp_path: Path, source: FakeImages
) -> None:
    directory = tmp_path / 'images'
    directory.mkdir()
    victim = tmp_path / 'victim'
    victim.write_bytes(b'precious')
    digest = hashlib.sha512(_CONTENT).hexdigest()
    (directory / f'sha512-{digest}').symlink_to(victim)
    with _cache(tmp_path, source).fetched(bitstream(_CONTENT)) as path:
        assert not path.is_symlink()
    assert victim.read_bytes() == b'precious'


def test_what_is_discarded_is_gone(tmp_path: Path, source: FakeImages) -> None:
    cache = _cache(tmp_path, source)
    with cache.fetched(bitstream(_CONTENT)):
        cache.discard(bitstream(_CONTENT))
    cache.discard(bitstream(_CONTENT))
    assert _left(tmp_path) == []


def test_a_disk_without_room_is_a_failure_of_the_host(
    tmp_path: Path, source: FakeImages
) -> None:
    (tmp_path / 'images').write_text('not a directory')
    with (
        pytest.raises(DriverError, match='cannot be kept'),
        _cache(tmp_path, source).fetched(bitstream(_CONTENT)),
    ):
        pass
