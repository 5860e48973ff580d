# SPDX-License-Identifier: Apache-2.0
"""Options of the agent on each host."""

from typing import Final

from oslo_config import cfg

GROUP: Final = 'agent'

OPTIONS: Final[list[cfg.Opt]] = [
    cfg.ListOpt(
        'enabled_drivers',
        default=['nvidia_gpu_driver'],
        help="""
The drivers that look for accelerators on this host, by the names of their entry
points. What no driver claims is neither reported nor touched. Change it to the kinds
of accelerators that this host has; `cyborg-lite-agent discover` shows the effect.
""",
    ),
    cfg.StrOpt(
        'sysfs_root',
        default='/',
        help="""
The directory below which the drivers find sys, proc and dev. Change it only to try the
service with a tree that shows other hardware, or where a container has the host's
files elsewhere.
""",
    ),
    cfg.StrOpt(
        'privileged_command',
        default='',
        help="""
The command that starts, as root, the process in which cards are changed; what the
process needs to know is added. Empty: an agent that is root starts it itself, and any
other by `sudo -n privsep-helper`, for which it needs the rule in etc/sudoers.d. Set it
where another tool than sudo gives the rights, or where that command lies elsewhere.
""",
    ),
    cfg.StrOpt(
        'state_path',
        default='/var/lib/cyborg-lite',
        help="""
The directory in which the agent keeps what it must know when it starts: what it found
last, what it made for which request, and what the conductor has not heard of yet. It
must outlive a boot of the host, and only the agent may write to it: what stands there
is made again after a boot. It is made when it is first needed.
""",
    ),
    cfg.IntOpt(
        'fingerprint_interval',
        default=5,
        min=1,
        help="""
Seconds between two glances at the names and links of sysfs. Where they have changed
the hardware is looked at in full. Raise it on a host with a great many functions.
""",
    ),
    cfg.IntOpt(
        'discovery_interval',
        default=60,
        min=1,
        help="""
Seconds between two full looks at the hardware of this host where nothing seems to have
changed; what has changed is reported at once. Raise it where reading sysfs is slow.
""",
    ),
    cfg.IntOpt(
        'removal_scans',
        default=3,
        min=1,
        help="""
Full looks in a row that must not find a device until it counts as removed. From the
first of them nobody new is given it. Raise it where devices drop out and come back.
""",
    ),
    cfg.IntOpt(
        'recovery_patience',
        default=180,
        min=0,
        help="""
Seconds after a boot of the host in which the devices of its guests must be made again,
or else their requests end as failed. The drivers of vendors need tens of seconds to
come up. The agent serves nothing new meanwhile, and tells systemd that it is ready
only then; keep the limit of its unit above this.
""",
    ),
    cfg.IntOpt(
        'heartbeat_interval',
        default=30,
        min=1,
        help="""
Seconds between two signs of life to the conductor. Lower it to have a silent host
noticed sooner; the conductor has to answer all hosts that often.
""",
    ),
    cfg.IntOpt(
        'driver_timeout',
        default=60,
        min=1,
        help="""
Seconds that one driver may take for one look. One that is slower is left alone until
it returns; what it said before stands meanwhile, and the other drivers are not held
up. Raise it for a host with a great many devices.
""",
    ),
    cfg.StrOpt(
        'image_directory',
        default='/var/lib/cyborg-lite/images',
        help="""
The directory in which bitstreams are kept once they have been fetched, and what was
loaded from them. Only the agent may write to it: what stands there is loaded into
cards. It is made when it is first needed.
""",
    ),
    cfg.IntOpt(
        'image_cache_size',
        default=4096,
        min=1,
        help="""
MiB of bitstreams that are kept; those that were not used for the longest time go
first. Raise it where many different ones are in use on one host.
""",
    ),
    cfg.IntOpt(
        'largest_image',
        default=1024,
        min=1,
        help="""
MiB that one bitstream may have; larger ones are not fetched. Keep it as
[conductor] largest_image is.
""",
    ),
    cfg.ListOpt(
        'nova_config_files',
        default=[],
        help="""
Configuration files of nova-compute on this host, and directories whose *.conf it reads,
in its order. A device that Nova is given there, by [pci] device_spec or by [devices]
enabled_mdev_types, is not offered: two services would give it to two servers. The agent
must be able to read them. Set it where Nova passes PCI devices through or makes vGPUs.
""",
    ),
    cfg.ListOpt(
        'excluded_devices',
        default=[],
        help="""
Devices that a driver would offer and that are left to others, by PCI address or by
vendor:device in hex digits. Use it to give single cards to Nova;
`cyborg-lite-manage ownership` prints the lines for either side.
""",
    ),
]
