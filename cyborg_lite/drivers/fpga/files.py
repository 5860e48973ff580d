# SPDX-License-Identifier: Apache-2.0
"""Headers of bitstream files. They take precedence over Glance image properties.

GBS, of Intel: 16 bytes magic, 4 bytes length of a JSON text, the text, the bitstream
(OPAE SDK, ``bitstream.h``). xclbin, of Xilinx: 8 bytes magic and a header with the uuid
that the card shows after the file is loaded (XRT, ``xclbin.h``).
"""

import json
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

_GBS_MAGIC: Final = b'XeonFPGA\xb7GBSv001'
_MAX_METADATA: Final = 4096  # bytes
_XCLBIN_MAGIC: Final = b'xclbin2\0'
# Offsets of header fields, in bytes.
_XCLBIN_LENGTH: Final = 304
_XCLBIN_INTERFACE: Final = 336
_XCLBIN_PLATFORM: Final = 352
_XCLBIN_UUID: Final = 416
_XCLBIN_DEBUG: Final = 432


class InvalidBitstreamFile(Exception):
    """A file is not a bitstream of the expected format; the text says why."""


@dataclass(frozen=True, slots=True)
class BitstreamHeader:
    """Ids of a bitstream: lower-case hex digits, empty if the file has none."""

    interface_id: str  # of the region or shell that the bitstream fits
    function_id: str
    platform: str = ''  # name of the board or platform


# Reads the header of a file, or raises InvalidBitstreamFile.
ReadsHeader: TypeAlias = Callable[[Path], BitstreamHeader]


def read_gbs(path: Path) -> BitstreamHeader:
    """Read the header of a GBS file.

    :raises InvalidBitstreamFile: it is not a GBS, or contains several functions
    """
    with path.open('rb') as file:
        if file.read(len(_GBS_MAGIC)) != _GBS_MAGIC:
            raise InvalidBitstreamFile('The file is not a GBS.')
        (length,) = struct.unpack('<I', _read_exactly(file, 4))
        if not 0 < length < _MAX_METADATA:
            raise InvalidBitstreamFile(f'The GBS has metadata of {length} bytes.')
        text = _read_exactly(file, length)
        if not file.read(1):
            raise InvalidBitstreamFile('The GBS ends after its metadata.')
    try:
        return _gbs_header(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidBitstreamFile('The metadata of the GBS cannot be read.') from None


# Any: JSON of any shape; the caller handles the errors of a wrong access.
def _gbs_header(metadata: Any) -> BitstreamHeader:
    image = metadata['afu-image']
    clusters = image['accelerator-clusters']
    if len(clusters) != 1:
        raise InvalidBitstreamFile(
            f'The GBS has {len(clusters)} functions instead of one.'
        )
    return BitstreamHeader(
        interface_id=uuid.UUID(image['interface-uuid']).hex,
        function_id=uuid.UUID(clusters[0]['accelerator-type-uuid']).hex,
        platform=str(metadata.get('platform-name', '')),
    )


def read_xclbin(path: Path) -> BitstreamHeader:
    """Read the header of an xclbin file.

    :raises InvalidBitstreamFile: it is not an xclbin, or is truncated
    """
    with path.open('rb') as file:
        header = file.read(_XCLBIN_DEBUG)
    if not header.startswith(_XCLBIN_MAGIC):
        raise InvalidBitstreamFile('The file is not an xclbin.')
    if len(header) < _XCLBIN_DEBUG:
        raise InvalidBitstreamFile('The xclbin ends within its header.')
    (length,) = struct.unpack_from('<Q', header, _XCLBIN_LENGTH)
    if length != path.stat().st_size:
        raise InvalidBitstreamFile('The length of the xclbin differs from its header.')
    vbnv = header[_XCLBIN_PLATFORM:_XCLBIN_UUID].partition(b'\0')[0]
    return BitstreamHeader(
        interface_id=_id_at(header, _XCLBIN_INTERFACE),
        function_id=_id_at(header, _XCLBIN_UUID),
        platform=vbnv.decode('ascii', 'replace'),
    )


def _id_at(header: bytes, offset: int) -> str:
    raw = header[offset : offset + 16]
    return raw.hex() if raw.strip(b'\0') else ''


def _read_exactly(file: BinaryIO, size: int) -> bytes:
    content = file.read(size)
    if len(content) < size:
        raise InvalidBitstreamFile('The GBS ends within its metadata.')
    return content
