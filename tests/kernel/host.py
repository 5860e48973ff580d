# SPDX-License-Identifier: Apache-2.0
"""The host with the agent: what the role installs, and what the tests ask it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from cyborg_lite.rpc.security.keys import Peer, Role, derive_key
from tests.kernel.machine import CommandFailed, Machine
from tests.kernel.mdev_driver import MdevCards
from tests.servers.message_keys import SECRET
from tests.servers.stack import Cloud, Instance, Options

UNIT: Final = 'cyborg-lite-agent'
_MDEV_TYPE: Final = 'pci-1'  # no driver of the kernel is bound to the function
PROGRAMS: Final = '/opt/cyborg-lite/bin'

_STATE: Final = '/var/lib/cyborg-lite'
_BY_ID: Final = '/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_'
_OUTSIDE: Final = (
    '10.0.2.2'  # the loopback address of this machine, seen from the other
)

_CREATE: Final = """\
pvcreate -q $(drive LVM)
vgcreate -q system $(drive LVM)
lvcreate -q -y --wipesignatures n -L 20M -n data system
mdadm --create /dev/md/system --run --level=1 --raid-devices=2 $(drive RAID) missing
printf secret | cryptsetup luksFormat -q --key-file - --pbkdf pbkdf2 \\
    --pbkdf-force-iterations 1000 $(drive CRYPT)
echo ',,L' | sfdisk -q $(drive MOUNTED)
udevadm settle
mkfs.vfat $(drive MOUNTED)-part1
"""
_OPEN: Final = """\
udevadm settle
[ -e /sys/block/md12? ] || mdadm --assemble --run /dev/md/system $(drive RAID)
"""


def build_variables(cloud: Cloud, transport_url: str) -> Mapping[str, Any]:
    """Return the variables of the role of the agent. Any: they are JSON."""
    url = urlsplit(transport_url)
    user, _, _ = url.netloc.rpartition('@')
    address = f'{user}@{_OUTSIDE}:{url.port or 5672}'
    return {
        'cyborg_lite_host': cloud.host,
        'cyborg_lite_transport_url': urlunsplit(url._replace(netloc=address)),
        'cyborg_lite_agent_key': derive_key(SECRET, Peer(Role.AGENT, cloud.host)),
        'cyborg_lite_drivers': ['nvme_driver', 'pci_driver', MdevCards.NAME],
        'cyborg_lite_options': {
            'agent': {
                'discovery_interval': 5,
                'fingerprint_interval': 1,
                'heartbeat_interval': 2,
            },
            # The host uses most of them, and none of those may be offered.
            'nvme_driver': {'drives': '*'},
            MdevCards.NAME: {'vgpu_types': f'* = {_MDEV_TYPE}'},
            # The cloud of the tests has no quorum queues.
            'oslo_messaging_rabbit': {
                'rabbit_quorum_queue': False,
                'rabbit_transient_quorum_queue': False,
                'rabbit_stream_fanout': False,
                'use_queue_manager': False,
            },
        },
    }


class Host:
    """The machine as the cloud and its operator see it."""

    def __init__(self, cloud: Cloud, machine: Machine) -> None:
        self.cloud = cloud
        self.machine = machine
        self._addresses: dict[str, str] = {}

    def use_drives(self, *, has_data: bool = False) -> None:
        """Use one drive for each purpose that hosts have for drives.

        :param has_data: after a reboot of the machine
        """
        self.machine.run(f"""\
drive() {{ ls /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_$1 | head -1; }}
{_OPEN if has_data else _CREATE}
vgchange -q -ay system
printf secret | cryptsetup open --key-file - $(drive CRYPT) system-crypt
mkdir -p /srv/data
mount $(drive MOUNTED)-part1 /srv/data
""")

    def start_agent(self) -> None:
        """Start the unit; systemd returns when the agent is ready."""
        self.machine.run(f'systemctl restart {UNIT}')

    def configure(self, options: Options) -> None:
        """Restart the agent with options in addition to those of the role."""
        lines = ''.join(
            f'[{section}]\n'
            + ''.join(f'{name} = {value}\n' for name, value in values.items())
            for section, values in options.items()
        )
        path = '/etc/cyborg-lite/cyborg-lite.conf'
        self.machine.run(f"""\
cp --no-clobber {path} /root
cat /root/cyborg-lite.conf - > {path} <<'END'
{lines}END""")
        self.start_agent()

    @contextmanager
    def be_controller(self) -> Iterator[None]:
        """Have the configuration of API and conductor, and no agent and no state."""
        secrets = Path('/etc/cyborg-lite')
        options: Options = {
            'api': {'host': '0.0.0.0', 'key_file': secrets / 'api.key'},
            'conductor': {'agent_key_secret_file': secrets / 'agent-key-secret'},
            'oslo_concurrency': {'lock_path': f'{_STATE}/locks'},
        }
        text = self.cloud.write_config('controller', options).read_text()
        self.machine.run(f"""\
systemctl stop {UNIT}
cp {secrets}/cyborg-lite.conf /root/agent.conf
mv {_STATE} /root/agent-state
cat > {secrets}/cyborg-lite.conf <<'END'
{text.replace('127.0.0.1', _OUTSIDE)}END
printf %s '{derive_key(SECRET, Peer(Role.API))}' > {secrets}/api.key
printf %s '{SECRET}' > {secrets}/agent-key-secret
chown cyborg-lite: {secrets}/api.key {secrets}/agent-key-secret
chmod 0600 {secrets}/api.key {secrets}/agent-key-secret""")
        try:
            yield
        finally:
            self.machine.run(f"""\
