# SPDX-License-Identifier: Apache-2.0
"""Compressed arguments and results of RPC calls."""

import base64
import json
import zlib
from datetime import UTC, datetime

import pytest

from cyborg_lite.errors.daemons import MalformedMessage
from cyborg_lite.model.arqs.arqs import Arq, State
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.rpc import compression, wire
from tests.builders.reports import host


def compress(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content)).decode()


def test_load_dumped_report_returns_equal_report() -> None:
    assert compression.load(HostReport, compression.dump(host(2, 4))) == host(2, 4)


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
        compress(b'[' * 100_000),
        compress(b'[]'),
        compress(b'{"hostname": 7}'),
    ],
)
def test_load_other_text_is_rejected(text: object) -> None:
    with pytest.raises(MalformedMessage):
        compression.load(HostReport, text)


def test_load_stops_at_maximum_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, '_MAX_SIZE', 1000)
    with pytest.raises(MalformedMessage, match='too long'):
        compression.load(HostReport, compress(b' ' * 1001))


# --- lists --------------------------------------------------------------------------

NOW = datetime(2026, 11, 21, tzinfo=UTC)
GROUP = {'resources:PGPU': '1'}
FULL = Arq(
    'u1',
    State.BOUND,
    'gpu',
    0,
    GROUP,
    NOW,
    updated_at=NOW,
    attach_handle_info={'bus': '1'},
    needs_host=True,
    state_times={'Initial': NOW},
)
MINIMAL = Arq('u2', State.INITIAL, 'gpu', 1, GROUP, NOW)


@pytest.mark.parametrize('arqs', [(), (FULL,), (MINIMAL, FULL, MINIMAL)])
def test_load_list_returns_equal_objects(arqs: tuple[Arq, ...]) -> None:
    assert compression.load_list(Arq, compression.dump_list(Arq, arqs)) == arqs


def test_load_list_ignores_unknown_and_fills_missing_fields() -> None:
    names = ('uuid', 'state', 'device_profile_name', 'device_profile_group_id')
    columns = {name: [wire.dump(getattr(MINIMAL, name))] for name in names}
    columns |= {'device_profile_group': [GROUP], 'created_at': [NOW.isoformat()]}
    columns['later'] = [7]
    text = compress(json.dumps(columns).encode())
    assert compression.load_list(Arq, text) == (MINIMAL,)


@pytest.mark.parametrize(
    'content',
    [
        b'[]',
        b'{"uuid": 7}',
        b'{"uuid": ["u"]}',
        b'{"uuid": ["u", "v"], "state": ["Bound"]}',
        b'{"uuid": [7]}',
        b'{"state": ["Foreign"]}',
        b'{"device_profile_group": [{"a": 1}]}',
    ],
)
def test_load_list_other_columns_are_rejected(content: bytes) -> None:
    with pytest.raises(MalformedMessage):
        compression.load_list(Arq, compress(content))


def test_load_list_has_no_maximum_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, '_MAX_SIZE', 100)
    text = compression.dump_list(Arq, (FULL,) * 100)
    assert len(compression.load_list(Arq, text)) == 100
