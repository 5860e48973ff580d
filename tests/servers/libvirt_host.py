# SPDX-License-Identifier: Apache-2.0
"""Compute host with NVIDIA cards: a real agent, and Nova with its libvirt driver.

The kernel and libvirt are emulated. A card is divided into mdevs, and another card is
passed through whole.
"""

from pathlib import Path
from typing import Final, Self
from xml.etree import ElementTree

from devstack.launcher.processes import Child
from tests.doubles.nova_guest import HostDevice, read_address
from tests.hosts import kernel_service
from tests.hosts.kernel import FakeKernel
from tests.hosts.kernel_service import KernelService
from tests.servers.openstack import OpenStack, Server

DIVIDED: Final = '0000:af:00.0'
WHOLE: Final = '0000:3b:00.0'
VGPU_TYPE: Final = 'nvidia-231'

_FIXTURE: Final = 't4-mdev'
_COMPUTE: Final = 'tests.servers.libvirt_compute'

_AGENT: Final = f"""
[agent]
enabled_drivers = nvidia_gpu_driver
sysfs_root = {{root}}
recovery_patience = 3
[nvidia_gpu_driver]
vgpu_types = {DIVIDED}={VGPU_TYPE}
creates_mdevs = {{creates_mdevs}}
"""

_NOVA: Final = """
[DEFAULT]
compute_driver = libvirt.LibvirtDriver
resume_guests_state_on_host_boot = {resumes}
sync_power_state_interval = 3
instances_path = {directory}/instances
state_path = {directory}/nova
"""


class LibvirtHost:
    """The host, which runs while it is open."""

    def __init__(self, cloud: OpenStack, name: str) -> None:
        self.cloud = cloud
        self.name = name
        self.directory = cloud.directory / name
        self.root = self.directory / 'host'
        self.directory.mkdir()
        self.kernel = FakeKernel(_FIXTURE, self.root, most_virtual=1)
        self._service = KernelService(self.kernel)
        self._foreign = self.list_mdevs()

    @property
    def agent(self) -> str:
        """Name of the process of the agent."""
        return f'agent-{self.name}'

    @property
    def compute(self) -> str:
        """Name of the process of nova-compute."""
        return f'nova-compute-{self.name}'

    def __enter__(self) -> Self:
        for part in ('nova', 'instances'):
            (self.directory / part).mkdir()
        self.start_agent()
        self.start_compute()
        for address in (DIVIDED, WHOLE):
            self.cloud.until_offered(f'{self.name}_{address}')
        return self

    def __exit__(self, *trouble: object) -> None:
        self.cloud.accept_servers(self.name, False)
        self.stop()
        self._service.close()

    # --- processes ---

    def start_agent(self, *, creates_mdevs: bool = True) -> None:
        """Start the agent and wait until its host is prepared."""
        options = _AGENT.format(root=self.root, creates_mdevs=creates_mdevs)
        path = self.cloud.write_cyborg_config(self.name, options)
        environment = self._service.environment('cyborg_lite.cmd.daemons.agent')
        child = self.cloud.start_module(
            self.agent,
            kernel_service.__name__,
            '--config-file',
            str(path),
            environment=environment,
        )
        before = child.log.read_text().count('Ready.')
        self.cloud.until(
            lambda: child.log.read_text().count('Ready.') > before, 'the agent is ready'
        )

    def restart_agent(self, *, creates_mdevs: bool = True) -> None:
        """Restart the agent with another value of its option."""
        self.cloud.kill(self.agent)
        self.start_agent(creates_mdevs=creates_mdevs)

    def start_compute(self, *, resumes: bool = False) -> None:
        """Start nova-compute and wait until it has reported.

        :param resumes: nova-compute starts the guests that ran before a host reboot
        """
        before = self._last_report()
        self._begin_compute(resumes=resumes)
        self.cloud.until(lambda: self._last_report() != before, 'nova-compute reports')

    def start_compute_in_vain(self) -> int | None:
        """Start nova-compute, wait until it has exited, and return its status."""
        child = self._begin_compute()
        del self.cloud.children[self.compute]
        self.cloud.until(lambda: child.status is not None, 'nova-compute exits')
        return child.status

    def _begin_compute(self, *, resumes: bool = False) -> Child:
        options = _NOVA.format(directory=self.directory, resumes=resumes)
        path = self.cloud.write_nova_config(self.compute, self.name, options)
        return self.cloud.start_module(
            self.compute,
            _COMPUTE,
            str(self.directory),
            '--config-file',
            str(path),
            environment=self._service.environment(''),
        )

    def _last_report(self) -> str | None:
        """Return the time of the last report of nova-compute, None if there is none."""
        service = self.cloud.compute_services().get(self.name, {})
        time: str | None = service.get('updated_at')
        return time

    def stop(self) -> None:
        """Stop the agent and nova-compute at once, if they run."""
        for name in (self.agent, self.compute):
            if name in self.cloud.children:
                self.cloud.kill(name)

    def power_cycle(self) -> None:
        """Reboot the host; neither the agent nor nova-compute runs afterwards."""
        self.stop()
        self.kernel.reboot()

    # --- devices ---

    def list_mdevs(self) -> set[str]:
        """Return the uuids of the mdevs."""
        return {link.name for link in (self.root / 'sys/bus/mdev/devices').glob('*')}

    def list_own_mdevs(self) -> set[str]:
        """Return the uuids of the mdevs without those that the host had first."""
        return self.list_mdevs() - self._foreign

    def list_definitions(self) -> set[str]:
        """Return the uuids of the defined mdevs."""
        return {path.name for path in (self.root / 'etc/mdevctl.d').glob('*/*')}

    def find_driver(self, address: str) -> str:
        """Return the name of the kernel driver of a PCI function."""
        return (self.root / 'sys/bus/pci/devices' / address / 'driver').resolve().name

    # --- guests ---

    def list_xmls(self, server: Server) -> list[Path]:
        """Return the files of all definitions of the guest, oldest first."""
        return sorted((self.directory / 'domains' / server.uuid).glob('*.xml'))

    def is_running(self, server: Server) -> bool:
        """Return True if the guest runs."""
        return (self.directory / 'domains' / server.uuid / 'running').exists()

    def list_devices(self, server: Server) -> list[HostDevice]:
        """Return the devices in the last XML of the guest, in order."""
        return sorted(read_devices(self.list_xmls(server)[-1]))


def read_devices(xml: Path) -> list[HostDevice]:
    """Return the devices of the host in the XML of a guest."""
    devices = []
    for element in ElementTree.parse(xml).iterfind('devices/hostdev'):
        address = element.find('source/address')
        assert address is not None
        if element.attrib['type'] == 'mdev':
            devices.append(HostDevice('mdev', address.attrib['uuid']))
        else:
            source, managed = read_address(address.attrib), element.attrib['managed']
            devices.append(HostDevice(element.attrib['type'], source, managed))
    return devices
