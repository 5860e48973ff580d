# SPDX-License-Identifier: Apache-2.0
"""What stands for the other services answers as they do."""

import pytest

from cyborg_lite.clients.nova import BoundEvent
from cyborg_lite.crash_kit.fate import Fate
from cyborg_lite.crash_kit.peers import AllocatingPlacement, MortalNova, Shelf
from cyborg_lite.drivers.kit_faults import Death
from cyborg_lite.exceptions import NotFound, RemoteError
from tests.fakes.bitstream_files import IMAGE_ID, image

CONTENT = b'bits'


def test_an_image_is_found_by_what_it_says() -> None:
    shelf = Shelf([(image(CONTENT), CONTENT)])
    assert shelf.image(IMAGE_ID).id == IMAGE_ID
    assert [one.id for one in shelf.bitstreams({'bs-name': 'nlb-0'})] == [IMAGE_ID]
    assert shelf.bitstreams({'bs-name': 'other'}) == ()
    with pytest.raises(NotFound):
        shelf.image('other')


def test_content_is_checked_against_its_hash() -> None:
    sound = image(CONTENT)
    wanted = IMAGE_ID, 'sha512', str(sound.hash_value)
    assert b''.join(Shelf([(sound, CONTENT)]).content(*wanted)) == CONTENT
    with pytest.raises(RemoteError):
        list(Shelf([(sound, b'other')]).content(*wanted))


def test_nova_has_heard_although_the_answer_was_lost() -> None:
    fate = Fate(1)
    nova, event = MortalNova(fate), BoundEvent('server', 'arq', True)
    with fate.at_large(), pytest.raises(Death):
        nova.post_events([event])
    assert nova.heard == [event]


def test_every_server_has_its_allocation() -> None:
    consumer = AllocatingPlacement(Fate(), 'provider').consumer('server')
    assert consumer is not None
    assert consumer.providers == {'provider'}
