# SPDX-License-Identifier: Apache-2.0
"""Tests of the format of the classes in RPC messages."""

import dataclasses
import enum
import hashlib
import json
import re
import types
import typing
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from cyborg_lite import codec, model
from cyborg_lite.rpc.methods import AGENTS, CONDUCTOR

ADVICE: Final = """
The wire format of {name} has changed.
Before release 1.0.0 any change is possible. Afterwards, for a new field: give it a
default. Any other change breaks daemons of the last release. Then record the new
fingerprint in this file:
    {name!r}: {fingerprint!r},
"""

FINGERPRINTS: Final = {
    'Actor': 'f70a1d2b2cab',
    'AllocatedHandle': '5dd5ae3cbb2b',
    'Arq': '992d637bd9fb',
    'AttachHandle': 'fc7501e4acec',
    'Attribute': 'f544e760015c',
    'AttributeDeclaration': '81c64afaa975',
    'AttributeType': '721a0b93c35c',
    'AttentionItem': 'b5b7e229d9e2',
    'AttentionKind': 'd218ebf50800',
    'Availability': '6727b279d803',
    'Binding': 'ab3e2237803a',
    'Bitstream': '1dc44afd20e1',
    'CleanOrder': '39f29df43a2a',
    'CleanProgress': '25ef1cff32e0',
    'CleanProgressState': 'adb78d0883ed',
    'CleanState': 'a3263b76bde9',
    'CleanStep': '08284cbb80cf',
    'CleanStepResult': '549f4fff844a',
    'CleaningPolicy': 'fb8d2f225a9d',
    'CleaningRecord': '9223b2608f4c',
    'CleaningState': '8a63ab5f5b23',
    'ConfigurationRequest': 'ad480124b934',
    'ConfirmedHandle': '6ded37f29680',
    'DatabaseMark': '4534e9af31d3',
    'Deployable': '757469f37f77',
    'DeployableRecord': 'a8dffaffb44c',
    'Device': '9f2ac1d13633',
    'DeviceCleanings': 'a07137be34d3',
    'DeviceConfiguration': '86a4877eef8b',
    'DeviceEvent': '18cdeb52e8e1',
    'DeviceEventKind': 'fdc10f0b2592',
    'DeviceMode': '16f6289bc834',
    'DeviceModes': '8b195a9a6f07',
    'DevicePlan': 'cc0dfea8984d',
    'DeviceProfile': 'd789dd2dbad0',
    'DeviceRecord': '2cc4e9f4b40e',
    'DeviceStatus': '4baa0633a1b1',
    'DeviceType': 'c9b93d669a0d',
    'Explanation': '14539495f679',
    'FitResult': 'ff319df6ea47',
    'GroupFit': 'c66ff399794e',
    'HandleComparison': '20c37b5f502e',
    'HandleType': '6c7ffc89a27d',
    'Health': '5a1968c87d00',
    'HeartbeatDetails': '5eb97c2d2051',
    'HostCapacity': 'ee4b7f05d599',
    'HostEvent': '65cf04c9ef07',
    'HostEventKind': '47ff31c464a6',
    'HostFit': 'b9cb3655c1a6',
    'HostHandle': 'ba7b4326ffb4',
    'HostReport': 'c665e442480c',
    'HostSummary': '0218985bed26',
    'HostTopology': 'ee6f5909d5ad',
    'ListedBitstream': 'e63e11619c74',
    'LoadOrder': 'b6c4e5e29d6b',
    'ModeChange': 'c997eec051b7',
    'ModeOrder': '1849d5d4dce6',
    'ModePlan': 'e96e614b148e',
    'NumaNode': 'e955899d1a16',
    'OfferedInventory': '0a946b38d12a',
    'Operation': 'f20a09769b22',
    'OperationKind': 'd989da76eb01',
    'OperationState': '6ac4b808db80',
    'Phase': '7b2497e27b0f',
    'ProfileCapacity': '71f65db9dbaa',
    'ProfileChange': 'fef88c6f3d4f',
    'Query': '420a32c3611b',
    'Reason': '519bf29bda5b',
    'ReasonCode': '9a16600e1d29',
    'Reconfiguration': 'afeed22b6f56',
    'ReconfigurationState': 'd85578842c39',
    'RecoveryResult': 'aa1af82d2c58',
    'ReportChanges': '82d4159cb378',
    'ResourceUse': '94b90a4508f6',
    'Service': '842ccc7503b0',
    'ServiceState': '9bf04496cfde',
    'SetView': 'e76e353cb400',
    'Shortage': '307f6d4383c2',
    'State': '131742d26a6b',
    'Step': '7e8209be0fa6',
    'SubjectType': '18150b71f916',
    'TopologyDeployable': '9a339da34aa2',
    'TopologyDevice': '21e0d7a43327',
    'TopologyUnit': 'bbcb6bf361e3',
    'TypedAttribute': '5120c486f529',
    'UnitSelection': '4380430891a4',
    'UnitState': '6c5cd01919d7',
    'UnitUsage': '25a8c43c0639',
    'UnitUser': 'd81b5d516ded',
    'Usage': '0088ac95cfaf',
    'UsageQuery': '9ac631d11490',
    'UsageReport': '681a5e11d97c',
}


