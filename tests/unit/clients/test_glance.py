# SPDX-License-Identifier: Apache-2.0
"""Images are found by what they are for, and come whole or not at all."""

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
from oslo_config import cfg

from cyborg_lite.clients.glance import Glance
from cyborg_lite.conf import glance as section
from cyborg_lite.exceptions import (
    ConfigurationError,
    NotFound,
    RemoteError,
    ServiceUnavailable,
)
from tests.fakes.http_service import Answer, HttpService

CONTENT = bytes(range(256)) * 8192


def stored(uuid: str = 'a', **more: Any) -> dict[str, Any]:
    """An image as Glance shows it."""
    return {
        'id': uuid,
        'name': 'an AFU',
        'status': 'active',
        'visibility': 'public',
        'owner': 'lab',
        'size': len(CONTENT),
        'os_hash_algo': 'sha512',
        'os_hash_value': hashlib.sha512(CONTENT).hexdigest(),
        'tags': ['x'],
        'protected': False,
        'accel:function_id': 'f00',
        **more,
    }


@pytest.fixture
def service() -> Iterator[HttpService]:
    with HttpService() as service:
        service.answers['GET /v2/images/a'] = Answer(body=stored())
        service.answers['GET /v2/images/a/file'] = Answer(body=CONTENT)
        yield service


def configured(endpoint: str | None) -> Glance:
    conf = cfg.ConfigOpts()
    conf.register_opts(section.OPTIONS, group=section.GROUP)
    conf([])
    conf.set_override('endpoint_override', endpoint, group=section.GROUP)
    conf.set_override('connect_retries', 0, group=section.GROUP)
    return Glance.configured(conf)


@pytest.fixture
def glance(service: HttpService) -> Glance:
    return configured(service.url)


def read(glance: Glance) -> list[bytes]:
    image = glance.image('a')
    algorithm, expected = image.hash_algo or '', image.hash_value or ''
    return list(glance.content('a', algorithm, expected))


def test_an_empty_section_is_a_mistake_in_the_configuration() -> None:
    with pytest.raises(ConfigurationError, match=r'\[glance\]'):
        configured(None)


def test_an_image_is_told_with_what_its_maker_said(glance: Glance) -> None:
    image = glance.image('a')
    assert (image.id, image.name, image.size) == ('a', 'an AFU', len(CONTENT))
    assert image.tags == ('x',)
    assert image.properties == {'accel:function_id': 'f00'}


def test_an_image_that_is_not_there_is_not_found(glance: Glance) -> None:
    with pytest.raises(NotFound, match='Image b not found'):
        glance.image('b')


def test_images_are_found_by_their_properties_page_by_page(
    glance: Glance, service: HttpService
) -> None:
    first = '/v2/images?accel%3Afunction_id=f00&tag=FPGA&status=active'
    second = '/v2/images?marker=a'
    service.answers[f'GET {first}'] = Answer(
        body={'images': [stored('a')], 'next': second}
    )
    service.answers[f'GET {second}'] = Answer(body={'images': [stored('b')]})
    found = glance.bitstreams({'accel:function_id': 'f00'})
    assert [image.id for image in found] == ['a', 'b']


def test_content_comes_in_pieces_and_whole(glance: Glance) -> None:
    pieces = read(glance)
    assert len(pieces) > 1
    assert b''.join(pieces) == CONTENT


def test_content_that_was_damaged_is_refused(
    glance: Glance, service: HttpService
) -> None:
    service.answers['GET /v2/images/a/file'] = Answer(body=CONTENT[:-1] + b'?')
    with pytest.raises(RemoteError, match='came damaged'):
        read(glance)


def test_an_image_without_content_is_refused(
    glance: Glance, service: HttpService
) -> None:
    service.answers['GET /v2/images/a/file'] = Answer(204)
    with pytest.raises(RemoteError, match='without content'):
        read(glance)


def test_content_without_a_hash_is_refused(
    glance: Glance, service: HttpService
) -> None:
    service.answers['GET /v2/images/a'] = Answer(
        body=stored(os_hash_algo=None, os_hash_value=None)
    )
    with pytest.raises(RemoteError, match='no hash'):
        read(glance)


def test_content_that_breaks_off_is_an_unavailable_glance(
    glance: Glance, service: HttpService
) -> None:
    service.answers['GET /v2/images/a/file'] = Answer(
        body=b'rubbish', headers={'Transfer-Encoding': 'chunked'}
    )
    with pytest.raises(ServiceUnavailable, match='Glance'):
        read(glance)