systemctl stop cyborg-lite-api cyborg-lite-conductor
cat /root/agent.conf > {secrets}/cyborg-lite.conf
rm -rf {_STATE}
mv /root/agent-state {_STATE}""")
            self.start_agent()

    def restart_machine(self) -> None:
        """Let the machine lose its power, and start the agent as a boot does."""
        self.machine.power_off_and_on()
        self.use_drives(has_data=True)
        self.start_agent()

    def journal(self) -> str:
        """Return the messages of the unit since the boot."""
        return self.machine.run(f'journalctl -b -u {UNIT} -o cat --no-pager')

    def run_program(self, command: str) -> str:
        """Run a program of the product as its user and return its output."""
        return self.machine.run(f'runuser -u cyborg-lite -- {PROGRAMS}/{command}')

    def enter_unit(self, command: str) -> str:
        """Return a script that runs a command as root in the restrictions of the unit.

        The privileged process has them: the agent starts it.
        """
        return f"""\
pid=$(systemctl show {UNIT} -P MainPID)
kept=$(systemctl show {UNIT} -P CapabilityBoundingSet | sed 's/cap_/+/g; s/ /,/g')
exec nsenter -t $pid -m setpriv --bounding-set=-all,$kept -- sh -c '{command}'
"""

    # --- drives: each has its serial number as name ---

    def find_address(self, serial: str) -> str:
        """Return the PCI address of a drive."""
        return self.machine.run(f"""\
for drive in /sys/bus/pci/devices/*/nvme/*; do
    [ "$(tr -d ' ' < $drive/serial)" != {serial} ] || cat $drive/address
done""")

    def find_serial(self, address: str) -> str:
        """Return the serial number of the drive at a PCI address."""
        path = f'/sys/bus/pci/devices/{address}/nvme/*/serial'
        return self.machine.run(f'cat {path}').strip()

    def find_provider(self, serial: str) -> str:
        """Wait for the provider of a drive and return its uuid."""
        name = f'{self.cloud.host}_{self.find_address(serial)}'
        provider = self.cloud.until(lambda: self.cloud.providers().get(name))
        return str(provider['uuid'])

    def boot(self, serial: str) -> Instance:
        """Bind a drive and wait until Nova knows the result."""
        instance = self.cloud.boot('CUSTOM_SSD', provider=self.find_provider(serial))
        self.cloud.until(instance.is_resolved)
        return instance

    def attach(self, serial: str) -> None:
        """Bind a drive to vfio-pci as libvirt does before a guest starts."""
        self._bind_driver(serial, 'vfio-pci')

    def detach(self, serial: str) -> None:
        """Return a drive to its driver as libvirt does when the guest has stopped."""
        self._bind_driver(serial, '')

    def _bind_driver(self, serial: str, driver: str) -> None:
        address = self._addresses.get(serial) or self.find_address(serial)
        self._addresses[serial] = address
        path = f'/sys/bus/pci/devices/{address}'
        self.machine.run(f"""\
modprobe vfio-pci
echo '{driver}' > {path}/driver_override
echo {address} > {path}/driver/unbind
echo {address} > /sys/bus/pci/drivers_probe""")

    def write_data(self, serial: str) -> None:
        """Write random data to the begin of a drive."""
        self.machine.run(
            f'dd if=/dev/urandom of={_BY_ID}{serial} bs=1M count=4 oflag=direct'
        )

    def is_erased(self, serial: str) -> bool:
        """Check that the data of ``write_data`` are gone; CommandFailed if unknown."""
        result = self.machine.execute(f'cmp -n 4194304 /dev/zero {_BY_ID}{serial}')
        if result.status > 1:
            raise CommandFailed(result.output)
        return result.status == 0

    # --- mediated devices ---

    def list_mdevs(self) -> set[str]:
        """Return the uuids of the mediated devices of the machine."""
        return set(self.machine.run('ls /sys/bus/mdev/devices').split())

    def create_mdev(self, uuid: str) -> None:
        """Create a mediated device as another program does."""
        path = f'/sys/class/mdev_bus/*/mdev_supported_types/{_MDEV_TYPE}/create'
        self.machine.run(f'echo {uuid} > $(echo {path})')

    def remove_mdev(self, uuid: str) -> None:
        """Remove a mediated device."""
        self.machine.run(f'echo 1 > /sys/bus/mdev/devices/{uuid}/remove')

    @contextmanager
    def open_mdev(self, uuid: str) -> Iterator[None]:
        """Have a mediated device open as QEMU does."""
        self.machine.run(f"""\
group=$(basename $(readlink /sys/bus/mdev/devices/{uuid}/iommu_group))
systemd-run --quiet --unit guest sh -c "exec 3<>/dev/vfio/$group; exec sleep infinity"
until ls -l /proc/$(systemctl show guest -P MainPID)/fd | grep /dev/vfio; do
    sleep 0.2
done""")
        try:
            yield
        finally:
            self.machine.run('systemctl stop guest')
