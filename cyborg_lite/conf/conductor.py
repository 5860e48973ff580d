# SPDX-License-Identifier: Apache-2.0
"""Options of the conductor."""

from typing import Final

from oslo_config import cfg

GROUP: Final = 'conductor'

OPTIONS: Final[list[cfg.Opt]] = [
    cfg.IntOpt(
        'workers',
        default=1,
        min=1,
        help="""
Conductor processes on this host. One serves hundreds of binds a minute; raise it when
its process uses a whole core.
""",
    ),
    cfg.IntOpt(
        'job_workers',
        default=16,
        min=1,
        max=256,
        help="""
Jobs that one conductor process runs at once. Raise it when jobs wait although the
hosts, Placement and Nova answer quickly; the database pool must keep up with it.
""",
    ),
    cfg.IntOpt(
        'job_lease',
        default=10,
        min=3,
        help="""
Seconds after which the jobs of a conductor that has gone silent are taken by another.
Shorter recovers faster from a crash; longer tolerates longer pauses of the process.
""",
    ),
    cfg.IntOpt(
        'bind_deadline',
        default=240,
        min=1,
        help="""
Seconds after which a bind that has not ended fails, gives back what it holds and tells
Nova; job_lease later at the latest, where a host does not answer. Keep both together
below arq_binding_timeout of Nova, 300 seconds by default.
""",
    ),
    cfg.IntOpt(
        'event_deadline',
        default=300,
        min=1,
        help="""
Seconds for which an event is sent again while Nova does not answer. Nova waits as long
as its arq_binding_timeout, 300 seconds by default; later nobody listens.
""",
    ),
    cfg.BoolOpt(
        'require_allocation',
        default=True,
        help="""
Refuse to bind for an instance that Placement has not allocated the resource provider
to: the request is stale, or forged. Turn it off only where binds are made by hand and
no scheduler allocates; then there is only a warning.
""",
    ),
    cfg.IntOpt(
        'agent_timeout',
        default=60,
        min=1,
        help="""
Seconds that a host may take to prepare or release devices before it is asked again.
Raise it where bitstreams take longer to load.
""",
    ),
    cfg.IntOpt(
        'audit_interval',
        default=600,
        min=0,
        help="""
Seconds from one search for orphans to the next, whatever the number of conductors:
requests of servers that Nova has no more, requests that nobody bound, devices held
without a purpose. What is found is in the log. 0 turns it off; cyborg-lite-manage audit
does the same by hand.
""",
    ),
    cfg.IntOpt(
        'orphan_grace',
        default=3600,
        min=60,
        help="""
Seconds for which something must have been left alone before it can be an orphan. Keep
it longer than a server may take to be built.
""",
    ),
    cfg.BoolOpt(
        'reap_orphans',
        default=False,
        help="""
Release what the search for orphans finds, where no server can be using it. Turn it on
after its findings have been read for a while and were right.
""",
    ),
    cfg.PortOpt(
        'metrics_port',
        default=0,
        help="""
A port on which the figures of the conductor can be fetched in the form of Prometheus:
jobs, binds and how long they took, events, calls of Placement, heartbeats, and how the
devices are. With several workers each takes one, from this one upwards. 0, the default,
serves none; set it where something collects them.
""",
    ),
    cfg.HostAddressOpt(
        'metrics_host',
        default='127.0.0.1',
        help="""
The address on which metrics_port listens. Whoever reaches it needs no token; change it
to that of a network that only those who collect figures can reach.
""",
    ),
    cfg.IntOpt(
        'agent_down_after',
        default=100,
        min=1,
        help="""
Seconds without a heartbeat after which a daemon counts as down. The free units of the
host of such an agent are then reserved in Placement, and requests whose device needs
the host are shown as Unknown, until it is back. Keep it above three times [agent]
heartbeat_interval; raise it where hosts are cut off now and then.
""",
    ),
    cfg.IntOpt(
        'load_timeout',
        default=180,
        min=1,
        help="""
Seconds that a host may take to fetch a bitstream and load it before it is asked again.
Raise it, and bind_deadline with it, where images are large or the network is slow.
""",
    ),
    cfg.IntOpt(
        'largest_image',
        default=1024,
        min=1,
        help="""
MiB that a bitstream may have; larger ones are refused. Raise it for cards that need
larger ones, and [agent] largest_image with it.
""",
    ),
    cfg.ListOpt(
        'default_images',
        default=[],
        help="""
Images, by uuid, of which the first that fits is loaded into the region of an FPGA when
a request for which another bitstream was loaded is released. Where none fits nobody is
given the region until an operator has programmed it. Empty, the default, loads what was
there before that request. Set it where nobody shall meet the function of another.
""",
    ),
    cfg.ListOpt(
        'hosts_without_compute',
        default=[],
        help="""
Hosts that are no compute nodes of Nova, by the [DEFAULT] host of their agents, with *
for any characters and ? for one. Placement gets a root provider of that name for each,
with its accelerators below it. Set it for hosts whose accelerators others than Nova
use; a nova-compute cannot start under a name that was given away so.
""",
    ),
    cfg.IntOpt(
        'placement_audit_interval',
        default=3600,
        min=0,
        help="""
Seconds in which each host is once compared with Placement in full and repaired there,
whether or not anything is known to have changed. Hosts take turns, so that Placement
is asked evenly. Lower it where others change the providers of this service; 0 turns it
off, and changes made behind its back are then found when the host next changes.
""",
    ),
]
