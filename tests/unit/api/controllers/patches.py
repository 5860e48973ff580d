# SPDX-License-Identifier: Apache-2.0
"""Patches as Nova and the command line clients send them."""

from typing import Any

UNKNOWN = 'd5ca2f11-3108-4426-a11c-a959987565df'
PROVIDER = '853f07a6-19de-3dd6-b9f6-6c782daa3f7b'
INSTANCE = 'e6463ae6-ef41-41b7-b171-95f3754f140f'
FIELDS = ('hostname', 'device_rp_uuid', 'instance_uuid')

Operation = dict[str, Any]


def add(field: str, value: Any) -> Operation:
    return {'path': f'/{field}', 'op': 'add', 'value': value}


def bind(instance: Any = INSTANCE, *more: Operation, **other: Any) -> list[Operation]:
    values = {
        'hostname': 'compute-1',
        'device_rp_uuid': PROVIDER,
        'instance_uuid': instance,
        **other,
    }
    return [*(add(field, value) for field, value in values.items()), *more]


def with_field(field: str, value: Any) -> list[Operation]:
    return [*without(field), add(field, value)]


def without(field: str) -> list[Operation]:
    return [one for one in bind() if one['path'] != f'/{field}']


def unbind() -> list[Operation]:
    return [{'path': f'/{field}', 'op': 'remove', 'value': ''} for field in FIELDS]
