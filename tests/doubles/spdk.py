# SPDX-License-Identifier: Apache-2.0
"""SPDK with NVMe-oF subsystems and vhost-user controllers, played by a thread.

The answers have the format of SPDK 24.01 (doc/jsonrpc.md). ``hosts`` of a subsystem
change as in SPDK when a host is added or removed.
"""

import json
import os
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

SOCKET: Final = 'var/tmp/spdk.sock'
NQN: Final = 'nqn.2016-06.io.spdk:cnode1'

# Any: JSON.
Object = dict[str, Any]


def build_subsystem(nqn: str = NQN, **changes: Any) -> Object:
    """Return a subsystem as ``nvmf_get_subsystems`` shows it."""
    listener = {
        'trtype': 'TCP',
        'adrfam': 'IPv4',
        'traddr': '192.0.2.10',
        'trsvcid': '4420',
    }
    namespace = {
        'nsid': 1,
        'bdev_name': 'Malloc0',
        'name': 'Malloc0',
        'uuid': '88d8a8b2-6e7c-4e8f-8a43-f0e04a2fb2f6',
    }
    return {
        'nqn': nqn,
        'subtype': 'NVMe',
        'listen_addresses': [listener],
        'allow_any_host': False,
        'hosts': [],
        'serial_number': 'SPDK00000000000001',
        'model_number': 'SPDK bdev Controller',
        'max_namespaces': 32,
        'min_cntlid': 1,
        'max_cntlid': 65519,
        'namespaces': [namespace],
        **changes,
    }


def build_controller(name: str = 'vhost.0') -> Object:
    """Return a block controller as ``vhost_get_controllers`` shows it."""
    block = {'readonly': False, 'bdev': 'Malloc1', 'transport': 'vhost_user_blk'}
    return {
        'ctrlr': name,
        'cpumask': '0x1',
        'delay_base_us': 0,
        'iops_threshold': 60000,
        'socket': f'/var/tmp/{name}',
        'sessions': [],
        'backend_specific': {'block': block},
    }


class FakeSpdk:
    """Server on the socket of a host, until ``stop``."""

    def __init__(self, root: Path) -> None:
        self.calls: list[Object] = []  # requests
        discovery = {'nqn': 'nqn.2014-08.org.nvmexpress.discovery'}
        self.subsystems: list[Object] = [
            {**build_subsystem(**discovery), 'subtype': 'Discovery'},
            build_subsystem(),
        ]
        self.controllers: list[Object] | None = [build_controller()]
        self.connections: list[str] = []  # NQNs of hosts
        self.connects_hosts = False  # each host connects as soon as it is added
        self.absent: set[str] = set()  # methods of later releases
        self.refusal: str | None = None  # of every call that changes a subsystem
        self.reply: bytes | None = None  # instead of each answer
        self._methods: Mapping[str, Callable[[Object], Any]] = {
            'spdk_get_version': lambda params: {'version': 'SPDK v24.01'},
            'nvmf_get_subsystems': lambda params: self.subsystems,
            'vhost_get_controllers': lambda params: self.controllers,
            'nvmf_subsystem_get_controllers': self._list_connections,
            'nvmf_subsystem_add_host': self._add_host,
            'nvmf_subsystem_remove_host': self._remove_host,
        }
        path = root / SOCKET
        path.parent.mkdir(parents=True, exist_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # The path of a socket has at most 107 characters.
        directory = os.open(path.parent, os.O_PATH)
        self._socket.bind(f'/proc/self/fd/{directory}/{path.name}')
        os.close(directory)
        self._socket.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def list_hosts(self, nqn: str = NQN) -> list[str]:
        """Return the NQNs that may connect to a subsystem."""
        (subsystem,) = (item for item in self.subsystems if item['nqn'] == nqn)
        return [item['nqn'] for item in subsystem['hosts']]

    def stop(self) -> None:
        """Refuse further connections. The file of the socket stays."""
        with suppress(OSError):  # a second stop
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                request = json.loads(connection.recv(1 << 16))
                self.calls.append(request)
                answer = json.dumps(self._answer(request)).encode()
                connection.sendall(answer if self.reply is None else self.reply)

    def _answer(self, request: Object) -> Object:
        answer: Object = {'jsonrpc': '2.0', 'id': request['id']}
        method = request['method']
        is_absent = method.startswith('vhost') and self.controllers is None
        if method not in self._methods or method in self.absent or is_absent:
            error: Object = {'code': -32601, 'message': 'Method not found'}
            return {**answer, 'error': error}
        try:
            result = self._methods[method](request.get('params', {}))
        except ValueError as refusal:
            return {**answer, 'error': {'code': -32602, 'message': str(refusal)}}
        return {**answer, 'result': result}

    def _list_connections(self, params: Object) -> list[Object]:
        self._find(params)
        return [
            {'cntlid': number, 'hostnqn': nqn, 'hostid': '', 'num_io_qpairs': 5}
            for number, nqn in enumerate(self.connections, 1)
        ]

    def _add_host(self, params: Object) -> bool:
        if self.refusal is not None:
            raise ValueError(self.refusal)
        self._find(params)['hosts'].append({'nqn': params['host']})
        if self.connects_hosts:
            self.connections.append(params['host'])
        return True

    def _remove_host(self, params: Object) -> bool:
        if self.refusal is not None:
            raise ValueError(self.refusal)
        subsystem = self._find(params)
        subsystem['hosts'] = [
            item for item in subsystem['hosts'] if item['nqn'] != params['host']
        ]
        self.connections = [nqn for nqn in self.connections if nqn != params['host']]
        return True

    def _find(self, params: Object) -> Object:
        for subsystem in self.subsystems:
            if subsystem['nqn'] == params['nqn']:
                return subsystem
        raise ValueError('Invalid parameters')
