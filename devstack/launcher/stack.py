# SPDX-License-Identifier: Apache-2.0
"""The processes of a run: Placement, doubles of Nova and Glance, and the service."""

import os
import shutil
import uuid
from pathlib import Path
from typing import Final

from devstack.launcher import (
    configuration,
    paths,
    processes,
    records,
    sample_bitstreams,
    sample_hosts,
)
from devstack.launcher.configuration import Ports
from devstack.launcher.failure import LaunchFailed
from devstack.launcher.options import Options
from devstack.launcher.processes import Child, Group
from devstack.launcher.rest import Service

_PLACEMENT_HEADERS: Final = {
    'X-Auth-Token': 'admin',
    'OpenStack-API-Version': 'placement 1.39',
}


class Stack:
    """The processes that this run of the launcher started."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._nova_port = configuration.free_port()
        self._image_port = configuration.free_port()
        self._children: list[Child] = []
        self.accelerator = Service(f'http://127.0.0.1:{options.port}')
        self.placement = Service(
            f'http://127.0.0.1:{options.placement_port}', _PLACEMENT_HEADERS
        )

    def start(self) -> None:
        """Start all processes and return when they are ready.

        :raises LaunchFailed: if a process is not ready in time; call ``end`` also then
        """
        options = self._options
        _prepare_state(options.keep)
        check_ports(options)
        self._write_configuration()
        self._start_placement()
        self._create_compute_node()
        self._start_nova()
        self._start_image_service()
        self._start_service()

    @property
    def has_sample_host(self) -> bool:
        """The service runs on a sample host with an emulated kernel."""
        return self._options.sysfs_root is None

    @property
    def resource_classes(self) -> set[str]:
        """The resource classes that the service certainly offers."""
        classes = {'FPGA'}  # of the fake driver
        if self.has_sample_host:
            classes |= sample_hosts.read_resource_classes(self._options.sample_host)
        return classes

    def end(self) -> None:
        """Stop the processes: the service first, because it uses the others."""
        for child in reversed(self._children):
            child.end()
        # Another run may have replaced this one and written its own record.
        if processes.read_record(paths.RUNNING) == self._groups():
            paths.RUNNING.unlink(missing_ok=True)

    def find_exited_child(self) -> Child | None:
        """Return a process that exited unexpectedly, or None."""
        for child in self._children:
            if child.status is not None:
                return child
        return None

    def _write_configuration(self) -> None:
        options = self._options
        ports = Ports(
            options.port, options.placement_port, self._nova_port, self._image_port
        )
        if options.sysfs_root is not None:
            configuration.write_files(ports, options.sysfs_root, {})
            return
        driver_options = sample_hosts.read_options(options.sample_host)
        configuration.write_files(ports, paths.SAMPLE_HOST, driver_options)

    def _start_placement(self) -> None:
        script = Path(__file__).with_name('placement_server.py')
        port = str(self._options.placement_port)
        child = self._start_child(
            'placement', str(script), str(paths.PLACEMENT_CONFIG), port
        )
        child.until(self.placement.answers)
        print(f'Placement answers at {self.placement.endpoint}.', flush=True)

    def _create_compute_node(self) -> None:
        """Create the resource provider that nova-compute would create."""
        name = configuration.HOST
        existing = self.placement.ask('GET', f'/resource_providers?name={name}').body
        if existing['resource_providers']:
            return
        node = {'name': name, 'uuid': str(uuid.uuid4())}
        response = self.placement.ask('POST', '/resource_providers', node)
        if response.status not in (200, 201):
            raise LaunchFailed(f'Placement rejected the compute node: {response.body}')
        # Nova attaches mdevs since 34.0.0, and sets this trait since then.
        traits = {'traits': ['OWNER_NOVA'], 'resource_provider_generation': 0}
        path = f'/resource_providers/{node["uuid"]}/traits'
        response = self.placement.ask('PUT', path, traits)
        if response.status != 200:
            raise LaunchFailed(f'Placement rejected the trait: {response.body}')
        print(f'Placement has the compute node {name}.', flush=True)

    def _start_nova(self) -> None:
        port, record = str(self._nova_port), str(paths.NOVA_EVENTS)
        child = self._start_child(
            'nova', '-m', 'tests.doubles.nova', '--port', port, '--record', record
        )
        child.until(Service(f'http://127.0.0.1:{port}').answers)
        print(f'Nova events are written to {paths.NOVA_EVENTS}.', flush=True)

    def _start_image_service(self) -> None:
        sample_bitstreams.store(paths.IMAGES)
        port, directory = str(self._image_port), str(paths.IMAGES)
        arguments = '--port', port, '--directory', directory
        child = self._start_child(
            'images', '-m', 'tests.doubles.image_service', *arguments
        )
        child.until(Service(f'http://127.0.0.1:{port}').answers)
        print(f'An image service has the bitstreams of {directory}.', flush=True)

    def _start_service(self) -> None:
        started_at = records.now()
        child = self._start_child('cyborg-lite', *self._service_command())
        child.until(self.accelerator.answers)
        print(f'The service answers at {self.accelerator.endpoint}.', flush=True)
        child.until(lambda: records.is_placement_updated(started_at))
        print('Placement has the devices of this host.', flush=True)

    def _service_command(self) -> list[str]:
        """Return the service, or the process of the sample host, which runs it."""
        # The host of a previous run is gone, and its kernel with it.
        shutil.rmtree(paths.SAMPLE_HOST, ignore_errors=True)
        if self._options.sysfs_root is not None:
            return [str(paths.BIN / 'cyborg-lite-standalone')]
        name = self._options.sample_host
        print(f'Sample host {name} has an emulated kernel.', flush=True)
        fixture = sample_hosts.find_fixture(name)
        module = 'devstack.launcher.host_process'
        return ['-m', module, fixture, str(paths.SAMPLE_HOST)]

    def _start_child(self, name: str, *arguments: str) -> Child:
        child = Child(name, paths.LOGS / f'{name}.log')
        child.log.unlink(missing_ok=True)
        environment = {
            'CYBORG_LITE_CONFIG': str(paths.CONFIG),
            'PYTHONPATH': str(paths.ROOT),
            'PYTHONUNBUFFERED': '1',
        }
        command = [str(paths.PYTHON), '-P', *arguments]
        child.start(command, environment, survive=self._options.background)
        self._children.append(child)
        processes.write_record(paths.RUNNING, self._groups())
        return child

    def _groups(self) -> list[Group]:
        groups = [child.group for child in self._children]
        if not self._options.background:
            groups.append(Group.of('standalone.sh', os.getpid()))
        return groups


def stop_previous_run() -> tuple[str, ...]:
    """Stop the processes of a previous run; return their names."""
    groups = [
        group for group in processes.read_record(paths.RUNNING) if group.members()
    ]
    # In reverse order: the last is a launcher on a terminal, which stops the others.
    for group in reversed(groups):
        group.end()
    paths.RUNNING.unlink(missing_ok=True)
    return tuple(group.name for group in groups)


def _prepare_state(keep: bool) -> None:
    if not keep:
        shutil.rmtree(paths.STATE, ignore_errors=True)
    paths.LOCKS.mkdir(parents=True, exist_ok=True)
    paths.LOGS.mkdir(parents=True, exist_ok=True)


def check_ports(options: Options) -> None:
    """Check that the ports of the services are free.

    :raises LaunchFailed: another process uses one of them
    """
    _check_free('--port', options.port)
    _check_free('--placement-port', options.placement_port)


def _check_free(option: str, port: int) -> None:
    if not configuration.is_free(port):
        raise LaunchFailed(f'Port {port} is in use. Choose another port with {option}.')
