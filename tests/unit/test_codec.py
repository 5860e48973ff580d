# SPDX-License-Identifier: Apache-2.0
"""Tests of data classes as JSON: other releases, faulty peers, compressed text."""

import base64
import json
import subprocess
import sys
import tracemalloc
import zlib
from typing import Any, Final

import pytest

from cyborg_lite import codec
from cyborg_lite.errors.daemons import MalformedData
from cyborg_lite.model.arqs.arqs import Arq, Binding, State
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.hosts.services import HeartbeatDetails
from cyborg_lite.model.inventory.host_report import Device, HostReport
from cyborg_lite.model.inventory.report_changes import ReportChanges
from cyborg_lite.model.queries import Query
from tests.builders.reports import host

MIB: Final = 2**20

FIRST_USES: Final = """
import dataclasses, sys, threading
from cyborg_lite import codec
sys.setswitchinterval(1e-6)

def load(barrier, kind):
    barrier.wait()
    codec.load(kind, {f'part{number}': [{'value': 3}] for number in range(10)})

for _ in range(100):
    part = [('value', int, 0)]
    parts = [
        (f'part{number}', tuple[dataclasses.make_dataclass('Part', part), ...], ())
        for number in range(10)
    ]
    kind, barrier = dataclasses.make_dataclass('Whole', parts), threading.Barrier(4)
    arguments = barrier, kind
    threads = [threading.Thread(target=load, args=arguments) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_load_class_for_the_first_time() -> None:
    """A crash of the library would end this process, so another one tries it."""
    subprocess.run([sys.executable, '-c', FIRST_USES], check=True)


def test_load_unknown_field_is_ignored() -> None:
    query = codec.dump(Query(limit=3)) | {'colour': 'red'}
    assert codec.load(Query, query) == Query(limit=3)


def test_load_missing_field_uses_default() -> None:
    assert codec.load(Query, {'limit': 3}) == Query(limit=3)


VALID_BINDING: Final = {'hostname': 'a', 'device_rp_uuid': 'b', 'instance_uuid': 'c'}
WRONG_VALUES: Final[list[tuple[Any, Any]]] = [
    (Binding, None),
    (Binding, []),
    (Binding, 'text'),
    (Binding, {}),
    (Binding, {'hostname': 'a'}),
    (Binding, VALID_BINDING | {'hostname': 1}),
    (Binding, VALID_BINDING | {'hostname': None}),
    (Query, {'limit': '3'}),
    (Query, {'limit': True}),
    (Query, {'limit': 3.0}),
    (Query, {'descending': 1}),
    (Query, {'filters': []}),
    (Query, {'filters': {'name': 'not a list'}}),
    (Device, {'health': 'splendid'}),
    (Arq, {'created_at': 'yesterday'}),
    (Arq, {'created_at': 7}),
    (Arq, {'state': 'Perhaps'}),
    (Usage, {'power': 'high'}),
    (tuple[Binding, ...], {}),
    (tuple[Binding, ...], [1]),
]


# Any, here and below: a class or a container of it, and JSON values.
@pytest.mark.parametrize(('kind', 'data'), WRONG_VALUES)
def test_load_wrong_value_is_refused(kind: Any, data: Any) -> None:
    with pytest.raises(MalformedData):
        codec.load(kind, data)
    with pytest.raises(MalformedData):
        codec.decode(kind, json.dumps(data))


def test_load_names_place_and_limits_text() -> None:
    with pytest.raises(MalformedData, match=r'\$\.limit'):
        codec.load(Query, {'limit': '3'})
    with pytest.raises(MalformedData) as caught:
        codec.load(State, 'x' * 10_000)
    assert len(caught.value.text) < 300


def test_dump_enumeration_returns_value() -> None:
    assert codec.dump({State.BOUND: [State.BIND_FAILED]}) == {'Bound': ['BindFailed']}


def test_dump_omits_defaults_of_classes_that_say_so() -> None:
    assert codec.dump(Usage(busy_percent=0.0)) == {'busy_percent': 0.0}
    details = HeartbeatDetails('boot', {'a': Usage(counters={'e': 1})})
    assert codec.dump(details) == {
        'boot_id': 'boot',
        'telemetry': {'a': {'counters': {'e': 1}}},
    }
    assert 'filters' in codec.dump(Query())


def test_encode_ignores_values_that_are_no_fields() -> None:
    report = host(1, 1)
    assert report.digest
    assert codec.load(HostReport, codec.dump(report)) == report
    assert b'"digest"' not in codec.encode(report)


def test_encode_text_that_is_not_unicode_is_refused() -> None:
    with pytest.raises(MalformedData):
        codec.encode({'name': '\udcff'})


# --- compressed text ----------------------------------------------------------------


def compress(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content)).decode()


def test_unpack_packed_report_returns_equal_report() -> None:
    text = codec.pack(host(2, 4))
    assert codec.unpack(HostReport, text, MIB) == host(2, 4)


@pytest.mark.parametrize(
    'text',
    [
        None,
        7,
        {},
        '',
        'née',
        'not base64!',
        base64.b64encode(b'not compressed').decode(),
        compress(b'{}')[:8],
        compress(b'not JSON'),
        compress(b'\xff\xfe'),
        compress(b'"\xff\xfe"'),
        compress(b'[' * 100_000),
        compress(b'[]'),
        compress(b'{"hostname": 7}'),
    ],
)
def test_unpack_other_text_is_refused(text: object) -> None:
    with pytest.raises(MalformedData):
        codec.unpack(HostReport, text, MIB)


def test_unpack_stops_at_maximum_size() -> None:
    text = compress(b' ' * 1001)
    with pytest.raises(MalformedData, match='too long'):
        codec.unpack(HostReport, text, 1000)


@pytest.mark.parametrize(
    'content',
    [b'[],' * 5 * MIB, b'{"report":' + b'[],' * 5 * MIB, b'{"later":' + b'[' * MIB],
)
def test_unpack_of_nested_lists_needs_no_further_memory(content: bytes) -> None:
    text = compress(content)
    tracemalloc.start()
    try:
        with pytest.raises(MalformedData):
            codec.unpack(ReportChanges, text, 16 * MIB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * MIB
