# SPDX-License-Identifier: Apache-2.0
"""A cache of bitstreams on disk, with the digest of each file as its name.

A file is checked against its digest before each use. No other property of an image
becomes part of a path.
"""

import hashlib
import os
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from oslo_log import log

from cyborg_lite.clients.glance import Glance
from cyborg_lite.errors.bitstreams import BitstreamRefused
from cyborg_lite.errors.daemons import RemoteError
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.bitstreams.bitstreams import Bitstream

LOG = log.getLogger(__name__)

_NEW_SUFFIX: Final = '.part'
_NAME: Final = re.compile(r'sha(?:256|384|512)-[0-9a-f]{64,128}')
_CHUNK_SIZE: Final = 1 << 20  # bytes
_READ_ONLY: Final = 0o400


class ImageCache:
    """Downloads bitstreams and deletes the least recently used ones.

    The total size is limited. Files in use are never deleted.
    """

    def __init__(
        self, directory: Path, source: Glance, *, largest: int, capacity: int
    ) -> None:
        self._directory = directory
        self._source = source
        self._largest = largest  # maximum size of one bitstream in bytes
        self._capacity = capacity  # maximum size of all bitstreams in bytes
        self._guard = threading.Lock()
        self._download_locks: dict[str, threading.Lock] = {}
        self._in_use: Counter[str] = Counter()

    @contextmanager
    def open_image(self, bitstream: Bitstream) -> Iterator[Path]:
        """Return the path of a bitstream, which exists until the end of the block.

        The bitstream is downloaded if it is not cached, or if its file is damaged.

        :raises BitstreamRefused: the bitstream is too large, or its hash differs
        :raises ServiceUnavailable: Glance does not answer
        :raises DriverError: the file cannot be written, e.g. because the disk is full
        """
        name = _file_name(bitstream)
        with self._guard:
            self._in_use[name] += 1
            lock = self._download_locks.setdefault(name, threading.Lock())
        try:
            with lock:
                path = self._directory / name
                if not _matches_digest(path, bitstream):
                    self._fetch(bitstream, path)
            with suppress(OSError):  # only the order of deletions depends on it
                os.utime(path)
            yield path
        finally:
            with self._guard:
                self._in_use[name] -= 1

    def discard(self, bitstream: Bitstream) -> None:
        """Delete a bitstream that a driver has refused, before it closes the file.

        Another device may be reading the file. The bitstream then stays.
        """
        name = _file_name(bitstream)
        with self._guard, suppress(OSError):
            if self._in_use[name] <= 1:
                (self._directory / name).unlink()

    def _fetch(self, bitstream: Bitstream, path: Path) -> None:
        if bitstream.size > self._largest:
            reason = (
                f'Its size is {bitstream.size} bytes; [agent] largest_image allows '
                f'{self._largest} bytes.'
            )
            raise BitstreamRefused(image=bitstream.image_id, reason=reason)
        new_file = path.with_name(path.name + _NEW_SUFFIX)
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._free_space(bitstream.size)
            self._download(bitstream, new_file)
            new_file.rename(path)
        except OSError as error:
            LOG.error('Cannot store image %s: %s', bitstream.image_id, error)
            reason = f'Image {bitstream.image_id} cannot be stored on the host.'
            raise DriverError(reason=reason) from error
        except RemoteError as error:
            # The text states why the content from Glance is not valid.
            raise BitstreamRefused(
                image=bitstream.image_id, reason=error.text
            ) from error
        finally:
            with suppress(OSError):
                new_file.unlink()
        LOG.info('Downloaded image %s, %d bytes', bitstream.image_id, bitstream.size)

    def _download(self, bitstream: Bitstream, new_file: Path) -> None:
        new_file.unlink(missing_ok=True)  # left by a process that crashed
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        remaining = bitstream.size
        with open(os.open(new_file, flags, _READ_ONLY), 'wb') as file:
            for chunk in self._source.content(
                bitstream.image_id, bitstream.hash_algo, bitstream.hash_value
            ):
                remaining -= len(chunk)
                if remaining < 0:
                    reason = f'Its content exceeds its size of {bitstream.size} bytes.'
                    raise BitstreamRefused(image=bitstream.image_id, reason=reason)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        if not _matches_digest(new_file, bitstream):
            reason = 'The hash of its content differs from os_hash_value.'
            raise BitstreamRefused(image=bitstream.image_id, reason=reason)

    def _free_space(self, size: int) -> None:
        """Delete the least recently used bitstreams until ``size`` bytes fit.

        Files with other names are never deleted.
        """
        with self._guard:
            in_use = {name for name, users in self._in_use.items() if users > 0}
        cached = []
        for entry in os.scandir(self._directory):
            name = entry.name.removesuffix(_NEW_SUFFIX)
            if not _NAME.fullmatch(name):
                continue
            if name == entry.name:
                cached.append((entry.stat(follow_symlinks=False), Path(entry.path)))
            elif name not in in_use:
                os.unlink(entry.path)  # left by a process that crashed
        cached.sort(key=lambda item: item[0].st_mtime_ns)
        total = sum(status.st_size for status, _ in cached)
        for status, path in cached:
            if total + size <= self._capacity:
                return
            if path.name not in in_use:
                path.unlink(missing_ok=True)
                total -= status.st_size


def _file_name(bitstream: Bitstream) -> str:
    """Return the file name of a bitstream.

    :raises BitstreamRefused: the digest is malformed and could form any path
    """
    name = f'{bitstream.hash_algo}-{bitstream.hash_value}'
    if not _NAME.fullmatch(name):
        reason = 'It has no SHA-2 digest of at least 256 bits.'
        raise BitstreamRefused(image=bitstream.image_id, reason=reason)
    return name


def _matches_digest(path: Path, bitstream: Bitstream) -> bool:
    """Check whether a file has the digest of a bitstream. The disk may be damaged."""
    digest = hashlib.new(bitstream.hash_algo)
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), 'rb') as file:
            while chunk := file.read(_CHUNK_SIZE):
                digest.update(chunk)
    except OSError:
        return False
    return digest.hexdigest() == bitstream.hash_value
