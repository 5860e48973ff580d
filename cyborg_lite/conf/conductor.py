# SPDX-License-Identifier: Apache-2.0
"""Options of the conductor."""

from typing import Final

from oslo_config import cfg

GROUP: Final = 'conductor'

OPTIONS: Final[list[cfg.Opt]] = [
    cfg.StrOpt(
        'agent_key_secret_file',
        default='/etc/cyborg-lite/agent-key-secret',
        help="""
File with the secret from which the message keys of all hosts are derived. All
conductors have the same secret, and no other host has it. `cyborg-lite-manage agent
secret` creates the file. Only its owner may have access to it.
""",
    ),
    cfg.IntOpt(
        'workers',
        default=1,
        min=1,
        help="""
Number of conductor processes on this host. One process serves hundreds of binds per
minute. Raise it if the process uses a whole CPU core.
""",
    ),
    cfg.IntOpt(
        'job_workers',
        default=16,
        min=1,
        max=256,
        help="""
Number of jobs that one conductor process runs concurrently. Raise it if jobs wait
although the hosts, Placement and Nova answer quickly; raise [database] max_pool_size
with it.
""",
    ),
    cfg.IntOpt(
        'job_workers_per_host',
        default=4,
        min=1,
        help="""
Number of jobs of one host that one conductor process runs concurrently. The jobs of a
host that does not answer keep their workers until they time out; the other workers
serve other hosts. Further jobs of the host wait in the database, where other conductors
can start them. It should be below job_workers.
""",
    ),
    cfg.StrOpt(
        'new_devices',
        default='offered',
        choices=('offered', 'maintaining'),
        help="""
What happens to a device that an agent reports for the first time. offered: ARQs can use
it at once. maintaining: it gets no ARQ until an operator enables it with `openstack
accelerator device set --enable` or `openstack accelerator host enable`. Set it to
maintaining if each device is accepted before its first use.
""",
    ),
    cfg.IntOpt(
        'job_lease',
        default=10,
        min=3,
        max=600,
        help="""
Seconds after which another conductor takes over the jobs of a conductor that stopped
renewing its leases. A lower value recovers faster from a crash; a higher value
tolerates longer pauses of the process.
""",
    ),
    cfg.IntOpt(
        'bind_deadline',
        default=240,
        min=1,
        help="""
Seconds after which an unfinished bind fails, releases its attach handles and notifies
Nova; at most job_lease later if a host does not answer. Keep the sum of both below
arq_binding_timeout of Nova, 300 seconds by default.
""",
    ),
    cfg.IntOpt(
        'connect_deadline',
        default=3600,
        min=1,
        help="""
Seconds after a bind within which Nova must report that the instance is spawned. Drivers
with further work on a spawned instance are not called after this time; the ARQs stay
Bound. Raise it if instances take longer to spawn, for example with large images.
""",
    ),
    cfg.IntOpt(
        'event_deadline',
        default=300,
        min=1,
        help="""
Seconds for which an event is sent again while Nova does not answer. Set it to
arq_binding_timeout of Nova, 300 seconds by default: Nova ignores later events.
""",
    ),
    cfg.BoolOpt(
        'require_allocation',
        default=True,
        help="""
Reject a bind if the instance has no allocation on the resource provider in Placement:
the bind is outdated or forged. Set it to false only if ARQs are bound by hand without a
scheduler; the conductor then only logs a warning.
""",
    ),
    cfg.IntOpt(
        'agent_timeout',
        default=60,
        min=1,
        help="""
Seconds that an agent may take to prepare or release attach handles before the call is
repeated. Raise it if the devices of a host take longer to prepare.
""",
    ),
    cfg.IntOpt(
        'audit_interval',
        default=600,
        min=0,
        help="""
Seconds between two audits, for all conductors together. An audit logs orphans: ARQs of
instances that Nova has deleted, ARQs that were never bound, attach handles without an
ARQ, and allocations without an ARQ. 0 turns it off; cyborg-lite-manage audit runs one
audit by hand.
""",
    ),
    cfg.IntOpt(
        'audit_rate',
        default=50,
        min=1,
        max=1000,
        help="""
Requests per second that an audit sends to Placement at most. It reads the allocations
of a provider only if the generation of the provider has changed, or once per day. So
only the first audit of a large cloud is long. Lower it if audits load Placement too
much.
""",
    ),
    cfg.IntOpt(
        'orphan_grace',
        default=3600,
        min=60,
        help="""
Seconds without a change after which an object can be an orphan. Keep it above the time
that building an instance may take.
""",
    ),
    cfg.BoolOpt(
        'reap_orphans',
        default=True,
        help="""
Release the orphans that the audit reports, if no instance can be using them. Nova
forgets ARQs, for instance if a build is interrupted; their accelerators stay in use
until they are released. An object is released orphan_grace seconds after its last
change at the earliest. Set it to false to only log orphans.
""",
    ),
    cfg.IntOpt(
        'alternative_lifetime',
        default=5,
        min=0,
        max=300,
        help="""
Seconds for which the choice of the alternatives of a device profile is valid for
clients without a service token. The first read after this time asks Placement which
alternative has free capacity. Each read of Nova with a service token asks Placement.
""",
    ),
    cfg.IntOpt(
        'usage_retention',
        default=400,
        min=1,
        help="""
Days for which the use of units is kept after its end. GET /v2/usages sums the use of
this time only. Raise it if longer accounts are needed; a use takes about 300 bytes in
the database.
""",
    ),
    cfg.IntOpt(
        'device_event_retention',
        default=90,
        min=1,
        help="""
Days for which events of devices are kept. Raise it if the history of a device is needed
for longer, or lower it if devices often change.
""",
    ),
    cfg.IntOpt(
        'operation_retention',
        default=7,
        min=1,
        help="""
Days for which an operation is kept after its end. Raise it if clients read results
later; an operation takes about 1 kB in the database.
""",
    ),
    cfg.IntOpt(
        'arq_history_retention',
        default=30,
        min=1,
        help="""
Days for which the history of a deleted ARQ is kept after its last step. An existing ARQ
keeps its latest 500 steps. Raise it if failures of servers are examined later; a step
takes about 300 bytes in the database.
""",
    ),
    cfg.IntOpt(
        'cleaning_retention',
        default=400,
        min=1,
        help="""
Days for which the record of a cleaning run is kept after its end. The last record of
each unit is kept as long as its device. Raise it if the proof that a unit was cleaned
is needed for longer; a record takes about 1 kB in the database.
""",
    ),
    cfg.IntOpt(
        'reconfiguration_retention',
        default=90,
        min=1,
        help="""
Days for which a change of the configuration of a device by a hardware set is kept after
its end, with its log of at most 48 kB. The last change of each device is kept as long
as the device. Lower it if playbooks run often.
""",
    ),
    cfg.PortOpt(
        'metrics_port',
        default=0,
        help="""
TCP port on which the conductor serves metrics in Prometheus format: jobs, duration of
binds, events, requests to Placement, heartbeats and device telemetry. Each worker uses
one port, counting up from this one. 0 turns it off. Set it if a Prometheus server
collects metrics.
""",
    ),
    cfg.HostAddressOpt(
        'metrics_host',
        default='127.0.0.1',
        help="""
IP address or name on which metrics_port listens. The port requires no token. Set it to
an address in a network that only the monitoring servers can reach.
""",
    ),
    cfg.BoolOpt(
        'device_metrics',
        default=False,
        help="""
Serve the health, the telemetry and the error counters of each device on metrics_port.
If False, only devices whose health is neither ok nor busy have series of their own, and
the others are counted by model and health. Each device has about 12 series, on each
conductor. Turn it on if Prometheus can store them.
""",
    ),
    cfg.IntOpt(
        'agent_down_after',
        default=100,
        min=1,
        help="""
Seconds without a heartbeat after which an agent or conductor is marked down. While an
agent is down, the free resources of its host are reserved in Placement, and ARQs whose
devices need the host are reported as Unknown. Keep it above three times [agent]
heartbeat_interval. Raise it if the network to a host fails now and then.
""",
    ),
    cfg.IntOpt(
        'load_timeout',
        default=180,
        min=1,
        help="""
Seconds that an agent may take to download and load a bitstream before the call is
repeated. Raise it, together with bind_deadline, if images are large or the network is
slow.
""",
    ),
    cfg.IntOpt(
        'largest_image',
        default=1024,
        min=1,
        help="""
Maximum size of a bitstream in MiB; larger ones are refused. Raise it, together with
[agent] largest_image, for devices with larger bitstreams.
""",
    ),
    cfg.ListOpt(
        'default_images',
        default=[],
        help="""
Images, by uuid, for regions of FPGAs that are released. If an ARQ loaded another
bitstream, the first image that fits the region is loaded after the release. If no image
fits, the region is not allocated until an operator programs it. If the list is empty,
the bitstream from before the ARQ is loaded again. Set it to hide the function of one
project from the next.
""",
    ),
    cfg.ListOpt(
        'hosts_without_compute',
        default=[],
        help="""
Hosts that are not compute nodes of Nova, by the [DEFAULT] host of their agents, with *
for any characters and ? for one. The conductor creates a root provider with this name
in Placement for each host, and the accelerators below it. Set it for hosts whose
accelerators serve clients other than Nova; nova-compute cannot start under such a name.
""",
    ),
    cfg.StrOpt(
        'hardware_sets',
        default='',
        help="""
File with the hardware sets: the playbooks of Ansible that administrators may run to
change the configuration of devices, and for which devices. All conductors have the same
file. Needs ansible-runner and ansible-core, for example from `pip install
cyborg-lite[ansible]`. Empty: no playbook can run. See the page "Ansible" of the
documentation.
""",
    ),
    cfg.IntOpt(
        'placement_audit_interval',
        default=300,
        min=0,
        help="""
Seconds within which the providers of each host are compared with Placement once and
repaired, even if no change is known. The hosts are spread evenly over the interval. A
comparison reads the generations of the providers, with two requests per host, and the
rest only if a generation has changed, or once per hour. Raise it if these requests load
Placement too much. 0 turns it off; a change by another client is then repaired when the
host next changes.
""",
    ),
]
