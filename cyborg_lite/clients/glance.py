# SPDX-License-Identifier: Apache-2.0
"""Finds and fetches images: the bitstreams that FPGAs are programmed with."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

from oslo_config import cfg

from cyborg_lite.clients import session
from cyborg_lite.exceptions import ConfigurationError, NotFound, RemoteError
from cyborg_lite.model.bitstreams import TAG, Image

_CHUNK: Final = 1 << 20  # bytes
_MOST_IMAGES: Final = 1000  # that are looked at to find one bitstream

# What Glance itself says of every image; all else was said by who made it.
_OWN: Final = frozenset(
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
    """Every method raises ServiceUnavailable when Glance, or what is before it, does
    not answer, and RemoteError when it refuses for a reason that we do not foresee."""

    def __init__(self, remote: session.Remote) -> None:
        self._remote = remote

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts) -> Self:
        """By the section ``[glance]``.

        :raises ConfigurationError: the section is empty
        """
        found = cls.if_configured(conf)
        if found is None:
            raise ConfigurationError(
                reason='Section [glance] gives neither auth_type nor endpoint_override.'
            )
        return found

    @classmethod
    def if_configured(cls, conf: cfg.ConfigOpts) -> Self | None:
        """As ``configured``; None: the section is empty, there are no bitstreams."""
        remote = session.connect(conf, 'glance', 'Glance')
        return None if remote is None else cls(remote)

    def image(self, uuid: str) -> Image:
        """:raises NotFound: there is none, or not for us"""
        answer = self._remote.send('GET', f'/v2/images/{quote(uuid)}', accept=(404,))
        if answer.status_code == 404:
            raise NotFound(what='Image', name=uuid)
        return _image(answer.json())

    def bitstreams(self, properties: Mapping[str, str]) -> tuple[Image, ...]:
        """All active images tagged as bitstreams that have these properties.

        One request a page; of a great many only the first are told.
        """
        found: list[Image] = []
        query = urlencode({**properties, 'tag': TAG, 'status': 'active'})
        path: str | None = f'/v2/images?{query}'
        while path is not None and len(found) < _MOST_IMAGES:
            said = self._remote.send('GET', path).json()
            found += map(_image, said['images'])
            path = said.get('next')
        return tuple(found)

    def content(self, uuid: str, algorithm: str, expected: str) -> Iterator[bytes]:
        """The image in pieces, checked against its hash when the last one is read.

        :raises RemoteError: it has no content, or other content than it should have
        """
        path = f'/v2/images/{quote(uuid)}/file'
        digest = _digest(uuid, algorithm)
        with closing(self._remote.send('GET', path, stream=True)) as answer:
            pieces = answer.iter_content(_CHUNK)
            while True:
                # Not around the whole loop: errors of the reader are not Glance's.
                with self._remote.translated():
                    piece = next(pieces, b'')
                if not piece:
                    break
                digest.update(piece)
                yield piece
        if expected != digest.hexdigest():
            reason = f'image {uuid} came damaged, or without content'
            raise RemoteError(
                service='Glance', status=answer.status_code, reason=reason
            )


def _digest(uuid: str, algorithm: str) -> Any:
    """The library does not name the type of its hashes.

    :raises RemoteError: it is hashed in a way that we cannot check
    """
    try:
        return hashlib.new(algorithm)
    except ValueError:
        reason = f'image {uuid} has no hash that can be checked'
        raise RemoteError(service='Glance', status=200, reason=reason) from None


def _image(said: Any) -> Image:
    """What Glance sends is JSON in the form of version 2."""
    return Image(
        id=said['id'],
        name=said.get('name'),
        status=said['status'],
        tags=tuple(said.get('tags') or ()),
        size=said.get('size'),
        hash_algo=said.get('os_hash_algo'),
        hash_value=said.get('os_hash_value'),
        properties={
            key: value
            for key, value in said.items()
            if key not in _OWN and isinstance(value, str)
        },
    )
