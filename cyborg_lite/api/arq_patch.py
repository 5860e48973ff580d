# SPDX-License-Identifier: Apache-2.0
"""Patches of accelerator requests: which are to be bound and where, or unbound.

    {ARQ: [{"op": "add", "path": "/hostname", "value": ...}, ...], ...}

A request binds all of its ARQs or unbinds all. The three fields that make a binding
come and go together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cyborg_lite.api.call import Call
from cyborg_lite.api.microversion import V2_1
from cyborg_lite.exceptions import Forbidden, InvalidPatch
from cyborg_lite.model import uuids
from cyborg_lite.model.arqs import Binding
from cyborg_lite.model.text import is_storable, shown

_FIELDS: Final = ('hostname', 'device_rp_uuid', 'instance_uuid')
_PROJECT: Final = 'project_id'
_LONGEST_HOSTNAME: Final = 255
_LONGEST_PROJECT: Final = 64


@dataclass(frozen=True, slots=True)
class Patch:
    """One of the two is empty."""

    bindings: Mapping[str, Binding]
    unbound: tuple[str, ...]


def read(call: Call) -> Patch:
    """What the body of the call, which fits its schema, asks for.

    :raises InvalidPatch: it makes no sense
    :raises NotAcceptable: it uses what a higher microversion has
    :raises Forbidden: it uses what only an administrator may
    """
    patches = _by_uuid(call.body)
    operations = [one for patch in patches.values() for one in patch]
    for one in operations:
        _check_path(one['path'], call)
    if len({one['op'] for one in operations}) > 1:
        raise InvalidPatch(reason='all operations must be add, or all remove.')
    if operations[0]['op'] == 'remove':
        return Patch({}, tuple(patches))
    return Patch({uuid: _binding(patch) for uuid, patch in patches.items()}, ())


def _by_uuid(body: Mapping[str, Any]) -> dict[str, list[Any]]:
    patches: dict[str, list[Any]] = {}
    for key, patch in body.items():
        uuid = uuids.canonical(key)
        if uuid is None:
            raise InvalidPatch(reason=f'{shown(key)} is not a UUID.')
        if uuid in patches:
            raise InvalidPatch(reason=f'{uuid} is there twice.')
        patches[uuid] = patch
    return patches


def _check_path(path: str, call: Call) -> None:
    field = path.removeprefix('/')
    if not path.startswith('/') or field not in (*_FIELDS, _PROJECT):
        raise InvalidPatch(reason=f'there is no path {shown(path)}.')
    if field == _PROJECT:
        call.require_version(V2_1, 'A patch of /project_id')
        if not call.caller.is_admin:
            raise Forbidden(reason='Only an administrator may set /project_id.')


def _binding(patch: list[Any]) -> Binding:
    values: dict[str, Any] = {}
    for one in patch:
        field = one['path'].removeprefix('/')
        if field in values:
            raise InvalidPatch(reason=f'/{field} is there twice.')
        values[field] = one.get('value')
    missing = [field for field in _FIELDS if values.get(field) is None]
    if missing:
        raise InvalidPatch(reason=f'a bind lacks {", ".join(missing)}.')
    return Binding(
        hostname=_text(values, 'hostname', _LONGEST_HOSTNAME),
        device_rp_uuid=_uuid(values, 'device_rp_uuid'),
        instance_uuid=_uuid(values, 'instance_uuid'),
        project_id=(
            _text(values, _PROJECT, _LONGEST_PROJECT) if _PROJECT in values else None
        ),
    )


def _text(values: Mapping[str, Any], field: str, longest: int) -> str:
    text = values[field]
    short = isinstance(text, str) and 0 < len(text) <= longest
    if not isinstance(text, str) or not short or not is_storable(text):
        raise InvalidPatch(
            reason=f'/{field} must be a string of 1 to {longest} characters.'
        )
    return text


def _uuid(values: Mapping[str, Any], field: str) -> str:
    text = values[field]
    found = uuids.canonical(text) if isinstance(text, str) else None
    if found is None:
        raise InvalidPatch(reason=f'/{field} must be a UUID.')
    return found
