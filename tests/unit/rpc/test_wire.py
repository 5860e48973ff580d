# SPDX-License-Identifier: Apache-2.0
"""Tests of the format of RPC messages and of the compatibility with other releases."""

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

from cyborg_lite import model
from cyborg_lite.errors.daemons import MalformedMessage
from cyborg_lite.model.arqs.arqs import Arq, Binding, State
from cyborg_lite.model.inventory.host_report import Device, HostReport
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.methods import AGENTS, CONDUCTOR

ADVICE: Final = """
The wire format of {name} (version {version}) has changed.
Before release 1.0.0 any change is possible. Afterwards, for a new field: give it a
default, and raise the minor number of the class, if it has one. Any other change breaks
daemons of the last release. Then record the new fingerprint in this file:
    {name!r}: {fingerprint!r},
"""

FINGERPRINTS: Final = {
    'Actor': 'f70a1d2b2cab',
    'AllocatedHandle': '718ba1d2512a',
    'Arq': '348c259d8f89',
    'AttachHandle': '783c4b553fce',
    'Attribute': 'b30921413c7b',
    'AttributeDeclaration': 'bf2b2d6da620',
    'AttributeType': '721a0b93c35c',
    'Availability': 'cbc0ca11c0a2',
    'Binding': 'ae975add4818',
    'Bitstream': '742cd120f8ba',
    'CleanOrder': 'db7a793f131a',
    'CleanProgress': '97a310c158c4',
    'CleanProgressState': 'adb78d0883ed',
    'CleanState': '02e091993e88',
    'CleanStep': 'cded37ea4f95',
    'CleanStepResult': '4c87178a22a1',
    'CleaningPolicy': 'fb8d2f225a9d',
    'CleaningRecord': 'b4db2be54fbf',
    'CleaningState': '8a63ab5f5b23',
    'ConfigurationRequest': '396f0d99c9b0',
    'ConfirmedHandle': '90c39a4f64f0',
    'Deployable': '1c79746f28e4',
    'DeployableRecord': '2befff83a168',
    'Device': '37e9caf079c8',
    'DeviceCleanings': '429f0186fa08',
    'DeviceConfiguration': 'be6298259d03',
    'DeviceEvent': 'a7558ab5ba24',
    'DeviceEventKind': 'f77052c2c0af',
    'DeviceMode': 'e7776fdbe732',
    'DeviceModes': 'f07a8378356f',
    'DevicePlan': '4337d92a30f8',
    'DeviceProfile': '241447461878',
    'DeviceRecord': '9654af83d89a',
    'DeviceStatus': '4baa0633a1b1',
    'Explanation': '23c872a3e5bb',
    'FitResult': 'ff319df6ea47',
    'GroupFit': '3ba4d7b2edba',
    'HandleType': '6c7ffc89a27d',
    'Health': '4adab7b7bf06',
    'HeartbeatDetails': '5bcaa91c128d',
    'HostCapacity': '4dcb5249d69b',
    'HostEvent': '6518f9e5e3ca',
    'HostEventKind': '548df95e75a9',
    'HostFit': '6be5cb430b24',
    'HostHandle': 'dd7ceb9ae830',
    'HostReport': 'a127f385eee2',
    'HostTopology': 'a966bd6c4f3e',
    'JobRecord': 'fee529fa3aa9',
    'JobRequest': 'eefffc3763f1',
    'JobRequestKind': '1ea77a79cc82',
    'JobState': '8063992c81fa',
    'ListedBitstream': '464620cb3101',
    'LoadOrder': '36c14bfb3455',
    'ModeChange': '6920e1f19b6a',
    'ModeOrder': '492d8ba78a97',
    'ModePlan': 'b508e57ce179',
    'NumaNode': 'cbe664ac6d12',
    'OfferedInventory': '8545d4d6982b',
    'Phase': '7b2497e27b0f',
    'ProfileCapacity': '5b3ea0c6a48e',
    'ProfileChange': 'f348c9e66cc9',
    'ProgramJob': '0491710d13e1',
    'ProgramState': 'c1eb0be8782e',
    'ProgramStep': '894201459e73',
    'Query': '9120162cc1f6',
    'Reason': 'd24c0f20b68e',
    'ReasonCode': 'b7a204098e5d',
    'Reconfiguration': 'b9f0de60c1e1',
    'ReconfigurationState': 'd85578842c39',
    'RecoveryResult': 'd5bd16ff32c1',
    'ReportChanges': 'bfc95f2ed692',
    'Service': 'e2c02b8374ca',
    'ServiceState': 'ea9f2d107555',
    'SetView': 'f7ad16f1c98c',
    'Shortage': '6a468c74de6d',
    'State': '131742d26a6b',
    'Step': 'e21dffdaa9cf',
    'TopologyDeployable': '35a511a1a19d',
    'TopologyDevice': 'd075eb91b858',
    'TopologyUnit': 'cf31dad982ba',
    'TypedAttribute': '2e5cb56ffc5d',
    'UnitSelection': '6a25880e99a8',
    'UnitState': '1b280d5f53bd',
    'UnitUsage': '97b0eb221af3',
    'UnitUser': 'f7f87e9bc986',
    'Usage': '391e78c7582a',
    'UsageQuery': '88e67be50fae',
    'UsageReport': 'd3da6ed797c5',
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
    text = json.dumps(wire.dump(value))
    assert wire.load(cls, json.loads(text)) == value


# --- fingerprints ------------------------------------------------------------------


def _describe_format(cls: type[Any]) -> list[str]:
    if issubclass(cls, enum.Enum):
        return sorted(str(member.value) for member in cls)
    version = getattr(cls, 'VERSION', 'none')
    fields = {item.name: item for item in dataclasses.fields(cls)}
    return [
        f'version {version}',
        *(
            f'{name}: {fields[name].type} {_has_default(fields[name])}'
            for name in sorted(fields)
        ),
    ]


def compute_fingerprint(cls: type[Any]) -> str:
    """Return a short hash of the wire format of a class, without names of modules."""
    text = re.sub(r'\b\w+\.', '', '\n'.join(_describe_format(cls)))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@every_class
def test_wire_format_matches_recorded_fingerprint(name: str) -> None:
    cls = MESSAGE_CLASSES[name]
    fingerprint = compute_fingerprint(cls)
    version = getattr(cls, 'VERSION', 'N')
    assert FINGERPRINTS.get(name) == fingerprint, ADVICE.format(
        name=name, version=version, fingerprint=fingerprint
    )


def test_fingerprints_name_message_classes_only() -> None:
    assert set(FINGERPRINTS) <= set(MESSAGE_CLASSES)


# --- older, newer and faulty peers ------------------------------------------------


def test_load_unknown_field_is_ignored() -> None:
    query = wire.dump(Query(limit=3)) | {'colour': 'red'}
    assert wire.load(Query, query) == Query(limit=3)


def test_load_missing_field_uses_default() -> None:
    assert wire.load(Query, {'limit': 3}) == Query(limit=3)


def test_load_other_minor_version_succeeds() -> None:
    report = wire.dump(HostReport('cpu1', 'boot', ()))
    assert wire.load(HostReport, report | {'v': '1.99'}).hostname == 'cpu1'


@pytest.mark.parametrize('version', ['2.0', None, '', 'x'])
def test_load_other_major_version_is_rejected(version: str | None) -> None:
    report = wire.dump(HostReport('cpu1', 'boot', ())) | {'v': version}
    with pytest.raises(MalformedMessage, match='HostReport has version'):
        wire.load(HostReport, report)


VALID_BINDING: Final = {'hostname': 'a', 'device_rp_uuid': 'b', 'instance_uuid': 'c'}


@pytest.mark.parametrize(
    ('cls', 'data'),
    [
        (Binding, None),
        (Binding, []),
        (Binding, 'text'),
        (Binding, {}),
        (Binding, {'hostname': 'a'}),
        (Binding, VALID_BINDING | {'hostname': 1}),
        (Binding, VALID_BINDING | {'hostname': None}),
        (Query, {'limit': '3'}),
        (Query, {'limit': True}),
        (Query, {'descending': 1}),
        (Query, {'filters': []}),
        (Query, {'filters': {'name': 'not a list'}}),
        (Query, {'filters': {1: []}}),
        (Device, {'health': 'splendid'}),
        (Arq, {'created_at': 'yesterday'}),
        (Arq, {'created_at': 7}),
        (Arq, {'state': 'Perhaps'}),
    ],
)
def test_load_wrong_type_is_rejected(cls: type[Any], data: Any) -> None:
    with pytest.raises(MalformedMessage):
        wire.load(cls, data)


@pytest.mark.parametrize('data', [None, {}, 'text', [1]])
def test_load_all_wrong_list_is_rejected(data: Any) -> None:
    with pytest.raises(MalformedMessage):
        wire.load_all(Binding, data)


def test_dump_enumeration_returns_value() -> None:
    assert wire.dump({State.BOUND: [State.BIND_FAILED]}) == {'Bound': ['BindFailed']}
