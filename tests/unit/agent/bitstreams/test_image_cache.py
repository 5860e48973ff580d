# SPDX-License-Identifier: Apache-2.0
"""Tests of the image cache of the agent."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.agent.bitstreams.image_cache import ImageCache
from cyborg_lite.errors.bitstreams import BitstreamRefused
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.bitstreams.bitstreams import Bitstream
from tests.builders.bitstream_files import IMAGE_ID, bitstream
from tests.doubles.glance import FakeGlance

_CONTENT = bytes(range(256)) * 4


@pytest.fixture
def source() -> FakeGlance:
    source = FakeGlance()
    source.contents[IMAGE_ID] = _CONTENT
    return source


def _cache(tmp_path: Path, source: FakeGlance, **limits: int) -> ImageCache:
    bounds = {'largest': 10_000, 'capacity': 10_000, **limits}
    return ImageCache(tmp_path / 'images', source, **bounds)


def _list_files(tmp_path: Path) -> list[str]:
    directory = tmp_path / 'images'
    return sorted(os.listdir(directory)) if directory.exists() else []


def _add_image(number: int, source: FakeGlance) -> Bitstream:
    content = bytes([number]) * 1000
    uuid = f'00000000-0000-4000-8000-{number:012d}'
    source.contents[uuid] = content
    return bitstream(content, id=uuid)


def test_open_image_cached_file_is_not_fetched(
    tmp_path: Path, source: FakeGlance
) -> None:
    for cache in (_cache(tmp_path, source), _cache(tmp_path, source)):
        with cache.open_image(bitstream(_CONTENT)):
            pass
    assert source.fetched == [IMAGE_ID]


def test_open_image_damaged_file_is_fetched_again(
    tmp_path: Path, source: FakeGlance
) -> None:
    cache = _cache(tmp_path, source)
    with cache.open_image(bitstream(_CONTENT)) as path:
        path.chmod(0o600)
        path.write_bytes(b'?' + _CONTENT[1:])
    with cache.open_image(bitstream(_CONTENT)) as path:
        assert path.read_bytes() == _CONTENT
    assert len(source.fetched) == 2


def test_open_image_removes_partial_files(tmp_path: Path, source: FakeGlance) -> None:
    part = tmp_path / f'images/sha512-{"ab" * 64}.part'
    part.parent.mkdir()
    part.write_bytes(b'some')
    (tmp_path / 'images/mine').touch()
    with _cache(tmp_path, source).open_image(bitstream(_CONTENT)) as path:
        assert _list_files(tmp_path) == ['mine', path.name]


@pytest.mark.parametrize(
    ('changes', 'reason'),
    [
        ({'hash_value': 'ab' * 64}, 'its hash differs'),
        ({'size': 500}, 'exceeds its size of 500 bytes'),
        ({'size': 10_001}, 'largest_image allows'),
    ],
)
def test_open_image_refused_content_leaves_no_file(
    changes: dict[str, Any], reason: str, tmp_path: Path, source: FakeGlance
) -> None:
    with (
        pytest.raises(BitstreamRefused, match=reason),
        _cache(tmp_path, source).open_image(bitstream(_CONTENT, **changes)),
    ):
        pass
    assert bool(source.fetched) is ('allows' not in reason)
    assert _list_files(tmp_path) == []


def test_open_image_unavailable_glance_leaves_no_file(
    tmp_path: Path, source: FakeGlance
) -> None:
    source.is_down = True
    with (
        pytest.raises(ServiceUnavailable),
        _cache(tmp_path, source).open_image(bitstream(_CONTENT)),
    ):
        pass
    assert _list_files(tmp_path) == []


@pytest.mark.parametrize(
    ('algorithm', 'digest'),
    [('..', '/etc/passwd'), ('sha512', '../../x'), ('md5', 'a' * 32), ('', '')],
)
def test_open_image_invalid_digest_raises_before_fetch(
    algorithm: str, digest: str, tmp_path: Path, source: FakeGlance
) -> None:
    image = replace(bitstream(_CONTENT), hash_algo=algorithm, hash_value=digest)
    with (
        pytest.raises(BitstreamRefused, match='no SHA-2 digest'),
        _cache(tmp_path, source).open_image(image),
    ):
        pass
    assert source.fetched == []


def test_open_image_evicts_least_recently_used(
    tmp_path: Path, source: FakeGlance
) -> None:
    cache = _cache(tmp_path, source, capacity=2500)
    images = [_add_image(number, source) for number in (1, 2, 3)]
    for age, image in ((200, images[0]), (100, images[1])):
        with cache.open_image(image) as path:
            pass
        os.utime(path, (age, age))
    with cache.open_image(images[2]):
        pass
    remaining = set(_list_files(tmp_path))
    digests = [f'sha512-{image.hash_value}' for image in images]
    assert remaining == {digests[0], digests[2]}


def test_open_image_does_not_evict_open_images(
    tmp_path: Path, source: FakeGlance
) -> None:
    cache = _cache(tmp_path, source, capacity=1500)
    first, second = _add_image(1, source), _add_image(2, source)
    with cache.open_image(first) as first_path, cache.open_image(second) as second_path:
        assert first_path.exists()
        assert second_path.exists()


def test_open_image_does_not_evict_foreign_files(
    tmp_path: Path, source: FakeGlance
) -> None:
    directory = tmp_path / 'images'
    directory.mkdir()
    (directory / 'loaded.json').write_text('{}' * 5000)
    cache = _cache(tmp_path, source, capacity=100)
    with cache.open_image(bitstream(_CONTENT)):
        pass
    assert 'loaded.json' in _list_files(tmp_path)


def test_open_image_does_not_follow_symlink(tmp_path: Path, source: FakeGlance) -> None:
    directory = tmp_path / 'images'
    directory.mkdir()
    victim = tmp_path / 'victim'
    victim.write_bytes(b'precious')
    digest = hashlib.sha512(_CONTENT).hexdigest()
    (directory / f'sha512-{digest}').symlink_to(victim)
    with _cache(tmp_path, source).open_image(bitstream(_CONTENT)) as path:
        assert not path.is_symlink()
    assert victim.read_bytes() == b'precious'


def test_discard_keeps_file_that_another_device_reads(
    tmp_path: Path, source: FakeGlance
) -> None:
    cache = _cache(tmp_path, source)
    with cache.open_image(bitstream(_CONTENT)) as path:
        with cache.open_image(bitstream(_CONTENT)):
            cache.discard(bitstream(_CONTENT))
        assert path.exists()
        cache.discard(bitstream(_CONTENT))
        assert not path.exists()


def test_open_image_unwritable_directory_raises_driver_error(
    tmp_path: Path, source: FakeGlance
) -> None:
    (tmp_path / 'images').write_text('not a directory')
    with (
        pytest.raises(DriverError, match='cannot be stored'),
        _cache(tmp_path, source).open_image(bitstream(_CONTENT)),
    ):
        pass
