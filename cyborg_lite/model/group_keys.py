# SPDX-License-Identifier: Apache-2.0
"""The keys inside of a group of a device profile.

    resources:X  X is FPGA, GPU, VGPU, PGPU or CUSTOM_..., the value a positive number
    trait:X      X is CUSTOM_... or, where the limits name any, a standard trait, the
                 value ``required`` or ``forbidden``
    accel:x      for the driver; some keys are known, and their values are checked

Names of resource classes and traits are brought to the form that Placement has: upper
case, underscores for hyphens.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from cyborg_lite.exceptions import InvalidDeviceProfile
from cyborg_lite.model import uuids
from cyborg_lite.model.device_profiles import AttachTarget, Limits
from cyborg_lite.model.text import is_storable, shown

_WORD: Final = re.compile(r'[A-Za-z0-9_-]+')
_FILE_NAME: Final = re.compile(r'[A-Za-z0-9_.-]+')
_CUSTOM: Final = re.compile(r'CUSTOM_[A-Z0-9_]+')
_DIGITS: Final = re.compile(r'[0-9]{1,20}')
_STANDARD_CLASSES: Final = frozenset({'FPGA', 'GPU', 'VGPU', 'PGPU'})
_TRAIT_VALUES: Final = frozenset({'required', 'forbidden'})
_ATTACH_TARGETS: Final = frozenset(AttachTarget)
_LONGEST_IN_PLACEMENT: Final = 255

_Entry = tuple[str, str]


def read(where: str, key: object, value: object, limits: Limits) -> _Entry | None:
    """What is kept of a key and its value; None: nothing, as it was given none.

    :param where: the group, as it stands in messages
    :raises InvalidDeviceProfile: with the key and what is allowed
    """
    where = f'{where}: {shown(key)}'
    kind, colon, name = key.partition(':') if isinstance(key, str) else ('', '', '')
    if colon and kind == 'resources':
        return _resource(where, name, value, limits.accelerators)
    if colon and kind == 'trait':
        return _trait(where, name, value, limits.standard_traits)
    if colon and kind == 'accel':
        return _accel(where, name, value, limits.value)
    raise InvalidDeviceProfile(
        reason=f'{where} must start with resources:, trait: or accel:'
    )


def _resource(where: str, name: str, value: object, most: int) -> _Entry:
    name = _as_placement_has_it(name)
    if name not in _STANDARD_CLASSES and not _is_custom(name):
        raise InvalidDeviceProfile(
            reason=f'{where} must name FPGA, GPU, VGPU, PGPU or a class CUSTOM_...'
        )
    amount = _amount(value)
    if amount is None or not 1 <= amount <= most:
        raise InvalidDeviceProfile(
            reason=f'{where} must be a whole number from 1 to {most}'
        )
    return f'resources:{name}', str(amount)


def _amount(value: object) -> int | None:
    # JSON has numbers that are no integers, and bool is an int to Python.
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    return None


def _trait(where: str, name: str, value: object, standard: frozenset[str]) -> _Entry:
    name = _as_placement_has_it(name)
    if name not in standard and not _is_custom(name):
        also = ' or one of os-traits' if standard else ''
        raise InvalidDeviceProfile(reason=f'{where} must name a trait CUSTOM_...{also}')
    if not isinstance(value, str) or value not in _TRAIT_VALUES:
        raise InvalidDeviceProfile(reason=f'{where} must be required or forbidden')
    return f'trait:{name}', value


def _as_placement_has_it(name: str) -> str:
    name = name.strip()
    # Upper case makes ASCII of some letters that are none, e.g. of a dotless i.
    return name.upper().replace('-', '_') if name.isascii() else name


def _is_custom(name: str) -> bool:
    fits = _CUSTOM.fullmatch(name) is not None
    return fits and len(name) <= _LONGEST_IN_PLACEMENT


def _accel(where: str, name: str, value: object, longest: int) -> _Entry | None:
    if not _WORD.fullmatch(name) or len(name) > longest:
        raise InvalidDeviceProfile(
            reason=f'{where} must have letters, digits, hyphens and underscores '
            f'after accel:'
        )
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > longest or not is_storable(value):
        raise InvalidDeviceProfile(
            reason=f'{where} must be a string of at most {longest} characters, '
            f'without NUL'
        )
    known = _KNOWN.get(name, _ANYTHING)
    kept = known.read(value)
    if kept is None:
        raise InvalidDeviceProfile(reason=f'{where} must be {known.what}')
    return f'accel:{name}', kept


@dataclass(frozen=True, slots=True)
class _Meaning:
    what: str
    read: Callable[[str], str | None]  # None: not what it must be


def _fitting(pattern: re.Pattern[str]) -> Callable[[str], str | None]:
    return lambda value: value if pattern.fullmatch(value) else None


_ANYTHING: Final = _Meaning('a string', lambda value: value)
_A_WORD: Final = _Meaning('of letters, digits, hyphens, underscores', _fitting(_WORD))
_KNOWN: Final[Mapping[str, _Meaning]] = {
    'bitstream_id': _Meaning('the UUID of an image', uuids.canonical),
    'bitstream_name': _Meaning(
        'of letters, digits, hyphens, underscores and dots', _fitting(_FILE_NAME)
    ),
    'function_id': _A_WORD,
    'function_name': _A_WORD,
    'attach_target': _Meaning(
        'VM, host or none', lambda value: value if value in _ATTACH_TARGETS else None
    ),
}
