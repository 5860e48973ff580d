# SPDX-License-Identifier: Apache-2.0
"""Image properties ``accel:...``, which extend the groups of a profile.

An administrator writes the profile, and any user may write the image. So the keys of a
group take precedence, and the image only adds keys that the group lacks.
"""

from collections.abc import Mapping
from typing import Final

from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.profiles import InvalidDeviceProfile
from cyborg_lite.model.profiles import group_keys
from cyborg_lite.model.profiles.device_profiles import BITSTREAM_KEYS, Group, Limits
from cyborg_lite.model.text import format_value

_LIMITS: Final = Limits()


def parse_image_properties(image: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the ``accel:`` properties of an image as keys of a group.

    :param image: id of the image, for error messages
    :raises InvalidInput: a property is invalid, or two properties contradict each other
    """
    keys: dict[str, str] = {}
    for key, value in sorted(properties.items()):
        if not key.startswith('accel:'):
            continue
        try:
            entry = group_keys.parse_entry(f'image {image}', key, value, _LIMITS)
        except InvalidDeviceProfile as error:
            raise InvalidInput(reason=error.text) from None
        if entry is not None:
            keys[entry[0]] = entry[1]
    if {'accel:bitstream_id', 'accel:function_id'} <= keys.keys():
        reason = f'Image {format_value(image)} has both accel:bitstream_id and '
        raise InvalidInput(reason=reason + 'accel:function_id; one is enough.')
    return keys


def add_image_properties(
    group: Mapping[str, str], image_keys: Mapping[str, str]
) -> dict[str, str]:
    """Return the mapping of a group with the keys that the image adds.

    Bitstream keys are added only to groups that request an FPGA and no bitstream: a GPU
    of the same instance cannot use them.
    """
    requested = Group.parse(group)
    accepts_bitstream = requested.requests_fpga and not requested.requests_bitstream
    additional = {
        key: value
        for key, value in image_keys.items()
        if key not in group and (accepts_bitstream or key not in BITSTREAM_KEYS)
    }
    return {**group, **additional}
