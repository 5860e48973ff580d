# SPDX-License-Identifier: Apache-2.0
"""Bitstreams on the disk of the host, each under its own digest.

What is there under a digest was checked against it, so nobody's word is needed when it
is used again. Nothing that an image says of itself becomes part of a path.
"""

import hashlib
import os
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol

from oslo_log import log

from cyborg_lite.exceptions import BitstreamRefused, DriverError, RemoteError
from cyborg_lite.model.bitstreams import Bitstream

LOG = log.getLogger(__name__)

_PART: Final = '.part'
_NAME: Final = re.compile(r'sha(?:256|384|512)-[0-9a-f]{64,128}')
_CHUNK: Final = 1 << 20  # bytes
_READ_ONLY: Final = 0o400


class Source(Protocol):
    """Glance, as far as it is needed here."""

    def content(self, uuid: str, algorithm: str, expected: str) -> Iterator[bytes]: ...


class ImageCache:
    """Bounded; what is in use now does not count as room."""

    def __init__(
        self, directory: Path, source: Source, *, largest: int, capacity: int
    ) -> None:
        """:param largest: bytes of one bitstream
        :param capacity: bytes of all that are kept
        """
        self._directory = directory
        self._source = source
        self._largest = largest
        self._capacity = capacity
        self._guard = threading.Lock()
        self._fetching: dict[str, threading.Lock] = {}
        self._in_use: Counter[str] = Counter()

    @contextmanager
    def fetched(self, bitstream: Bitstream) -> Iterator[Path]:
        """The file, which stays until the end of the block.

        :raises BitstreamRefused: it is too large, or not what it should be
        :raises ServiceUnavailable: Glance does not answer
        :raises DriverError: there is no room on the disk
        """
        name = _name(bitstream)
        with self._guard:
            self._in_use[name] += 1
            lock = self._fetching.setdefault(name, threading.Lock())
        try:
            with lock:
                path = self._directory / name
                if not _is_sound(path, bitstream):
                    self._fetch(bitstream, path)
            os.utime(path)
            yield path
        finally:
            with self._guard:
                self._in_use[name] -= 1

    def discard(self, bitstream: Bitstream) -> None:
        """It turned out to be no good."""
        with suppress(OSError):
            (self._directory / _name(bitstream)).unlink()

    def _fetch(self, bitstream: Bitstream, path: Path) -> None:
        if bitstream.size > self._largest:
            reason = f'Its {bitstream.size} bytes are more than the host takes.'
            raise BitstreamRefused(image=bitstream.image_id, reason=reason)
        part = path.with_name(path.name + _PART)
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._make_room(bitstream.size)
            self._download(bitstream, part)
            part.rename(path)
        except OSError as error:
            LOG.error('Cannot keep image %s: %s', bitstream.image_id, error)
            reason = f'Image {bitstream.image_id} cannot be kept on the host.'
            raise DriverError(reason=reason) from error
        except RemoteError as error:
            # Of what Glance sends that is not what it should be, the text says so.
            raise BitstreamRefused(
                image=bitstream.image_id, reason=error.text
            ) from error
        finally:
            with suppress(OSError):
                part.unlink()
        LOG.info('Fetched image %s, %d bytes.', bitstream.image_id, bitstream.size)

    def _download(self, bitstream: Bitstream, part: Path) -> None:
        part.unlink(missing_ok=True)  # of a process that died
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        room = bitstream.size
        with open(os.open(part, flags, _READ_ONLY), 'wb') as file:
            for piece in self._source.content(
                bitstream.image_id, bitstream.hash_algo, bitstream.hash_value
            ):
                room -= len(piece)
                if room < 0:
                    reason = f'It has more than the {bitstream.size} bytes it should.'
                    raise BitstreamRefused(image=bitstream.image_id, reason=reason)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        if not _is_sound(part, bitstream):
            reason = 'What was fetched has another hash than it should.'
            raise BitstreamRefused(image=bitstream.image_id, reason=reason)

    def _make_room(self, wanted: int) -> None:
        """Drop what was not used for longest; a file of our making, nothing else."""
        with self._guard:
            in_use = {name for name, users in self._in_use.items() if users > 0}
        kept = []
        for found in os.scandir(self._directory):
            name = found.name.removesuffix(_PART)
            if not _NAME.fullmatch(name):
                continue
            if name == found.name:
                kept.append((found.stat(follow_symlinks=False), Path(found.path)))
            elif name not in in_use:
                # Of a process that died.
                os.unlink(found.path)
        kept.sort(key=lambda entry: entry[0].st_mtime_ns)
        total = sum(status.st_size for status, _ in kept)
        for status, path in kept:
            if total + wanted <= self._capacity:
                return
            if path.name not in in_use:
                path.unlink(missing_ok=True)
                total -= status.st_size


def _name(bitstream: Bitstream) -> str:
    """:raises BitstreamRefused: its digest is none, so that it could be any path"""
    name = f'{bitstream.hash_algo}-{bitstream.hash_value}'
    if not _NAME.fullmatch(name):
        reason = 'It has no digest that can be trusted.'
        raise BitstreamRefused(image=bitstream.image_id, reason=reason)
    return name


def _is_sound(path: Path, bitstream: Bitstream) -> bool:
    """Whether the very bytes are there; what stood on a disk may have been damaged."""
    digest = hashlib.new(bitstream.hash_algo)
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), 'rb') as file:
            while piece := file.read(_CHUNK):
                digest.update(piece)
    except OSError:
        return False
    return digest.hexdigest() == bitstream.hash_value
