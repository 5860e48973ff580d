# SPDX-License-Identifier: Apache-2.0
"""Bitstream files of both vendors, and Glance images that contain them."""

import hashlib
import json
import struct
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from cyborg_lite.model.bitstreams.bitstreams import (
    TAG,
    Bitstream,
    Image,
    parse_bitstream,
)

IMAGE_ID: Final = 'd5ca2f11-3108-4426-a11c-a959987565df'
ARRIA10_REGION: Final = '69528db6eb31577a8c3668f9faa081f6'
OTHER_FUNCTION: Final = 'f7df405cbd7acf7222f144b0b93acd18'
LARGEST: Final = 1 << 20


def gbs(
    interface: str = ARRIA10_REGION, function: str = OTHER_FUNCTION, clusters: int = 1
) -> bytes:
    """Return a file as Intel's tools write it."""
    cluster = {'accelerator-type-uuid': str(UUID(function)), 'name': 'nlb0'}
    metadata = {
        'version': 1,
        'platform-name': 'DCP',
        'afu-image': {
            'interface-uuid': str(UUID(interface)),
            'accelerator-clusters': [cluster] * clusters,
        },
    }
    text = json.dumps(metadata).encode()
    return b'XeonFPGA\xb7GBSv001' + struct.pack('<I', len(text)) + text + b'bits' * 8


def xclbin(interface: str, function: str, platform: str = 'xilinx_u250') -> bytes:
    """Return a file as Xilinx's tools write it: prefix, header and content."""
    total = 304 + 152 + 40
    header = struct.pack(
        '<QQQHBBI16s64s16s16sI4x',
        total,
        1,
        0,
        0,
        2,
        0,
        0,
        UUID(interface).bytes if interface else bytes(16),
        platform.encode(),
        UUID(function).bytes,
        b'',
        0,
    )
    prefix = b'xclbin2\0' + struct.pack('<i', -1) + b'\xff' * 28 + bytes(256 + 8)
    return prefix + header + bytes(40)


# Any: the fields of an image have various types.
def image(content: bytes | None = None, **changes: Any) -> Image:
    """Return a valid image for the Arria 10 cards of the fixture host.

    ``properties`` overrides the valid properties; a value of None removes one.
    """
    content = gbs() if content is None else content
    properties: dict[str, str | None] = {
        'bs-name': 'nlb-0',
        'bs-uuid': '11111111-2222-3333-4444-555555555555',
        'vendor': 'intel',
        'board': 'PAC_ARRIA10',
        'shell_id': '0x113000200000177',
        'version': '1.1',
        'driver_ver': '2.0',
        'driver_path': '/lib/modules/nlb.ko',
        'region_uuid': str(UUID(ARRIA10_REGION)),
        'function_uuid': str(UUID(OTHER_FUNCTION)),
        'function_name': 'loopback',
    }
    properties |= changes.pop('properties', {})
    sound = Image(
        id=IMAGE_ID,
        name='nlb-0 for Arria 10',
        status='active',
        tags=(TAG,),
        size=len(content),
        hash_algo='sha512',
        hash_value=hashlib.sha512(content).hexdigest(),
        properties={k: v for k, v in properties.items() if v is not None},
    )
    return replace(sound, **changes)


# Any: as above.
def bitstream(content: bytes | None = None, **changes: Any) -> Bitstream:
    return parse_bitstream(image(content, **changes), LARGEST)
