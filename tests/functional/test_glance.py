# SPDX-License-Identifier: Apache-2.0
"""Behaviour of a real Glance that the product relies on."""

from uuid import uuid4

import pytest

from cyborg_lite.clients.glance import Glance
from cyborg_lite.errors.base import NotFound
from cyborg_lite.errors.daemons import RemoteError
from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.bitstreams.bitstreams import TAG
from tests.builders.bitstream_files import LARGEST, gbs, image
from tests.servers.glance import RealGlance, build_client, real_glance

__all__ = ['real_glance']


@pytest.fixture
def glance(real_glance: RealGlance) -> Glance:
    return build_client(real_glance.endpoint)


def test_image_uploaded_is_parsed_as_bitstream(
    glance: Glance, real_glance: RealGlance
) -> None:
    uuid = real_glance.upload(gbs(), (TAG,), image().properties)
    images = glance.image(uuid)
    assert images.tags == (TAG,)
    assert images.properties.items() >= image().properties.items()
    assert bitstreams.list_image_faults(images, LARGEST) == ()
    assert bitstreams.parse_bitstream(images, LARGEST).image_id == uuid


def test_bitstreams_are_filtered_by_name_and_tag(
    glance: Glance, real_glance: RealGlance
) -> None:
    name = f'nlb-{uuid4()}'
    properties = {**image().properties, 'bs-name': name}
    tagged = real_glance.upload(gbs(), (TAG, 'other'), properties)
    real_glance.upload(gbs(), ('other',), properties)
    images = glance.bitstreams({'bs-name': name})
    assert [image_entry.id for image_entry in images] == [tagged]


def test_bitstreams_more_than_a_page_are_returned(
    glance: Glance, real_glance: RealGlance
) -> None:
    board = f'board-{uuid4()}'
    properties = {**image().properties, 'board': board}
    uploaded = {real_glance.upload(b'x', (TAG,), properties) for _ in range(27)}
    assert {
        image_entry.id for image_entry in glance.bitstreams({'board': board})
    } == uploaded


def test_image_unknown_raises_not_found(glance: Glance) -> None:
    with pytest.raises(NotFound):
        glance.image(str(uuid4()))


def test_content_with_other_hash_raises(
    glance: Glance, real_glance: RealGlance
) -> None:
    uuid = real_glance.upload(gbs(), (TAG,), image().properties)
    with pytest.raises(RemoteError, match='its hash differs'):
        list(glance.content(uuid, 'sha512', 'ab' * 64))
