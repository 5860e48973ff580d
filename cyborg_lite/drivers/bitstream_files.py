# SPDX-License-Identifier: Apache-2.0
"""What the files of bitstreams say of themselves, which counts above any property.

GBS is Intel's: a magic of 16 bytes, the length of a JSON text, that text, the bits
(OPAE SDK, ``bitstream.h``). xclbin is Xilinx's: a magic of 8 bytes and a header that
holds the UUID which the card shows once it is loaded (XRT, ``xclbin.h``).
"""

import json
import struct
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

_GBS_MAGIC: Final = b'XeonFPGA\xb7GBSv001'
_MOST_METADATA: Final = 4096  # bytes
_XCLBIN_MAGIC: Final = b'xclbin2\0'
# Where its fields begin, in bytes.
_XCLBIN_LENGTH: Final = 304
_XCLBIN_INTERFACE: Final = 336
_XCLBIN_PLATFORM: Final = 352
_XCLBIN_UUID: Final = 416
_XCLBIN_DEBUG: Final = 432


class NoBitstream(Exception):
    """The sentence says what is wrong with the file."""


@dataclass(frozen=True, slots=True)
class Header:
    """Ids are hex digits alone, in lower case; empty where the file has none."""

    interface_id: str
    function_id: str
    platform: str = ''


def gbs(path: Path) -> Header:
    """:raises NoBitstream: it is no GBS, or one with several functions"""
    with path.open('rb') as file:
        if file.read(len(_GBS_MAGIC)) != _GBS_MAGIC:
            raise NoBitstream('The file is no GBS.')
        (length,) = struct.unpack('<I', _exactly(file, 4))
        if not 0 < length < _MOST_METADATA:
            raise NoBitstream(f'The GBS has metadata of {length} bytes.')
        text = _exactly(file, length)
        if not file.read(1):
            raise NoBitstream('The GBS ends behind its metadata.')
    try:
        return _gbs_header(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise NoBitstream('The metadata of the GBS cannot be read.') from None


def _gbs_header(metadata: Any) -> Header:
    """Any: JSON of a type that a wrong access tells."""
    image = metadata['afu-image']
    clusters = image['accelerator-clusters']
    if len(clusters) != 1:
        raise NoBitstream(f'The GBS has {len(clusters)} functions, not one.')
    return Header(
        interface_id=uuid.UUID(image['interface-uuid']).hex,
        function_id=uuid.UUID(clusters[0]['accelerator-type-uuid']).hex,
        platform=str(metadata.get('platform-name', '')),
    )


def xclbin(path: Path) -> Header:
    """:raises NoBitstream: it is no xclbin, or not all of one"""
    with path.open('rb') as file:
        header = file.read(_XCLBIN_DEBUG)
    if not header.startswith(_XCLBIN_MAGIC):
        raise NoBitstream('The file is no xclbin.')
    if len(header) < _XCLBIN_DEBUG:
        raise NoBitstream('The xclbin ends within its header.')
    (length,) = struct.unpack_from('<Q', header, _XCLBIN_LENGTH)
    if length != path.stat().st_size:
        raise NoBitstream('The xclbin is not as long as it says.')
    vbnv = header[_XCLBIN_PLATFORM:_XCLBIN_UUID].partition(b'\0')[0]
    return Header(
        interface_id=_id_at(header, _XCLBIN_INTERFACE),
        function_id=_id_at(header, _XCLBIN_UUID),
        platform=vbnv.decode('ascii', 'replace'),
    )


def _id_at(header: bytes, where: int) -> str:
    raw = header[where : where + 16]
    return raw.hex() if raw.strip(b'\0') else ''


def _exactly(file: BinaryIO, size: int) -> bytes:
    found = file.read(size)
    if len(found) < size:
        raise NoBitstream('The GBS ends within its metadata.')
    return found
