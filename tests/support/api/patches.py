# SPDX-License-Identifier: Apache-2.0
"""ARQ patches as Nova and the command line clients send them."""

from typing import Any

UNKNOWN = 'd5ca2f11-3108-4426-a11c-a959987565df'
PROVIDER = '853f07a6-19de-3dd6-b9f6-6c782daa3f7b'
INSTANCE = 'e6463ae6-ef41-41b7-b171-95f3754f140f'
FIELDS = ('hostname', 'device_rp_uuid', 'instance_uuid')

Operation = dict[str, Any]


def build_add(field: str, value: Any) -> Operation:
    """Return the operation that sets a field."""
    return {'path': f'/{field}', 'op': 'add', 'value': value}


def build_bind(
    instance: Any = INSTANCE, *operations: Operation, **fields: Any
) -> list[Operation]:
    """Return the patch that binds an ARQ, followed by other operations."""
    values = {
        'hostname': 'compute-1',
        'device_rp_uuid': PROVIDER,
        'instance_uuid': instance,
        **fields,
    }
    return [*(build_add(field, value) for field, value in values.items()), *operations]


def build_bind_with(field: str, value: Any) -> list[Operation]:
    """Return a bind with another value of a field."""
    return [*build_bind_without(field), build_add(field, value)]


def build_bind_without(field: str) -> list[Operation]:
    """Return a bind that lacks a field."""
    return [operation for operation in build_bind() if operation['path'] != f'/{field}']


def build_unbind() -> list[Operation]:
    """Return the patch that unbinds an ARQ."""
    return [{'path': f'/{field}', 'op': 'remove', 'value': ''} for field in FIELDS]
