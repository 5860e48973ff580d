# SPDX-License-Identifier: Apache-2.0
"""What we rely on in Glance, of a real one."""

from pathlib import Path
from uuid import uuid4

import pytest
from oslo_config import cfg

from cyborg_lite.agent.image_cache import ImageCache
from cyborg_lite.clients.glance import Glance
from cyborg_lite.conf import glance as section
from cyborg_lite.exceptions import BitstreamRefused, NotFound, RemoteError
from cyborg_lite.model import bitstreams
from cyborg_lite.model.bitstreams import TAG
from tests.fakes.bitstream_files import LARGEST, gbs, image
from tests.fakes.real_glance import RealGlance, real_glance

__all__ = ['real_glance']


def client(endpoint: str) -> Glance:
    conf = cfg.ConfigOpts()
    conf.register_opts(section.OPTIONS, group=section.GROUP)
    conf([])
    conf.set_override('endpoint_override', endpoint, group=section.GROUP)
    return Glance.configured(conf)


@pytest.fixture
def glance(real_glance: RealGlance) -> Glance:
    return client(real_glance.endpoint)


def test_what_was_uploaded_is_a_bitstream(
    glance: Glance, real_glance: RealGlance
) -> None:
    uuid = real_glance.upload(gbs(), (TAG,), image().properties)
    found = glance.image(uuid)
    assert found.tags == (TAG,)
    assert found.properties.items() >= image().properties.items()
    assert bitstreams.faults(found, LARGEST) == ()
    assert bitstreams.read(found, LARGEST).image_id == uuid


def test_bitstreams_are_found_by_their_name_and_tag(
    glance: Glance, real_glance: RealGlance
) -> None:
    name = f'nlb-{uuid4()}'
    properties = {**image().properties, 'bs-name': name}
    tagged = real_glance.upload(gbs(), (TAG, 'other'), properties)
    real_glance.upload(gbs(), ('other',), properties)
    found = glance.bitstreams({'bs-name': name})
    assert [each.id for each in found] == [tagged]


def test_more_than_a_page_of_bitstreams_is_found(
    glance: Glance, real_glance: RealGlance
) -> None:
    board = f'board-{uuid4()}'
    properties = {**image().properties, 'board': board}
    made = {real_glance.upload(b'x', (TAG,), properties) for _ in range(27)}
    assert {each.id for each in glance.bitstreams({'board': board})} == made


def test_what_is_not_there_is_not_found(glance: Glance) -> None:
    with pytest.raises(NotFound):
        glance.image(str(uuid4()))


def test_the_host_gets_the_very_bytes(
    glance: Glance, real_glance: RealGlance, tmp_path: Path
) -> None:
    uuid = real_glance.upload(gbs(), (TAG,), image().properties)
    wanted = bitstreams.read(glance.image(uuid), LARGEST)
    cache = ImageCache(tmp_path, glance, largest=LARGEST, capacity=LARGEST)
    with cache.fetched(wanted) as path:
        assert path.read_bytes() == gbs()


def test_another_hash_than_was_promised_is_noticed(
    glance: Glance, real_glance: RealGlance
) -> None:
    uuid = real_glance.upload(gbs(), (TAG,), image().properties)
    with pytest.raises(RemoteError, match='came damaged'):
        list(glance.content(uuid, 'sha512', 'ab' * 64))


def test_an_image_that_went_meanwhile_leaves_nothing(
    glance: Glance, real_glance: RealGlance, tmp_path: Path
) -> None:
    uuid = real_glance.upload(gbs(), (TAG,), image().properties)
    wanted = bitstreams.read(glance.image(uuid), LARGEST)
    real_glance.delete(uuid)
    cache = ImageCache(tmp_path, glance, largest=LARGEST, capacity=LARGEST)
    with pytest.raises(BitstreamRefused), cache.fetched(wanted):
        pass
    assert list(tmp_path.iterdir()) == []
