# SPDX-License-Identifier: Apache-2.0
"""Options of the REST API."""

from typing import Final

from oslo_config import cfg

GROUP: Final = 'api'

PROXY_OPTIONS: Final = frozenset(
    {
        'header_timeout',
        'body_timeout',
        'max_connections_per_address',
        'certificate_file',
        'private_key_file',
    }
)
"""Former options, whose tasks belong to a proxy."""

OPTIONS: Final[list[cfg.Opt]] = [
    cfg.StrOpt(
        'key_file',
        default='/etc/cyborg-lite/api.key',
        help="""
File with the key that signs the messages of the API. `cyborg-lite-manage agent api-key`
prints the key on a controller. Only the owner of the file may have access to it.
""",
    ),
    cfg.StrOpt(
        'auth_strategy',
        default='keystone',
        choices=[
            ('keystone', 'validate tokens as configured in [keystone_authtoken]'),
            ('noauth', 'trust the identity headers of every caller'),
        ],
        help="""
How callers are authenticated. Use "noauth" only for development, or for a service that
listens on the loopback address: any caller can claim to be an administrator.
""",
    ),
    cfg.URIOpt(
        'public_endpoint',
        schemes=['http', 'https'],
        help="""
URL of this service as clients see it; links in responses start with it. A URL with a
path, e.g. https://cloud.example/accelerator, is used unchanged; otherwise the prefix of
the request is appended. If unset, links are derived from the request. Set it if a proxy
hides the scheme, host or prefix and sends no X-Forwarded headers.
""",
    ),
    cfg.BoolOpt(
        'hold_power_on',
        default=True,
        help="""
Return 423 to clients below microversion 2.4, Nova among them, that list the ARQs of an
instance while its devices are rebuilt after a host reboot, or while the agent of its
host is down. Otherwise Nova would start the instance without the devices. Devices that
need no preparation on the host are not affected, nor is the Compute API, which shelves
instances. Set it to false to start instances without waiting for their devices.
""",
    ),
    cfg.BoolOpt(
        'refuse_failed_binds',
        default=True,
        help="""
Return 409 to clients below microversion 2.4, Nova among them, that list the ARQs of an
instance while one of them is BindFailed or its device is lost. Nova then fails the
build, the unshelve or the power-on; otherwise it may start the instance without the
accelerator. Lists with bind_state=resolved, and the Compute API, which shelves
instances, are not affected. Set it to false to let instances run without their
accelerators.
""",
    ),
    cfg.IntOpt(
        'hold_bind',
        default=45,
        min=0,
        max=300,
        help="""
Seconds for which a request of nova-compute or nova-conductor for the ARQs of an
instance waits while the bind of the instance runs; 0 turns the wait off. nova-compute
reads them once. Without the wait, an unshelve fails if its bind has not ended by then.
At most a quarter of [api] threads waits; further requests are answered at once. Under
another WSGI server, set threads to the number of its threads. Raise hold_bind if binds
take longer, for example to program a device. The timeouts of a proxy and
[cyborg] timeout in nova.conf must be at least 15 seconds longer.
""",
    ),
    cfg.HostAddressOpt(
        'host',
        default='0.0.0.0',  # clients are on other hosts
        help="""
IP address or name on which cyborg-lite-api listens. Set it to 127.0.0.1 behind a proxy
on the same host. Ignored under another WSGI server.
""",
    ),
    cfg.PortOpt(
        'port',
        default=6666,
        help="""
TCP port on which cyborg-lite-api listens; 0 selects a free port. Change it if another
service on this host uses the port.
""",
    ),
    cfg.IntOpt(
        'max_limit',
        default=1000,
        min=1,
        max=100000,
        help="""
Maximum number of elements of a page, for requests with microversion 2.5 or later.
Other requests get all elements. Lower it if lists of a large deployment use too much
memory.
""",
    ),
    cfg.StrOpt(
        'default_tolerates',
        default='degraded',
        choices=['degraded', 'none'],
        help="""
Which devices the groups of new and changed device profiles accept beside healthy
ones, if they have no key accel:tolerates: `degraded` or `none`. It concerns requests
with microversion 2.6 or later. Set it to `none` to keep instances from degraded
devices unless a profile accepts them.
""",
    ),
    cfg.ListOpt(
        'extra_accel_keys',
        default=[],
        help="""
Names, without the prefix accel:, that device profiles may use in addition to those of
this service, for requests with microversion 2.6 or later. Name the keys that drivers
of other projects read.
""",
    ),
    cfg.IntOpt(
        'workers',
        default=1,
        min=1,
        max=256,
        help="""
Number of cyborg-lite-api processes. Each process has its own connections to the message
bus. Set it to the number of CPU cores that the API may use.
""",
    ),
    cfg.IntOpt(
        'threads',
        default=32,
        min=1,
        max=1024,
        help="""
Number of requests that one process serves concurrently. Idle connections and clients
that send slowly occupy no thread. Raise it if requests wait although the conductor
answers quickly.
""",
    ),
    cfg.IntOpt(
        'max_connections',
        default=800,
        min=1,
        max=65536,
        help="""
Maximum number of open connections of one cyborg-lite-api process, idle ones included.
Further connections wait. Each connection needs a file descriptor. Raise it, together
with LimitNOFILE of the unit, for a proxy that opens more connections.
""",
    ),
    cfg.IntOpt(
        'max_json_depth',
        default=16,
        min=4,
        max=100,
        help="""
Maximum nesting depth of arrays and objects in a request body. Valid requests need at
most five levels; the limit protects the parser. The default needs no change.
""",
    ),
    cfg.IntOpt(
        'max_profile_groups',
        default=32,
        min=1,
        max=1024,
        help="""
Maximum number of groups in a device profile. Each group becomes a request group in
Placement, whose queries slow down with the number of groups. Raise it only for device
profiles that need more.
""",
    ),
    cfg.IntOpt(
        'max_profile_accelerators',
        default=256,
        min=1,
        max=4096,
        help="""
Maximum number of accelerators in all groups of a device profile together. Each
accelerator becomes an ARQ, so the option limits the cost of one request. Raise it only
for device profiles that need more.
""",
    ),
    cfg.BoolOpt(
        'refuse_impossible_profiles',
        default=False,
        help="""
Return 409 when a device profile is created or changed so that no resource provider of
any host could serve one of its groups, even if all its resources were free; for example
a group with two whole GPUs. Keep it false if device profiles are created before their
hosts exist, or if Placement is not always reachable.
""",
    ),
    cfg.StrOpt(
        'device_type_availability',
        default='yes-no',
        choices=['none', 'yes-no', 'number'],
        help="""
What users read in the list of device types: nothing about free units, whether a unit is
free, or the number of free units. Administrators always read the number.
""",
    ),
    cfg.IntOpt(
        'max_name_length',
        default=255,
        min=1,
        max=255,
        help="""
Maximum length of the name of a device profile, in characters. Lower it if other tools,
e.g. a flavor database, support shorter names only.
""",
    ),
    cfg.IntOpt(
        'max_description_length',
        default=255,
        min=0,
        max=4096,
        help="""
Maximum length of the description of a device profile, in characters. Raise it if users
need longer descriptions.
""",
    ),
    cfg.IntOpt(
        'max_accel_value_length',
        default=255,
        min=36,
        max=4096,
        help="""
Maximum length of the name and of the value of an accel: key in a device profile, in
characters. Raise it if a driver of another vendor supports longer values.
""",
    ),
    cfg.PortOpt(
        'metrics_port',
        default=0,
        help="""
TCP port on which cyborg-lite-api serves metrics in Prometheus format: requests by path,
status and duration. Each worker uses one port, counting up from this one. 0 turns it
off. Other WSGI servers ignore it. Set it if a Prometheus server collects metrics.
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
]
