# SPDX-License-Identifier: Apache-2.0
"""Tests of the doubles of Placement, Nova and Glance."""

import pytest

from cyborg_lite.clients.nova import BoundEvent
from cyborg_lite.errors.base import NotFound
from cyborg_lite.errors.daemons import RemoteError
from cyborg_lite.testing.crash_points import CrashPoint
from cyborg_lite.testing.fault_injection import ProcessCrash
from cyborg_lite.testing.peers import CrashableNova, FakeGlance
from tests.builders.bitstream_files import IMAGE_ID, image

CONTENT = b'bits'


def test_glance_finds_image_by_properties() -> None:
    glance = FakeGlance([(image(CONTENT), CONTENT)])
    assert glance.image(IMAGE_ID).id == IMAGE_ID
    assert [item.id for item in glance.bitstreams({'bs-name': 'nlb-0'})] == [IMAGE_ID]
    assert glance.bitstreams({'bs-name': 'other'}) == ()
    with pytest.raises(NotFound):
        glance.image('other')


def test_glance_content_with_wrong_hash_raises() -> None:
    valid = image(CONTENT)
    request = IMAGE_ID, 'sha512', str(valid.hash_value)
    assert b''.join(FakeGlance([(valid, CONTENT)]).content(*request)) == CONTENT
    with pytest.raises(RemoteError):
        list(FakeGlance([(valid, b'other')]).content(*request))


def test_nova_crash_after_post_keeps_event() -> None:
    crash_point = CrashPoint(1)
    nova, event = CrashableNova(crash_point), BoundEvent('server', 'arq', True)
    with crash_point.activate(), pytest.raises(ProcessCrash):
        nova.post_events([event])
    assert nova.events == [event]
