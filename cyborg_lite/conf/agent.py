# SPDX-License-Identifier: Apache-2.0
"""Options of the agent on each host."""

from typing import Final

from oslo_config import cfg

GROUP: Final = 'agent'

NOVA_CONFIG_FILES: Final = [
    '/etc/nova/nova.conf',
    '/etc/nova/nova.conf.d',
    '/etc/nova/nova-compute.conf',
    '/etc/nova/nova-compute.conf.d',
    '/etc/nova/nova-cpu.conf',
    '/etc/kolla/nova-compute/nova.conf',
]
"""Usual files of nova-compute: of packages, of DevStack and of Kolla."""

OPTIONS: Final[list[cfg.Opt]] = [
    cfg.ListOpt(
        'enabled_drivers',
        default=['nvidia_gpu_driver'],
        help="""
Drivers that discover accelerators on this host, by the names of their entry points.
Devices that no driver claims are neither reported nor changed. Set it to the types of
accelerators in this host; `cyborg-lite-agent discover` shows the effect.
""",
    ),
    cfg.StrOpt(
        'sysfs_root',
        default='/',
        help="""
Directory below which the drivers find sys, proc and dev. Change it only to test the
agent with an emulated host, or if a container mounts the files of the host elsewhere.
""",
    ),
    cfg.BoolOpt(
        'boots_from_network',
        default=False,
        help="""
The host has booted from the network, or its root file system is in memory. Otherwise
the agent offers no drive and no storage controller, and erases none, unless a mount
table shows the root file system on a disk of this host. Set it only on hosts without a
system disk: a system disk that no mount table shows is then offered and erased.
""",
    ),
    cfg.StrOpt(
        'privileged_command',
        default='',
        help="""
Command that starts the privileged process, which changes devices as root. The agent
appends the arguments of the process. If empty, an agent that runs as root starts the
process itself; any other agent runs `sudo -n privsep-helper`, for which it needs the
rule in etc/sudoers.d. Set it if a tool other than sudo grants root privileges, or if
privsep-helper is installed in another directory.
""",
    ),
    cfg.StrOpt(
        'state_path',
        default='/var/lib/cyborg-lite',
        help="""
Directory in which the agent stores its state across restarts: the last discovery
results, the prepared attach handles, and the events that the conductor has not
received yet. It must survive a reboot of the host, and only the agent may write to it:
the agent rebuilds the stored devices after a reboot. The agent creates the directory
when it is missing. Change it if /var/lib is not persistent.
""",
    ),
    cfg.StrOpt(
        'key_file',
        default='/etc/cyborg-lite/agent.key',
        help="""
File with the key that signs the messages of this host. `cyborg-lite-manage agent key
HOST` prints the key on a controller. Only the owner of the file may have access to it.
""",
    ),
    cfg.IntOpt(
        'fingerprint_interval',
        default=5,
        min=1,
        help="""
Seconds between two checks of the names and links in sysfs. If they have changed, the
agent starts a full scan at once. Raise it on a host with thousands of PCI functions.
""",
    ),
    cfg.IntOpt(
        'discovery_interval',
        default=60,
        min=1,
        help="""
Seconds between two full scans of the hardware while no change is detected. A detected
change is scanned and reported at once. Raise it if reading sysfs is slow.
""",
    ),
    cfg.IntOpt(
        'removal_scans',
        default=3,
        min=1,
        help="""
Number of consecutive full scans that must miss a device before it counts as removed.
From the first of these scans, the device is not allocated to new instances. Raise it
if devices disappear temporarily.
""",
    ),
    cfg.IntOpt(
        'recovery_patience',
        default=180,
        min=0,
        help="""
Seconds after a host reboot within which the agent must rebuild the devices of
instances. ARQs not rebuilt in time go to BindFailed. Until then the agent accepts no
new work and does not notify systemd that it is ready, so TimeoutStartSec of its unit
must be higher. Raise it if vendor drivers take longer to initialize.
""",
    ),
    cfg.IntOpt(
        'heartbeat_interval',
        default=30,
        min=1,
        help="""
Seconds between two heartbeats to the conductor. A heartbeat without a reply within a
third of the interval is sent again. Lower it to detect an unreachable host sooner; the
load of the conductor rises accordingly. Keep [conductor] agent_down_after above three
times this value.
""",
    ),
    cfg.IntOpt(
        'driver_timeout',
        default=60,
        min=1,
        help="""
Seconds that a scan by one driver may take, without the time in which a busy machine
does not run the agent. If a driver exceeds it, its last result is
reused until its scan returns; other drivers are not delayed. Raise it for a host with
many devices.
""",
    ),
    cfg.StrOpt(
        'hardware_directory',
        default='/etc/cyborg-lite/hardware.d',
        help="""
Directory with files of health rules, *.yaml, which change or extend the rules of the
package. The agent reads them at its start. The directory may be missing.
""",
    ),
    cfg.IntOpt(
        'pci_error_period',
        default=3600,
        min=60,
        help="""
Seconds within which PCI errors of a device are counted. A device that has reached one
of the limits below is healthy again when fewer errors than the limit occurred within
this period, or when an operator runs `cyborg-lite-agent acknowledge`.
""",
    ),
    cfg.IntOpt(
        'fatal_error_limit',
        default=1,
        min=0,
        help="""
Number of fatal PCI errors within pci_error_period from which a device is failed: it is
reserved in Placement and cannot be bound. 0 ignores fatal errors.
""",
    ),
    cfg.IntOpt(
        'nonfatal_error_limit',
        default=10,
        min=0,
        help="""
Number of uncorrectable PCI errors that are not fatal within pci_error_period from which
a device is withheld: no new instance gets it. 0 ignores these errors.
""",
    ),
    cfg.IntOpt(
        'correctable_error_limit',
        default=1000,
        min=0,
        help="""
Number of correctable PCI errors within pci_error_period from which the health of a
device is degraded. The device can still be bound. 0 ignores correctable errors.
""",
    ),
    cfg.StrOpt(
        'image_directory',
        default='/var/lib/cyborg-lite/images',
        help="""
Directory in which the agent caches bitstreams and records which bitstream each region
contains. Only the agent may write to it: its files are loaded into devices. The agent
creates the directory when it is missing. Change it if /var/lib is too small.
""",
    ),
    cfg.IntOpt(
        'image_cache_size',
        default=4096,
        min=1,
        help="""
Size of the bitstream cache in MiB. The least recently used bitstreams are deleted
first. Raise it if one host uses many different bitstreams.
""",
    ),
    cfg.IntOpt(
        'largest_image',
        default=1024,
        min=1,
        help="""
Maximum size of one bitstream in MiB. The agent does not download larger ones. Set it to
the value of [conductor] largest_image.
""",
    ),
    cfg.ListOpt(
        'nova_config_files',
        default=NOVA_CONFIG_FILES,
        help="""
Configuration files of nova-compute on this host, and directories whose *.conf files it
reads, in the same order. Devices that [pci] device_spec or [devices]
enabled_mdev_types assigns to Nova are reported as conflicts and not allocated, because
two services would otherwise allocate them twice. The agent must be able to read the
files, for example as a member of the group nova. The default paths may be missing. Set
it if the files are elsewhere, or to an empty value to ignore Nova.
""",
    ),
    cfg.StrOpt(
        'ownership_file',
        default='',
        help="""
YAML file that states which service owns each card of each host: cyborg, nova or nobody.
The agent does not report cards of other owners. It logs a warning if the configuration
of Nova differs from the file. The file may be the same on all hosts. Create it if hosts
have cards of both services.
""",
    ),
    cfg.ListOpt(
        'excluded_devices',
        default=[],
        help="""
Devices that the agent does not report although a driver supports them, by PCI address
or by vendor:device in hexadecimal digits. Set it to reserve single devices for Nova.
""",
    ),
]