# --- classes in messages ----------------------------------------------------------


def _list_classes(annotation: Any) -> Iterator[type[Any]]:
    """Yield the data classes and enumerations in an annotation."""
    if dataclasses.is_dataclass(annotation) or (
        isinstance(annotation, type) and issubclass(annotation, enum.Enum)
    ):
        yield typing.cast(type[Any], annotation)
    for argument in typing.get_args(annotation):
        yield from _list_classes(argument)


def _message_classes() -> dict[str, type[Any]]:
    """Return all classes in the messages of both interfaces, by name."""
    waiting = [
        cls
        for interface in (CONDUCTOR, AGENTS)
        for method in interface.methods.values()
        for hint in (method.answer, *method.annotations.values())
        for cls in _list_classes(hint)
    ]
    classes: set[type[Any]] = set()
    while waiting:
        cls = waiting.pop()
        if cls not in classes:
            classes.add(cls)
            if dataclasses.is_dataclass(cls):
                for hint in typing.get_type_hints(cls).values():
                    waiting += _list_classes(hint)
    return {
        cls.__name__: cls
        for cls in classes
        if cls.__module__.startswith(model.__name__)
    }


MESSAGE_CLASSES: Final = _message_classes()
every_class = pytest.mark.parametrize('name', sorted(MESSAGE_CLASSES))


# --- round trips -------------------------------------------------------------------


def _example(annotation: Any, full: bool) -> Any:
    """Return a value of a type; ``full`` also sets optional values."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        inner = next(item for item in arguments if item is not type(None))
        return _example(inner, full) if full else None
    if origin is tuple:
        return (_example(arguments[0], False),) * (2 if full else 0)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {'key': _example(arguments[1], full)} if full else {}
    if dataclasses.is_dataclass(annotation):
        return _instance(typing.cast(type[Any], annotation), full)
    return _scalar(annotation)


def _scalar(annotation: type[Any]) -> Any:
    if annotation is not Any and issubclass(annotation, enum.Enum):
        return next(iter(annotation))
    moment = datetime(2026, 2, 28, 23, 59, 59, 123456, tzinfo=UTC)
    values: dict[Any, Any] = {
        bool: True,
        int: 7,
        float: 0.5,
        str: 'née',
        datetime: moment,
        Any: ['any JSON'],
    }
    return values[annotation]


def _instance(cls: type[Any], full: bool) -> Any:
    hints = typing.get_type_hints(cls)
    names = {
        item.name for item in dataclasses.fields(cls) if full or not _has_default(item)
    }
    return cls(**{name: _example(hints[name], full) for name in names})


def _has_default(item: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return item.default is not missing or item.default_factory is not missing


@pytest.mark.parametrize('full', [True, False])
@every_class
def test_load_dumped_example_returns_equal_value(name: str, full: bool) -> None:
    cls = MESSAGE_CLASSES[name]
    value = _example(cls, full)
    text = json.dumps(codec.dump(value))
    assert codec.load(cls, json.loads(text)) == value
    assert codec.decode(cls, codec.encode(value)) == value


# --- fingerprints ------------------------------------------------------------------


def _describe_format(cls: type[Any]) -> list[str]:
    if issubclass(cls, enum.Enum):
        return sorted(str(member.value) for member in cls)
    fields = {item.name: item for item in dataclasses.fields(cls)}
    return [
        f'{name}: {fields[name].type} {_has_default(fields[name])}'
        for name in sorted(fields)
    ]


def compute_fingerprint(cls: type[Any]) -> str:
    """Return a short hash of the wire format of a class, without names of modules."""
    text = re.sub(r'\b\w+\.', '', '\n'.join(_describe_format(cls)))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@every_class
def test_wire_format_matches_recorded_fingerprint(name: str) -> None:
    cls = MESSAGE_CLASSES[name]
    fingerprint = compute_fingerprint(cls)
    assert FINGERPRINTS.get(name) == fingerprint, ADVICE.format(
        name=name, fingerprint=fingerprint
    )


def test_fingerprints_name_message_classes_only() -> None:
    assert set(FINGERPRINTS) <= set(MESSAGE_CLASSES)
