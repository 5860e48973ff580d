# SPDX-License-Identifier: Apache-2.0
"""Tests of the client of a JSON-RPC server on a socket."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cyborg_lite.drivers.storage.json_rpc import JsonRpc
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
