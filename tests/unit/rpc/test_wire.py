# SPDX-License-Identifier: Apache-2.0
"""What travels between daemons: there and back, and never changed unnoticed."""

import dataclasses
import enum
import hashlib
import inspect
import json
import types
import typing
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from cyborg_lite import model
from cyborg_lite.model.arqs import Arq, Binding, State
from cyborg_lite.model.inventory import Device, HostReport
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.agent import AgentAPI
from cyborg_lite.rpc.conductor import ConductorAPI

ADVICE: Final = """
The wire form of {name} is not what version {version} of the interface promises.
A new field: give it a default, raise the minor number of VERSION in
cyborg_lite/rpc/{{conductor,agent}}.py (and of the class, if it has one), and write a
line in the history above it. Anything else breaks daemons of the last release: raise
the major number. Then record the new fingerprint in this file:
    {name!r}: {found!r},
"""

FINGERPRINTS: Final = {
    'Actor': 'f70a1d2b2cab',
    'Step': '40b5aafc2741',
    'Arq': '9959ada3fbaa',
    'Attribute': '55cfc72223b1',
    'Binding': 'ae975add4818',
    'Bitstream': 'd085b4b406bb',
    'Deployable': '7890abcfbfd8',
    'DeployableRecord': '68fe70aab2da',
    'Device': 'e53d160b8b88',
    'DeviceProfile': '6d1d0aad8a31',
    'DeviceRecord': '5070beee8036',
    'DeviceStatus': '4baa0633a1b1',
    'Explanation': 'd0a35941f3bd',
    'GroupVerdict': '1e0863bb0903',
    'HandleType': 'fff87c1faf5a',
    'Health': '4adab7b7bf06',
    'HeldHandle': '70bab9e3b700',
    'HostEvent': '870a7bd68f81',
    'HostEventKind': '548df95e75a9',
    'HostReport': 'f8a7e2527288',
    'HostVerdict': 'ea59a9f6b39b',
    'LoadOrder': '11190ed1151c',
    'ProfileChange': '5ced927bd27e',
    'Query': 'bd899c54acea',
    'Reason': '0569059df676',
    'Service': '3fb722b92297',
    'ServiceState': 'ea9f2d107555',
    'State': '131742d26a6b',
    'Verdict': 'ff319df6ea47',
    'Why': '71866113c41d',
    'Unit': 'e2bb5438cbf1',
    'Usage': 'f0894b40a57b',
    'Vitals': '7f3aa53c7d7d',
    'ListedBitstream': '297be6e90e43',
    'ProgramJob': 'be9e4e066e0a',
    'ProgramState': 'c1eb0be8782e',
    'ProgramStep': '894201459e73',
}


# --- all that travels ------------------------------------------------------------


def _mentioned(annotation: Any) -> Iterator[type[Any]]:
    """The data classes and enumerations that an annotation reaches."""
    if dataclasses.is_dataclass(annotation) or (
        isinstance(annotation, type) and issubclass(annotation, enum.Enum)
    ):
        yield typing.cast(type[Any], annotation)
    for argument in typing.get_args(annotation):
        yield from _mentioned(argument)


def _travellers() -> dict[str, type[Any]]:
    """All classes that the two interfaces send, with what lies in their fields."""
    waiting = [
        cls
        for interface in (ConductorAPI, AgentAPI)
        for _name, method in inspect.getmembers(interface, inspect.isfunction)
        for hint in typing.get_type_hints(method).values()
        for cls in _mentioned(hint)
    ]
    found: dict[str, type[Any]] = {}
    while waiting:
        cls = waiting.pop()
        if cls.__name__ not in found:
            found[cls.__name__] = cls
            if dataclasses.is_dataclass(cls):
                for hint in typing.get_type_hints(cls).values():
                    waiting += _mentioned(hint)
    return {
        name: cls
        for name, cls in found.items()
        if cls.__module__.startswith(model.__name__)
    }


# --- there and back --------------------------------------------------------------


def _example(annotation: Any, full: bool) -> Any:
    """A value of that type; ``full`` fills what could be left out."""
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
    if issubclass(annotation, enum.Enum):
        return next(iter(annotation))
    moment = datetime(2026, 2, 28, 23, 59, 59, 123456, tzinfo=UTC)
    return {bool: True, int: 7, float: 0.5, str: 'née', datetime: moment}[annotation]


