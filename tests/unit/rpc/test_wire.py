# SPDX-License-Identifier: Apache-2.0
"""Tests of the format of RPC messages and of the compatibility with other releases."""

import dataclasses
import enum
import hashlib
import json
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
    'AllocatedHandle': '03e65336d1b9',
    'Arq': '5ef2b2c5f1fd',
    'AttachHandle': '48edecdcfb01',
    'Attribute': '856061aca216',
    'AttributeDeclaration': 'bf2b2d6da620',
    'AttributeType': '721a0b93c35c',
    'Availability': 'cbc0ca11c0a2',
    'Binding': 'ae975add4818',
    'Bitstream': '742cd120f8ba',
    'CleanOrder': 'b4a3e2c7dc31',
    'CleanProgress': '0577a3108376',
    'CleanProgressState': 'adb78d0883ed',
    'CleanState': '02e091993e88',
    'CleanStep': 'cded37ea4f95',
    'CleanStepResult': '0bbd2722cc8a',
    'CleaningPolicy': 'fb8d2f225a9d',
    'CleaningRecord': 'cae266f4d6e2',
    'CleaningState': '8a63ab5f5b23',
    'ConfigurationRequest': '2dc6a014fcf0',
    'ConfirmedHandle': '90c39a4f64f0',
    'Deployable': '7178584320e1',
    'DeployableRecord': '21d19dc1775a',
    'Device': 'a2f0e70e8928',
    'DeviceCleanings': '703ef240cb59',
    'DeviceConfiguration': '99b95c27a941',
    'DeviceEvent': 'ed7925a71586',
    'DeviceEventKind': 'f77052c2c0af',
    'DeviceMode': 'e720a5c471e5',
    'DeviceModes': '953a920f1158',
    'DevicePlan': '060c62af4247',
    'DeviceProfile': '2d754ce28656',
    'DeviceRecord': 'f76d9b8e876e',
    'DeviceStatus': '4baa0633a1b1',
    'Explanation': '9dc1eee29d75',
    'FitResult': 'ff319df6ea47',
    'GroupFit': '1ea2650ba52b',
    'HandleType': '6c7ffc89a27d',
    'Health': '4adab7b7bf06',
    'HeartbeatDetails': '00fc19d18067',
    'HostCapacity': '422fdf2efb00',
    'HostEvent': '870a7bd68f81',
    'HostEventKind': '548df95e75a9',
    'HostFit': '734b9d47a416',
    'HostHandle': 'dd7ceb9ae830',
    'HostReport': 'e2efcb713bd1',
    'HostTopology': '542e47e48bf5',
    'JobRecord': 'ca8e7ae1f74a',
    'JobRequest': 'eefffc3763f1',
    'JobRequestKind': '1ea77a79cc82',
    'JobState': '8063992c81fa',
    'ListedBitstream': '297be6e90e43',
    'LoadOrder': 'c8b904a963d8',
    'ModeChange': '6920e1f19b6a',
    'ModeOrder': '492d8ba78a97',
    'ModePlan': '9d6eff39e52d',
    'NumaNode': '1e2fbd5c1fda',
    'OfferedInventory': '8545d4d6982b',
    'Phase': '7b2497e27b0f',
    'ProfileCapacity': '2c9eb2816821',
    'ProfileChange': '5a99df51b23e',
    'ProgramJob': 'be9e4e066e0a',
    'ProgramState': 'c1eb0be8782e',
    'ProgramStep': '894201459e73',
    'Query': 'ab535e3a0dc8',
    'Reason': 'd24c0f20b68e',
    'ReasonCode': 'b7a204098e5d',
    'Reconfiguration': '9df32d0d2dac',
    'ReconfigurationState': 'd85578842c39',
    'RecoveryResult': '4e8fe98bb1c4',
    'ReportChanges': 'd23d49d821e0',
    'Service': '3fb722b92297',
    'ServiceState': 'ea9f2d107555',
    'SetView': 'ef8ae9af8ba0',
    'Shortage': '6a468c74de6d',
    'State': '131742d26a6b',
    'Step': '40b5aafc2741',
    'TopologyDeployable': '3a3e891ffe63',
    'TopologyDevice': '035090f393ac',
    'TopologyUnit': '1029d996f1d0',
    'TypedAttribute': '2e5cb56ffc5d',
    'UnitSelection': '6a25880e99a8',
    'UnitState': '1b280d5f53bd',
    'UnitUsage': '97b0eb221af3',
    'UnitUser': 'f7f87e9bc986',
    'Usage': 'f0894b40a57b',
    'UsageQuery': '88e67be50fae',
    'UsageReport': '1b48771f130f',
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
    """Return a short hash of the wire format of a class."""
    text = '\n'.join(_describe_format(cls))
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
