# SPDX-License-Identifier: Apache-2.0
"""Client of Glance: finds and downloads images that contain FPGA bitstreams."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

from oslo_config import cfg

from cyborg_lite.clients import session
from cyborg_lite.errors.base import NotFound
from cyborg_lite.errors.daemons import RemoteError
from cyborg_lite.model.bitstreams.bitstreams import TAG, Image

_CHUNK_SIZE: Final = 1 << 20  # bytes
_MAX_IMAGES: Final = 1000  # upper bound of the images that one search returns

# Keys that Glance defines for every image. All other keys are custom properties.
_STANDARD_KEYS: Final = frozenset(
    {
        'checksum',
        'container_format',
        'created_at',
        'direct_url',
        'disk_format',
        'file',
        'id',
        'locations',
        'min_disk',
        'min_ram',
        'name',
        'os_hash_algo',
        'os_hash_value',
        'os_hidden',
        'owner',
        'protected',
        'schema',
        'self',
        'size',
        'status',
        'stores',
        'tags',
        'updated_at',
        'virtual_size',
        'visibility',
    }
)


class Glance:
    """Client of Glance.

    Every method raises ServiceUnavailable if Glance or Keystone does not answer, and
    RemoteError if either returns an unexpected status.
    """

    def __init__(self, remote: session.Remote) -> None:
        self._remote = remote

    @classmethod
    def from_config_if_set(cls, conf: cfg.ConfigOpts) -> Self | None:
        """Create a client, or return None if section ``[glance]`` is empty."""
        remote = session.connect(conf, 'glance', 'Glance')
        return None if remote is None else cls(remote)

    def image(self, uuid: str) -> Image:
        """Return the image.

        :raises NotFound: the image does not exist or is not visible to this service
        """
        response = self._remote.send('GET', f'/v2/images/{quote(uuid)}', accept=(404,))
        if response.status_code == 404:
            raise NotFound(what='Image', name=uuid)
        return _image(self._remote.read(response))

    def bitstreams(self, properties: Mapping[str, str]) -> tuple[Image, ...]:
        """Return the active images with the bitstream tag and all given properties.

        Sends one request per page. At most about 1000 images are returned.
        """
        images: list[Image] = []
        query = urlencode({**properties, 'tag': TAG, 'status': 'active'})
        path: str | None = f'/v2/images?{query}'
        while path is not None and len(images) < _MAX_IMAGES:
            page = self._remote.read(self._remote.send('GET', path))
            images += map(_image, page['images'])
            path = page.get('next')
        return tuple(images)

    def content(self, uuid: str, algorithm: str, expected: str) -> Iterator[bytes]:
        """Yield the content of an image in chunks of at most 1 MiB.

        The hash is checked after the last chunk.

        :param algorithm: name of the hash algorithm, as in ``os_hash_algo``
        :param expected: hash of the content in hexadecimal digits
        :raises RemoteError: the image has no content, or the hash differs
        """
        path = f'/v2/images/{quote(uuid)}/file'
        digest = _create_digest(uuid, algorithm)
        with closing(self._remote.send('GET', path, stream=True)) as response:
            chunks = response.iter_content(_CHUNK_SIZE)
            while True:
                # Only errors of next() come from Glance; errors of the consumer, which
                # runs during the yield, must not be translated.
                with self._remote.translate_errors():
                    chunk = next(chunks, b'')
                if not chunk:
                    break
                digest.update(chunk)
                yield chunk
        if expected != digest.hexdigest():
            reason = f'image {uuid} has no content, or its hash differs'
            raise RemoteError(
                service='Glance', status=response.status_code, reason=reason
            )


def _create_digest(uuid: str, algorithm: str) -> Any:
    """Create a hash object. hashlib does not export the type of its objects.

    :raises RemoteError: the algorithm is not supported
    """
    try:
        return hashlib.new(algorithm)
    except ValueError:
        reason = f'image {uuid} has no hash of a supported algorithm'
        raise RemoteError(service='Glance', status=200, reason=reason) from None


def _image(body: Any) -> Image:
    """Convert an image of the Image API v2 in JSON."""
    return Image(
        id=body['id'],
        name=body.get('name'),
        status=body['status'],
        tags=tuple(body.get('tags') or ()),
        size=body.get('size'),
        hash_algo=body.get('os_hash_algo'),
        hash_value=body.get('os_hash_value'),
        properties={
            key: value
            for key, value in body.items()
            if key not in _STANDARD_KEYS and isinstance(value, str)
        },
    )
