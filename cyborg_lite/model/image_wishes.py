# SPDX-License-Identifier: Apache-2.0
"""What the image of a server asks of its accelerators, by properties ``accel:...``.

The profile is the admin's and the image may be anybody's: what a group says stands, and
the image fills in what it leaves open.
"""

from collections.abc import Mapping
from typing import Final

from cyborg_lite.exceptions import InvalidDeviceProfile, InvalidInput
from cyborg_lite.model import group_keys
from cyborg_lite.model.bitstream_choice import KEYS, names_one
from cyborg_lite.model.device_profiles import Limits
from cyborg_lite.model.text import shown

_LIMITS: Final = Limits()


def asked(image: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Those properties that are for us, as they would stand in a group.

    :raises InvalidInput: one cannot stand there, or two contradict each other
    """
    found: dict[str, str] = {}
    for key, value in sorted(properties.items()):
        if not key.startswith('accel:'):
            continue
        try:
            entry = group_keys.read(f'image {image}', key, value, _LIMITS)
        except InvalidDeviceProfile as error:
            raise InvalidInput(reason=error.text) from None
        if entry is not None:
            found[entry[0]] = entry[1]
    if {'accel:bitstream_id', 'accel:function_id'} <= found.keys():
        reason = f'Image {shown(image)} has both accel:bitstream_id and '
        raise InvalidInput(reason=reason + 'accel:function_id; one is enough.')
    return found


def added(group: Mapping[str, str], wishes: Mapping[str, str]) -> dict[str, str]:
    """The group with what the image asks for beyond it.

    What is to be loaded is of groups that ask for an FPGA and name nothing themselves:
    a GPU of the same server has no use for it.
    """
    loads = _is_of_fpga(group) and not names_one(group)
    open_here = {key for key in wishes if loads or key not in KEYS} - group.keys()
    return {**group, **{key: wishes[key] for key in wishes if key in open_here}}


def _is_of_fpga(group: Mapping[str, str]) -> bool:
    asked_for = (key for key in group if not key.startswith('accel:'))
    return any('FPGA' in key for key in asked_for)
