# SPDX-License-Identifier: Apache-2.0
"""Options of all daemons."""

import socket
from typing import Final

from oslo_config import cfg

GROUP: Final = 'DEFAULT'

OPTIONS: Final[list[cfg.Opt]] = [
    cfg.StrOpt(
        'host',
        default=socket.gethostname(),
        max_length=255,
        sample_default='<the name of this host>',
        help="""
Name of this host in ARQs and in Placement. On a compute node it must be the hypervisor
hostname that Nova uses for its resource provider; otherwise binds from Nova name an
unknown host. Change it if the two names differ.
""",
    ),
    cfg.StrOpt(
        'message_signatures',
        default='required',
        choices=[
            ('required', 'messages without a valid signature are refused'),
            ('optional', 'messages without a signature are accepted'),
            ('off', 'messages are not signed'),
        ],
        help="""
Signatures of the messages between API, conductors and agents. They prevent that a
client of the message bus sends messages in the name of another host or of the API. Set
optional on all daemons while an upgrade from a release without signatures is under way.
Set off only in a lab: any client with the password of the message bus can then change
any device. Messages of the transport local:// stay in one process and are never signed.
""",
    ),
]