def _instance(cls: type[Any], full: bool) -> Any:
    hints = typing.get_type_hints(cls)
    wanted = {
        item.name
        for item in dataclasses.fields(cls)
        if full
        or (
            item.default is dataclasses.MISSING
            and item.default_factory is dataclasses.MISSING
        )
    }
    return cls(**{name: _example(hints[name], full) for name in wanted})


@pytest.mark.parametrize('full', [True, False])
@pytest.mark.parametrize('name', sorted(_travellers()))
def test_what_travels_arrives_as_it_left(name: str, full: bool) -> None:
    cls = _travellers()[name]
    value = _example(cls, full)
    text = json.dumps(wire.dump(value))
    assert wire.load(cls, json.loads(text)) == value


# --- fingerprints -----------------------------------------------------------------


def _shape(cls: type[Any]) -> list[str]:
    if issubclass(cls, enum.Enum):
        return sorted(str(word.value) for word in cls)
    version = getattr(cls, 'VERSION', 'none')
    optional = {
        item.name
        for item in dataclasses.fields(cls)
        if item.default is not dataclasses.MISSING
        or item.default_factory is not dataclasses.MISSING
    }
    hints = {item.name: str(item.type) for item in dataclasses.fields(cls)}
    return [
        f'version {version}',
        *(f'{name}: {hint} {name in optional}' for name, hint in sorted(hints.items())),
    ]


def fingerprint(cls: type[Any]) -> str:
    return hashlib.sha256('\n'.join(_shape(cls)).encode()).hexdigest()[:12]


@pytest.mark.parametrize('name', sorted(_travellers()))
def test_the_wire_form_is_the_recorded_one(name: str) -> None:
    cls = _travellers()[name]
    found = fingerprint(cls)
    version = getattr(cls, 'VERSION', 'N')
    assert FINGERPRINTS.get(name) == found, ADVICE.format(
        name=name, version=version, found=found
    )


def test_no_fingerprint_is_kept_of_what_no_longer_travels() -> None:
    assert set(FINGERPRINTS) <= set(_travellers())


# --- older, newer and broken peers ------------------------------------------------


def test_a_field_of_a_newer_peer_is_ignored() -> None:
    query = wire.dump(Query(limit=3)) | {'colour': 'red'}
    assert wire.load(Query, query) == Query(limit=3)


def test_a_field_that_an_older_peer_lacks_takes_its_default() -> None:
    assert wire.load(Query, {'limit': 3}) == Query(limit=3)


def test_another_minor_version_is_understood() -> None:
    report = wire.dump(HostReport('cpu1', 'boot', ()))
    assert wire.load(HostReport, report | {'v': '1.99'}).hostname == 'cpu1'


@pytest.mark.parametrize('version', ['2.0', None, '', 'x'])
def test_another_major_version_is_refused(version: str | None) -> None:
    report = wire.dump(HostReport('cpu1', 'boot', ())) | {'v': version}
    with pytest.raises(wire.MalformedMessage, match='HostReport of version'):
        wire.load(HostReport, report)


GOOD: Final = {'hostname': 'a', 'device_rp_uuid': 'b', 'instance_uuid': 'c'}


@pytest.mark.parametrize(
    ('cls', 'data'),
    [
        (Binding, None),
        (Binding, []),
        (Binding, 'text'),
        (Binding, {}),
        (Binding, {'hostname': 'a'}),
        (Binding, GOOD | {'hostname': 1}),
        (Binding, GOOD | {'hostname': None}),
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
def test_what_does_not_fit_is_refused(cls: type[Any], data: Any) -> None:
    with pytest.raises(wire.MalformedMessage):
        wire.load(cls, data)


@pytest.mark.parametrize('data', [None, {}, 'text', [1]])
def test_a_list_must_be_a_list_of_what_is_expected(data: Any) -> None:
    with pytest.raises(wire.MalformedMessage):
        wire.load_all(Binding, data)


def test_enumerations_travel_as_their_words() -> None:
    assert wire.dump({State.BOUND: [State.BIND_FAILED]}) == {'Bound': ['BindFailed']}
