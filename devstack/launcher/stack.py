# SPDX-License-Identifier: Apache-2.0
"""The three processes: begun in order, found again by a later run, ended together."""

import os
import shutil
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from devstack.launcher import configuration, places, processes, records
from devstack.launcher.configuration import Ports
from devstack.launcher.failure import LaunchFailed
from devstack.launcher.options import Options
from devstack.launcher.processes import Child, Group
from devstack.launcher.rest import Service

# Turing, with the plain passthrough of one card and the vGPU mode of another.
_SAMPLE: Final = 't4-mdev'
_PLACEMENT_HEADERS: Final = {
    'X-Auth-Token': 'admin',
    'OpenStack-API-Version': 'placement 1.39',
}


class Stack:
    """What this run of the launcher started."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._nova_port = configuration.free_port()
        self._children: list[Child] = []
        self.accelerator = Service(f'http://127.0.0.1:{options.port}')
        self.placement = Service(
            f'http://127.0.0.1:{options.placement_port}', _PLACEMENT_HEADERS
        )

    def start(self) -> None:
        """Return when everything is ready.

        :raises LaunchFailed: something is not; call ``end`` all the same
        """
        options = self._options
        _prepare_state(options.keep)
        _check_free('--port', options.port)
        _check_free('--placement-port', options.placement_port)
        ports = Ports(options.port, options.placement_port, self._nova_port)
        configuration.write(ports, options.sysfs_root or _sample_host())
        self._start_placement()
        self._make_compute_node()
        self._start_nova()
        self._start_service()

    def end(self) -> None:
        """The service first: it may still talk to the others."""
        for child in reversed(self._children):
            child.end()
        # Another run may have replaced us, and keeps a record of its own by now.
        if processes.read_record(places.RUNNING) == self._groups():
            places.RUNNING.unlink(missing_ok=True)

    def failed(self) -> Child | None:
        """One that ended by itself, if any."""
        for child in self._children:
            if child.status is not None:
                return child
        return None

    def _start_placement(self) -> None:
        script = Path(__file__).with_name('placement_server.py')
        port = str(self._options.placement_port)
        child = self._begin(
            'placement', str(script), str(places.PLACEMENT_CONFIG), port
        )
        child.until(self.placement.answers)
        print(f'Placement answers at {self.placement.endpoint}.', flush=True)

    def _make_compute_node(self) -> None:
        """As nova-compute does when it starts."""
        name = configuration.HOST
        found = self.placement.ask('GET', f'/resource_providers?name={name}').body
        if found['resource_providers']:
            return
        node = {'name': name, 'uuid': str(uuid.uuid4())}
        made = self.placement.ask('POST', '/resource_providers', node)
        if made.status not in (200, 201):
            raise LaunchFailed(f'Placement refused the compute node: {made.body}')
        print(f'Placement has the compute node {name}.', flush=True)

    def _start_nova(self) -> None:
        port, record = str(self._nova_port), str(places.NOVA_EVENTS)
        child = self._begin(
            'nova', '-m', 'tests.fakes.nova', '--port', port, '--record', record
        )
        child.until(Service(f'http://127.0.0.1:{port}').answers)
        print(f'The receiver of events writes {places.NOVA_EVENTS}.', flush=True)

    def _start_service(self) -> None:
        begun = datetime.now(UTC).strftime('%F %T')
        command = str(places.BIN / 'cyborg-lite-standalone')
        child = self._begin('cyborg-lite', command)
        child.until(self.accelerator.answers)
        print(f'The service answers at {self.accelerator.endpoint}.', flush=True)
        child.until(lambda: records.placement_knows(begun))
        print('Placement was told of the devices of this host.', flush=True)

    def _begin(self, name: str, *arguments: str) -> Child:
        child = Child(name, places.LOGS / f'{name}.log')
        child.log.unlink(missing_ok=True)
        environment = {
            'CYBORG_LITE_CONFIG': str(places.CONFIG),
            'PYTHONPATH': str(places.ROOT),
            'PYTHONUNBUFFERED': '1',
        }
        command = [str(places.PYTHON), '-P', *arguments]
        child.start(command, environment, survive=self._options.background)
        self._children.append(child)
        processes.write_record(places.RUNNING, self._groups())
        return child

    def _groups(self) -> list[Group]:
        groups = [child.group for child in self._children]
        if not self._options.background:
            groups.append(Group.of('standalone.sh', os.getpid()))
        return groups


def end_earlier() -> bool:
    """End what an earlier run left; whether there was anything."""
    groups = [
        group for group in processes.read_record(places.RUNNING) if group.members()
    ]
    # The last one first: a launcher on some terminal, which ends the others itself.
    for group in reversed(groups):
        group.end()
    places.RUNNING.unlink(missing_ok=True)
    return bool(groups)


def _prepare_state(keep: bool) -> None:
    if not keep:
        shutil.rmtree(places.STATE, ignore_errors=True)
    places.LOCKS.mkdir(parents=True, exist_ok=True)
    places.LOGS.mkdir(parents=True, exist_ok=True)


def _check_free(option: str, port: int) -> None:
    if not configuration.is_free(port):
        raise LaunchFailed(
            f'Port {port} is taken by another program. Choose one with {option}.'
        )


def _sample_host() -> Path:
    # Only at hand in the virtual environment, and needed only here.
    from tests.fakes import sysfs_tree

    shutil.rmtree(places.SAMPLE_HOST, ignore_errors=True)
    about = sysfs_tree.build(_SAMPLE, places.SAMPLE_HOST).about
    print(f'The sample host: {about}.', flush=True)
    return places.SAMPLE_HOST
