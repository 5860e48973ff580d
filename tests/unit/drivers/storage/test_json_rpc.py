# SPDX-License-Identifier: Apache-2.0
"""Tests of the client of a JSON-RPC server on a socket."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cyborg_lite.drivers.storage.json_rpc import CallRefused, JsonRpc, ServerUnreachable
from tests.doubles.spdk import SOCKET, FakeSpdk


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FakeSpdk]:
    server = FakeSpdk(tmp_path / ('deep' * 30))
    yield server
    server.stop()


@pytest.fixture
def client(tmp_path: Path) -> JsonRpc:
    return JsonRpc(tmp_path / ('deep' * 30) / SOCKET, 5.0)


def test_call_returns_result(server: FakeSpdk, client: JsonRpc) -> None:
    assert client.call('spdk_get_version') == {'version': 'SPDK v24.01'}
    request = {'jsonrpc': '2.0', 'method': 'spdk_get_version', 'id': 1}
    assert server.calls == [request]


def test_call_large_answer_is_read_whole(server: FakeSpdk, client: JsonRpc) -> None:
    server.subsystems = [{'nqn': 'x' * 1000}] * 1000
    assert client.call('nvmf_get_subsystems') == server.subsystems


def test_call_unknown_method_is_marked(server: FakeSpdk, client: JsonRpc) -> None:
    with pytest.raises(CallRefused, match='Method not found') as caught:
        client.call('colour')
    assert caught.value.is_unknown
    with pytest.raises(CallRefused, match='Invalid parameters') as caught:
        client.call('nvmf_subsystem_add_host', nqn='x', host='y')
    assert not caught.value.is_unknown


@pytest.mark.parametrize('reply', [b'', b'{"result": 1', b'nothing'])
def test_call_damaged_answer_raises(
    reply: bytes, server: FakeSpdk, client: JsonRpc
) -> None:
    server.reply = reply
    with pytest.raises(ServerUnreachable, match=r'spdk\.sock does not answer'):
        client.call('spdk_get_version')


def test_call_without_server_raises(server: FakeSpdk, client: JsonRpc) -> None:
    server.stop()
    with pytest.raises(ServerUnreachable, match='Connection refused'):
        client.call('spdk_get_version')
