# SPDX-License-Identifier: Apache-2.0
"""Options of the REST API."""

from typing import Final

from oslo_config import cfg

GROUP: Final = 'api'

OPTIONS: Final[list[cfg.Opt]] = [
    cfg.StrOpt(
        'auth_strategy',
        default='keystone',
        choices=[
            ('keystone', 'tokens are validated as [keystone_authtoken] says'),
            ('noauth', 'every caller is who it says it is'),
        ],
        help="""
Who decides who a caller is. "noauth" is for development and for a service that only
listens on loopback: whoever reaches it is an administrator by saying so.
""",
    ),
    cfg.URIOpt(
        'public_endpoint',
        schemes=['http', 'https'],
        help="""
The address of this service as clients see it; links in answers begin with it. With a
path, e.g. https://cloud.example/accelerator, it is used as it is; without one the
prefix under which the request came is added. Unset, links are made from the request:
set it where a proxy hides the scheme, host or prefix and sends no X-Forwarded headers.
""",
    ),
    cfg.BoolOpt(
        'hold_power_on',
        default=True,
        help="""
Answer 423 to clients below microversion 2.4, Nova among them, that ask for the
accelerator requests of an instance while a device of it is being rebuilt after a reboot
of its host, or while the agent of its host is silent: the guest would start without the
device. Devices that need nothing on the host are never affected. Turn it off to start
guests all the same.
""",
    ),
    cfg.HostAddressOpt(
        'host',
        default='0.0.0.0',  # an API is for others to reach
        help="""
The address on which cyborg-lite-api listens. Set 127.0.0.1 behind a proxy on the same
host. Not used under another WSGI server.
""",
    ),
    cfg.PortOpt(
        'port',
        default=6666,
        help='The port on which cyborg-lite-api listens. 0 lets the system choose one.',
    ),
    cfg.IntOpt(
        'workers',
        default=1,
        min=1,
        max=256,
        help="""
Processes of cyborg-lite-api; each serves on its own and has its own connections to the
bus. One for each core that the API may use is a good number.
""",
    ),
    cfg.IntOpt(
        'threads',
        default=32,
        min=1,
        max=1024,
        help="""
Requests that one process serves at once. Clients that keep their connection open
occupy a thread while they speak; with fewer threads than such clients, connections are
dropped and made again.
""",
    ),
    cfg.StrOpt(
        'certificate_file',
        help="""
A file with the TLS certificate of the service, and those that lead to its root. Set it
with private_key_file to serve HTTPS; unset, cyborg-lite-api serves HTTP.
""",
    ),
    cfg.StrOpt(
        'private_key_file',
        help="""
The file with the private key of certificate_file, unencrypted and readable by the
service alone. Set both or neither.
""",
    ),
    cfg.IntOpt(
        'max_json_depth',
        default=16,
        min=4,
        max=100,
        help="""
How deep arrays and objects of a request body may be nested. Nothing legal is deeper
than five; a bomb is.
""",
    ),
    cfg.IntOpt(
        'max_profile_groups',
        default=32,
        min=1,
        max=1024,
        help="""
How many groups a device profile may have. Each is a request group of its own to
Placement, which slows down with them; raise it only for profiles that need more.
""",
    ),
    cfg.IntOpt(
        'max_profile_accelerators',
        default=256,
        min=1,
        max=4096,
        help="""
How many accelerators all groups of a device profile may ask for together. Each makes
an accelerator request, so this bounds the cost of one call.
""",
    ),
    cfg.BoolOpt(
        'refuse_impossible_profiles',
        default=False,
        help="""
Answer 409 to whoever creates or changes a device profile so that some group of it could
not be served by any single resource provider of any host, were all of them free: two
whole cards from one group, say. Leave it off where profiles are made before the hosts
that are to serve them are there, or where Placement is not always up.
""",
    ),
    cfg.IntOpt(
        'max_name_length',
        default=255,
        min=1,
        max=255,
        help="""
Characters that the name of a device profile may have. Lower it where other tools, e.g.
those that keep flavors, bear shorter names.
""",
    ),
    cfg.IntOpt(
        'max_description_length',
        default=255,
        min=0,
        max=4096,
        help="""
Characters that the description of a device profile may have. Raise it where people
keep more there than a sentence.
""",
    ),
    cfg.IntOpt(
        'max_accel_value_length',
        default=255,
        min=36,
        max=4096,
        help="""
Characters that the name and the value of an accel: key of a device profile may have.
Raise it where a driver of yours takes longer ones.
""",
    ),
]
