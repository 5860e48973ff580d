# SPDX-License-Identifier: Apache-2.0
"""Parsing of the JSON patches that bind and unbind ARQs.

    {ARQ: [{"op": "add", "path": "/hostname", "value": ...}, ...], ...}

One patch binds all of its ARQs or unbinds all of them. The three fields of a binding
are always set together and removed together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.microversion import V2_1
from cyborg_lite.errors.arqs import InvalidPatch
from cyborg_lite.errors.base import Forbidden
from cyborg_lite.model import uuids
from cyborg_lite.model.arqs.arqs import Binding
from cyborg_lite.model.text import format_value, is_storable

_FIELDS: Final = ('hostname', 'device_rp_uuid', 'instance_uuid')
_PROJECT: Final = 'project_id'
_MAX_HOSTNAME_LENGTH: Final = 255
_MAX_PROJECT_LENGTH: Final = 64


@dataclass(frozen=True, slots=True)
class ArqPatch:
    """The ARQs to bind or the ARQs to unbind; one of the two is empty."""

    bindings: Mapping[str, Binding]
    arqs_to_unbind: tuple[str, ...]


def parse_patch(call: Call) -> ArqPatch:
    """Return the content of the body, which matches its schema.

    :raises InvalidPatch: a path, value or combination of operations is invalid
    :raises NotAcceptable: the microversion is too low for /project_id
    :raises Forbidden: only an administrator may set /project_id
    """
    patches = _group_by_uuid(call.body)
    operations = [operation for patch in patches.values() for operation in patch]
    for operation in operations:
        _check_path(operation['path'], call)
    if len({operation['op'] for operation in operations}) > 1:
        raise InvalidPatch(reason='the operations must be all add or all remove.')
    if operations[0]['op'] == 'remove':
        return ArqPatch({}, tuple(patches))
    return ArqPatch(
        {uuid: _parse_binding(patch) for uuid, patch in patches.items()}, ()
    )


def _group_by_uuid(body: Mapping[str, Any]) -> dict[str, list[Any]]:
    patches: dict[str, list[Any]] = {}
    for key, patch in body.items():
        uuid = uuids.normalize_uuid(key)
        if uuid is None:
            raise InvalidPatch(reason=f'{format_value(key)} is not a UUID.')
        if uuid in patches:
            raise InvalidPatch(reason=f'{uuid} is repeated.')
        patches[uuid] = patch
    return patches


def _check_path(path: str, call: Call) -> None:
    field = path.removeprefix('/')
    if not path.startswith('/') or field not in (*_FIELDS, _PROJECT):
        raise InvalidPatch(reason=f'the path {format_value(path)} does not exist.')
    if field == _PROJECT:
        call.require_version(V2_1, 'A patch of /project_id')
        if not call.caller.is_admin:
            raise Forbidden(reason='Only an administrator may set /project_id.')


def _parse_binding(patch: list[Any]) -> Binding:
    values: dict[str, Any] = {}
    for operation in patch:
        field = operation['path'].removeprefix('/')
        if field in values:
            raise InvalidPatch(reason=f'/{field} is repeated.')
        values[field] = operation.get('value')
    missing = [field for field in _FIELDS if values.get(field) is None]
    if missing:
        raise InvalidPatch(reason=f'the bind operation lacks {", ".join(missing)}.')
    return Binding(
        hostname=_parse_text(values, 'hostname', _MAX_HOSTNAME_LENGTH),
        device_rp_uuid=_parse_uuid(values, 'device_rp_uuid'),
        instance_uuid=_parse_uuid(values, 'instance_uuid'),
        project_id=(
            _parse_text(values, _PROJECT, _MAX_PROJECT_LENGTH)
            if _PROJECT in values
            else None
        ),
    )


def _parse_text(values: Mapping[str, Any], field: str, max_length: int) -> str:
    text = values[field]
    fits = isinstance(text, str) and 0 < len(text) <= max_length
    if not isinstance(text, str) or not fits or not is_storable(text):
        raise InvalidPatch(
            reason=f'/{field} must be a string of 1 to {max_length} characters.'
        )
    return text


def _parse_uuid(values: Mapping[str, Any], field: str) -> str:
    text = values[field]
    uuid = uuids.normalize_uuid(text) if isinstance(text, str) else None
    if uuid is None:
        raise InvalidPatch(reason=f'/{field} must be a UUID.')
    return uuid
