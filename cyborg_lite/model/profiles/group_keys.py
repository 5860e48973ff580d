# SPDX-License-Identifier: Apache-2.0
"""Grammar of the keys in a group of a device profile.

    resources:X  X is FPGA, GPU, VGPU, PGPU or CUSTOM_..., the value a positive number
    trait:X      X is CUSTOM_... or, where the limits name any, a standard trait, the
                 value ``required`` or ``forbidden``
    accel:x      for the driver; the values of some keys are validated

Names of resource classes and traits are converted to the form of Placement: upper case,
with underscores instead of hyphens.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.profiles import InvalidDeviceProfile
from cyborg_lite.model import uuids
from cyborg_lite.model.inventory.host_report import CleaningPolicy
from cyborg_lite.model.profiles.device_profiles import (
    BITSTREAM_KEYS,
    TOLERATED,
    AttachTarget,
    Group,
    Limits,
    refuse,
)
from cyborg_lite.model.profiles.renames import RENAMED_KEYS
from cyborg_lite.model.text import format_value, is_storable

_WORD: Final = re.compile(r'[A-Za-z0-9_-]+')
_FILE_NAME: Final = re.compile(r'[A-Za-z0-9_.-]+')
_CUSTOM: Final = re.compile(r'CUSTOM_[A-Z0-9_]+')
_DIGITS: Final = re.compile(r'[0-9]{1,20}')
_STANDARD_CLASSES: Final = frozenset({'FPGA', 'GPU', 'VGPU', 'PGPU'})
_TRAIT_VALUES: Final = frozenset({'required', 'forbidden'})
_ATTACH_TARGETS: Final = frozenset(AttachTarget)
# Not `always`: it cleans a unit also before the first use, when its profile is unknown.
_CLEANING_POLICIES: Final = frozenset(CleaningPolicy) - {CleaningPolicy.ALWAYS}
_MAX_PLACEMENT_LENGTH: Final = 255

_Entry = tuple[str, str]


def parse_entry(
    group_name: str, key: object, value: object, limits: Limits
) -> _Entry | None:
    """Return the validated key and value, or None if an ``accel:`` value is null.

    :param group_name: name of the group in error messages
    :raises InvalidDeviceProfile: the key or the value is invalid
    """
    group_name = f'{group_name}: {format_value(key)}'
    kind, colon, name = key.partition(':') if isinstance(key, str) else ('', '', '')
    if colon and kind == 'resources':
        return _resource(group_name, name, value, limits.accelerators)
    if colon and kind == 'trait':
        return _trait(group_name, name, value, limits.standard_traits)
    if colon and kind == 'accel':
        return _accel(group_name, name, value, limits)
    refuse(group_name, 'must start with resources:, trait: or accel:')


def _resource(group_name: str, name: str, value: object, limit: int) -> _Entry:
    name = _normalize_name(name)
    if name not in _STANDARD_CLASSES and not _is_custom(name):
        refuse(group_name, 'must name FPGA, GPU, VGPU, PGPU or a class CUSTOM_...')
    amount = _amount(value)
    if amount is None or not 1 <= amount <= limit:
        refuse(group_name, f'must be a whole number from 1 to {limit}')
    return f'resources:{name}', str(amount)


def _amount(value: object) -> int | None:
    # In Python bool is a subclass of int.
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    return None


def _trait(
    group_name: str, name: str, value: object, standard: frozenset[str]
) -> _Entry:
    name = _normalize_name(name)
    if name not in standard and not _is_custom(name):
        also = ' or one of os-traits' if standard else ''
        refuse(group_name, f'must name a trait CUSTOM_...{also}')
    if not isinstance(value, str) or value not in _TRAIT_VALUES:
        refuse(group_name, 'must be required or forbidden')
    return f'trait:{name}', value


def _normalize_name(name: str) -> str:
    name = name.strip()
    # upper() converts some letters that are not ASCII, such as a dotless i, to ASCII.
    return name.upper().replace('-', '_') if name.isascii() else name


def _is_custom(name: str) -> bool:
    fits = _CUSTOM.fullmatch(name) is not None
    return fits and len(name) <= _MAX_PLACEMENT_LENGTH


def list_accel_names() -> frozenset[str]:
    """Return the names after ``accel:`` that this service reads."""
    former = (key.removeprefix('accel:') for key in RENAMED_KEYS)
    return frozenset([*_RULES, *former])


def _accel(group_name: str, name: str, value: object, limits: Limits) -> _Entry | None:
    is_compiled = name == 'selector' and limits.attributes is not None
    longest = limits.selector if is_compiled else limits.value
    if not _WORD.fullmatch(name) or len(name) > longest:
        fault = 'must have letters, digits, hyphens and underscores after accel:'
        refuse(group_name, fault)
    if limits.accel_keys and name not in limits.accel_keys:
        nearest = difflib.get_close_matches(name, sorted(limits.accel_keys), 1)
        hint = f'; did you mean accel:{nearest[0]}?' if nearest else ''
        refuse(group_name, f'is no known key{hint}')
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > longest or not is_storable(value):
        fault = f'must be a string of at most {longest} characters, without NUL'
        refuse(group_name, fault)
    rule = _RULES.get(name, _ANYTHING)
    valid = rule.parse(value)
    if valid is None:
        refuse(group_name, f'must be {rule.description}')
    return f'accel:{name}', valid


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule for the value of an ``accel:`` key."""

    description: str
    parse: Callable[[str], str | None]  # None: the value is invalid


def _match(pattern: re.Pattern[str]) -> Callable[[str], str | None]:
    return lambda value: value if pattern.fullmatch(value) else None


_ANYTHING: Final = _Rule('a string', lambda value: value)
_A_WORD: Final = _Rule('of letters, digits, hyphens, underscores', _match(_WORD))
_RULES: Final[Mapping[str, _Rule]] = {
    'bitstream_id': _Rule('the UUID of an image', uuids.normalize_uuid),
    'bitstream_name': _Rule(
        'of letters, digits, hyphens, underscores and dots', _match(_FILE_NAME)
    ),
    'function_id': _A_WORD,
    'function_name': _A_WORD,
    'attach_target': _Rule(
        'VM, host or none', lambda value: value if value in _ATTACH_TARGETS else None
    ),
    'cleaning': _Rule(
        'never, after-use or one-time',
        lambda value: value if value in _CLEANING_POLICIES else None,
    ),
    'tolerates': _Rule(
        'degraded or none', lambda value: value if value in TOLERATED else None
    ),
}


# --- image properties ``accel:...``, which extend the groups of a profile ---
#
# An administrator writes the profile, and any user may write the image. So the keys of
# a group take precedence, and the image only adds keys that the group lacks.


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
            entry = parse_entry(f'image {image}', key, value, _LIMITS)
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
