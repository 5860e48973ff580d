# SPDX-License-Identifier: Apache-2.0
"""Tests of the Glance client: image search and verified content."""

import hashlib
from typing import Any

import pytest
from oslo_config import cfg

from cyborg_lite.clients.glance import Glance
from cyborg_lite.conf import glance as section
from cyborg_lite.errors.daemons import RemoteError, ServiceUnavailable
from tests.doubles.http_service import Answer, HttpService

CONTENT = bytes(range(256)) * 8192


def build_image_body(uuid: str = 'a', **fields: Any) -> dict[str, Any]:
    """Return an image as Glance shows it."""
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
        **fields,
    }


def create_client(endpoint: str | None) -> Glance | None:
    conf = cfg.ConfigOpts()
    conf.register_opts(section.OPTIONS, group=section.GROUP)
    conf([])
    conf.set_override('endpoint_override', endpoint, group=section.GROUP)
    conf.set_override('connect_retries', 0, group=section.GROUP)
    return Glance.from_config_if_set(conf)


@pytest.fixture
def glance(service: HttpService) -> Glance:
    """Return a client of a service with the image a."""
    service.answers['GET /v2/images/a'] = Answer(body=build_image_body())
    service.answers['GET /v2/images/a/file'] = Answer(body=CONTENT)
    client = create_client(service.url)
    assert client is not None
    return client


def read_content(glance: Glance) -> list[bytes]:
    image = glance.image('a')
    algorithm, expected = image.hash_algo or '', image.hash_value or ''
    return list(glance.content('a', algorithm, expected))


def test_from_config_of_empty_section_is_none() -> None:
    assert create_client(None) is None


def test_content_is_returned_in_several_chunks(glance: Glance) -> None:
    chunks = read_content(glance)
    assert len(chunks) > 1
    assert b''.join(chunks) == CONTENT


def test_content_with_wrong_hash_raises(glance: Glance, service: HttpService) -> None:
    service.answers['GET /v2/images/a/file'] = Answer(body=CONTENT[:-1] + b'?')
    with pytest.raises(RemoteError, match='its hash differs'):
        read_content(glance)


def test_content_of_empty_image_raises(glance: Glance, service: HttpService) -> None:
    service.answers['GET /v2/images/a/file'] = Answer(204)
    with pytest.raises(RemoteError, match='has no content'):
        read_content(glance)


def test_content_without_hash_raises(glance: Glance, service: HttpService) -> None:
    service.answers['GET /v2/images/a'] = Answer(
        body=build_image_body(os_hash_algo=None, os_hash_value=None)
    )
    with pytest.raises(RemoteError, match='no hash'):
        read_content(glance)


def test_page_of_proxy_raises_service_unavailable(
    glance: Glance, service: HttpService
) -> None:
    service.answers['GET /v2/images/a'] = Answer(200, b'<html>Sign in</html>')
    service.answers['GET /v2/images?tag=FPGA&status=active'] = Answer(200, b'{"im')
    with pytest.raises(ServiceUnavailable):
        glance.image('a')
    with pytest.raises(ServiceUnavailable):
        glance.bitstreams({})
